"""AWS STS: GetCallerIdentity, AssumeRole and GetSessionToken, in AWS's query protocol.

Parameters come as a form or in the query of a presigned URL, and responses are XML.
(API reference of AWS Security Token Service)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import uuid4
from xml.sax.saxutils import escape

from partita.errors import (
    AccessDeniedException,
    DynamoDBError,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    ThrottlingException,
    UnrecognizedClientException,
)
from partita.foundation.service_limits import KB
from partita.server.http.http_messages import HttpRequest, HttpResponse
from partita.server.security.identities.callers import Caller, role_arn
from partita.server.security.identities.session_tokens import ROLE, USER, IssuedSession
from partita.server.security.identities.user_directory import (
    ACCOUNT_ID,
    SESSION_SECONDS_MAX,
    SESSION_SECONDS_MIN,
    Role,
)
from partita.server.security.policies.policy_decision import (
    CallerPolicies,
    PolicyRequest,
    applies,
    decide,
)
from partita.server.security.policies.policy_documents import (
    TRUST,
    PolicyError,
    parse,
    parse_document,
)
from partita.server.security.rights.pass_role import ROLE_ARN
from partita.server.security.rights.requested_rights import RequestedRight

if TYPE_CHECKING:
    from partita.server.security.authorization_gate import Gate

SERVICE: Final = "sts"
NAMESPACE: Final = "https://sts.amazonaws.com/doc/2011-06-15/"
VERSION: Final = "2011-06-15"
XML: Final = b"text/xml"
TOKEN_SECONDS, TOKEN_SECONDS_MAX = 43_200, 129_600
ROLE_SECONDS: Final = 3600
POLICY_CHARS_MAX: Final = 2048
FORM_BYTES_MAX: Final = 32 * KB
FIELDS_MAX: Final = 200
UNKNOWN_ACTION: Final = "Unknown"
"""The action of an unauthenticated request in the audit log. A form is not parsed before its
signature is verified."""
_SESSION_NAME: Final = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)

Parameters = Mapping[str, str]
Answer = Mapping[str, Any]


class StsError(DynamoDBError):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.sts_code = code
        self.sts_status = status


_CODES: Final[dict[type[DynamoDBError], tuple[str, int]]] = {
    AccessDeniedException: ("AccessDenied", 403),
    ExpiredTokenException: ("ExpiredToken", 403),
    IncompleteSignatureException: ("IncompleteSignature", 400),
    InvalidSignatureException: ("SignatureDoesNotMatch", 403),
    MissingAuthenticationTokenException: ("MissingAuthenticationToken", 403),
    ThrottlingException: ("Throttling", 400),
    UnrecognizedClientException: ("InvalidClientTokenId", 403),
}
"""STS's codes and statuses for errors that other services report under other names."""


class StsRequest(NamedTuple):
    """An authenticated request."""

    gate: Gate
    caller: Caller
    request: HttpRequest
    parameters: Parameters
    now: float


class StsResponse:
    """A response, with the caller and action for the audit log as far as these are known."""

    __slots__ = ("action", "caller", "parameters", "response")

    def __init__(self) -> None:
        self.action = UNKNOWN_ACTION
        self.caller: Caller | None = None
        self.parameters: Parameters = {}
        self.response = HttpResponse(500)


def answer(gate: Gate, request: HttpRequest) -> StsResponse:
    request_id = str(uuid4())
    sts_response = StsResponse()
    try:
        sts_response.response = _respond(gate, request, request_id, sts_response)
    except DynamoDBError as error:
        if isinstance(error, StsError):
            code, status = error.sts_code, error.sts_status
        else:
            code, status = _CODES.get(type(error), ("InternalFailure", 500))
        members = {"Type": "Sender", "Code": code, "Message": error.message}
        content = f"<Error>{_xml(members)}</Error><RequestId>{request_id}</RequestId>"
        sts_response.response = _document(status, "ErrorResponse", content)
    return sts_response


def _respond(
    gate: Gate, request: HttpRequest, request_id: str, sts_response: StsResponse
) -> HttpResponse:
    if len(request.body) > FORM_BYTES_MAX:
        text = f"A request may have {FORM_BYTES_MAX} bytes."
        raise StsError("RequestEntityTooLarge", text, 413)
    if request.method == b"POST":
        caller = gate.authenticate(request, SERVICE)
    else:
        caller = gate.authenticate_query(request, SERVICE)
    sts_response.caller = caller
    parameters = sts_response.parameters = _parameters(request)
    action = sts_response.action = parameters.get("Action", "")
    operation = OPERATIONS.get(action)
    version = parameters.get("Version", VERSION)
    if operation is None or version != VERSION:
        raise StsError("InvalidAction", f"Could not find operation {action} for version {version}")
    result = _xml(operation(StsRequest(gate, caller, request, parameters, time())))
    content = (
        f"<{action}Result>{result}</{action}Result>"
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    )
    return _document(200, f"{action}Response", content)


