"""Roles that processes of this server act for: the tasks of a workflow have the rights of its role.

Such a process signs with its own key and names the role in a header. The role must trust the
service, as roles for Step Functions do on AWS.
"""

from __future__ import annotations

from time import time
from typing import Final

import orjson

from partita.client.aws_services import ROLE_HEADER
from partita.errors import AccessDeniedException, SerializationException
from partita.server.protocol import json_codec
from partita.server.security.identities.callers import Caller, Callers, role_arn
from partita.server.security.identities.session_tokens import ROLE, SessionClaims
from partita.server.security.policies.policy_decision import PolicyRequest, applies
from partita.server.security.policies.policy_documents import TRUST, parse_document
from partita.server.security.policies.policy_patterns import ConditionContext
from partita.server.security.rights.pass_role import ROLE_ARN
from partita.server.security.rights.requested_rights import RequestedRight

HEADER: Final = ROLE_HEADER.lower().encode()
CHECK, SESSION = b"PartitaRights.Check", b"PartitaRights.Session"
NEED: Final = RequestedRight("sts:AssumeRole", "*")
SESSION_SECONDS: Final = 3600


def caller_for(callers: Callers, service: Caller, arn: str, context: ConditionContext) -> Caller:
    """Returns a session of a role. Raises unless the role exists and trusts the service."""
    match = ROLE_ARN.fullmatch(arn)
    role = callers.directory.roles.get(match[1]) if match else None
    if match is None or role is None:
        raise _not_trusted(service, arn)
    name = match[1]
    trust = parse_document(role.trust, f"the trust policy of {name}", TRUST)
    trust_request = PolicyRequest(service.principal, NEED.action, role_arn(name), context)
    allowed = any(applies(statement, trust_request) for statement in trust.allowances)
    if not allowed or any(applies(statement, trust_request) for statement in trust.denials):
        raise _not_trusted(service, arn)
    now = int(time())
    session_name = service.principal.service.partition(".")[0]
    session = SessionClaims("", ROLE, name, role.id, session_name, now, now + SESSION_SECONDS)
    return callers.role(name, role, service.access_key_id, session)


def session_for(callers: Callers, caller: Caller) -> bytes:
    """Returns credentials for a caller of `caller_for`, as JSON with the members of STS."""
    session = caller.session
    assert session is not None
    issued = callers.seal.issue(
        *(ROLE, session.name, session.principal_id, session.session_name),
        *(session.issued_at, SESSION_SECONDS),
    )
    credentials = {
        "AccessKeyId": issued.session.access_key_id,
        "SecretAccessKey": issued.secret,
        "SessionToken": issued.token,
        "Expiration": issued.session.expires_at,
    }
    return orjson.dumps(credentials)


def _not_trusted(service: Caller, arn: str) -> AccessDeniedException:
    return AccessDeniedException(
        f"Neither the global service principal {service.principal.service}, nor the regional one "
        f"is authorized to assume the provided role {arn}."
    )


def need_in(body: bytes) -> RequestedRight:
    """Returns the right that a process of this server asks about for a role."""
    request = json_codec.decode(body)
    action, resource = request.get("Action"), request.get("Resource")
    if not isinstance(action, str) or not isinstance(resource, str):
        raise SerializationException
    return RequestedRight(action, resource)
