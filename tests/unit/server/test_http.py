"""The listener alone: how it stops, and what it says of its own failures."""

from __future__ import annotations

import asyncio
import logging

import pytest

from partita.limits import MB
from partita.server.http import Handle, Listener, Reply
from partita.server.messages import HttpRequest, HttpResponse
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


def test_a_failure_of_our_own_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def handle(request: HttpRequest, reply: Reply) -> None:
        raise ZeroDivisionError

    async def received() -> bytes:
        listener, reader, writer = await connected(handle)
        writer.write(REQUEST)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await listener.stop()
        return answer

    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(received())
    assert b"HTTP/1.1 500 " in answer or answer == b""
    assert "ZeroDivisionError" in caplog.text
