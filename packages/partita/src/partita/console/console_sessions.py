"""Who has signed in. A session lives in this process, and so does the secret that signs for it: the
browser has a cookie that no script can read, and a token that only a page of ours can."""

from __future__ import annotations

from secrets import token_urlsafe
from typing import Final

from partita.client import Credentials
from partita.foundation.clock import Clock, system_clock

COOKIE: Final = "partita-console"
IDLE_SECONDS_MAX: Final = 3600.0
SECONDS_MAX: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1000
SESSIONS_OF_ONE_MAX: Final = 50
"""Nobody drives out the sessions of others."""


class ConsoleSession:
    def __init__(self, credentials: Credentials | None, arn: str, now: float) -> None:
        self.credentials = credentials
        self.arn = arn
        self.token = token_urlsafe(24)
        """Sent by the page with every request: no other site's page has it."""
        self.began_at = now
        self.used_at = now

    def is_over(self, now: float) -> bool:
        return now - self.used_at > IDLE_SECONDS_MAX or now - self.began_at > SECONDS_MAX


class ConsoleSessions:
    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._by_cookie: dict[str, ConsoleSession] = {}

    def open(self, credentials: Credentials, arn: str) -> str:
        """A new session; the value of its cookie."""
        now = self._clock()
        kept = [(one, found) for one, found in self._by_cookie.items() if not found.is_over(now)]
        # The one that has been idle longest makes room.
        kept.sort(key=lambda one: one[1].used_at)
        own = [one for one, found in kept if found.arn == arn][: -SESSIONS_OF_ONE_MAX + 1]
        self._by_cookie = dict(kept[-SESSIONS_MAX + 1 :])
        for one in own:
            self._by_cookie.pop(one, None)
        value = token_urlsafe(32)
        self._by_cookie[value] = ConsoleSession(credentials, arn, now)
        return value

    def find(self, header: bytes | None) -> ConsoleSession | None:
        """The session whose cookie a request has."""
        session = self._by_cookie.get(_value(header))
        now = self._clock()
        if session is None or session.is_over(now):
            return None
        session.used_at = now
        return session

    def close(self, header: bytes | None) -> None:
        self._by_cookie.pop(_value(header), None)


def cookie(value: str, *, is_secure: bool) -> str:
    """For the browser to keep until it is closed; an empty value takes it back."""
    parts = [f"{COOKIE}={value}", "Path=/console", "HttpOnly", "SameSite=Strict"]
    return "; ".join(
        [*parts, *(["Secure"] if is_secure else []), *([] if value else ["Max-Age=0"])]
    )


def _value(header: bytes | None) -> str:
    """Not by `http.cookies`, which takes a second for some headers of strangers."""
    for pair in (header or b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
