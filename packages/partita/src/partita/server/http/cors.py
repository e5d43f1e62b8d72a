"""CORS: the origins whose pages may send requests from a browser. By default there are none.

A browser adds an Origin header to the requests of a page. A request from an origin that is not
allowed is refused before it has any effect. Answering without CORS headers would not be enough:
browsers send some requests without a preflight, and these could write.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from partita.errors import PartitaError
from partita.server.http.http_messages import HttpRequest, HttpResponse, Responses

logger = logging.getLogger(__name__)

ALL = "*"
ALLOW_ORIGIN = "--allow-origin"
OPAQUE = "null"
"""The origin that browsers send for local files and sandboxed frames."""
PREFLIGHT_SECONDS = 172_800
LOGGED_MAX = 100
_ORIGIN = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?P<port>:\d+)?/?"
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ECHOED = (
    (b"access-control-request-headers", b"access-control-allow-headers"),
    (b"access-control-request-method", b"access-control-allow-methods"),
)


class AllowedOrigins:
    def __init__(
        self,
        allowed: Iterable[str] = (),
        exposed_headers: str = "",
        setting: str = ALLOW_ORIGIN,
        own_pages: bytes = b"",
    ) -> None:
        """`allowed` are origins ("https://example.com"), hosts with any scheme and port
        ("localhost"), "null", or "*" for all. `exposed_headers` are the response headers that pages
        may read. `setting` is the option that refusals name. Requests to paths that begin with
        `own_pages` are also allowed from the server's own origin."""
        self._origins: set[str] = set()
        self._hosts: set[str] = set()
        self._are_all_allowed = False
        self._exposed = exposed_headers.encode()
        self._setting = setting
        self._own_pages = own_pages
        self._logged: set[bytes] = set()
        for text in allowed:
            self._allow(text.strip().lower())

    def _allow(self, text: str) -> None:
        if text == ALL:
            self._are_all_allowed = True
            return
        match = _ORIGIN.fullmatch(text)
        if match is None:
            raise PartitaError(
                f"{text!r} is not an origin: give one such as http://localhost:3000, a host such "
                "as localhost, or * for all."
            )
        scheme, host, port = match["scheme"], match["host"], match["port"] or ""
        if scheme is not None:
            port = "" if port == _DEFAULT_PORTS.get(scheme) else port
            self._origins.add(f"{scheme}://{host}{port}")
        elif text == OPAQUE:
            self._origins.add(OPAQUE)
        else:
            self._hosts.add(host + port)

    def early_answer(self, request: HttpRequest, responses: Responses) -> HttpResponse | None:
        """Answers a preflight, or a request from an origin that is not allowed; else None."""
        origin = request.headers[b"origin"]
        if self._own_pages and request.target.startswith(self._own_pages):
            if is_same_origin(origin, request.headers.get(b"host")):
                return None
        if not self.allows(origin):
            self._log(origin)
            shown = origin.decode("latin-1")
            return responses.refusal(
                403, f"Pages of {shown} may not use this server; {self._setting} lets them."
            )
        request.answer_headers = self._answer_headers(origin)
        return _preflight(request) if request.method == b"OPTIONS" else None

    def headers_of_answer(self, request: HttpRequest) -> bytes:
        """Returns the header lines that let a page read the response, if it may read it."""
        origin = request.headers.get(b"origin")
        return self._answer_headers(origin) if origin is not None and self.allows(origin) else b""

    def allows(self, origin: bytes) -> bool:
        if self._are_all_allowed:
            return True
        text = origin.decode("latin-1")
        if text in self._origins:
            return True
        match = _ORIGIN.fullmatch(text) if self._hosts else None
        if match is None or match["scheme"] is None:
            return False
        host, port = match["host"], match["port"] or ""
        return host in self._hosts or host + port in self._hosts

    def _answer_headers(self, origin: bytes) -> bytes:
        lines = b"access-control-allow-origin: *\r\n"
        if not self._are_all_allowed:
            lines = b"access-control-allow-origin: %b\r\nvary: Origin\r\n" % origin
        if self._exposed:
            lines += b"access-control-expose-headers: %b\r\n" % self._exposed
        return lines

    def _log(self, origin: bytes) -> None:
        """Logs the first refusal of each origin, because browsers hide the reason from pages."""
        if origin not in self._logged and len(self._logged) < LOGGED_MAX:
            self._logged.add(origin)
            logger.warning(
                "A request of a page of %r was refused: %s lets it use this server.",
                origin.decode("latin-1"),
                self._setting,
            )


def is_same_origin(origin: bytes, host: bytes | None) -> bool:
    """True when a page was loaded from the host that it sends the request to.

    The scheme may differ, because a proxy may terminate TLS in front of the server.
    """
    scheme, separator, place = origin.partition(b"://")
    return bool(separator) and scheme in (b"http", b"https") and place == host


def _preflight(request: HttpRequest) -> HttpResponse:
    """Returns the answer to the preflight that a browser sends before a cross-origin request.

    It allows whatever is asked for, as DynamoDB does (recorded by dynalite's and Alternator's
    tests).
    """
    lines = [b"access-control-max-age: %d\r\n" % PREFLIGHT_SECONDS]
    for request_header, response_header in _ECHOED:
        if request_header in request.headers:
            lines.append(b"%b: %b\r\n" % (response_header, request.headers[request_header]))
    if request.headers.get(b"access-control-request-private-network") == b"true":
        lines.append(b"access-control-allow-private-network: true\r\n")
    return HttpResponse(200, headers=b"".join(lines))
