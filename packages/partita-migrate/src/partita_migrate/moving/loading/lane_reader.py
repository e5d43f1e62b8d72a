"""Reads rows of the source into the state store, in lanes: ranges of their primary keys.

Each lane is read in a transaction whose position in the log is known. A lane that was cut off goes
on behind its last row, at a later position; so following begins at the first position of all, and
each row records where it was read. Large tables are read by several processes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import text

from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.lag_progress import load_progress
from partita_migrate.moving.loading.load_report import (
    LANES,
    READ_SINCE,
    READ_UNTIL,
    STAGED,
    ReadLane,
    SourceCost,
)
from partita_migrate.moving.logs import log_of
from partita_migrate.moving.logs.move_source import MoveSource, behind_key
from partita_migrate.moving.logs.source_changes import LogSession, OpenSession
from partita_migrate.moving.move import POSITION_FACT, RESUME, Move
from partita_migrate.moving.processes.worker_processes import Handler, WorkerProcesses, worker_count
from partita_migrate.row_store.state_store import StateStore, state_path
from partita_migrate.understanding.schema.inventory import SourceTable, read_inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress

CHUNK_ROWS = 2000
SPLIT_ROWS_MIN = 40_000
LANES_OF_TABLE = 4
WAITING_MAX = 6
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300
ON_SOURCE = "on_source"
COUNTERS = {
    "mysql": "SHOW GLOBAL STATUS WHERE Variable_name IN ('Bytes_sent', 'Innodb_rows_read',"
    " 'Innodb_data_read', 'Questions')",
    "postgresql": "SELECT name, value FROM pg_stat_database, LATERAL (VALUES"
    " ('tup_returned', tup_returned), ('blks_read', blks_read), ('blks_hit', blks_hit)) AS of"
    " (name, value) WHERE datname = current_database()",
}
"""Counters that servers keep of themselves: rows and bytes read, bytes sent."""


class RowChunk(Struct):
    """Some rows of a lane, in the form of the state store."""

    lane: ReadLane
    rows: list[tuple[Any, ...]]
    position: int


class LaneReaderSetup(Struct):
    """Sent to a reading process when it starts."""

    folder: str
    model: str
    is_followed: bool
    shared: str
    password: str | None


class LaneReader:
    """Reads lanes one after the other."""

    def __init__(self, origin: MoveSource, state: StateStore, open_session: OpenSession) -> None:
        self.origin = origin
        self.state = state
        self.open_session = open_session
        self.tables = {table.name: table for table in origin.tables}

    def chunks(self, lane: ReadLane) -> Iterator[RowChunk]:
        """Yields the chunks of a lane.

        When the server restarts, it is waited for, and the lane goes on behind its last row.
        """
        away_since: float | None = None
        lane = replace(lane)
        while not lane.is_done:
            rows = lane.rows
            try:
                with self.open_session() as session:
                    yield from self._read(lane, session)
                return
            except SourceError:
                self._check_schema()
                # The shared snapshot is lost with the server; only a new run can export another.
                if self.origin.family == "postgresql":
                    raise
                away_since = time.monotonic() if lane.rows > rows or not away_since else away_since
                if time.monotonic() - away_since > AWAY_SECONDS_MAX:
                    raise
                time.sleep(RETRY_SECONDS)

    def _check_schema(self) -> None:
        """Raises SchemaChanged when a column is gone; a read then fails as if the server were
        away."""
        with suppress(SourceError), self.origin.connect() as source:
            self.origin.check_schema(source)

    def _read(self, lane: ReadLane, session: LogSession) -> Iterator[RowChunk]:
        table = self.tables[lane.table]
        lane.expected = lane.rows + count_rows(session.source, table, lane)
        column_readings = self.origin.readings[table.name]
        keys = [session.source.quote(name) for name in table.primary_key]
        where, bound = _range(session.source, table, lane)
        columns = ", ".join([*(reading.sql for reading in column_readings), *keys]) or "1"
        statement = f"SELECT {columns} FROM {session.source.relation(table)}{where}"
        if keys:
            # Ordered by position in the SELECT: an expression may carry the name of its column.
            places = range(len(column_readings) + 1, len(column_readings) + 1 + len(keys))
            statement += f" ORDER BY {', '.join(map(str, places))}"
        # Drivers otherwise fetch the whole result into memory.
        options = {"stream_results": True, "max_row_buffer": CHUNK_ROWS}
        read_row, stored = self.origin.read_row, self.state.stored
        with session.source.errors():
            result = session.source.connection.execute(
                text(statement), bound, execution_options=options
            )
            try:
                for part in result.partitions(CHUNK_ROWS):
                    rows = [stored(table.name, read_row(table.name, row)) for row in part]
                    lane.last = [
                        _to_stored_key(value) for value in part[-1][len(column_readings) :]
                    ] or None
                    lane.rows += len(rows)
                    yield RowChunk(replace(lane), rows, session.position)
            finally:
                result.close()
        lane.is_done = True
        yield RowChunk(replace(lane), [], session.position)


def worker(content: bytes) -> Handler:
    """Runs in a process of its own: returns the next chunk of a lane, each time that it is
    asked."""
    setup = msgspec.msgpack.decode(content, type=LaneReaderSetup)
    folder = Folder.open(Path(setup.folder))
    inventory, design = read_inventory(folder), read_design(folder, setup.model)
    state = StateStore(state_path(folder), inventory, design, is_read_only=True)
    origin = MoveSource(folder, inventory, lambda _: setup.password or "")
    log = log_of(origin, is_followed=setup.is_followed)
    stack = ExitStack()
    reader = LaneReader(origin, state, stack.enter_context(log.sessions(setup.shared)))
    open_lanes: dict[int, Iterator[RowChunk]] = {}

    def handle(task: bytes) -> RowChunk:
        lane = msgspec.msgpack.decode(task, type=ReadLane)
        if lane.number not in open_lanes:
            open_lanes[lane.number] = reader.chunks(lane)
        chunk = next(open_lanes[lane.number])
        if chunk.lane.is_done:
            open_lanes.pop(lane.number).close()  # type: ignore[attr-defined]
        return chunk

    return handle


class RowStaging:
    """Reads all lanes and stores their rows, in threads or in worker processes."""

    def __init__(self, move: Move, progress: Progress) -> None:
        self.move = move
        self.state = move.state
        self.progress = progress
        self.tables = {table.name: table for table in move.origin.tables}
        self.lanes: list[ReadLane] = []
        self._waiting: queue.Queue[RowChunk | BaseException | None] = queue.Queue(WAITING_MAX)
        self._is_over = False

    def run(self) -> None:
        """Reads all lanes that are not read to their end, and indexes the rows."""
        self.move.log.tell = lambda sentence: self.progress(sentence, 0, 0)
        self._check_schema()
        self.move.log.prepare()
        with self.move.log.sessions() as open_session:
            self.lanes = self.state.fact(LANES, list[ReadLane]) or self._begin(open_session)
            left: queue.Queue[ReadLane] = queue.Queue()
            for lane in self.lanes:
                if not lane.is_done:
                    left.put(lane)
            with SourceCostMeter(self.move) as watch, ExitStack() as stack:
                threads = self._threads(left, open_session, stack)
                for thread in threads:
                    thread.start()
                try:
                    self._store(len(threads))
                finally:
                    self._is_over = True
                    for thread in threads:
                        thread.join(10)
        self._check_schema()
        with self.state.transaction():
            self.state.index()
            self.state.set_fact(ON_SOURCE, watch.cost(sum(lane.rows for lane in self.lanes)))
            self.state.set_fact(STAGED, True)

    def _threads(
        self, left: queue.Queue[ReadLane], open_session: OpenSession, stack: ExitStack
    ) -> list[threading.Thread]:
        rows = sum(table.row_count for table in self.tables.values())
        if rows < SPLIT_ROWS_MIN or self.move.origin.family == "sqlite":
            reader = LaneReader(self.move.origin, self.state, open_session)
            return [threading.Thread(target=self._read_all, args=(left, reader), daemon=True)]
        setup = LaneReaderSetup(
            folder=str(self.move.folder.path.resolve()),
            model=self.move.begun.model,
            is_followed=self.move.begun.is_followed,
            shared=self.move.log.shared,
            password=self.move.origin.address.password,
        )
        count = min(worker_count(), left.qsize())
        if not count:
            return []
        workers = stack.enter_context(
            WorkerProcesses(__name__, setup, RowChunk, self.move.lock, count)
        )
        # Each thread keeps its process: a lane is one open result set there.
        return [
            threading.Thread(target=self._ask_for_all, args=(left, workers.one()), daemon=True)
            for _ in range(count)
        ]

    def _check_schema(self) -> None:
        """Raises when tables no longer have the columns that were planned.

        It uses its own connection, because a snapshot may still show the old catalog.
        """
        with self.move.origin.connect() as source:
            self.move.origin.check_schema(source)

    def _begin(self, open_session: OpenSession) -> list[ReadLane]:
        """Notes the first position of all, from which changes are followed, and divides the tables
        into lanes."""
        with open_session() as session:
            all_lanes = (lane for table in self.tables.values() for lane in _lanes(session, table))
            lanes = [replace(lane, number=number) for number, lane in enumerate(all_lanes)]
            with self.state.transaction():
                self.state.set_fact(POSITION_FACT, session.position)
                self.state.set_fact(RESUME, session.resume)
                self.state.set_fact(READ_UNTIL, session.position)
                self.state.set_fact(READ_SINCE, time.time())
                self.state.set_fact(LANES, lanes)
        return lanes

    def _store(self, threads: int) -> None:
        """Stores the chunks that the reading threads deliver, until all have ended."""
        done = sum(lane.rows for lane in self.lanes)
        total = sum(table.row_count for table in self.tables.values())
        progress = load_progress(self.move, self.progress)
        while threads:
            chunk = self._waiting.get()
            if chunk is None:
                threads -= 1
                continue
            if isinstance(chunk, BaseException):
                raise chunk
            lane = chunk.lane
            self.lanes[lane.number] = lane
            # Rows and the lane's place in one transaction: after a kill, the lane goes on exactly
            # behind its last stored row.
            with self.state.transaction():
                self.state.add(lane.table, chunk.rows, chunk.position)
                read_until = self.state.fact(READ_UNTIL, int) or 0
                self.state.set_fact(READ_UNTIL, max(read_until, chunk.position))
                self.state.set_fact(LANES, self.lanes)
            done += len(chunk.rows)
            progress("Rows", done, max(total, done))

    # In threads.

    def _read_all(self, left: queue.Queue[ReadLane], reader: LaneReader) -> None:
        try:
            with suppress(queue.Empty):
                while not self._is_over:
                    for chunk in reader.chunks(left.get_nowait()):
                        self._put(chunk)
                        if self._is_over:
                            return
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _ask_for_all(
        self, left: queue.Queue[ReadLane], read_on: Callable[[ReadLane], RowChunk]
    ) -> None:
        try:
            with suppress(queue.Empty):
                while not self._is_over:
                    lane = left.get_nowait()
                    while not lane.is_done and not self._is_over:
                        chunk = read_on(lane)
                        lane = chunk.lane
                        self._put(chunk)
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, chunk: RowChunk | BaseException | None) -> None:
        while not self._is_over:
            with suppress(queue.Full):
                self._waiting.put(chunk, timeout=0.5)
                return


class SourceCostMeter:
    """Measures what reading costs the source, by the server's own counters."""

    def __init__(self, move: Move) -> None:
        self.move = move

    def __enter__(self) -> SourceCostMeter:
        self.began = time.monotonic()
        self.before = self._counters()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self.began

    def cost(self, rows: int) -> SourceCost:
        after = self._counters()
        return SourceCost(
            seconds=round(self.seconds, 3),
            rows=rows,
            rows_per_second=round(rows / self.seconds, 1) if self.seconds else 0.0,
            counters={
                name: after.get(name, value_before) - value_before
                for name, value_before in self.before.items()
            },
        )

    def _counters(self) -> dict[str, int]:
        statement = COUNTERS.get(self.move.origin.family)
        if statement is not None:
            with suppress(SourceError), self.move.origin.connect() as source:
                return {str(name): int(value) for name, value in source.rows(statement)}
        return {}


