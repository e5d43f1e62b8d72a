"""Stage `load`: every row once, first into the state store and then as items into the target.

Tables are read in lanes, ranges of their primary keys, each in a transaction whose place in the log
is known. A lane that was cut off goes on behind its last row, at a later place: following begins at
the first place of all, and a row knows where it was read. Items are written in batches without
conditions, for nothing is followed before all of them are there.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import text

from partita.database.item.sizes import item_size
from partita.database.item.values import Item
from partita.errors import PartitaError
from partita.limits import KB
from partita.migrate.folder import Folder
from partita.migrate.model.design import Entity, TableDesign
from partita.migrate.model.files import CHOSEN
from partita.migrate.model.key_texts import NotEncodable
from partita.migrate.moving.logs.changes import OpenSession, Session
from partita.migrate.moving.moves import (
    LOADED,
    POSITION_FACT,
    RESUME,
    Move,
    key_hash,
    open_move,
    refusal_of,
)
from partita.migrate.moving.positions import stamped
from partita.migrate.moving.state import MOVE
from partita.migrate.progress import Progress, silent
from partita.migrate.understanding.schema.inventory import Table
from partita.migrate.understanding.sources import Source, SourceError

LANES, STAGED, READ_UNTIL, WRITTEN, REPORT = "lanes", "staged", "read_until", "written", "load"
CHUNK_ROWS = 2000
SPLIT_ROWS_MIN = 20_000
WORKERS = 3
WAITING_MAX = 6
RETRY_SECONDS = 0.5
AWAY_SECONDS_MAX = 300
OWNER_BITS = 40
REJECTS = "rejects.jsonl"
SAME_KEY = "another row makes an item with the same key"


class Lane(Struct, kw_only=True):
    """A range of a table's primary keys, and how far it has been read."""

    number: int
    table: str
    low: int | None = None
    high: int | None = None
    """Of a table whose key is one number; the lowest is in the lane, the highest is not."""
    last: list[Any] | None = None
    """The key of the last row that was read, as the driver has it."""
    rows: int = 0
    expected: int = 0
    is_done: bool = False


class TableLoad(Struct, kw_only=True, omit_defaults=True):
    table: str
    rows: int = 0
    expected: int = 0
    """As the source counted them in the same transactions."""
    imported: int = 0
    skipped: int = 0
    skipped_why: str = ""
    failed: int = 0
    items: int = 0
    written_until: int = 0


