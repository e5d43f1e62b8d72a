"""Writes the items of stored rows to the target, chunk by chunk, in several processes.

Progress is counted in row order. When a load is killed, chunks that were written ahead of the count
are written again. No condition is needed: changes are not followed yet, so nothing is newer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import msgspec
from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita.foundation.service_limits import ITEM_BYTES_MAX
from partita_migrate.moving.following.change_applier import ItemKey, item_key
from partita_migrate.moving.following.lag_progress import load_progress
from partita_migrate.moving.loading.distinct_keys import entities_by_value, entities_with_own_keys
from partita_migrate.moving.loading.import_files import ImportFiles
from partita_migrate.moving.loading.load_report import LANES, REPORT, SAME_KEY, ReadLane, TableLoad
from partita_migrate.moving.move import LOADED, Move
from partita_migrate.moving.processes.worker_processes import Handler, WorkerProcesses, worker_count
from partita_migrate.moving.processes.worker_setup import WorkerSetup, worker_setup
from partita_migrate.moving.target_access.item_positions import POSITION
from partita_migrate.moving.target_access.target_client import batches
from partita_migrate.moving.target_access.target_items import TargetItems, key_hash, too_large
from partita_migrate.row_store.state_store import StateStore
from partita_migrate.workspace.stage_progress import Progress

CHUNK_ROWS = 5000
FILE_ROWS = 20_000
"""Rows of one import file; an import takes at most 50,000 files."""
PARALLEL_ROWS_MIN = 40_000
"""Fewer rows are written before other processes would have started."""
OWNER_BITS = 40
"""An owner of a key is stored as one number: the entity's number above these bits, the row's number
below."""

Put = Callable[[list[tuple[str, bytes]]], None]
"""Writes items, each the table's name and the item's JSON."""
Rejected = tuple[str, str, str, str, Item]
"""Table, key, entity, reason and row."""


class WriteTask(Struct):
    """Rows of one table, by their numbers: those after `after`, up to `until`."""

    table: str
    after: int
    until: int


class WrittenChunk(Struct):
    """The outcome of one task, by rows; `stay` counts rows outside `--where`."""

    until: int
    rows: int = 0
    imported: int = 0
    skipped: int = 0
    failed: int = 0
    stay: int = 0
    items: int = 0
    rejects: list[Rejected] = field(default_factory=list)


class ChunkWriter:
    """Makes and writes the items of some rows."""

    def __init__(self, items: TargetItems, state: StateStore, position: int, put: Put) -> None:
        self.items = items
        self.state = state
        self.put = put
        self.stamp = b',"%b":{"N":"%d"}}' % (POSITION.encode(), position)
        self._by_value = entities_by_value(items.entities, state.inventory)

    def write(self, task: WriteTask, claims: set[int] | None = None) -> WrittenChunk:
        """Writes the items of some rows. `claims` are the entities of which two rows may make the
        same key."""
        chunk = WrittenChunk(task.until)
        made: list[tuple[str, bytes]] = []
        owners: dict[bytes, tuple[int, int, Item]] = {}
        places: dict[bytes, int] = {}
        by_value: dict[ItemKey, int] = {}
        imported: set[int] = set()
        failed: set[int] = set()
        part = self.items.parts.get(task.table)
        numbers = self.items.numbers.get(task.table, [])
        for row_number, row in self.state.numbered_rows(task.table, task.after, task.until):
            chunk.rows += 1
            if part is not None and not part.holds(row):
                chunk.stay += 1
                continue
            for number in numbers:
                table, entity = self.items.entities[number]
                item, reason = self.items.make(number, row)
                if item is not None:
                    content = self.state.encode(item)
                    if len(content) > ITEM_BYTES_MAX:
                        reason = too_large(item)
                if item is not None and not reason and claims and number in claims:
                    hashed = key_hash(table, item)
                    if hashed in owners:
                        reason = SAME_KEY
                    else:
                        owners[hashed] = (number, row_number, row)
                        places[hashed] = len(made)
                if reason:
                    failed.add(row_number)
                    self._reject(chunk, number, row_number, row, reason)
                elif item is not None:
                    if not entity.is_guard and entity.rows == "each":
                        imported.add(row_number)
                    if number in self._by_value:
                        # Two rows had this value one after the other. Following decides which of
                        # them has it now; until then, the first one's item stays.
                        if by_value.setdefault(item_key(table, item), len(made)) < len(made):
                            continue
                    made.append((table.name, content[:-1] + self.stamp))
        if owners:
            made = self._drop_claimed(chunk, made, owners, places, failed)
        self.put(made)
        chunk.items = len(made)
        chunk.failed = len(failed)
        chunk.imported = len(imported - failed)
        chunk.skipped = chunk.rows - chunk.stay - chunk.failed - chunk.imported
        return chunk

    def _drop_claimed(
        self,
        chunk: WrittenChunk,
        made: list[tuple[str, bytes]],
        owners: dict[bytes, tuple[int, int, Item]],
        places: dict[bytes, int],
        failed: set[int],
    ) -> list[tuple[str, bytes]]:
        """Claims the keys, and returns the items without those whose key a row of an earlier chunk
        has."""
        claimed = {key: number << OWNER_BITS | at for key, (number, at, _) in owners.items()}
        claimed_already = self.state.claim(claimed)
        for hashed in claimed_already:
            number, row_number, row = owners[hashed]
            self._reject(chunk, number, row_number, row, SAME_KEY)
            failed.add(row_number)
        gone = {places[hashed] for hashed in claimed_already}
        return [item for place, item in enumerate(made) if place not in gone] if gone else made

    def _reject(
        self, chunk: WrittenChunk, number: int, row_number: int, row: Item, reason: str
    ) -> None:
        entity = self.items.entities[number][1]
        has_key = bool(self.state.tables[entity.source].primary_key)
        key = self.state.key_text(entity.source, row) if has_key else str(row_number)
        chunk.rejects.append((entity.source, key, entity.name, reason, row))


def worker(content: bytes) -> Handler:
    """Handles write tasks in a process of its own."""
    setup = msgspec.msgpack.decode(content, type=WorkerSetup)
    items, state, target = setup.opened()
    writer = ChunkWriter(items, state, setup.position, lambda made: target.put_all(batches(made)))
    return lambda task: writer.write(msgspec.msgpack.decode(task, type=WriteTask))


class ItemLoading:
    """Writes all items of a load; with `files`, into import files instead of the target."""

    def __init__(self, move: Move, progress: Progress, files: ImportFiles | None = None) -> None:
        self.move = move
        self.state = move.state
        self.progress = progress
        self.files = files
        put = files.put if files else lambda made: move.target.put_all(batches(made))
        self.writer = ChunkWriter(move.items, move.state, move.position, put)
        proven = entities_with_own_keys(move.design, move.inventory)
        self.claims = {n for n in range(len(move.entities)) if n not in proven}

    def run(self) -> None:
        """Writes the items of all rows that are not written yet."""
        self.state.freeze(is_frozen=True)
        tables = self.state.fact(REPORT, list[TableLoad]) or self._begin()
        with ExitStack() as stack:
            workers: WorkerProcesses[WrittenChunk] | None = None
            if self._is_parallel(tables):
                workers = stack.enter_context(self._workers())
            self._write_all(tables, workers)
        for table_load in tables:
            if table_load.accounted != table_load.rows:
                raise PartitaError(
                    f"{table_load.table}: {table_load.imported} imported,"
                    f" {table_load.skipped} skipped, {table_load.stay} left out and"
                    f" {table_load.failed} failed do not add up to the {table_load.rows} rows that"
                    " were read; this is a bug, please report it."
                )
        with self.state.transaction():
            self.state.forget_claims()
            self.state.set_fact(LOADED, True)
        self.state.freeze(is_frozen=False)

    def _write_all(
        self, tables: list[TableLoad], workers: WorkerProcesses[WrittenChunk] | None
    ) -> None:
        total = sum(table_load.rows for table_load in tables)
        done = sum(table_load.accounted for table_load in tables)
        progress = load_progress(self.move, self.progress)
        for table_load in tables:
            for chunk in self._chunks(table_load, workers):
                with self.state.transaction():
                    for reject in chunk.rejects:
                        self.state.reject(*reject)
                    table_load.add(chunk)
                    self.state.set_fact(REPORT, tables)
                done += chunk.rows
                progress("Items", done, total)

    def _chunks(
        self, table_load: TableLoad, workers: WorkerProcesses[WrittenChunk] | None
    ) -> Iterator[WrittenChunk]:
        last = self.state.last(table_load.table)
        size = FILE_ROWS if self.files else CHUNK_ROWS
        starts = range(table_load.written_until, last, size)
        tasks = [WriteTask(table_load.table, after, min(after + size, last)) for after in starts]
        claims = self.claims & set(self.move.items.numbers.get(table_load.table, []))
        # Worker processes have the state store read-only and cannot claim keys.
        if workers is not None and not claims:
            yield from workers.in_order(tasks)
            return
        for task in tasks:
            if self.files is not None:
                self.files.begin(f"{task.table}-{task.after:012}")
            # After a kill the chunk is written again. Its rows then claim keys that they own
            # already, which is not a conflict.
            with self.state.transaction():
                chunk = self.writer.write(task, claims)
            yield chunk

    def _is_parallel(self, tables: list[TableLoad]) -> bool:
        """True when enough rows are left to be worth starting other processes."""
        left = sum(table_load.rows - table_load.accounted for table_load in tables)
        return self.files is None and left >= PARALLEL_ROWS_MIN

    def _workers(self) -> WorkerProcesses[WrittenChunk]:
        # One more than there are cores: one of them always waits for the target.
        count = worker_count() + 1
        return WorkerProcesses(
            __name__, worker_setup(self.move, count), WrittenChunk, self.move.lock, count
        )

    def _begin(self) -> list[TableLoad]:
        expected: dict[str, int] = {}
        for lane in self.state.fact(LANES, list[ReadLane]) or []:
            expected[lane.table] = expected.get(lane.table, 0) + lane.expected
        return [
            TableLoad(
                table=table.name,
                rows=self.state.count(table.name),
                expected=expected.get(table.name, 0),
                skipped_why=(
                    "" if table.name in self.move.items.numbers else self._why_skipped(table.name)
                ),
            )
            for table in self.move.origin.tables
        ]

    def _why_skipped(self, table: str) -> str:
        design = self.move.design
        why = next(
            (column.why for column in design.left_out if column.column == f"{table}.*"), None
        )
        return why or "the design has no items of its own for it"