def _lanes(session: LogSession, table: SourceTable) -> Iterator[ReadLane]:
    """Yields the lanes of a table: several for a large one whose key is a single integer."""
    column = next(
        (candidate for candidate in table.columns if [candidate.name] == table.primary_key), None
    )
    if column is not None and column.kind == "integer" and table.row_count >= SPLIT_ROWS_MIN:
        name = session.source.quote(column.name)
        relation = session.source.relation(table)
        ((low, high),) = session.source.rows(f"SELECT min({name}), max({name}) FROM {relation}")
        count = LANES_OF_TABLE
        if isinstance(low, int) and isinstance(high, int) and high - low >= count:
            marks = [low + (high - low) * n // count for n in range(1, count)]
            for begin, end in zip([None, *marks], [*marks, None], strict=True):
                yield ReadLane(number=0, table=table.name, low=begin, high=end)
            return
    yield ReadLane(number=0, table=table.name)


def _range(
    source: SourceDatabase, table: SourceTable, lane: ReadLane
) -> tuple[str, dict[str, Any]]:
    """Returns the condition for the rows of a lane that are still to be read."""
    bound: dict[str, Any] = {}
    conditions = []
    keys = [source.quote(name) for name in table.primary_key]
    if lane.low is not None:
        conditions.append(f"{keys[0]} >= :low")
        bound["low"] = lane.low
    if lane.high is not None:
        conditions.append(f"{keys[0]} < :high")
        bound["high"] = lane.high
    behind, values = behind_key(keys, lane.last)
    if behind:
        conditions.append(behind)
        bound |= {name: _to_driver_value(value) for name, value in values.items()}
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), bound


def count_rows(source: SourceDatabase, table: SourceTable, lane: ReadLane) -> int:
    where, bound = _range(source, table, lane)
    ((count,),) = source.rows(f"SELECT count(*) FROM {source.relation(table)}{where}", **bound)
    return int(count)


def _to_stored_key(value: Any) -> Any:
    """Converts a key value for the state store."""
    if isinstance(value, bytes):
        return [value.hex()]
    return value if isinstance(value, int | float | str | None) else str(value)


def _to_driver_value(value: Any) -> Any:
    """Converts a key value from the state store back for the driver."""
    return bytes.fromhex(value[0]) if isinstance(value, list) else value
