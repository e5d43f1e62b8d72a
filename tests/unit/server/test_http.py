"""The listener alone: how it stops, and what it says of its own failures."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from partita.limits import MB
from partita.server.http.listener import Handle, Listener, Reply
from partita.server.http.messages import HttpRequest, HttpResponse
from partita.server.metrics import Metrics

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


async def connected(handle: Handle) -> tuple[Listener, asyncio.StreamReader, asyncio.StreamWriter]:
    listener = Listener(handle, Metrics())
    port = await listener.start("127.0.0.1", 0)
    # A small buffer, so that most of a large answer stays with the listener.
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    return listener, reader, writer


def test_an_answer_that_is_being_read_is_sent_whole_before_the_end() -> None:
    size = 20 * MB

    def handle(request: HttpRequest, reply: Reply) -> None:
        reply(HttpResponse(200, b"x" * size))

    async def received() -> bytes:
        listener, reader, writer = await connected(handle)
        writer.write(REQUEST)
        await reader.readexactly(1)
        stopping = asyncio.create_task(listener.stop())
        await asyncio.sleep(1.5)
        answer = await reader.read()
        await stopping
        writer.close()
        return answer

    assert asyncio.run(received()).count(b"x") >= size


def test_large_unfinished_requests_shut_out_large_ones_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("partita.server.http.listener.BODIES_BYTES_MAX", 3 * MB)

    def post(length: int, sent: int) -> bytes:
        return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length + b"x" * sent

    async def statuses() -> list[bytes]:
        listener = Listener(lambda request, reply: reply(HttpResponse(200)), Metrics())
        port = await listener.start("127.0.0.1", 0)
        _, unfinished = await asyncio.open_connection("127.0.0.1", port)
        unfinished.write(post(4 * MB, 3 * MB))
        await unfinished.drain()
        while listener.bodies_bytes < 3 * MB:
            await asyncio.sleep(0.01)
        found = []
        for size in (1, 50_000, 2 * MB):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post(size, size))
            found.append((await reader.readuntil(b"\r\n")).split()[1])
            writer.close()
        unfinished.close()
        await listener.stop()
        return found

    assert asyncio.run(statuses()) == [b"200", b"200", b"503"]


def test_a_failure_of_our_own_ends_the_connection_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handle(request: HttpRequest, reply: Reply) -> None:
        raise ZeroDivisionError

    async def refused() -> None:
        listener, reader, writer = await connected(handle)
        writer.write(REQUEST)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        await listener.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(refused())
    assert "ZeroDivisionError" in caplog.text
