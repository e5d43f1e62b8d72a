"""Session tokens: what STS hands out, and what a request with one stands for.

A token says whose session it is, until when, and who asked for it, sealed with the server's key;
its secret follows from all that. So nothing is kept of a session, it survives a restart, and it
ends with its user or role, and with everybody who stands behind it: the key that assumed a role,
its user, and the roles in between.
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
    """Who assumed a role: a user by a key, or a session of another role."""

    kind: str
    name: str
    principal_id: str
    key_id: str = ""
    """Of the user: the session ends with it."""


class SessionClaims(msgspec.Struct, frozen=True, array_like=True):
    access_key_id: str
    kind: str
    name: str
    """Of the user or the role."""
    principal_id: str
    """Its id: another user of the same name has another."""
    session_name: str
    issued_at: int
    expires_at: int
    policy: str = ""
    """What the session is limited to, if it is."""
    source_key_id: str = ""
    """With which it was asked for."""
    issuers: tuple[SessionIssuer, ...] | None = None
    """Of a role's session, the user first; none if this server asked for it itself. Sessions from
    before this was written down have None."""


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
        """The session of a token, and its secret; None if it was not issued here."""
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
