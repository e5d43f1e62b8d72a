"""The limit: a server for GetItem and PutItem with nothing between the socket and LMDB.

uvloop reads, httptools parses, orjson decodes the body, LMDB stores the item's JSON under its key.
It validates nothing, and has no tables and expressions. As in Partita, waiting writes share a
commit, and a durable commit is on disk before its responses are sent.

    python -m benchmarks.servers.bare_loop --port N --data DIR [--relaxed]
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, cast

import httptools
import lmdb
import orjson
import uvloop

from benchmarks.drivers.single_request import HOST

MAP_BYTES = 1 << 36
GET_ITEM = b"DynamoDB_20120810.GetItem"
PUT_ITEM = b"DynamoDB_20120810.PutItem"

Writes = list[tuple[bytes, bytes, "Connection"]]


class Store:
    """LMDB with one read transaction for all requests, and one commit at a time."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._environment = lmdb.open(
            str(folder), map_size=MAP_BYTES, sync=durable, metasync=durable, readahead=False
        )
        self._reading = self._environment.begin()
        self._loop = asyncio.get_running_loop()
        self._waiting: Writes = []
        self._is_committing = False
        self._durable = durable
        self._work: SimpleQueue[Writes] = SimpleQueue()
        if durable:
            Thread(target=self._commit_forever, daemon=True).start()

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._reading.get(key)
        return value

    def put(self, key: bytes, value: bytes, connection: Connection) -> None:
        self._waiting.append((key, value, connection))
        if not self._is_committing:
            self._is_committing = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        writes, self._waiting = self._waiting, []
        if self._durable:
            self._work.put(writes)
        else:
            self._commit(writes)
            self._finish(writes)

    def _commit_forever(self) -> None:
        while True:
            writes = self._work.get()
            self._commit(writes)
            self._loop.call_soon_threadsafe(self._finish, writes)

    def _commit(self, writes: Writes) -> None:
        with self._environment.begin(write=True) as transaction:
            for key, value, _ in writes:
                transaction.put(key, value)

    def _finish(self, writes: Writes) -> None:
        self._reading.abort()
        self._reading = self._environment.begin()
        self._is_committing = bool(self._waiting)
        if self._waiting:
            self._start()
        for _, _, connection in writes:
            connection.answer(b"{}")


class Connection(asyncio.Protocol):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._transport: asyncio.Transport
        self._headers: dict[bytes, bytes] = {}
        self._body = b""
        self.on_header = self._headers.__setitem__
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        target = self._headers.get(b"X-Amz-Target")
        if target == GET_ITEM:
            request = orjson.loads(body)
            item = self._store.get(_place(request, request["Key"]))
            self.answer(b"{}" if item is None else b'{"Item":%b}' % item)
        elif target == PUT_ITEM:
            request = orjson.loads(body)
            item = request["Item"]
            self._store.put(_place(request, item), orjson.dumps(item), self)
        else:
            self.answer(b"{}")

    def answer(self, body: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )


def _place(request: dict[str, Any], key: dict[str, Any]) -> bytes:
    place: str = f"{request['TableName']}\0{key['pk']['S']}\0{key['sk']['S']}"
    return place.encode()


async def serve(port: int, data: Path, *, durable: bool) -> None:
    store = Store(data, durable=durable)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(store), HOST, port, backlog=1024)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="The limit of Python and LMDB.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--relaxed", action="store_true", help="do not wait for the disk")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options.port, options.data, durable=not options.relaxed))


if __name__ == "__main__":
    main()
