"""A network between servers and their database that can be cut, slowed down, or left half open."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

CHUNK_BYTES = 1 << 16


class Proxy:
    """Passes on what comes to its port, as it is told to."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._is_silent = False
        self._server: Any = None
        self.delay_seconds = 0.0
        """How long everything is on its way, in both directions."""
        self.port = 0

    def __enter__(self) -> Proxy:
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
        """Both ends hear of it; nobody gets through any more."""
        self._is_cut = True
        self._loop.call_soon_threadsafe(self._abort)

    def silence(self) -> None:
        """Nobody hears of anything: connections stay, and carry nothing."""
        self._is_silent = True

    def mend(self) -> None:
        self._is_cut = self._is_silent = False
        # What was silent has lost bytes, and is of no more use.
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
            await asyncio.gather(self._pass(reader, other_writer), self._pass(other_reader, writer))
        finally:
            for one in (writer, other_writer):
                one.transport.abort()
                self._writers.discard(one)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while content := await reader.read(CHUNK_BYTES):
                if self._is_silent:
                    continue
                if self.delay_seconds:
                    self._loop.call_later(self.delay_seconds, _write, writer, content)
                else:
                    writer.write(content)
        except OSError:
            pass
        self._loop.call_later(self.delay_seconds, writer.close)


def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    if not writer.is_closing():
        writer.write(content)
