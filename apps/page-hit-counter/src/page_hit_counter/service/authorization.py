"""Decides who may see what is not public, and who may change counts.

Everyone may send visits and ask for lists. When the service has a token, everything else needs it:
as the password of HTTP's Basic scheme, for which browsers prompt, or as a Bearer token. Without a
token, numbers are open to everyone who reaches the port. What names visitors or changes counts is
then open only to this machine, and only while the service listens on a loopback address. Requests
through a proxy are recognised by the headers that proxies add.
"""

from __future__ import annotations

from base64 import b64decode
from hmac import compare_digest
from ipaddress import ip_address

from partita.server.http.web.web_messages import WebRequest, WebResponse, problem
from partita.server.http.web.web_routes import Handler

PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
CHALLENGE = {"www-authenticate": 'Basic realm="Page hits", charset="UTF-8"'}


class AccessControl:
    def __init__(self, token: str | None = None, host: str = "") -> None:
        """`host` is the address that the service listens on. Without a token and a loopback host,
        private routes refuse everybody."""
        self._token = token.encode() if token else None
        self._is_local = _is_loopback(host)

    def internal(self, handler: Handler) -> Handler:
        """Protects a route that shows only numbers: it needs the token if there is one."""
        return self.private(handler) if self._token else handler

    def private(self, handler: Handler) -> Handler:
        """Protects a route that names visitors or changes counts."""

        async def handle(request: WebRequest) -> WebResponse:
            return self.refusal(request) or await handler(request)

        return handle

    def refusal(self, request: WebRequest) -> WebResponse | None:
        """Returns the response that refuses a request to a private route, or None."""
        if _is_of_another_site(request):
            return problem(403, "Pages of other sites may not request this.")
        if self._token is not None:
            # Compared in constant time, so that response times do not reveal the token.
            if compare_digest(_token_of(request), self._token):
                return None
            return problem(
                401,
                "This URL is not public: send the service's token as the password, or as "
                "`Authorization: Bearer`.",
                headers=CHALLENGE,
            )
        if self._is_local and not any(name in request.headers for name in PROXY_HEADERS):
            return None
        return problem(
            403,
            "This URL is open only to the machine that the service runs on, without a proxy: "
            "start the service with a --token to open it to others.",
        )


def _token_of(request: WebRequest) -> bytes:
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip().encode("latin-1")
    try:
        return b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _is_of_another_site(request: WebRequest) -> bool:
    """True when a page of another site made the request. Browsers send a stored password with
    requests of any page, so the origin has to be checked (CSRF)."""
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


NOBODY = AccessControl()
