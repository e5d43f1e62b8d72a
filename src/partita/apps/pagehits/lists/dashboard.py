"""The dashboard: one page for a browser, which asks the API for everything that it shows."""

from __future__ import annotations

from pathlib import Path

from partita.apps.pagehits.authorization import Access
from partita.server.http.web import Request, Response, Web

PAGE = Path(__file__).with_name("dashboard.html")
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


def add_dashboard(web: Web, access: Access) -> None:
    web.add("GET", "/dashboard", access.internal(_dashboard))


async def _dashboard(request: Request) -> Response:
    return Response(200, PAGE.read_bytes(), HTML, {"content-security-policy": POLICY})
