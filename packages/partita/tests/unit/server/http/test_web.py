"""The web framework, tested over sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.web.web_service import WebRequest, WebResponse, WebService, json_response

Story = Callable[[int], Awaitable[None]]


class WaitingHandler:
    """A handler that answers when the test says so."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.count = 0

    async def __call__(self, request: WebRequest) -> WebResponse:
        self.count += 1
        self.has_begun.set()
        await self.may_end.wait()
        return WebResponse(204)


def serving(story: Story, held: WaitingHandler | None = None, **limits: Any) -> None:
    async def run() -> None:
        web = WebService(ConnectionLimits(pipelined_max=1, **limits) if limits else None)
        web.add("GET", "/held", held or WaitingHandler())
        web.add("GET", "/echo/{name}", echo)
        web.add("PUT", "/echo/{name}", echo)
        web.add("GET", "/echo/{name}/slow", slow)
        web.add("GET", "/bug", bug)
        port = await web.start("127.0.0.1", 0)
        try:
            await story(port)
        finally:
            await web.stop()

    asyncio.run(run())


async def echo(request: WebRequest) -> WebResponse:
    return json_response(
        {
            "name": request.parameters["name"],
            "query": request.query,
            "agent": request.headers.get("user-agent"),
            "body": request.body.decode(),
        },
        headers={"etag": '"1"'},
    )


async def slow(request: WebRequest) -> WebResponse:
    await asyncio.sleep(0.1)
    return await echo(request)


async def bug(request: WebRequest) -> WebResponse:
    raise ZeroDivisionError


