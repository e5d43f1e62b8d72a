"""The dashboard: one page for a browser, which asks the API for everything that it shows."""

from __future__ import annotations

from pathlib import Path

from page_hit_counter.authorization import Access
from partita.server.house import house_style
from partita.server.http.web import Request, Response, Web

PAGE = Path(__file__).with_name("dashboard.html")
HOUSE = "/* house */"
"""Where the style sheet of the house goes."""
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


def add_dashboard(web: Web, access: Access) -> None:
    web.add("GET", "/dashboard", access.internal(_dashboard))


async def _dashboard(request: Request) -> Response:
    page = PAGE.read_text().replace(HOUSE, house_style(), 1)
    return Response(200, page.encode(), HTML, {"content-security-policy": POLICY})
