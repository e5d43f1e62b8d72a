"""Session tokens: issued by STS, and verified in the requests that carry one.

A token states whose session it is, when it expires and who requested it, with a MAC under the
server's key. The secret of the session is derived from the same data. So the server stores no
sessions, and tokens survive a restart. A session ends with its user or role, and with all of its
issuers: the key that assumed a role, the user of that key, and the roles in between.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

import msgspec

from partita.server.security.identities.user_directory import new_id

SEAL_BYTES: Final = 32
USER, ROLE = "user", "role"


class SessionIssuer(msgspec.Struct, frozen=True, array_like=True):
    """The user (with the key) or the role whose session assumed a role."""

    kind: str
    name: str
    principal_id: str
    key_id: str = ""
    """The key of the user; the session ends when it is disabled."""


class SessionClaims(msgspec.Struct, frozen=True, array_like=True):
    access_key_id: str
    kind: str
    name: str
    """The name of the user or the role."""
    principal_id: str
    """The id of the user or role; it distinguishes a new user of the same name."""
    session_name: str
    issued_at: int
    expires_at: int
    policy: str = ""
    """The session policy that limits the session, or ""."""
    source_key_id: str = ""
    """The key that requested the session."""
    issuers: tuple[SessionIssuer, ...] | None = None
    """The issuers of a role's session, the user first; empty if the server itself assumed the role.
    Tokens of versions that did not record issuers have None."""


class IssuedSession(msgspec.Struct, frozen=True):
    session: SessionClaims
    secret: str
    token: str


_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(SessionClaims)


class SessionSeal:
    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def issue(
        self,
        kind: str,
        name: str,
        principal_id: str,
        session_name: str,
        now: float,
        seconds: int,
        policy: str = "",
        source_key_id: str = "",
        issuers: tuple[SessionIssuer, ...] = (),
    ) -> IssuedSession:
        session = SessionClaims(
            new_id("ASIA"),
            kind,
            name,
            principal_id,
            session_name,
            int(now),
            int(now) + seconds,
            policy,
            source_key_id,
            issuers,
        )
        content = _encode(session)
        token = b64encode(self._digest(b"token", content) + content).decode()
        return IssuedSession(session, self._secret(content), token)

    def open(self, token: bytes) -> tuple[SessionClaims, str] | None:
        """Returns the session and secret of a token, or None if this server did not issue it."""
        try:
            sealed = b64decode(token, validate=True)
        except (Base64Error, ValueError):
            return None
        seal, content = sealed[:SEAL_BYTES], sealed[SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._digest(b"token", content)):
            return None
        return _decoder.decode(content), self._secret(content)

    def _secret(self, content: bytes) -> str:
        return b64encode(self._digest(b"secret", content)[:30]).decode()

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return hmac.digest(self._key, purpose + b"\0" + content, "sha256")
