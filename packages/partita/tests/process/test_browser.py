"""A page in a real browser: what it can do with a server on the same machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from testkit.browser.chromium import Browser, browsing, program

pytestmark = pytest.mark.skipif(program() is None, reason="needs Chromium (scripts/provision)")
PAGE = b'<!doctype html><link rel="icon" href="data:,">'
FAILED = "TypeError: Failed to fetch"
LIST_TABLES = """{
  method: "POST", body: "{}", headers: {
    "content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.ListTables",
    "x-amz-date": "20260101T000000Z", "authorization": "AWS4-HMAC-SHA256 " +
    "Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"}}"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with browsing(tmp_path / "profile") as found:
        yield found


@pytest.fixture
def site() -> Iterator[str]:
    with serving() as origin:
        yield origin


@contextmanager
def serving() -> Iterator[str]:
    """The origin of a site that has one page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fetched(browser: Browser, url: str, options: str = "{}") -> Any:
    """Returns status, body and request id as the page sees them, or the error that it sees."""
    return browser.evaluate(
        f"fetch({json.dumps(url)}, {options}).then(async answer => "
        "[answer.status, await answer.text(), answer.headers.get('x-amzn-requestid')])"
        ".catch(String)"
    )


def test_a_page_of_another_site_reads_nothing(serve: Any, browser: Browser, site: str) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    browser.open(f"{site}/")
    for path in ("/", "/metrics", "/partitions"):
        assert fetched(browser, f"{server.url}{path}") == FAILED
    assert fetched(browser, server.url, LIST_TABLES) == FAILED
    assert fetched(browser, server.url, '{method: "POST", body: "{}"}') == FAILED


def test_a_page_of_an_allowed_origin_uses_the_database(
    serve: Any, browser: Browser, site: str
) -> None:
    server = serve("serve", "--port", "0", "--in-memory", "--allow-origin", site)
    browser.open(f"{site}/")
    status, body, request_id = fetched(browser, server.url, LIST_TABLES)
    assert (status, json.loads(body)) == (200, {"TableNames": []})
    assert len(request_id) == 52
    refused = LIST_TABLES.replace('body: "{}"', 'body: "{"')
    assert fetched(browser, server.url, refused)[0] == 400
