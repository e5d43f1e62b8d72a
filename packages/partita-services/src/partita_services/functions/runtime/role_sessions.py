"""The credentials of functions, where the server verifies signatures: sessions of their roles, as
on Lambda."""

from __future__ import annotations

import os
from typing import Any

from partita.client import Client, ClientError
from partita.errors import RoleNotAssumed
from partita.foundation.clock import Clock

LEFT_SECONDS_MIN = 1200.0
"""A new process gets a session only if that outlasts the longest call."""
NOT_ASSUMED = "The role defined for the function cannot be assumed by Lambda."


class RoleSessions:
    def __init__(self, client: Client, certificate: str, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._trusted = {"AWS_CA_BUNDLE": certificate} if certificate else {}
        self._sessions: dict[str, dict[str, Any]] = {}

    async def environment(self, role: str, *, is_own: bool = False) -> dict[str, str]:
        """The variables for processes with a role. A function of the settings without a role may
        use the keys in the server's environment."""
        if not self._client.is_signing or (is_own and "AWS_ACCESS_KEY_ID" in os.environ):
            return dict(self._trusted)
        try:
            session = await self._session(role)
        except RoleNotAssumed:
            if is_own:
                return dict(self._trusted)
            raise
        return {
            **self._trusted,
            "AWS_ACCESS_KEY_ID": session["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
            "AWS_SESSION_TOKEN": session["SessionToken"],
        }

    async def check(self, role: str) -> None:
        """Refuse a role that does not exist, or does not trust Lambda."""
        if self._client.is_signing:
            await self._session(role)

    async def _session(self, role: str) -> dict[str, Any]:
        session = self._sessions.get(role)
        if session is None or session["Expiration"] - self._clock() < LEFT_SECONDS_MIN:
            try:
                session = await self._client.session_of(role)
            except ClientError as error:
                # STS does not say whether the role is missing or does not trust Lambda, and neither
                # does Lambda.
                if error.code == "AccessDeniedException":
                    raise RoleNotAssumed(NOT_ASSUMED) from error
                raise
            self._sessions[role] = session
        return session
