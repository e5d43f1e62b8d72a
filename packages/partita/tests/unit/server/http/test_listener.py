"""The listener alone: how it stops, and what it logs about its own failures."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from contextlib import suppress
from typing import cast

import pytest

from partita.foundation.service_limits import KB, MB
from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.http_connection import HttpConnection, HttpExchange
from partita.server.http.http_messages import Handle, HttpRequest, HttpResponse, Reply, Responses
from partita.server.http.listener import Listener

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


def post(body: bytes, *headers: bytes) -> bytes:
    lines = (b"POST / HTTP/1.1", b"Content-Length: %d" % len(body), *headers, b"", b"")
    return b"\r\n".join(lines) + body


def post_packed(body: bytes) -> bytes:
    return post(gzip.compress(body), b"Content-Encoding: gzip")


async def connected(
    handle: Handle, limits: ConnectionLimits | None = None
) -> tuple[Listener, asyncio.StreamReader, asyncio.StreamWriter]:
    listener = Listener(handle, Responses(), limits=limits)
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


def test_large_unfinished_requests_shut_out_large_ones_only() -> None:
    def unfinished_post(length: int, sent: int) -> bytes:
        return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length + b"x" * sent

    async def statuses() -> list[bytes]:
        listener = Listener(
            lambda request, reply: reply(HttpResponse(200)),
            Responses(),
            limits=ConnectionLimits(bodies_bytes_max=3 * MB),
        )
        port = await listener.start("127.0.0.1", 0)
        _, unfinished = await asyncio.open_connection("127.0.0.1", port)
        unfinished.write(unfinished_post(4 * MB, 3 * MB))
        await unfinished.drain()
        while listener.bodies_bytes < 3 * MB:
            await asyncio.sleep(0.01)
        found = []
        for size in (1, 50_000, 2 * MB):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(unfinished_post(size, size))
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


@pytest.mark.parametrize("is_last", [True, False], ids=["closed", "kept alive"])
def test_a_client_that_leaves_a_little_unread_is_given_up(is_last: bool) -> None:
    connections: list[HttpConnection] = []
    open_count = 0

    def count(change: int) -> None:
        nonlocal open_count
        open_count += change

    def handle(request: HttpRequest, reply: Reply) -> None:
        connections.append(cast(HttpExchange, reply).connection)
        reply(HttpResponse(200, bytes(100 * KB)))

    async def run() -> None:
        limits = ConnectionLimits(unread_seconds_max=0.3, idle_seconds_max=0.6, sweep_seconds=0.05)
        listener = Listener(handle, Responses(), limits=limits, count=count)
        port = await listener.start("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", port)) as client:
            # Less than what makes the transport pause, more than the system takes.
            while not (connections and connections[0].is_answering):
                client.sendall(REQUEST)
                await asyncio.sleep(0.02)
            if is_last:
                client.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
            async with asyncio.timeout(10):
                while open_count:
                    await asyncio.sleep(0.02)
        await listener.stop()

    asyncio.run(run())


def test_a_request_that_is_under_way_keeps_no_body() -> None:
    requests: list[HttpRequest] = []
    held: list[Reply] = []

    def handle(request: HttpRequest, reply: Reply) -> None:
        assert request.body == bytes(MB)
        requests.append(request)
        if b"content-encoding" in request.headers and not held:
            held.append(reply)
        else:
            reply(HttpResponse(204))

    async def run() -> bytes:
        listener, reader, writer = await connected(handle)
        writer.write(post_packed(bytes(MB)) * 9 + post(bytes(MB)))
        async with asyncio.timeout(10):
            while len(requests) < 10:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0)
            assert [request.body for request in requests] == [b""] * 10
            assert listener.bodies_bytes == MB, "that of the one which is held"
            held[0](HttpResponse(204))
            assert listener.bodies_bytes == 0
            writer.write_eof()
            answers = await reader.read()
        writer.close()
        await listener.stop()
        return answers

    assert asyncio.run(run()).count(b"HTTP/1.1 204 ") == 10


def test_what_small_bodies_unpack_to_counts_as_large() -> None:
    replies: list[Reply] = []

    async def run() -> bytes:
        listener, reader, writer = await connected(
            lambda request, reply: replies.append(reply), ConnectionLimits(bodies_bytes_max=3 * MB)
        )
        writer.write(post_packed(bytes(MB)) * 5)
        async with asyncio.timeout(10):
            while len(replies) < 3 or listener.unpacking:
                await asyncio.sleep(0.01)
            assert listener.bodies_bytes == 3 * MB
            for reply in replies:
                reply(HttpResponse(204))
            answers = b""
            while answers.count(b"HTTP/1.1 ") < 5:
                answers += await reader.read(MB)
        assert listener.bodies_bytes == 0
        writer.close()
        await listener.stop()
        return answers

    answers = asyncio.run(run())
    assert (answers.count(b"HTTP/1.1 204 "), answers.count(b"HTTP/1.1 503 ")) == (3, 2)
    assert len(replies) == 3
