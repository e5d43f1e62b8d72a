"""What browsers get: the dashboard and the script tag, from the folder `browser`."""

from __future__ import annotations

from pathlib import Path

from partita.apps.pagehits.access import Access
from partita.server.http.web import Request, Response, Web

FOLDER = Path(__file__).parent / "browser"
HTML = "text/html; charset=utf-8"
JAVASCRIPT = "text/javascript; charset=utf-8"
SCRIPT_SECONDS = 3600
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


def add_dashboard(web: Web, access: Access) -> None:
    web.add("GET", "/dashboard", access.internal(_dashboard))


def add_script(web: Web) -> None:
    web.add("GET", "/pagehits.js", _script)


async def _dashboard(request: Request) -> Response:
    page = (FOLDER / "dashboard.html").read_bytes()
    return Response(200, page, HTML, {"content-security-policy": POLICY})


async def _script(request: Request) -> Response:
    script = (FOLDER / "pagehits.js").read_bytes()
    headers = {
        "cache-control": f"max-age={SCRIPT_SECONDS}",
        "cross-origin-resource-policy": "cross-origin",
    }
    return Response(200, script, JAVASCRIPT, headers)
