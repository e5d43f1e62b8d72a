"""The sessions of signed-in users of the console.

A session and its secret key stay in this process. The browser has a cookie that scripts cannot read
(HttpOnly), and a token that only the console's own pages can read.
"""

from __future__ import annotations

from secrets import token_urlsafe
from typing import Final

from partita.client import Credentials
from partita.foundation.clock import Clock, system_clock

COOKIE: Final = "partita-console"
IDLE_SECONDS_MAX: Final = 3600.0
SECONDS_MAX: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1000
SESSIONS_PER_USER_MAX: Final = 50
"""Far below SESSIONS_MAX, so that one user cannot evict the sessions of others."""


class ConsoleSession:
    def __init__(self, credentials: Credentials | None, arn: str, now: float) -> None:
        self.credentials = credentials
        self.arn = arn
        self.token = token_urlsafe(24)
        """The page sends it with every request; pages of other sites do not have it."""
        self.began_at = now
        self.used_at = now

    def is_over(self, now: float) -> bool:
        return now - self.used_at > IDLE_SECONDS_MAX or now - self.began_at > SECONDS_MAX


class ConsoleSessions:
    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._by_cookie: dict[str, ConsoleSession] = {}

    def open(self, credentials: Credentials, arn: str) -> str:
        """Opens a session and returns the value of its cookie."""
        now = self._clock()
        sessions = [
            (value, session)
            for value, session in self._by_cookie.items()
            if not session.is_over(now)
        ]
        # The session that has been idle longest makes room.
        sessions.sort(key=lambda cookie_and_session: cookie_and_session[1].used_at)
        of_user = [value for value, session in sessions if session.arn == arn]
        self._by_cookie = dict(sessions[-SESSIONS_MAX + 1 :])
        for surplus in of_user[: -SESSIONS_PER_USER_MAX + 1]:
            self._by_cookie.pop(surplus, None)
        value = token_urlsafe(32)
        self._by_cookie[value] = ConsoleSession(credentials, arn, now)
        return value

    def find(self, header: bytes | None) -> ConsoleSession | None:
        """Returns the session that belongs to a request's Cookie header."""
        session = self._by_cookie.get(_value(header))
        now = self._clock()
        if session is None or session.is_over(now):
            return None
        session.used_at = now
        return session

    def close(self, header: bytes | None) -> None:
        self._by_cookie.pop(_value(header), None)


def cookie(value: str, *, is_secure: bool) -> str:
    """Returns a Set-Cookie header for a session cookie; an empty value deletes the cookie."""
    parts = [f"{COOKIE}={value}", "Path=/console", "HttpOnly", "SameSite=Strict"]
    return "; ".join(
        [*parts, *(["Secure"] if is_secure else []), *([] if value else ["Max-Age=0"])]
    )


def _value(header: bytes | None) -> str:
    """Returns the session's value in a Cookie header.

    Not parsed by `http.cookies`, which takes a second for some malicious headers.
    """
    for pair in (header or b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