async def exchange(port: int, *parts: bytes) -> bytes:
    """Sends parts and returns everything that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.02)
    async with asyncio.timeout(20):
        content = await reader.read()
    writer.close()
    return content


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def last(path: str, *headers: str, method: str = "GET") -> bytes:
    return get(path, "Connection: close", *headers, method=method)


def parsed(content: bytes) -> tuple[int, str, Any]:
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode().lower(), json.loads(body) if body else None


def test_parameters_query_headers_and_body_reach_the_handler() -> None:
    async def story(port: int) -> None:
        request = last("/echo/a%2Fb%20%C3%A9?x=1&x=&y=%26", "User-Agent: me", "Content-Length: 2")
        status, head, body = parsed(await exchange(port, request + b"hi"))
        assert status == 200
        assert 'etag: "1"' in head
        assert body["name"] == "a/b é"
        assert body["query"] == [["x", "1"], ["x", ""], ["y", "&"]]
        assert (body["agent"], body["body"]) == ("me", "hi")

    serving(story)


def test_a_body_may_come_in_pieces_and_chunks() -> None:
    async def story(port: int) -> None:
        head = last("/echo/a", "Transfer-Encoding: chunked", method="PUT")
        answer = await exchange(port, head, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")
        assert parsed(answer)[2]["body"] == "abcde"

    serving(story)


def test_answers_keep_the_order_of_their_requests() -> None:
    async def story(port: int) -> None:
        requests = [get("/echo/0/slow"), *(get(f"/echo/{n}") for n in range(1, 100)), last("/bug")]
        content = await exchange(port, b"".join(requests))
        names = [int(part.split(b'"')[0]) for part in content.split(b'"name":"')[1:]]
        assert names == list(range(100))

    serving(story)


def test_a_slow_request_holds_up_no_other_connection() -> None:
    async def story(port: int) -> None:
        slow_one = asyncio.ensure_future(exchange(port, last("/held")))
        await held.has_begun.wait()
        assert parsed(await exchange(port, last("/echo/b")))[0] == 200
        assert not slow_one.done()
        held.may_end.set()
        assert parsed(await slow_one)[0] == 204

    held = WaitingHandler()
    serving(story, held)


def test_what_is_not_there_is_said_in_words() -> None:
    async def story(port: int) -> None:
        status, head, body = parsed(await exchange(port, last("/nothing")))
        assert (status, body["detail"]) == (404, "There is nothing at /nothing.")
        assert "application/problem+json" in head
        status, head, body = parsed(await exchange(port, last("/echo/a", method="DELETE")))
        assert (status, "allow: get, head, put" in head) == (405, True)
        assert body["detail"] == "/echo/a takes GET, HEAD, PUT, not DELETE."
        assert parsed(await exchange(port, last("/echo/%FF")))[0] == 400

    serving(story)


def test_head_and_options_come_with_get() -> None:
    async def story(port: int) -> None:
        status, head, body = parsed(await exchange(port, last("/echo/a", method="HEAD")))
        assert (status, body) == (200, None)
        assert "content-length: 46" in head
        status, head, _ = parsed(await exchange(port, last("/echo/a", method="OPTIONS")))
        assert (status, "allow: get, head, put" in head) == (204, True)

    serving(story)


def test_a_bug_is_one_answer_and_the_connection_goes_on() -> None:
    async def story(port: int) -> None:
        content = await exchange(port, get("/bug") + last("/echo/a"))
        assert content.startswith(b"HTTP/1.1 500 ")
        assert b'"name":"a"' in content

    serving(story)


def test_bodies_and_headers_have_a_limit() -> None:
    async def story(port: int) -> None:
        declared = get("/echo/a", "Content-Length: 11", method="PUT")
        assert parsed(await exchange(port, declared))[0] == 413
        chunked = get("/echo/a", "Transfer-Encoding: chunked", method="PUT")
        large = chunked + b"40\r\n" + b"x" * 64 + b"\r\n"
        assert parsed(await exchange(port, large))[0] == 413
        long = f"X-Long: {'x' * 20_000}"
        assert parsed(await exchange(port, last("/echo/a", long)))[0] == 431
        assert parsed(await exchange(port, get("/echo/a", long)[:-4], b"y" * 100))[0] == 431

    serving(story, body_bytes_max=10)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="the first request"),
        pytest.param([get("/echo/a")], id="the second on its connection"),
    ],
)
def test_a_header_in_pieces_has_the_same_limit(before: list[bytes]) -> None:
    async def story(port: int) -> None:
        for size, status in ((7_000, 200), (9_000, 431)):
            head = last("/echo/b", f"X-One: {'x' * size}", f"X-Two: {'y' * size}")
            cut = head.index(b"X-Two")
            for parts in (
                [*before, head[:cut], head[cut:]],
                [b"".join(before) + head[:cut], head[cut:]],
            ):
                content = await exchange(port, *parts)
                assert re.findall(rb"HTTP/1.1 (\d+)", content)[-1] == b"%d" % status, (size, parts)

    serving(story)


def test_what_is_no_http_is_refused_after_what_came_before() -> None:
    async def story(port: int) -> None:
        content = await exchange(port, get("/echo/a") + b"\x16\x03\x01 nonsense\r\n\r\n")
        assert content.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 400 " in content

    serving(story)


def test_an_offer_of_http_2_is_answered_in_http_1() -> None:
    async def story(port: int) -> None:
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
        first = get("/echo/a", *offer, "Content-Length: 2", method="PUT") + b"hi"
        second = last("/echo/b")
        for parts in ([first, second], [first + second], [first[:-2], b"h", b"i" + second]):
            content = await exchange(port, *parts)
            assert content.count(b"HTTP/1.1 200") == 2
            assert b'"body":"hi"' in content
            assert b'"name":"b"' in content

    serving(story)


def test_a_request_that_does_not_end_is_given_up() -> None:
    async def story(port: int) -> None:
        assert parsed(await exchange(port, b"GET /echo/a HTTP/1.1\r\n"))[0] == 408

    serving(story, header_seconds_max=0.1, sweep_seconds=0.1)


def test_a_stop_lets_the_answer_go_out_first() -> None:
    async def check() -> None:
        web, held = WebService(), WaitingHandler()
        web.add("GET", "/held", held)
        answer = asyncio.create_task(exchange(await web.start("127.0.0.1", 0), get("/held")))
        await held.has_begun.wait()
        stopping = asyncio.create_task(web.stop())
        await asyncio.sleep(0.05)
        held.may_end.set()
        await stopping
        assert parsed(await answer)[0] == 204

    asyncio.run(check())


def test_what_a_handler_began_it_finishes_when_its_client_leaves() -> None:
    finished: list[str] = []

    async def check() -> None:
        web, held = WebService(), WaitingHandler()

        async def write_twice(request: WebRequest) -> WebResponse:
            answer = await held(request)
            finished.append(request.parameters["name"])
            return answer

        web.add("PUT", "/things/{name}", write_twice)
        port = await web.start("127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/things/a", method="PUT"))
        await held.has_begun.wait()
        writer.transport.abort()
        await asyncio.sleep(0.1)
        held.may_end.set()
        await asyncio.sleep(0.1)
        await web.stop()
        assert finished == ["a"]

    asyncio.run(check())


def test_answers_go_out_although_the_client_has_sent_its_last() -> None:
    async def story(port: int) -> None:
        async def ask(number: int) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get(f"/echo/{number}"))
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(ask(number) for number in range(50)))
        assert [parsed(answer)[2]["name"] for answer in answers] == [str(n) for n in range(50)]

    serving(story)


def test_a_stop_lets_answers_go_out_that_wait_for_each_other() -> None:
    async def check() -> None:
        web, held = WebService(), WaitingHandler()
        web.add("GET", "/held", held)
        port = await web.start("127.0.0.1", 0)
        answers = [asyncio.create_task(exchange(port, get("/held"))) for _ in range(20)]
        while held.count < len(answers):
            await asyncio.sleep(0.01)
        held.may_end.set()
        # One turn for the handlers, and the answers are made but not sent.
        await asyncio.sleep(0)
        await web.stop()
        assert [parsed(answer)[0] for answer in await asyncio.gather(*answers)] == [204] * 20

    asyncio.run(check())


def test_a_client_that_sends_ahead_and_never_reads_is_given_up() -> None:
    async def story(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = get("/echo/a", "Content-Length: 500000", method="PUT") + b"x" * 500_000
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(20):
                for _ in range(100):
                    writer.write(request)
                    await writer.drain()
                await reader.read()
        writer.close()

    serving(story, unread_seconds_max=0.2, sweep_seconds=0.1)


def test_a_name_of_another_site_is_not_answered_to() -> None:
    async def story(port: int) -> None:
        request = last("/echo/a").replace(b"localhost", b"evil.example")
        status, _, body = parsed(await exchange(port, request))
        assert (status, body["title"]) == (421, "Misdirected Request")
        assert body["detail"] == (
            "This server does not answer to the name 'evil.example': ask for localhost, or set "
            "PARTITA_ALLOW_HOST=evil.example."
        )

    serving(story)


def test_unless_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_ALLOW_HOST", "other.example hits.example")

    async def story(port: int) -> None:
        request = last("/echo/a").replace(b"localhost", b"hits.example:80")
        assert parsed(await exchange(port, request))[0] == 200

    serving(story)


def test_handlers_say_whose_pages_may_send_requests() -> None:
    async def story(port: int) -> None:
        status, head, _ = parsed(await exchange(port, last("/echo/a", "Origin: http://a.example")))
        assert (status, "access-control" in head) == (200, False)

    serving(story)


def test_requests_may_be_packed() -> None:
    async def story(port: int) -> None:
        packed = gzip.compress(b"hi")
        encoding = ("Content-Encoding: gzip", f"Content-Length: {len(packed)}")
        answer = await exchange(port, last("/echo/a", *encoding, method="PUT") + packed)
        assert parsed(answer)[2]["body"] == "hi"
        answer = await exchange(port, last("/echo/a", "Content-Encoding: br", method="PUT"))
        assert parsed(answer)[0] == 415

    serving(story)


def test_a_client_reads_what_it_has_written_on_the_same_connection() -> None:
    async def check() -> None:
        written: list[str] = []

        async def write(request: WebRequest) -> WebResponse:
            await asyncio.sleep(0.05)
            written.append(request.parameters["name"])
            return WebResponse(204)

        async def read(request: WebRequest) -> WebResponse:
            return json_response(written)

        web = WebService()
        web.add("PUT", "/things/{name}", write)
        web.add("GET", "/things", read)
        port = await web.start("127.0.0.1", 0)
        requests = [get("/things/a", method="PUT"), get("/things/b", method="PUT"), last("/things")]
        assert (await exchange(port, b"".join(requests))).endswith(b'["a","b"]')
        await web.stop()

    asyncio.run(check())
