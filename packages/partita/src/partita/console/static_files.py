"""The static files of the console, read once at the start, with their response headers.

The content security policy lets a page load and run only these files: nothing from elsewhere, no
inline script, and no other site may show a page in a frame.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from partita.server.http.web.web_service import WebRequest, WebResponse, problem
from partita.server.stylesheet import SHEET

STATIC = Path(__file__).with_name("static")
INDEX = "index.html"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


class StaticFiles:
    def __init__(self, folder: Path = STATIC) -> None:
        self._responses = {
            path.relative_to(folder).as_posix(): _response(path)
            for path in folder.rglob("*")
            if path.suffix in TYPES
        }
        self._responses[SHEET.name] = _response(SHEET)

    async def index(self, request: WebRequest) -> WebResponse:
        return self._respond(INDEX, request)

    async def file(self, request: WebRequest) -> WebResponse:
        return self._respond("/".join(request.parameters.values()), request)

    def _respond(self, name: str, request: WebRequest) -> WebResponse:
        response = self._responses.get(name)
        if response is None or response.headers is None:
            return problem(404, f"The console has no file {name}.")
        if request.header(b"if-none-match") == response.headers["etag"].encode():
            return WebResponse(304, headers=response.headers)
        return response


def _response(path: Path) -> WebResponse:
    content = path.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:16]}"'
    return WebResponse(200, content, TYPES[path.suffix], {**HEADERS, "etag": tag})
