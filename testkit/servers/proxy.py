"""A proxy between servers and their database that can be cut, slowed down or silenced, and that
counts the round trips and statements."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any, Self

CHUNK_BYTES = 1 << 16
PROTOCOL = (196608).to_bytes(4, "big")
TRIP_ENDS = (b"S", b"Q")
"""Sync, or a simple query: the server answers everything up to one of these together."""


class Proxy:
    """Forwards connections to its port, with the configured faults."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._is_silent = False
        self._server: Any = None
        self.delay_seconds = 0.0
        """The latency in each direction."""
        self.port = 0
        self.trips = 0
        """The number of round trips that have begun."""
        self.statements: Counter[bytes] = Counter()
        """The number of executions of each statement."""
        self._trips_max: int | None = None
        self._last_statement: bytes | None = None
        self._is_last_passed = True
        self.is_stopped = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Closes all connections on both sides and refuses new ones."""
        self._is_cut = True
        self._loop.call_soon_threadsafe(self._abort)

    def silence(self) -> None:
        """Keeps connections open, but forwards nothing, so that neither side notices."""
        self._is_silent = True

    def stop_after(self, trips: int) -> None:
        """Goes silent once so many round trips have begun; the last may be carried out unseen."""
        self.trips, self._trips_max = 0, trips

    def stop_at(self, statement: bytes, *, is_passed: bool) -> None:
        """Goes silent at a statement, which is the last to be forwarded, or is dropped itself."""
        self._last_statement, self._is_last_passed = statement, is_passed

    def note(self, statement: bytes) -> None:
        self.statements[statement] += 1
        if statement == self._last_statement:
            self._stop()

    def count(self, message: bytes) -> None:
        self.trips += message in TRIP_ENDS
        if self.trips == self._trips_max:
            self._stop()

    def _stop(self) -> None:
        self._trips_max = self._last_statement = None
        self._is_silent = True
        self.is_stopped.set()

    def mend(self) -> None:
        self._is_cut = self._is_silent = False
        self._trips_max = self._last_statement = None
        self._is_last_passed = True
        self.is_stopped.clear()
        # Connections that were silent have lost bytes and cannot be used any more.
        self._loop.call_soon_threadsafe(self._abort)

    async def _close(self) -> None:
        self._is_cut = True
        self._server.close()
        self._abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(other_writer)
        try:
            await asyncio.gather(
                self._pass(reader, other_writer, Frontend(self)), self._pass(other_reader, writer)
            )
        finally:
            for one in (writer, other_writer):
                one.transport.abort()
                self._writers.discard(one)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        frontend: Frontend | None = None,
    ) -> None:
        try:
            while content := await reader.read(CHUNK_BYTES):
                if self._is_silent:
                    continue
                if frontend is not None:
                    frontend.read(content)
                    if self._is_silent and not self._is_last_passed:
                        continue
                if self.delay_seconds:
                    self._loop.call_later(self.delay_seconds, _write, writer, content)
                else:
                    writer.write(content)
        except OSError:
            pass
        self._loop.call_later(self.delay_seconds, writer.close)


class Frontend:
    """Parses the messages of one client (PostgreSQL's protocol, version 3)."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._content = bytearray()
        self._has_started = False
        self._prepared: dict[bytes, bytes] = {}

    def read(self, content: bytes) -> None:
        self._content += content
        while True:
            # The first messages have no type: the question for encryption, and the start.
            at = 1 if self._has_started else 0
            end = at + int.from_bytes(self._content[at : at + 4], "big")
            if len(self._content) < max(end, at + 4):
                return
            kind, body = bytes(self._content[:at]), bytes(self._content[at + 4 : end])
            del self._content[:end]
            if not kind:
                self._has_started = body.startswith(PROTOCOL)
            else:
                self._note(kind, body)

    def _note(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self._proxy.note(body.rstrip(b"\0"))
        elif kind == b"P":
            name, statement, _ = body.split(b"\0", 2)
            self._prepared[name] = statement
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            self._proxy.note(self._prepared.get(name, b""))
        self._proxy.count(kind)


def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    if not writer.is_closing():
        writer.write(content)
