"""The driver for machines without wrk: uvloop and raw sockets in one thread.

It takes more of a core than wrk does, so fast servers look slower than they are; the report says
which driver was used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from time import perf_counter
from typing import cast

import httptools
import uvloop

from benchmarks.drivers.load import Load, Measurement
from benchmarks.drivers.single_request import HOST, headers

NAME = "raw sockets (wrk is not installed)"
LAST_ANSWERS_SECONDS_MAX = 5


@dataclass(frozen=True)
class Stream:
    """Formatted requests, and the connections that take turns in sending them."""

    requests: Iterator[bytes]
    connections: int
    pause_seconds: float = 0.0
    """The pause between a response and the next request of the connection."""


@dataclass
class Tally:
    """The counts of all connections of one measurement."""

    port: int
    stop_at: float
    pause_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    refused: int = 0
    broken: int = 0
    open_connections: int = 0
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def connect_again(self, requests: Iterator[bytes]) -> None:
        """Opens a new connection, for servers that close it after every response."""
        task = asyncio.get_running_loop().create_task(_connect(requests, self))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Connection(asyncio.Protocol):
    """A connection with one request at a time; the next follows the response after the pause."""

    def __init__(self, requests: Iterator[bytes], tally: Tally) -> None:
        self._requests = requests
        self._tally = tally
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._sent_at = 0.0
        tally.open_connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        now = perf_counter()
        self._tally.latencies.append(now - self._sent_at)
        if not 200 <= self._parser.get_status_code() < 300:
            self._tally.refused += 1
        self._sent_at = 0.0
        pause_seconds = self._tally.pause_seconds
        is_last = now + pause_seconds >= self._tally.stop_at
        if is_last or not self._parser.should_keep_alive():
            self._transport.close()
        elif pause_seconds:
            asyncio.get_running_loop().call_later(pause_seconds, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._sent_at:
            self._tally.broken += 1
        if perf_counter() < self._tally.stop_at and not error:
            self._tally.connect_again(self._requests)
        self._tally.open_connections -= 1
        if not self._tally.open_connections and not self._tally.tasks:
            self._tally.is_over.set()

    def _send(self) -> None:
        self._sent_at = perf_counter()
        self._transport.write(next(self._requests))


async def _connect(requests: Iterator[bytes], tally: Tally) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: Connection(requests, tally), HOST, tally.port)


class Sockets:
    name = NAME

    def drive(self, port: int, load: Load, connections: int, seconds: int) -> Measurement:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_drive(port, load, connections, seconds))


async def _drive(port: int, load: Load, connections: int, seconds: int) -> Measurement:
    requests = cycle([formatted(load.target, body) for body in load.bodies])
    started_at = perf_counter()
    (tally,) = await drive_beside(port, [Stream(requests, connections)], seconds)
    return _measurement(tally, perf_counter() - started_at)


async def drive_beside(port: int, streams: Sequence[Stream], seconds: int) -> list[Tally]:
    """Drives several streams at once."""
    stop_at = perf_counter() + seconds
    tallies = [Tally(port, stop_at, stream.pause_seconds) for stream in streams]
    for tally, stream in zip(tallies, streams, strict=True):
        for _ in range(stream.connections):
            await _connect(stream.requests, tally)
    try:
        async with asyncio.timeout(seconds + LAST_ANSWERS_SECONDS_MAX):
            for tally in tallies:
                await tally.is_over.wait()
    except TimeoutError:
        for tally in tallies:
            tally.broken += tally.open_connections
    return tallies


def formatted(target: str, body: bytes) -> bytes:
    fields = {"Host": HOST, "Content-Length": str(len(body)), **headers(target)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body


def _measurement(tally: Tally, seconds: float) -> Measurement:
    latencies = sorted(tally.latencies) or [0.0]
    return Measurement(
        requests=len(tally.latencies),
        requests_per_second=len(tally.latencies) / seconds,
        p50_ms=latencies[len(latencies) // 2] * 1000,
        p99_ms=latencies[len(latencies) * 99 // 100] * 1000,
        refused=tally.refused,
        broken=tally.broken,
    )
