"""The log of a function's process: copied to our stderr, and its end kept for LogType=Tail of
Invoke."""

from __future__ import annotations

import asyncio
import sys

from partita.foundation.service_limits import KB, MB

TAIL_BYTES = 4 * KB
"""The length of the log that Invoke returns. (Lambda API reference, Invoke)"""
KEPT_BYTES = 256 * KB
READ_BYTES = 64 * KB
READ_BYTES_PER_SECOND = 8 * MB
"""A function that logs faster is slowed down, because reading its log would leave no time for the
other functions."""
LINE_BYTES_MAX = 256 * KB
"""Longer lines are split. (The maximum of CloudWatch Logs)"""
END_SECONDS_MAX = 1.0
"""The wait for the REPORT line of a call. A killed process never writes it."""
MARKS = (b"START RequestId: ", b"END RequestId: ", b"REPORT RequestId: ")
"""The lines that Lambda adds to a log. They are not copied to our stderr."""


class FunctionLog:
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
            # A function may log without end during one call.
            del self._content[:-KEPT_BYTES]
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            _pass_on(lines)
            self._more.set()
            # A burst of one second's worth is allowed.
            ready_at = max(ready_at, clock() - 1.0) + len(part) / READ_BYTES_PER_SECOND
            if ready_at > clock():
                await asyncio.sleep(ready_at - clock())
        _pass_on([rest] if rest else [])
        self._more.set()

    async def end_of(self, request_id: str) -> bytes:
        """The end of what was logged during a call, once its REPORT line has arrived."""
        report = b"REPORT RequestId: %b" % request_id.encode()
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                while not self._has(report) and not self._reading.done():
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            pass
        # The next call starts with an empty log.
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