def _parameters(request: HttpRequest) -> Parameters:
    text = request.body if request.method == b"POST" else request.target.partition(b"?")[2]
    try:
        return dict(parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
    except ValueError:
        raise StsError("MalformedInput", "The request is not a form.") from None


# Operations


def get_caller_identity(sts_request: StsRequest) -> Answer:
    """Returns who the caller is. Needs no right, as on AWS."""
    caller = sts_request.caller
    return {"Arn": caller.arn, "UserId": caller.user_id, "Account": caller.principal.account}


def get_session_token(sts_request: StsRequest) -> Answer:
    """Issues a session of the calling user. Needs no right, as a session has the rights of its
    user.

    (API reference: "No permissions are required for users to perform this operation")
    """
    caller = sts_request.caller
    if caller.session is not None or caller.kind not in ("User", "Account"):
        raise AccessDeniedException("Cannot call GetSessionToken with session credentials")
    seconds = _seconds(sts_request, TOKEN_SECONDS, TOKEN_SECONDS_MAX)
    name = caller.keys["aws:username"][0] if "aws:username" in caller.keys else "root"
    issued = sts_request.gate.callers.seal.issue(
        USER, name, caller.user_id, name, sts_request.now, seconds, "", caller.access_key_id
    )
    return {"Credentials": _credentials(issued)}


def assume_role(sts_request: StsRequest) -> Answer:
    parameters, gate, caller = sts_request.parameters, sts_request.gate, sts_request.caller
    for name in parameters:
        if name.startswith(("PolicyArns.", "Tags.", "TransitiveTagKeys.", "ProvidedContexts.")):
            raise _invalid(f"{name.partition('.')[0]} is not supported by this server.")
    arn, session_name = _required(parameters, "RoleArn"), _required(parameters, "RoleSessionName")
    match = ROLE_ARN.fullmatch(arn)
    if match is None:
        raise _invalid(f"{arn} is invalid")
    role_name = match[1]
    if not _SESSION_NAME.fullmatch(session_name):
        raise _invalid(
            f"1 validation error detected: Value '{session_name}' at 'roleSessionName' failed to "
            "satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@-]*"
        )
    role = gate.callers.directory.roles.get(role_name)
    if role is None or not _may_assume(sts_request, role_name, role):
        raise AccessDeniedException(
            f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {arn}"
        )
    seconds = _seconds(sts_request, ROLE_SECONDS, SESSION_SECONDS_MAX)
    longest = ROLE_SECONDS if caller.kind == "AssumedRole" else role.session_seconds_max
    if seconds > longest:
        raise _invalid(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
        )
    policy = _session_policy(parameters.get("Policy", ""))
    issued = gate.callers.seal.issue(
        *(ROLE, role_name, role.id, session_name, sts_request.now, seconds, policy),
        issuers=caller.issuers,
    )
    return {
        "Credentials": _credentials(issued),
        "AssumedRoleUser": {
            "AssumedRoleId": f"{role.id}:{session_name}",
            "Arn": f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role_name}/{session_name}",
        },
    }


def _may_assume(sts_request: StsRequest, name: str, role: Role) -> bool:
    """True if the role's trust policy and the caller's own policies let the caller assume the role.

    A trust policy that names the caller suffices. One that names the account leaves the decision to
    the caller's own policies.
    """
    caller = sts_request.caller
    if caller.kind == "Account":
        # (AssumeRole: "You cannot use AWS account root user credentials")
        return False
    trust = parse_document(role.trust, f"the trust policy of {name}", TRUST)
    keys = {"sts:rolesessionname": (sts_request.parameters["RoleSessionName"],)}
    if "ExternalId" in sts_request.parameters:
        keys["sts:externalid"] = (sts_request.parameters["ExternalId"],)
    need = RequestedRight("sts:AssumeRole", role_arn(name), lambda: keys)
    context = sts_request.gate.context(caller, sts_request.request, need)
    policies = CallerPolicies(
        caller.policies.identity, (trust,), caller.policies.boundary, caller.policies.session
    )
    policy_request = PolicyRequest(caller.principal, need.action, need.resource, context)
    is_trusted = any(
        applies(statement, policy_request)
        for statement in trust.statements
        if not statement.is_deny
    )
    return is_trusted and decide(policies, policy_request).is_allowed


OPERATIONS: Final[dict[str, Callable[[StsRequest], Answer]]] = {
    "AssumeRole": assume_role,
    "GetCallerIdentity": get_caller_identity,
    "GetSessionToken": get_session_token,
}


def _required(parameters: Parameters, name: str) -> str:
    if not parameters.get(name):
        shown = name[0].lower() + name[1:]
        raise _invalid(
            f"1 validation error detected: Value null at '{shown}' failed to satisfy constraint: "
            "Member must not be null"
        )
    return parameters[name]


def _seconds(sts_request: StsRequest, default: int, most: int) -> int:
    text = sts_request.parameters.get("DurationSeconds")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise StsError("MalformedInput", "DurationSeconds is not a number.")
    for is_wrong, relation, bound in (
        (int(text) < SESSION_SECONDS_MIN, "greater", SESSION_SECONDS_MIN),
        (int(text) > most, "less", most),
    ):
        if is_wrong:
            raise _invalid(
                f"1 validation error detected: Value '{text}' at 'durationSeconds' failed to "
                f"satisfy constraint: Member must have value {relation} than or equal to {bound}"
            )
    return int(text)


def _session_policy(text: str) -> str:
    if not text:
        return ""
    if len(text) > POLICY_CHARS_MAX:
        raise _invalid(f"A session policy has up to {POLICY_CHARS_MAX} characters.")
    try:
        parse(text, "session")
    except PolicyError as error:
        raise StsError("MalformedPolicyDocument", error.reason) from error
    return json.dumps(json.loads(text), separators=(",", ":"))


def _credentials(issued: IssuedSession) -> Answer:
    expires = datetime.fromtimestamp(issued.session.expires_at, UTC)
    return {
        "AccessKeyId": issued.session.access_key_id,
        "SecretAccessKey": issued.secret,
        "SessionToken": issued.token,
        "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _invalid(message: str) -> StsError:
    return StsError("ValidationError", message)


def _xml(members: Answer) -> str:
    return "".join(
        f"<{name}>{_xml(value) if isinstance(value, Mapping) else escape(str(value))}</{name}>"
        for name, value in members.items()
    )


def _document(status: int, name: str, content: str) -> HttpResponse:
    body = f'<{name} xmlns="{NAMESPACE}">{content}</{name}>\n'
    return HttpResponse(status, body.encode(), XML)
