"""Serves the dashboard: one HTML page, which asks the API for everything that it shows."""

from __future__ import annotations

from pathlib import Path

from page_hit_counter.service.authorization import AccessControl
from partita.server.http.web.web_service import WebRequest, WebResponse, WebService
from partita.server.stylesheet import read_stylesheet

PAGE = Path(__file__).with_name("dashboard.html")
STYLESHEET_PLACE = "/* stylesheet */"
"""The comment in the page that the shared style sheet replaces."""
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


def add_dashboard(web: WebService, access: AccessControl) -> None:
    web.add("GET", "/dashboard", access.internal(_dashboard))


async def _dashboard(request: WebRequest) -> WebResponse:
    page = PAGE.read_text().replace(STYLESHEET_PLACE, read_stylesheet(), 1)
    return WebResponse(200, page.encode(), HTML, {"content-security-policy": POLICY})
