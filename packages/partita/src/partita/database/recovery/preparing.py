"""Records that are made ready for storage: decoded, checked, packed, with the key of their item.

That is most of the work of an import or a bulk put, and needs nothing of the database but the
table's schema. So for large inputs it is done in a process of its own: this module as a program,
which reads a piece and a table and answers with records until its input ends. Nobody waits for it
to start: until then the server prepares pieces itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from itertools import islice
from queue import SimpleQueue
from socket import MSG_DONTWAIT, MSG_WAITALL, socket, socketpair
from struct import Struct
from threading import Thread
from typing import Any, Final, NamedTuple

import msgspec

from partita.database.item.shapes import is_map
from partita.database.item.sizes import check_item_size
from partita.database.item.values import Item, normalize_item
from partita.database.recovery.formats import ION, Piece, Record, Source, records
from partita.database.recovery.objects import NotWhole
from partita.database.tables import layout
from partita.database.tables.keys import check_item
from partita.database.tables.schema import Table
from partita.database.tables.stored import pack
from partita.errors import DynamoDBError, StorageError, ValidationException

BATCH_RECORDS: Final = 500
PIECES_AHEAD: Final = 2
PROCESS_BYTES_MIN: Final = 1 << 20
COMPRESSION_RATIO: Final = 4
"""What is smaller, as far as can be told, is prepared before a process has started."""
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

READY: Final = b"\x01"
_LENGTH: Final = Struct(">I")
_encode = msgspec.msgpack.encode
_decode_job = msgspec.msgpack.Decoder(tuple[Piece, Table]).decode
_decode_prepared = msgspec.msgpack.Decoder(list[Prepared]).decode


class Preparing:
    """One process for all imports and bulk puts with large inputs, while there are any.

    Used on the thread that may wait, of which there is one. Pieces are sent ahead: the process has
    its next piece when it answers one.
    """

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._users = 0

    def joined(self, input_bytes: int, compression: str) -> Preparing | None:
        """For somebody with an input of that size, who will `leave`; None for a small one."""
        self._users += 1
        ratio = 1 if compression == "NONE" else COMPRESSION_RATIO
        return self if input_bytes * ratio >= PROCESS_BYTES_MIN else None

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._process is not None:
            process, self._process = self._process, None
            process.end()

    def is_ready(self) -> bool:
        """Whether `send` would not wait; if not, the process is starting."""
        with self._using(self._started()) as process:
            return process.is_ready()

    def send(self, piece: Piece, table: Table) -> Sent:
        with self._using(self._started()) as process:
            return process.send(piece, table)

    def _started(self) -> _Process:
        if self._process is None:
            self._process = _Process()
        return self._process

    def receive(self, sent: Sent) -> list[Prepared]:
        with self._using(sent.process) as process:
            return process.receive(sent.number)

    @contextmanager
    def _using(self, process: _Process) -> Iterator[_Process]:
        try:
            yield process
        except OSError as error:
            if self._process is process:
                self._process = None
                process.end()
            raise StorageError("The process that prepares items has ended.") from error


class _Process:
    def __init__(self) -> None:
        self._connection, theirs = socketpair()
        command = [sys.executable, "-P", "-m", __name__]
        try:
            self.popen = subprocess.Popen(command, stdin=theirs.fileno())
        except OSError as error:
            self._connection.close()
            raise StorageError(f"The process that prepares items cannot start: {error}.") from error
        finally:
            theirs.close()
        self._is_ready = False
        self._sent = 0
        self._received = 0
        self._answers: dict[int, bytes] = {}
        """Of others, who have not asked for them yet."""

    def is_ready(self, flags: int = MSG_DONTWAIT) -> bool:
        """Its first word is that it takes pieces."""
        if not self._is_ready:
            try:
                word = self._connection.recv(len(READY), flags)
            except BlockingIOError:
                return False
            if not word:
                raise ConnectionResetError
            self._is_ready = True
        return True

    def send(self, piece: Piece, table: Table) -> Sent:
        self.is_ready(MSG_WAITALL)
        _send(self._connection, _encode((piece, table)))
        self._sent += 1
        return Sent(self, self._sent)

    def receive(self, number: int) -> list[Prepared]:
        """Answers come in the order of what was sent."""
        while self._received < number:
            answer = _receive(self._connection)
            if answer is None:
                raise ConnectionResetError
            self._received += 1
            self._answers[self._received] = answer
        return _decode_prepared(self._answers.pop(number))

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self._connection.close()


class Sent(NamedTuple):
    """A piece that is being prepared."""

    process: _Process
    number: int


def _send(connection: socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)) + content)


def _receive(connection: socket) -> bytes | None:
    """None at the end. All of it at once: each part would wait for its turn beside a busy loop."""
    head = connection.recv(_LENGTH.size, MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    length = _LENGTH.unpack(head)[0]
    content = connection.recv(length, MSG_WAITALL)
    return content if len(content) == length else None


class Batches:
    """The records of an object, some at a time; the next pieces are read ahead."""

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
        self._pieces: deque[Piece | Sent] = deque()
        self._is_at_end = False
        self._problem: NotWhole | None = None

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
        while len(self._pieces) < PIECES_AHEAD and not self._is_at_end:
            self._read_piece(table)
        if not self._pieces:
            if self._problem is not None:
                raise self._problem
            return None
        first = self._pieces.popleft()
        if isinstance(first, Piece) or self._preparing is None:
            assert isinstance(first, Piece)
            return first
        return self._preparing.receive(first)

    def _read_piece(self, table: Table) -> None:
        try:
            piece = self._source.next()
        except NotWhole as problem:
            # Not before what was whole is dealt with.
            self._is_at_end, self._problem = True, problem
            return
        if piece is None:
            self._is_at_end = True
        elif self._preparing is None or piece.kind == ION or not self._preparing.is_ready():
            # All of an object in Ion would come back at once.
            self._pieces.append(piece)
        else:
            self._pieces.append(self._preparing.send(piece, table))


def _batches(prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
    while batch := list(islice(prepared, BATCH_RECORDS)):
        yield batch


def main() -> None:
    # Of the terminal, both get it; the server decides when the process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket(fileno=os.dup(sys.stdin.fileno()))
    connection.sendall(READY)
    jobs: SimpleQueue[bytes | None] = SimpleQueue()
    Thread(target=_gather, args=(connection, jobs), daemon=True).start()
    try:
        while (job := jobs.get()) is not None:
            _send(connection, _encode(list(prepare(*_decode_job(job)))))
    except OSError:
        # The server is gone.
        os._exit(1)


def _gather(connection: socket, jobs: SimpleQueue[bytes | None]) -> None:
    """Take jobs while one is under way, so that the server never waits until it may send."""
    job: bytes | None = b""
    while job is not None:
        try:
            job = _receive(connection)
        except OSError:
            job = None
        jobs.put(job)


if __name__ == "__main__":
    main()
