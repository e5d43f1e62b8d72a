"""Round trips: statements that are sent to PostgreSQL together, with results that return together.

This uses libpq's pipeline mode without psycopg's cursors. Parameters and results are bytes in
PostgreSQL's binary formats, so a batch of hundreds of rows takes one pass over them in each
direction. Statements are prepared, unless a pooler between would send them to other processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

BINARY: Final = 1
_BYTEA_OID, _BIGINT_OID, _SMALLINT_OID = 17, 20, 21
_ARRAY: Final = Struct("!iiiii")
"""Number of dimensions, 1 if there are nulls, type of the members, their count, first index."""
_NO_MEMBERS: Final = Struct("!iii")
_LENGTH: Final = Struct("!i")
_BIGINT: Final = Struct("!q")
_SMALLINT_MEMBER: Final = Struct("!ih")
_BIGINT_MEMBER: Final = Struct("!iq")
_DOUBLE: Final = Struct("!d")
_SUCCESSES: Final = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class SqlStatement:
    """SQL with parameters $1, $2, ..., and a number for the name of its prepared statement."""

    _numbers: Final = count(1)

    def __init__(self, sql: str) -> None:
        self.sql = " ".join(sql.split()).encode()
        self.number = next(self._numbers)


class TripStep(NamedTuple):
    """One statement of a round trip, with its parameters."""

    statement: SqlStatement
    parameters: Sequence[bytes] = ()


class PreparedStatements:
    """The prepared statements of one connection.

    PostgreSQL plans a prepared statement for the current size of a table (a sequential scan, if it
    has few rows), and keeps the plan until it analyzes the table a minute later. A statement is
    therefore prepared again at its 2nd, 8th, 32nd, ... run, before the table has many more rows
    than the plan expects.
    """

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self._runs: dict[int, int] = {}

    def name(self, statement: SqlStatement) -> bytes:
        """Returns the name of the prepared statement for this run."""
        runs = self._runs[statement.number] = self._runs.get(statement.number, 0) + 1
        return b"partita_%d_%d" % (statement.number, runs.bit_length() // 2)


_prepared: WeakKeyDictionary[AsyncConnection[Any], PreparedStatements] = WeakKeyDictionary()
_pooled: WeakKeyDictionary[AsyncConnection[Any], bool] = WeakKeyDictionary()
"""True for connections that lead to a pooler."""


async def run(connection: AsyncConnection[Any], steps: Sequence[TripStep]) -> list[PGresult]:
    """Runs statements; raises the error of the first that fails, after which none is run."""
    pgconn = connection.pgconn
    try:
        pgconn.enter_pipeline_mode()
        sent = _send(connection, steps)
        await _flush(pgconn)
        received = await _receive(pgconn)
        pgconn.exit_pipeline_mode()
    except psycopg.Error:
        raise
    except BaseException:
        # The connection's next user must not get the results of this round trip.
        pgconn.finish()
        raise
    return list(_results(connection, sent, received))


def _send(connection: AsyncConnection[Any], steps: Iterable[TripStep]) -> list[bytes]:
    """Queues the statements; returns, for each expected result, the name it prepares or b""."""
    pgconn = connection.pgconn
    sent: list[bytes] = []
    prepared = _prepared.setdefault(connection, PreparedStatements())
    is_pooled = _pooled.get(connection, False)
    for statement, parameters in steps:
        formats = [BINARY] * len(parameters)
        if is_pooled:
            pgconn.send_query_params(statement.sql, parameters, None, formats, result_format=BINARY)
        else:
            name = prepared.name(statement)
            if name not in prepared.names and name not in sent:
                pgconn.send_prepare(name, statement.sql)
                sent.append(name)
            pgconn.send_query_prepared(name, parameters, formats, BINARY)
        sent.append(b"")
    pgconn.pipeline_sync()
    return sent


async def _flush(pgconn: PGconn) -> None:
    while pgconn.flush():
        await _ready(pgconn, for_writing=True)
        # The server stops reading while nobody takes its answers, so these are taken now.
        pgconn.consume_input()


async def _receive(pgconn: PGconn) -> list[PGresult]:
    """Receives all results of the round trip."""
    received: list[PGresult] = []
    try:
        while True:
            while not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    if pgconn.status == ConnStatus.BAD:
                        raise psycopg.OperationalError(pgconn.get_error_message())
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    return received
                else:
                    received.append(result)
            await _ready(pgconn)
            pgconn.consume_input()
    except psycopg.OperationalError as error:
        # The server's last error says more than the end of the connection.
        for result in received:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result) from error
        raise


def _results(
    connection: AsyncConnection[Any], sent: Sequence[bytes], received: Sequence[PGresult]
) -> Iterator[PGresult]:
    for name, result in zip(sent, received, strict=False):
        if result.status not in _SUCCESSES:
            raise error_from_result(result)
        if name:
            _prepared[connection].names.add(name)
        else:
            yield result


async def _ready(pgconn: PGconn, *, for_writing: bool = False) -> None:
    loop = asyncio.get_running_loop()
    is_ready: asyncio.Future[None] = loop.create_future()
    descriptor = pgconn.socket
    loop.add_reader(descriptor, _wake, is_ready)
    if for_writing:
        loop.add_writer(descriptor, _wake, is_ready)
    try:
        await is_ready
    finally:
        loop.remove_reader(descriptor)
        if for_writing:
            loop.remove_writer(descriptor)


def _wake(is_ready: asyncio.Future[None]) -> None:
    if not is_ready.done():
        is_ready.set_result(None)


async def notice_pooler(connection: AsyncConnection[Any]) -> None:
    """Notes whether a connection leads to a pooler.

    A pooler announces another process id than that of the backend that runs the statements.
    """
    cursor = await connection.execute("SELECT pg_backend_pid()", prepare=False)
    row = await cursor.fetchone()
    _pooled[connection] = row is None or row[0] != connection.pgconn.backend_pid


# Values in PostgreSQL's binary formats


def bigint(value: int) -> bytes:
    return _BIGINT.pack(value)


def bigint_in(result: PGresult, row: int, column: int) -> int:
    return int.from_bytes(result.get_value(row, column) or b"", "big", signed=True)


def double_in(result: PGresult, row: int, column: int) -> float:
    value: float = _DOUBLE.unpack(result.get_value(row, column) or bytes(_DOUBLE.size))[0]
    return value


def bytea_in(result: PGresult, row: int, column: int) -> bytes:
    return result.get_value(row, column) or b""


def byteas(values: Sequence[bytes]) -> bytes:
    pieces = [_array(_BYTEA_OID, len(values))]
    for value in values:
        pieces.append(_LENGTH.pack(len(value)))
        pieces.append(value)
    return b"".join(pieces)


def bigints(values: Sequence[int]) -> bytes:
    members = b"".join([_BIGINT_MEMBER.pack(_BIGINT.size, value) for value in values])
    return _array(_BIGINT_OID, len(values)) + members


def smallints(values: Sequence[int]) -> bytes:
    members = b"".join([_SMALLINT_MEMBER.pack(2, value) for value in values])
    return _array(_SMALLINT_OID, len(values)) + members


def _array(oid: int, length: int) -> bytes:
    return _ARRAY.pack(1, 0, oid, length, 1) if length else _NO_MEMBERS.pack(0, 0, oid)
