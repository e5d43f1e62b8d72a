"""The token, the machine itself, and proxies decide who may see what is not public."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from page_hit_counter.service.authorization import NOBODY, AccessControl
from partita.server.http.web.web_messages import WebRequest, WebResponse

TOKEN = "s3cret: with a colon"
BASIC = b"Basic " + b64encode(f"anyone:{TOKEN}".encode())


def status(access: AccessControl, **headers: bytes) -> int:
    """Returns the status of a request to a private route."""
    given = {name.replace("_", "-").encode(): value for name, value in headers.items()}

    async def handler(request: WebRequest) -> WebResponse:
        return WebResponse(200)

    request = WebRequest(b"GET", b"/quarantine", {b"host": b"127.0.0.1:8080", **given})
    return asyncio.run(access.private(handler)(request)).status  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_without_a_token_the_machine_itself_may_decide(host: str) -> None:
    assert status(AccessControl(host=host)) == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "hits.example"])
def test_without_a_token_nobody_else_may(host: str) -> None:
    assert status(AccessControl(host=host)) == 403


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "via", "x_real_ip"])
def test_what_comes_through_a_proxy_is_not_from_the_machine_itself(header: str) -> None:
    assert status(AccessControl(host="127.0.0.1"), **{header: b"127.0.0.1"}) == 403


@pytest.mark.parametrize("given", [BASIC, b"Bearer " + TOKEN.encode(), b"bearer " + TOKEN.encode()])
def test_a_token_lets_in_whoever_gives_it(given: bytes) -> None:
    access = AccessControl(TOKEN, "0.0.0.0")
    assert status(access, authorization=given, x_forwarded_for=b"192.0.2.1") == 200


@pytest.mark.parametrize(
    "given", [b"", b"Basic", b"Basic !", b"Basic \xff", b"Bearer", b"Bearer s3cret", BASIC + b"x"]
)
def test_a_token_keeps_out_everyone_else(given: bytes) -> None:
    """This includes clients on the machine itself."""
    assert status(AccessControl(TOKEN, "127.0.0.1"), authorization=given) == 401


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null", b"http://["])
def test_pages_of_other_sites_may_not_decide_for_their_visitors(origin: bytes) -> None:
    assert status(AccessControl(host="127.0.0.1"), origin=origin) == 403
    assert status(AccessControl(TOKEN), origin=origin, authorization=BASIC) == 403
    assert status(AccessControl(host="127.0.0.1"), origin=b"http://127.0.0.1:8080") == 200


def test_without_a_host_everybody_is_refused() -> None:
    assert status(NOBODY) == 403
