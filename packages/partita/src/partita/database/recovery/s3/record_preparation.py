"""Prepares the records of imports and bulk puts: parses, validates and packs items for storage.

That is most of the work of an import, and needs only the table's schema. Large inputs are therefore
prepared in a child process, which is this module run as a program: it receives pieces with their
table and answers with prepared records until its input ends. While the process starts, the server
prepares pieces itself.
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

from partita.database.item.attribute_values import Item, normalize_item
from partita.database.item.dynamodb_json import is_map
from partita.database.item.item_sizes import check_item_size
from partita.database.recovery.s3.import_formats import (
    ION,
    ObjectPiece,
    PieceReader,
    Record,
    records,
)
from partita.database.recovery.s3.object_pieces import TruncatedObject
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_item
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.stored_item import pack
from partita.errors import DynamoDBError, StorageError, ValidationException

BATCH_RECORDS: Final = 500
PIECES_AHEAD: Final = 2
PROCESS_BYTES_MIN: Final = 1 << 20
COMPRESSION_RATIO: Final = 4
"""Guess for the size of compressed input. The server prepares smaller inputs than
`PROCESS_BYTES_MIN` itself: it is done before a process would have started."""
CONDITION_MEMBERS: Final = frozenset(
    ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
)


class PreparedItem(msgspec.Struct, frozen=True, array_like=True, tag=0):
    key: bytes
    value: bytes
    """The item in the format of storage."""
    condition: dict[str, Any] | None = None
    """ConditionExpression with its ExpressionAttributeNames and ExpressionAttributeValues."""


class UnusableRecord(msgspec.Struct, frozen=True, array_like=True, tag=1):
    code: str
    message: str
    item: Any = None
    """The item of the record, if it could be parsed that far."""


Prepared = PreparedItem | UnusableRecord


def prepare(piece: ObjectPiece, table: Table) -> Iterator[Prepared]:
    return (_prepare_record(record, table) for record in records(piece, table))


def _prepare_record(record: Record, table: Table) -> Prepared:
    if isinstance(record, str):
        return UnusableRecord("ValidationException", record)
    item: Item = record["Item"]
    try:
        normal = normalize_item(item)
        stored = pack(normal)
        check_item_size(stored.size)
        check_item(table, normal)
        condition = None if len(record) == 1 else _condition(record)
        key = table_layout.item_key(table, normal)
        return PreparedItem(key, stored.value(table.sort_attributes), condition)
    except DynamoDBError as error:
        return UnusableRecord(type(error).__name__, str(error), item)


def _condition(record: dict[str, Any]) -> dict[str, Any]:
    """The members of a record besides its Item, checked for their types."""
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


# The child process

READY: Final = b"\x01"
_LENGTH: Final = Struct(">I")
_encode = msgspec.msgpack.encode
_decode_job = msgspec.msgpack.Decoder(tuple[ObjectPiece, Table]).decode
_decode_prepared = msgspec.msgpack.Decoder(list[Prepared]).decode


class PreparationProcess:
    """The child process that all imports and bulk puts with large inputs share.

    It starts with the first piece and ends with the last user. Only the background thread uses it.
    Pieces are sent ahead, so that the process has its next piece when it answers.
    """

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._users = 0

    def joined(self, input_bytes: int, compression: str) -> PreparationProcess | None:
        """Registers an import, which has to call `leave`; None if its input is small."""
        self._users += 1
        ratio = 1 if compression == "NONE" else COMPRESSION_RATIO
        return self if input_bytes * ratio >= PROCESS_BYTES_MIN else None

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._process is not None:
            process, self._process = self._process, None
            process.end()

    def is_ready(self) -> bool:
        """True if `send` would not wait; False while the process is starting."""
        with self._using(self._start()) as process:
            return process.is_ready()

    def send(self, piece: ObjectPiece, table: Table) -> SentPiece:
        with self._using(self._start()) as process:
            return process.send(piece, table)

    def _start(self) -> _Process:
        if self._process is None:
            self._process = _Process()
        return self._process

    def receive(self, sent: SentPiece) -> list[Prepared]:
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
        # -P keeps the current folder out of sys.path, where a file of the user could shadow ours.
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
        """Answers for other imports, by number, until these call `receive`."""

    def is_ready(self, flags: int = MSG_DONTWAIT) -> bool:
        """True once the process has sent the byte that says it accepts pieces."""
        if not self._is_ready:
            try:
                word = self._connection.recv(len(READY), flags)
            except BlockingIOError:
                return False
            if not word:
                raise ConnectionResetError
            self._is_ready = True
        return True

    def send(self, piece: ObjectPiece, table: Table) -> SentPiece:
        self.is_ready(MSG_WAITALL)
        _send(self._connection, _encode((piece, table)))
        self._sent += 1
        return SentPiece(self, self._sent)

    def receive(self, number: int) -> list[Prepared]:
        """Waits for the answer to piece `number`; answers arrive in the order of sending."""
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


class SentPiece(NamedTuple):
    """A piece that the child process is preparing."""

    process: _Process
    number: int


def _send(connection: socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)) + content)


def _receive(connection: socket) -> bytes | None:
    """Receives a message; None at the end of the input.

    MSG_WAITALL makes it one system call: after each shorter one, this thread would wait for the
    interpreter lock, which a busy event loop rarely gives up.
    """
    head = connection.recv(_LENGTH.size, MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    length = _LENGTH.unpack(head)[0]
    content = connection.recv(length, MSG_WAITALL)
    return content if len(content) == length else None


class PreparedBatches:
    """The prepared records of an object, in batches; the next pieces are read ahead."""

    def __init__(
        self,
        run: Callable[[Callable[[], Any]], Future[Any]],
        source: PieceReader,
        preparing: PreparationProcess | None,
    ) -> None:
        self._run = run
        self._source = source
        self._preparing = preparing
        self._batches: Iterator[list[Prepared]] = iter(())
        self._ahead: Future[Any] | None = None
        self._pieces: deque[ObjectPiece | SentPiece] = deque()
        self._is_at_end = False
        self._problem: TruncatedObject | None = None

    def next(self, table: Table) -> Generator[Future[Any] | None, Any, list[Prepared] | None]:
        """Returns the next batch; None at the end. Raises NotWhole."""
        while True:
            batch = next(self._batches, None)
            if batch:
                return batch
            ahead = self._ahead or self._run(partial(self._read, table))
            yield ahead
            result: ObjectPiece | list[Prepared] | None = ahead.result()
            if result is None:
                return None
            self._ahead = self._run(partial(self._read, table))
            prepared = prepare(result, table) if isinstance(result, ObjectPiece) else iter(result)
            self._batches = _batches(prepared)

    def _read(self, table: Table) -> ObjectPiece | list[Prepared] | None:
        while len(self._pieces) < PIECES_AHEAD and not self._is_at_end:
            self._read_piece(table)
        if not self._pieces:
            if self._problem is not None:
                raise self._problem
            return None
        first = self._pieces.popleft()
        if isinstance(first, ObjectPiece) or self._preparing is None:
            assert isinstance(first, ObjectPiece)
            return first
        return self._preparing.receive(first)

    def _read_piece(self, table: Table) -> None:
        try:
            piece = self._source.next()
        except TruncatedObject as problem:
            # Raised only after the pieces before it are used.
            self._is_at_end, self._problem = True, problem
            return
        if piece is None:
            self._is_at_end = True
        elif self._preparing is None or piece.kind == ION or not self._preparing.is_ready():
            # An object in Ion is one piece, so its records would come back in one huge answer.
            self._pieces.append(piece)
        else:
            self._pieces.append(self._preparing.send(piece, table))


def _batches(prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
    while batch := list(islice(prepared, BATCH_RECORDS)):
        yield batch


def main() -> None:
    # Ctrl-C in a terminal reaches both processes; the server decides when this one ends.
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
    """Receives jobs while another one runs, so that the server never blocks in `send`."""
    job: bytes | None = b""
    while job is not None:
        try:
            job = _receive(connection)
        except OSError:
            job = None
        jobs.put(job)


if __name__ == "__main__":
    main()
