"""A load balancer that sends each request to the next server."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from itertools import cycle

from testkit.servers.proxy import CHUNK_BYTES, Proxy

HEAD_END = b"\r\n\r\n"
BODY_BYTES_MAX = 1 << 20
WHOLE_SECONDS_MAX = 0.3
"""How long a request may take to arrive before its connection is passed on as it is."""
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?=\r\n)", re.IGNORECASE)
UNUSUAL = re.compile(
    rb"\r\n(transfer-encoding|expect|connection|upgrade)[ \t]*:(?![ \t]*keep-alive\r\n)",
    re.IGNORECASE,
)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer(Proxy):
    """Sends plain requests to the servers in turn. After an unusual request, such as one with
    chunked encoding, the connection stays with one server."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(ports[0])
        self._turns = cycle(ports)
        self.requests = dict.fromkeys(ports, 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        servers: dict[int, Stream] = {}
        try:
            await self._requests(reader, writer, servers)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for stream in (writer, *(stream[1] for stream in servers.values())):
                stream.close()
                self._writers.discard(stream)

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        servers: dict[int, Stream],
    ) -> None:
        content = b""
        while content or (content := await reader.read(CHUNK_BYTES)):
            port = next(self._turns)
            if port not in servers or servers[port][0].at_eof():
                servers[port] = await asyncio.open_connection("127.0.0.1", port)
                self._writers.add(servers[port][1])
            own_reader, own_writer = servers[port]
            end, content = await _whole(reader, content)
            if end is None:
                own_writer.write(content)
                await asyncio.gather(_carry(reader, own_writer), _carry(own_reader, writer))
                return
            self.requests[port] += 1
            own_writer.write(content[:end])
            is_head = content.startswith(b"HEAD ")
            content = content[end:]
            head = await own_reader.readuntil(HEAD_END)
            writer.write(head)
            length = LENGTH.search(head)
            if UNUSUAL.search(head) or length is None:
                # The server closes the connection after this response.
                await _carry(own_reader, writer)
                return
            if not is_head:
                writer.write(await own_reader.readexactly(int(length.group(1))))
            await writer.drain()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes bytes on. A client may go on sending after the server has answered and closed."""
    is_heard = True
    while content := await reader.read(CHUNK_BYTES):
        if is_heard:
            try:
                writer.write(content)
                await writer.drain()
            except OSError:
                is_heard = False
    with suppress(OSError):
        writer.write_eof()


async def _whole(reader: asyncio.StreamReader, content: bytes) -> tuple[int | None, bytes]:
    """The end of a plain request, or None for another, and the bytes received so far."""
    while (end := _end(content)) is None or len(content) < end:
        if HEAD_END in content and (end is None or end > BODY_BYTES_MAX):
            return None, content
        try:
            more = await asyncio.wait_for(reader.read(CHUNK_BYTES), WHOLE_SECONDS_MAX)
        except TimeoutError:
            return None, content
        if not more:
            return None, content
        content += more
    return end, content


def _end(content: bytes) -> int | None:
    head, separator, _ = content.partition(HEAD_END)
    if not separator or UNUSUAL.search(head) or b" HTTP/1.1\r\n" not in head:
        return None
    lengths = LENGTH.findall(head + HEAD_END)
    if len(lengths) > 1 or (not lengths and b"\r\ncontent-length" in head.lower()):
        return None
    return len(head) + len(HEAD_END) + int(lengths[0] if lengths else 0)
