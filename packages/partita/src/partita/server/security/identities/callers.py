"""Callers: the users and sessions behind access keys and session tokens, with their policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from partita.database.tables.definition.table_schema import ResourcePolicy
from partita.errors import ExpiredTokenException, PartitaError, UnrecognizedClientException
from partita.server.security.identities.session_tokens import (
    USER,
    SessionClaims,
    SessionIssuer,
    SessionSeal,
)
from partita.server.security.identities.user_directory import (
    ACCOUNT_ID,
    ROOT,
    Directory,
    Role,
    User,
)
from partita.server.security.policies.managed_policies import MANAGED
from partita.server.security.policies.policy_decision import (
    CallerPolicies,
    PolicyRequest,
    Principal,
    applicable,
    is_plain_allow,
)
from partita.server.security.policies.policy_documents import (
    IDENTITY,
    RESOURCE,
    Policy,
    parse_cached,
    parse_document,
)
from partita.server.security.rights.service_tables import is_reserved

UNKNOWN_KEY: Final = "The security token included in the request is invalid."
EXPIRED_TOKEN: Final = "The security token included in the request is expired"
SESSIONS_MAX: Final = 4096
APPLICABLE_MAX: Final = 1024


class ApplicableStatements:
    """The statements of a caller's policies that may apply to an action on a resource."""

    __slots__ = ("is_plain_allow", "is_reserved", "of_resource", "policies")

    def __init__(
        self, policies: CallerPolicies, of_resource: ResourcePolicy | None, is_reserved: bool
    ) -> None:
        self.policies = policies
        self.of_resource = of_resource
        """The resource's own policy, which is among them."""
        self.is_reserved = is_reserved
        """True if they are not sufficient: a table of a service needs a further right."""
        self.is_plain_allow = not is_reserved and is_plain_allow(policies)


class Caller:
    """A user, session or process that may sign requests, with the policies that apply to it."""

    __slots__ = (
        "_applicable",
        "access_key_id",
        "keys",
        "kind",
        "policies",
        "principal",
        "session",
        "user_id",
    )

    def __init__(
        self,
        principal: Principal,
        kind: str,
        user_id: str,
        access_key_id: str,
        policies: CallerPolicies,
        session: SessionClaims | None = None,
        username: str | None = None,
    ) -> None:
        self.principal = principal
        self.kind = kind
        """User, AssumedRole, Account, or AWSService."""
        self.user_id = user_id
        self.access_key_id = access_key_id
        self.policies = policies
        self.session = session
        self.keys: dict[str, Sequence[str]] = {
            "aws:principalarn": (principal.role_arn or principal.arn,),
            "aws:principalaccount": (principal.account,),
            "aws:principaltype": (kind,),
            "aws:userid": (user_id,),
        }
        """Condition keys with the same value in all requests of this caller."""
        if username is not None:
            self.keys["aws:username"] = (username,)
        if session is not None:
            issued = datetime.fromtimestamp(session.issued_at, UTC)
            self.keys["aws:tokenissuetime"] = (issued.strftime("%Y-%m-%dT%H:%M:%SZ"),)
        self._applicable: dict[tuple[str, str], ApplicableStatements] = {}

    @property
    def arn(self) -> str:
        return self.principal.arn

    @property
    def issuers(self) -> tuple[SessionIssuer, ...]:
        """The issuers of a session that this caller requests: it ends with any of them."""
        session = self.session
        if session is None:
            name = self.keys.get("aws:username", (ROOT,))[0]
            return (SessionIssuer(USER, name, self.user_id, self.access_key_id),)
        own = SessionIssuer(session.kind, session.name, session.principal_id, session.source_key_id)
        # A chain of roles may contain the same role twice.
        return tuple(dict.fromkeys((*(session.issuers or ()), own)))

    def applicable(
        self, action: str, resource: str, of_resource: ResourcePolicy | None
    ) -> ApplicableStatements:
        """Returns the statements that may apply to an action on a resource.

        They are cached, because they are the same for many requests. Whether a statement does apply
        is decided for each request.
        """
        cache_key = action, resource
        cached = self._applicable.get(cache_key)
        if cached is not None and cached.of_resource is of_resource:
            return cached
        policies = self.policies
        if of_resource is not None:
            parsed = parse_cached(of_resource.document, resource, RESOURCE)
            policies = policies._replace(resource=(parsed,))
        statements = ApplicableStatements(
            applicable(policies, PolicyRequest(self.principal, action, resource, {})),
            of_resource,
            is_reserved(action, resource),
        )
        if len(self._applicable) >= APPLICABLE_MAX:
            self._applicable.clear()
        self._applicable[cache_key] = statements
        return statements


KeyEntry = tuple[str, Caller]
"""The secret of a key, and its caller."""


