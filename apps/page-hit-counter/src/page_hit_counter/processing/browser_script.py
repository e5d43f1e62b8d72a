"""Serves the script that a site's pages include, so that the browser reports the visit."""

from __future__ import annotations

from pathlib import Path

from partita.server.http.web.web_service import WebRequest, WebResponse, WebService

SCRIPT = Path(__file__).with_name("pagehits.js")
JAVASCRIPT = "text/javascript; charset=utf-8"
MAX_AGE_SECONDS = 3600
HEADERS = {
    "cache-control": f"max-age={MAX_AGE_SECONDS}",
    "cross-origin-resource-policy": "cross-origin",
}


def add_script(web: WebService) -> None:
    web.add("GET", "/pagehits.js", _script)


async def _script(request: WebRequest) -> WebResponse:
    return WebResponse(200, SCRIPT.read_bytes(), JAVASCRIPT, HEADERS)
