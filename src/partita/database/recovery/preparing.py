"""Records that are made ready for storage: decoded, checked, packed, with the key of their item.

That is most of the work of an import or a bulk put, and needs nothing of the database but the
table's schema. So for large inputs it is done in a process of its own: this module as a program,
which reads a piece and a table and answers with records until its input ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from struct import Struct
from typing import IO, Any, Final

import msgspec

from partita.database.item.sizes import check_item_size
from partita.database.item.values import Item, normalize_item
from partita.database.recovery.formats import ION, Piece, Record, Source, is_map, records
from partita.database.tables import layout
from partita.database.tables.keys import check_item
from partita.database.tables.schema import Table
from partita.database.tables.stored import pack
from partita.errors import DynamoDBError, StorageError, ValidationException

BATCH_RECORDS: Final = 500
PROCESS_BYTES_MIN: Final = 1 << 20
"""What is smaller is prepared before a process has started."""
CONDITION_MEMBERS: Final = frozenset(
    ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
)


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=0):
    key: bytes
    value: bytes
    """As storage has it."""
    condition: dict[str, Any] | None = None
    """With the expression attributes of a condition, of the shape that PutItem asks for."""


class Unusable(msgspec.Struct, frozen=True, array_like=True, tag=1):
    code: str
    message: str
    item: Any = None
    """What was to be put, if that could be told."""


Prepared = Ready | Unusable


def prepare(piece: Piece, table: Table) -> Iterator[Prepared]:
    return (_prepared(record, table) for record in records(piece, table))


def _prepared(record: Record, table: Table) -> Prepared:
    if isinstance(record, str):
        return Unusable("ValidationException", record)
    item: Item = record["Item"]
    try:
        normal = normalize_item(item)
        stored = pack(normal)
        check_item_size(stored.size)
        check_item(table, normal)
        condition = None if len(record) == 1 else _condition(record)
        key = layout.item_key(table, normal)
        return Ready(key, stored.value(table.sort_attributes), condition)
    except DynamoDBError as error:
        return Unusable(type(error).__name__, str(error), item)


def _condition(record: dict[str, Any]) -> dict[str, Any]:
    """Of a line, all that is not its item."""
    condition = {name: value for name, value in record.items() if name != "Item"}
    unknown = condition.keys() - CONDITION_MEMBERS
    if unknown:
        raise ValidationException(f"a record has an unknown member: {min(unknown)}")
    if not isinstance(condition.get("ConditionExpression"), str):
        raise ValidationException("ConditionExpression must be a string")
    names = condition.get("ExpressionAttributeNames", {})
    if not (isinstance(names, dict) and all(isinstance(name, str) for name in names.values())):
        raise ValidationException("ExpressionAttributeNames must be a map of strings")
    if not is_map(condition.get("ExpressionAttributeValues", {})):
        raise ValidationException("ExpressionAttributeValues must be a map of attribute values")
    return condition


# In a process of its own

_LENGTH: Final = Struct(">I")
_encode = msgspec.msgpack.encode
_decode_job = msgspec.msgpack.Decoder(tuple[Piece, Table]).decode
_decode_prepared = msgspec.msgpack.Decoder(list[Prepared]).decode


class Preparing:
    """One process for all imports and bulk puts with large inputs, while there are any."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._users = 0

    def joined(self, input_bytes: int) -> Preparing | None:
        """For somebody with an input of that size, who will `leave`; None for a small one."""
        self._users += 1
        return self if input_bytes >= PROCESS_BYTES_MIN else None

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._process is not None:
            process, self._process = self._process, None
            _end(process)

    def prepare(self, piece: Piece, table: Table) -> list[Prepared]:
        """On the thread that may wait, of which there is one."""
        process = self._process
        if process is None:
            self._process = process = _started()
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, _encode((piece, table)))
            answer = _receive(process.stdout)
        except OSError:
            answer = None
        if answer is None:
            self._process = None
            _end(process)
            raise StorageError("The process that prepares items has ended.")
        return _decode_prepared(answer)


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", __name__]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise StorageError(f"The process that prepares items cannot start: {error}.") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    """None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    length = _LENGTH.unpack(head)[0]
    content = stream.read(length)
    return content if len(content) == length else None


class Batches:
    """The records of an object, some at a time; the next piece is read ahead."""

    def __init__(
        self,
        run: Callable[[Callable[[], Any]], Future[Any]],
        source: Source,
        preparing: Preparing | None,
    ) -> None:
        self._run = run
        self._source = source
        self._preparing = preparing
        self._batches: Iterator[list[Prepared]] = iter(())
        self._ahead: Future[Any] | None = None

    def next(self, table: Table) -> Generator[Future[Any] | None, Any, list[Prepared] | None]:
        """None at the end. Raises NotWhole."""
        while True:
            batch = next(self._batches, None)
            if batch:
                return batch
            ahead = self._ahead or self._run(partial(self._read, table))
            yield ahead
            found: Piece | list[Prepared] | None = ahead.result()
            if found is None:
                return None
            self._ahead = self._run(partial(self._read, table))
            prepared = prepare(found, table) if isinstance(found, Piece) else iter(found)
            self._batches = _batches(prepared)

    def _read(self, table: Table) -> Piece | list[Prepared] | None:
        piece = self._source.next()
        if piece is None or self._preparing is None or piece.kind == ION:
            # All of an object in Ion would come back at once.
            return piece
        return self._preparing.prepare(piece, table)


def _batches(prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
    while batch := list(islice(prepared, BATCH_RECORDS)):
        yield batch


def main() -> None:
    # Of the terminal, both get it; the server decides when the process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while (job := _receive(sys.stdin.buffer)) is not None:
            _send(sys.stdout.buffer, _encode(list(prepare(*_decode_job(job)))))
    except BrokenPipeError:
        # The server is gone; there is nobody to flush anything to.
        os._exit(1)


if __name__ == "__main__":
    main()
