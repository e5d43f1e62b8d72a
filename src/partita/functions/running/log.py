"""What a process logs: passed on to our own stderr, and its end kept for who asks for it."""

from __future__ import annotations

import asyncio
import sys

from partita.limits import KB, MB

TAIL_BYTES = 4 * KB
"""How much of the log Invoke shows. (guide)"""
KEPT_BYTES = 256 * KB
READ_BYTES = 64 * KB
READ_BYTES_PER_SECOND = 8 * MB
"""A function that logs faster waits; otherwise reading would leave no time for other functions."""
LINE_BYTES_MAX = 256 * KB
"""What is longer is passed on as several lines. (CloudWatch's maximum)"""
END_SECONDS_MAX = 1.0
"""A process that was killed never says that a call has ended."""
MARKS = (b"START RequestId: ", b"END RequestId: ", b"REPORT RequestId: ")


class Log:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._content = bytearray()
        self._more = asyncio.Event()
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        rest = b""
        clock = asyncio.get_running_loop().time
        ready_at = clock()
        while part := await reader.read(READ_BYTES):
            self._content += part
            del self._content[:-KEPT_BYTES]
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            _pass_on(lines)
            self._more.set()
            # A second's worth may come at once.
            ready_at = max(ready_at, clock() - 1.0) + len(part) / READ_BYTES_PER_SECOND
            if ready_at > clock():
                await asyncio.sleep(ready_at - clock())
        _pass_on([rest] if rest else [])
        self._more.set()

    async def end_of(self, request_id: str) -> bytes:
        """The last of what was logged since a call began, when all of it has come."""
        report = b"REPORT RequestId: %b" % request_id.encode()
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                while not self._has(report) and not self._reading.done():
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            pass
        content, self._content = bytes(self._content), bytearray()
        return content[-TAIL_BYTES:]

    def _has(self, mark: bytes) -> bool:
        start = self._content.rfind(mark)
        return start >= 0 and self._content.find(b"\n", start) >= 0


def _pass_on(lines: list[bytes]) -> None:
    own = [line + b"\n" for line in lines if not line.startswith(MARKS)]
    if own:
        sys.stderr.write(b"".join(own).decode(errors="replace"))
        sys.stderr.flush()
