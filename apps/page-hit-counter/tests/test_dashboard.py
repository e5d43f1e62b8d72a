"""The dashboard and the script tag, in a real browser."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from benchmarks.applications.visits import MadeVisit
from page_hit_counter.spam.quarantine import Quarantine
from page_hit_counter.spam.spam_filter import SpamFilter
from page_hit_counter.spam.spam_settings import SpamSettings
from partita.client import Client
from testkit.browser.accessibility import serious_findings
from testkit.browser.chromium import Browser, browsing, program
from testkit.data.page_hit_pipeline import (
    ONE_PROCESS,
    Pipeline,
    asset_id,
    put_assets,
    running,
    wait_for,
)

from .conftest import ASSETS, SHORT_PERIODS

pytestmark = pytest.mark.skipif(program() is None, reason="needs Chromium (scripts/provision)")
ASSET = asset_id(20)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Starts a pipeline, because the page shows what all tests of one pipeline have sent."""
    with running(tmp_path_factory.mktemp("dashboard"), SHORT_PERIODS, parts=ONE_PROCESS) as found:
        put_assets(found.client(), ASSETS)
        yield found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with browsing(tmp_path / "profile") as found:
        yield found


def text(browser: Browser, selector: str) -> str:
    found = f"document.querySelector({json.dumps(selector)})"
    return str(browser.evaluate(f"{found}?.innerText ?? ''"))


def test_the_dashboard_shows_lists_traffic_and_what_was_filtered(
    short: Pipeline, browser: Browser
) -> None:
    visits = [{"assetId": ASSET, "sectionId": 8, "paidType": "free"}] * 7
    unknown = {"assetId": 9, "sectionId": 8, "paidType": "free", "url": "https://www.abc.example/"}
    assert short.post([*visits, unknown])[0] == 200
    browser.open(f"{short.url('api')}/dashboard#brand=abc&period=day")
    wait_for(lambda: str(ASSET) in text(browser, "#list"))
    row = text(browser, f"[data-asset='{ASSET}']").split()
    assert row[1:] == [str(ASSET), "7", "advertorial", "8", "free"]
    wait_for(lambda: browser.evaluate("document.querySelectorAll('#traffic svg rect').length"))
    wait_for(lambda: "no resource type" in text(browser, "#filtered"))
    wait_for(lambda: "the upper part not counted" in text(browser, "#traffic"))
    wait_for(lambda: "visits counted" in text(browser, "#state"))
    browser.evaluate("document.querySelector('[data-period=week]').focus()")
    browser.click("[data-period=week]")
    wait_for(lambda: "week" in text(browser, "#list-title"))
    assert browser.evaluate("document.activeElement.dataset.period") == "week"
    for width in (1280, 380):
        browser.resize(width)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        fits = "$('list').scrollWidth <= $('list').clientWidth"
        assert browser.evaluate(fits), "all columns can be seen"
        for scheme in ("dark", "light"):
            browser.prefer(scheme)
            assert serious_findings(browser) == []
    assert browser.complaints == []
    assert all(url.startswith(short.url("api")) for url in browser.requested)


def test_titles_and_figures_are_shown(short: Pipeline, browser: Browser) -> None:
    short.client().update_item(
        TableName="pagehits-assets",
        Key={"assetId": {"N": str(asset_id(22))}},
        UpdateExpression="SET title = :title",
        ExpressionAttributeValues={":title": {"S": "The <b>weather</b>"}},
    )
    short.post([{"assetId": asset_id(22), "sectionId": 8, "paidType": "free"}])
    browser.open(f"{short.url('api')}/dashboard#brand=abc&period=day")
    wait_for(lambda: "The <b>weather</b>" in text(browser, f"[data-asset='{asset_id(22)}']"))
    wait_for(lambda: " s" in text(browser, "[data-figure=behind]"))
    wait_for(lambda: "%" in text(browser, "[data-figure='lists from memory']"))
    curves = "document.querySelectorAll('#units polyline, #durations polyline').length"
    wait_for(lambda: browser.evaluate(curves) == 2)
    assert "allowed 1000" in text(browser, "#units")
    assert browser.complaints == []


def test_what_visitors_call_themselves_is_shown_and_does_nothing(
    short: Pipeline, browser: Browser
) -> None:
    name = f"<img src=x onerror=alert(1)> bot {'W' * 400}"
    withhold(short, MadeVisit("abc", ASSET, 8, "free", "article", "ann", name, "", time.time()))
    browser.open(f"{short.url('api')}/dashboard#brand=abc", width=390)
    wait_for(lambda: "onerror" in text(browser, "#cases"))
    assert browser.evaluate("document.querySelectorAll('#cases img').length") == 0
    browser.evaluate("document.querySelector('[data-decision=release]').focus()")
    browser.evaluate("refresh()")
    assert browser.evaluate("document.activeElement.dataset.decision") == "release"
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints == []


def test_cases_are_confirmed_and_released_on_the_page(short: Pipeline, browser: Browser) -> None:
    agent = "python-requests/2 of a partner"
    withhold(short, MadeVisit("abc", ASSET, 8, "free", "article", "bob", agent, "", time.time()))
    browser.open(f"{short.url('api')}/dashboard#brand=abc")
    row = f"[...document.querySelectorAll('#cases tr')].find(r => r.innerText.includes('{agent}'))"

    def decide(decision: str, status: str) -> None:
        button = f"{row}?.querySelector('[data-decision={decision}]')"
        wait_for(lambda: browser.evaluate(f"!!{button}"))
        browser.evaluate(f"{button}.click()")
        wait_for(lambda: status in str(browser.evaluate(f"{row}?.innerText ?? ''")))

    decide("confirm", "confirmed")
    decide("release", "released")
    (case,) = [c for c in short.get("/quarantine?brand=abc")[2]["cases"] if c["subject"] == agent]
    assert case["status"] == "released"
    assert browser.complaints == []


def withhold(short: Pipeline, visit: MadeVisit) -> None:
    async def keep() -> None:
        client = Client(short.endpoint)
        withheld = SpamFilter(SpamSettings(mode="filter")).judge([visit]).withheld
        await Quarantine(client).keep(withheld)
        await client.close()

    asyncio.run(keep())


def test_the_script_tag_counts_a_visit_from_another_site(short: Pipeline, browser: Browser) -> None:
    page = (
        f'<script src="{short.url("processor")}/pagehits.js" data-asset="{asset_id(22)}" '
        'data-section="8" data-paid="paid" async></script><link rel="icon" href="data:,">'
    )
    with serving(page.encode()) as site:
        browser.open(site)
    target = "/?brand=abc&period=day&paidType=paid&section=8"
    wait_for(lambda: short.get(target)[2]["lists"][0]["hits"])
    (hit,) = short.get(target)[2]["lists"][0]["hits"]
    assert (hit["assetId"], hit["hits"]) == (asset_id(22), 1)
    assert browser.complaints == []


@contextmanager
def serving(page: bytes) -> Iterator[str]:
    """A site that has one page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