class Callers:
    """All callers of a directory, by access key. `others` are keys outside the directory."""

    def __init__(self, directory: Directory, others: Mapping[str, KeyEntry] | None = None) -> None:
        self.directory = directory
        self._named = {
            name: parse_document(document, name) for name, document in directory.policies.items()
        }
        self.seal = SessionSeal(directory.session_key)
        self._sessions: dict[bytes, tuple[SessionClaims, KeyEntry]] = {}
        self._by_key: dict[str, KeyEntry] = dict(others or {})
        for name, user in directory.users.items():
            for key in user.active_keys:
                self._by_key[key.id] = (key.secret, self.user(name, user, key.id))

    def find(self, access_key_id: str, token: bytes | None, now: float) -> KeyEntry:
        """Returns the secret and the caller of a key that may be used now, or raises. The key of a
        session needs its token."""
        if token is None:
            key_entry = self._by_key.get(access_key_id)
            if key_entry is None:
                raise unknown_key()
            return key_entry
        entry = self._sessions.get(token)
        if entry is None:
            entry = self._opened(token)
        session, key_entry = entry
        if session.access_key_id != access_key_id:
            raise unknown_key()
        if now >= session.expires_at:
            raise ExpiredTokenException(EXPIRED_TOKEN)
        return key_entry

    def _opened(self, token: bytes) -> tuple[SessionClaims, KeyEntry]:
        opened = self.seal.open(token) if self.directory.session_key else None
        if opened is None:
            raise unknown_key()
        session, secret = opened
        caller = self._in_session(session)
        if caller is None:
            raise unknown_key()
        if len(self._sessions) >= SESSIONS_MAX:
            self._sessions.clear()
        self._sessions[token] = entry = (session, (secret, caller))
        return entry

    def _in_session(self, session: SessionClaims) -> Caller | None:
        """Returns the caller of a session, or None if the session has ended.

        A session ends when its user or role is deleted (a new one of the same name has another id),
        when its key is disabled, and when one of its issuers ends.
        """
        limits = (parse_cached(session.policy, "session", IDENTITY),) if session.policy else None
        own = SessionIssuer(session.kind, session.name, session.principal_id, session.source_key_id)
        if not self._is_good(own):
            return None
        if session.kind == USER:
            user = self.directory.users[session.name]
            return self.user(session.name, user, session.access_key_id, session, limits)
        if session.issuers is None or not all(map(self._is_good, session.issuers)):
            return None
        role = self.directory.roles[session.name]
        return self.role(session.name, role, session.access_key_id, session, limits)

    def _is_good(self, issuer: SessionIssuer) -> bool:
        if issuer.kind == USER:
            user = self.directory.users.get(issuer.name)
            if user is None or user.id != issuer.principal_id:
                return False
            return issuer.key_id in [key.id for key in user.active_keys]
        role = self.directory.roles.get(issuer.name)
        return role is not None and role.id == issuer.principal_id

    def user(
        self,
        name: str,
        user: User,
        access_key_id: str,
        session: SessionClaims | None = None,
        limits: Sequence[Policy] | None = None,
    ) -> Caller:
        is_root = name == ROOT
        arn = f"arn:aws:iam::{ACCOUNT_ID}:{'root' if is_root else f'user/{name}'}"
        policies = CallerPolicies(
            identity=self.policies_of(user),
            boundary=self._limit(user.boundary),
            session=limits,
        )
        return Caller(
            Principal(arn, ACCOUNT_ID, is_root=is_root),
            "Account" if is_root else "User",
            user.id,
            access_key_id,
            policies,
            session,
            None if is_root else name,
        )

    def role(
        self,
        name: str,
        role: Role,
        access_key_id: str,
        session: SessionClaims,
        limits: Sequence[Policy] | None = None,
    ) -> Caller:
        arn = f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{name}/{session.session_name}"
        policies = CallerPolicies(
            identity=self._policies(role.policies),
            boundary=self._limit(role.boundary),
            session=limits,
        )
        user_id = f"{role.id}:{session.session_name}"
        principal = Principal(arn, ACCOUNT_ID, role_arn(name))
        return Caller(principal, "AssumedRole", user_id, access_key_id, policies, session)

    def policies_of(self, user: User) -> tuple[Policy, ...]:
        """Returns the policies of a user and of its groups."""
        names = list(user.policies)
        for group in user.groups:
            if group in self.directory.groups:
                names += self.directory.groups[group].policies
        return self._policies(names)

    def _policies(self, names: Iterable[str]) -> tuple[Policy, ...]:
        return tuple(self.policy(name) for name in dict.fromkeys(names))

    def _limit(self, name: str | None) -> Sequence[Policy] | None:
        return None if name is None else (self.policy(name),)

    def policy(self, name: str) -> Policy:
        policy = self._named.get(name) or MANAGED.get(name)
        if policy is None:
            raise PartitaError(f"There is no policy {name}; `partita policies list` shows all.")
        return policy


def unknown_key() -> UnrecognizedClientException:
    return UnrecognizedClientException(UNKNOWN_KEY)


def role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT_ID}:role/{name}"


def service_caller(service: str, access_key_id: str, document: dict[str, Any]) -> Caller:
    """Returns the caller for a process of this server, which signs with its own key."""
    arn = f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/{service}"
    policies = CallerPolicies(identity=(parse_document(document, service),))
    principal = Principal(arn, ACCOUNT_ID, service=service)
    return Caller(principal, "AWSService", service, access_key_id, policies)