class Load(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    model: str
    is_dry_run: bool = False
    is_followed: bool = False
    seconds: float = 0.0
    position: int = 0
    rejects: str = ""
    tables: list[TableLoad] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return sum(one.failed for one in self.tables)


def load(
    folder: Folder,
    endpoint: str | None,
    *,
    name: str = CHOSEN,
    region: str = "us-east-1",
    is_followed: bool | None = None,
    write_units: float | None = None,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> Load:
    began = time.monotonic()
    if is_dry_run:
        return _planned(folder, endpoint, name, ask)
    with open_move(
        folder,
        endpoint,
        region=region,
        name=name,
        is_followed=is_followed,
        write_units=write_units,
        ask=ask,
    ) as move:
        if move.state.fact(LOADED, bool) is None:
            if move.state.fact(STAGED, bool) is None:
                _Staging(move, progress).run()
            _Writing(move, progress).run()
        return _report(move, name, time.monotonic() - began)


def _planned(
    folder: Folder, endpoint: str | None, name: str, ask: Callable[[str], str] | None
) -> Load:
    from partita.migrate.model.files import read_design
    from partita.migrate.moving.logs.origin import Origin
    from partita.migrate.understanding.schema.inventory import read_inventory

    read_design(folder, name)
    origin = Origin(folder, read_inventory(folder), ask)
    with origin.connect() as source:
        tables = [
            TableLoad(table=one.name, expected=_count(source, one, Lane(number=0, table=one.name)))
            for one in origin.tables
        ]
    return Load(
        source=str(origin.address),
        endpoint=endpoint or "",
        model=name,
        is_dry_run=True,
        tables=tables,
    )


def _report(move: Move, name: str, seconds: float) -> Load:
    tables = move.state.fact(REPORT, list[TableLoad]) or []
    rejects = move.state.rejects()
    path = f"{MOVE}/{REJECTS}"
    if rejects:
        import msgspec

        lines = [
            msgspec.json.encode({"table": table, "entity": entity, "reason": reason, "row": row})
            for table, _, entity, reason, row in rejects
        ]
        move.folder.write_bytes(path, b"\n".join(lines) + b"\n")
    report = Load(
        source=str(move.origin.address),
        endpoint=move.target.endpoint,
        model=name,
        is_followed=bool(move.resume or move.position),
        seconds=round(seconds, 3),
        position=move.position,
        rejects=path if rejects else "",
        tables=tables,
    )
    move.folder.write_json("load.json", report)
    return report


# Rows into the state store.


class _Staging:
    def __init__(self, move: Move, progress: Progress) -> None:
        self.move = move
        self.state = move.state
        self.progress = progress
        self.tables = {table.name: table for table in move.origin.tables}
        self.lanes: list[Lane] = []
        self._waiting: queue.Queue[tuple[Lane, list[Item], int] | BaseException | None] = (
            queue.Queue(WAITING_MAX)
        )
        self._is_over = False

    def run(self) -> None:
        self.move.log.prepare()
        with self.move.log.sessions() as open_session:
            self.lanes = self.state.fact(LANES, list[Lane]) or self._begin(open_session)
            left: queue.Queue[Lane] = queue.Queue()
            for lane in self.lanes:
                if not lane.is_done:
                    left.put(replace(lane))
            workers = [
                threading.Thread(target=self._work, args=(left, open_session), daemon=True)
                for _ in range(min(WORKERS, left.qsize()))
            ]
            for worker in workers:
                worker.start()
            try:
                self._store(len(workers))
            finally:
                self._is_over = True
                for worker in workers:
                    worker.join(10)
        with self.state.transaction():
            self.state.index()
            self.state.set_fact(STAGED, True)

    def _begin(self, open_session: OpenSession) -> list[Lane]:
        """The first place of all: from here on changes are followed."""
        with open_session() as session:
            found = (lane for table in self.tables.values() for lane in _lanes(session, table))
            lanes = [replace(lane, number=number) for number, lane in enumerate(found)]
            with self.state.transaction():
                self.state.set_fact(POSITION_FACT, session.position)
                self.state.set_fact(RESUME, session.resume)
                self.state.set_fact(READ_UNTIL, session.position)
                self.state.set_fact(LANES, lanes)
        return lanes

    def _store(self, workers: int) -> None:
        done = sum(lane.rows for lane in self.lanes)
        total = sum(table.row_count for table in self.tables.values())
        while workers:
            found = self._waiting.get()
            if found is None:
                workers -= 1
                continue
            if isinstance(found, BaseException):
                raise found
            lane, rows, position = found
            self.lanes[lane.number] = lane
            with self.state.transaction():
                self.state.add(lane.table, rows, position)
                read_until = self.state.fact(READ_UNTIL, int) or 0
                self.state.set_fact(READ_UNTIL, max(read_until, position))
                self.state.set_fact(LANES, self.lanes)
            done += len(rows)
            self.progress("Rows", done, max(total, done))

    # In threads.

    def _work(self, left: queue.Queue[Lane], open_session: OpenSession) -> None:
        try:
            with suppress(queue.Empty):
                while not self._is_over:
                    self._read_patiently(left.get_nowait(), open_session)
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, found: tuple[Lane, list[Item], int] | BaseException | None) -> None:
        while not self._is_over:
            with suppress(queue.Full):
                self._waiting.put(found, timeout=0.5)
                return

    def _read_patiently(self, lane: Lane, open_session: OpenSession) -> None:
        """A server that restarts is waited for; the lane goes on behind its last row."""
        away_since: float | None = None
        while True:
            rows = lane.rows
            try:
                with open_session() as session:
                    self._read(lane, session)
                return
            except SourceError:
                # A shared snapshot is gone with the server: only a new run can take another.
                if self.move.origin.family == "postgresql":
                    raise
                away_since = time.monotonic() if lane.rows > rows or not away_since else away_since
                if time.monotonic() - away_since > AWAY_SECONDS_MAX:
                    raise
                time.sleep(RETRY_SECONDS)

    def _read(self, lane: Lane, session: Session) -> None:
        table = self.tables[lane.table]
        expected = lane.rows + _count(session.source, table, lane)
        asked = self.move.origin.readings[table.name]
        names = [reading.column.name for reading in asked]
        keys = [session.source.quote(name) for name in table.primary_key]
        where, bound = _range(session.source, table, lane)
        columns = ", ".join([*(reading.sql for reading in asked), *keys]) or "1"
        statement = f"SELECT {columns} FROM {session.source.relation(table)}{where}"
        if keys:
            statement += f" ORDER BY {', '.join(keys)}"
        options = {"stream_results": True, "max_row_buffer": CHUNK_ROWS}
        with session.source.errors():
            result = session.source.connection.execute(
                text(statement), bound, execution_options=options
            )
            try:
                for part in result.partitions(CHUNK_ROWS):
                    rows = [
                        self.move.origin.row(table.name, dict(zip(names, row, strict=False)))
                        for row in part
                    ]
                    lane.last = [_plain(value) for value in part[-1][len(names) :]] or None
                    self._hand_over(lane, rows, session.position, expected)
                    if self._is_over:
                        return
            finally:
                result.close()
        self._hand_over(lane, [], session.position, expected, is_done=True)

    def _hand_over(
        self, lane: Lane, rows: list[Item], position: int, expected: int, *, is_done: bool = False
    ) -> None:
        """A copy, for the lane has gone on when its rows are stored."""
        lane.rows += len(rows)
        lane.expected = expected
        lane.is_done = is_done
        self._put((replace(lane), rows, position))


def _lanes(session: Session, table: Table) -> Iterator[Lane]:
    """A large table whose key is one number is read in several lanes at once."""
    column = next((one for one in table.columns if [one.name] == table.primary_key), None)
    if column is not None and column.kind == "integer" and table.row_count >= SPLIT_ROWS_MIN:
        name = session.source.quote(column.name)
        relation = session.source.relation(table)
        ((low, high),) = session.source.rows(f"SELECT min({name}), max({name}) FROM {relation}")
        if isinstance(low, int) and isinstance(high, int) and high - low >= WORKERS:
            marks = [low + (high - low) * n // WORKERS for n in range(1, WORKERS)]
            for begin, end in zip([None, *marks], [*marks, None], strict=True):
                yield Lane(number=0, table=table.name, low=begin, high=end)
            return
    yield Lane(number=0, table=table.name)


def _range(source: Source, table: Table, lane: Lane) -> tuple[str, dict[str, Any]]:
    """What of a lane is still to be read."""
    bound: dict[str, Any] = {}
    conditions = []
    keys = [source.quote(name) for name in table.primary_key]
    if lane.low is not None:
        conditions.append(f"{keys[0]} >= :low")
        bound["low"] = lane.low
    if lane.high is not None:
        conditions.append(f"{keys[0]} < :high")
        bound["high"] = lane.high
    if lane.last is not None:
        behind = []
        for place, key in enumerate(keys):
            same = [f"{keys[before]} = :k{before}" for before in range(place)]
            behind.append(" AND ".join([*same, f"{key} > :k{place}"]))
            bound[f"k{place}"] = _bound(lane.last[place])
        conditions.append("(" + " OR ".join(f"({one})" for one in behind) + ")")
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), bound


def _count(source: Source, table: Table, lane: Lane) -> int:
    where, bound = _range(source, table, lane)
    ((count,),) = source.rows(f"SELECT count(*) FROM {source.relation(table)}{where}", **bound)
    return int(count)


def _plain(value: Any) -> Any:
    """A key as the state store keeps it."""
    if isinstance(value, bytes):
        return [value.hex()]
    return value if isinstance(value, int | float | str | None) else str(value)


def _bound(value: Any) -> Any:
    """And as the driver takes it again."""
    return bytes.fromhex(value[0]) if isinstance(value, list) else value


# Items into the target.


class _Writing:
    def __init__(self, move: Move, progress: Progress) -> None:
        self.move = move
        self.state = move.state
        self.progress = progress
        self.position = move.position
        self.homes: dict[str, list[tuple[int, TableDesign, Entity]]] = {}
        for number, (table, entity) in enumerate(move.homes):
            self.homes.setdefault(entity.source, []).append((number, table, entity))

    def run(self) -> None:
        self.state.freeze(is_frozen=True)
        tables = self.state.fact(REPORT, list[TableLoad]) or self._begin()
        total = sum(one.rows for one in tables)
        done = sum(one.imported + one.skipped + one.failed for one in tables)
        for one in tables:
            while True:
                with self.state.transaction():
                    count = self._write_chunk(one)
                    self.state.set_fact(REPORT, tables)
                if not count:
                    break
                done += count
                self.progress("Items", done, total)
        for one in tables:
            if one.imported + one.skipped + one.failed != one.rows:
                raise PartitaError(
                    f"{one.table}: {one.imported} imported, {one.skipped} skipped and {one.failed}"
                    f" failed are not the {one.rows} rows that were read."
                )
        with self.state.transaction():
            self.state.forget_claims()
            self.state.set_fact(LOADED, True)
        self.state.freeze(is_frozen=False)

    def _begin(self) -> list[TableLoad]:
        expected: dict[str, int] = {}
        for lane in self.state.fact(LANES, list[Lane]) or []:
            expected[lane.table] = expected.get(lane.table, 0) + lane.expected
        return [
            TableLoad(
                table=table.name,
                rows=self.state.count(table.name),
                expected=expected.get(table.name, 0),
                skipped_why="" if table.name in self.homes else self._why_skipped(table.name),
            )
            for table in self.move.origin.tables
        ]

    def _why_skipped(self, table: str) -> str:
        design = self.move.design
        out = next((one.why for one in design.left_out if one.column == f"{table}.*"), None)
        return out or "the design has no items of its own for it"

    def _write_chunk(self, one: TableLoad) -> int:
        items: list[tuple[str, Item, int]] = []
        owners: dict[bytes, tuple[int, str, Entity, Item]] = {}
        placed: dict[bytes, int] = {}
        count = 0
        for number, row in self.state.rows(one.table, one.written_until, CHUNK_ROWS):
            count += 1
            one.written_until = number
            is_imported, is_failed = False, False
            for place, table, entity in self.homes.get(one.table, ()):
                key = (
                    self.state.key_text(one.table, row) if self._has_key(one.table) else str(number)
                )
                item, reason = self._made(table, entity, row)
                if item is not None:
                    claimed = key_hash(table, item)
                    if claimed in owners:
                        item, reason = None, SAME_KEY
                    else:
                        owners[claimed] = (place << OWNER_BITS | number, key, entity, row)
                        placed[claimed] = len(items)
                if reason:
                    is_failed = True
                    self.state.reject(one.table, key, entity.name, reason, row)
                if item is None:
                    continue
                is_imported |= not entity.is_guard and entity.rows == "each"
                stamp = stamped(item, self.position)
                items.append((table.name, stamp, self._size(stamp)))
            one.failed += is_failed
            one.imported += is_imported and not is_failed
            one.skipped += not is_imported and not is_failed
        taken = self.state.claim({key: owner[0] for key, owner in owners.items()})
        for hashed in taken:
            _, key, entity, row = owners[hashed]
            self.state.reject(one.table, key, entity.name, SAME_KEY, row)
            one.failed += 1
            one.imported -= 1
        left = {placed[hashed] for hashed in taken}
        sent = [item for place, item in enumerate(items) if place not in left]
        self.move.target.put_all(sent)
        one.items += len(sent)
        return count

    def _size(self, item: Item) -> int:
        """Only where units are counted."""
        return item_size(item) if self.move.target.pace.units_max is not None else KB

    def _has_key(self, table: str) -> bool:
        return bool(self.state.tables[table].primary_key)

    def _made(self, table: TableDesign, entity: Entity, row: Item) -> tuple[Item | None, str]:
        try:
            item = self.move.maker.item(entity, row)
        except NotEncodable as error:
            return None, str(error)
        reason = refusal_of(table, item) if item is not None else ""
        return (None if reason else item), reason
