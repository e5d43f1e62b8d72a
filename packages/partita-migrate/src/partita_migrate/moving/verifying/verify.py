"""Stage `verify`: compares both sides at one position; every row and every item is accounted for.

The source is read in one transaction, and its log is followed exactly up to that transaction. Then
the source's rows have to equal those of the state store, and the target's items have to equal what
the state store's rows make. Missing, surplus and different ones are reported in both directions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from msgspec import Struct, field
from sqlalchemy import text

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.following.change_applier import Applier
from partita_migrate.moving.following.follow import Follower
from partita_migrate.moving.following.lag_progress import LagProgress
from partita_migrate.moving.loading.rejects import settle
from partita_migrate.moving.logs.no_log import NoLog
from partita_migrate.moving.logs.source_changes import LogSession, RowChange, SourceTransaction
from partita_migrate.moving.move import Move, open_move
from partita_migrate.moving.processes.worker_processes import WorkerProcesses, worker_count
from partita_migrate.moving.processes.worker_setup import worker_setup
from partita_migrate.moving.switching.move_phase import BACKWARD, MovePhase, phase_of
from partita_migrate.moving.target_access.item_positions import (
    ONLY_OVER_KNOWN,
    is_tombstone,
    key_of,
    position_of,
    stamp,
    tombstone,
)
from partita_migrate.moving.target_access.target_items import item_digest, key_hash
from partita_migrate.moving.verifying import digest_sums
from partita_migrate.moving.verifying.digest_sums import (
    PLACES,
    DigestSummer,
    DigestSums,
    SideTotal,
    SumTask,
    key_place,
)
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

REPORT = "verify.json"
CHUNK_ROWS = 500
SUMMED_ROWS = 20_000
SEGMENTS = 8
COMPARED_ITEMS = 100_000
PARALLEL_ROWS_MIN = 40_000
"""Fewer rows are compared before another process would have started."""
LISTED_MAX = 1000
TRIES = 20


class ItemDifference(Struct, frozen=True, kw_only=True):
    """One difference."""

    side: str
    """Which comparison found it: "row" (source and state store) or "item" (state store and
    target)."""
    table: str
    key: str
    what: str
    is_repaired: bool = False


class VerifyReport(Struct, kw_only=True, omit_defaults=True):
    """The result of a verification, stored as `verify.json`."""

    source: str
    endpoint: str
    position: int
    is_sample: bool
    turns: int = 0
    """Cutovers and rollbacks before it."""
    storage: str = ""
    """Identifies the storage of the tables; with other storage, rows may have changed without a log
    entry."""
    rows: int = 0
    items: int = 0
    tombstones: int = 0
    rejected: int = 0
    seconds: float = 0.0
    different: int = 0
    repaired: int = 0
    differences: list[ItemDifference] = field(default_factory=list)
    """The first differences."""

    @property
    def is_right(self) -> bool:
        return self.different == self.repaired


def verify(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    sample: int | None = None,
    is_repairing: bool = False,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> VerifyReport:
    """Compares both sides. `sample` limits it to so many rows of each table and their items; a dry
    run does not follow the log first."""
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask) as move:
        if is_repairing and phase_of(move.state).name == BACKWARD:
            raise PartitaError(
                "The target is authoritative since the cutover, and a repair would overwrite what"
                " applications write there; correct it there, or roll back."
            )
        verifier = _Verifier(move, is_repairing and not is_dry_run, sample, progress)
        verifier.run(is_following=not is_dry_run)
        report = verifier.report
        if not is_dry_run:
            report.rejected = settle(move)
        report.seconds = round(time.monotonic() - began, 3)
        folder.write_json(REPORT, report)
        return report


def compare_sides(move: Move, progress: Progress = silent) -> VerifyReport:
    """Compares both sides as they are, when nothing is left to follow."""
    verifier = _Verifier(move, False, None, progress)
    verifier.run(is_following=False)
    return verifier.report


def last_verified(folder: Folder, phase: MovePhase) -> VerifyReport:
    """Returns the last complete verification; raises unless it found both sides equal."""
    advice = "run `partita migrate verify` first, without --sample."
    if not folder.has(REPORT):
        raise PartitaError(f"{folder.path} was never verified as a whole; {advice}")
    report = folder.read_json(REPORT, VerifyReport)
    if report.is_sample or not report.is_right:
        what = "only a sample was compared" if report.is_sample else "differences were found"
        raise PartitaError(f"{folder.path}: {what} the last time; {advice}")
    if report.turns < len(phase.turns):
        raise PartitaError(f"{folder.path} was not verified since the rollback; {advice}")
    return report


def check_unchanged(move: Move, report: VerifyReport) -> None:
    """Raises when tables or their storage have changed since a verification."""
    with move.origin.connect() as source:
        move.origin.check_schema(source)
        if move.log.storage(source) != report.storage:
            raise PartitaError(
                f"{move.origin.address} has changed partitions or files of its tables since the"
                " last verification, so rows may have changed without an entry in its log; run"
                " `partita migrate verify` once more. Nothing has changed."
            )


class _Verifier:
    """The steps of one verification."""

    def __init__(
        self, move: Move, is_repairing: bool, sample: int | None, progress: Progress
    ) -> None:
        self.move = move
        self.state = move.state
        self.is_repairing = is_repairing
        self.sample = sample
        self.progress = progress
        self.follower = Follower(move)
        self.report = VerifyReport(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=0,
            is_sample=sample is not None,
            turns=len(phase_of(move.state).turns),
        )
        self._sampled: dict[str, set[str]] = {}

    def run(self, *, is_following: bool) -> None:
        """Brings both sides to one position and compares them."""
        if phase_of(self.move.state).name == BACKWARD:
            if is_following:
                from partita_migrate.moving.way_back.follow_back import catch_up_back

                catch_up_back(self.move)
            is_following = False
        self.move.log.tell = lambda sentence: self.progress(sentence, 0, 0)
        for _ in range(TRIES):
            with self.move.log.sessions() as open_session, open_session() as session:
                if not session.is_exact:
                    continue
                if is_following and not isinstance(self.move.log, NoLog):
                    self.follower.run(session.position, is_exact=True)
                    if self.move.position < session.position:
                        # SQLite's log is always read to its end, which has moved on.
                        self.follower.run(self.follower.log_end())
                        continue
                self.report.position = self.move.position
                self.report.storage = self.move.log.storage(session.source)
                self.behind = self._behind()
                self.last = {name: self.state.last(name) for name in self.move.items.numbers}
                self.rows = sum(self.state.count(table.name) for table in self.move.origin.tables)
                self._compare(session)
            self.report.rejected = len(self.state.rejects())
            return
        raise PartitaError(
            f"{self.move.origin.address} is written to so often that both sides could not be"
            " compared at one moment; try again at a quieter time."
        )

    def _behind(self) -> Progress:
        """Returns a progress that shows the lag; after a cutover the source is not followed, so
        there is none."""
        if phase_of(self.move.state).name == BACKWARD:
            return self.progress
        return LagProgress(self.move, self.progress, self.move.position, time.time())

    def _compare(self, session: LogSession) -> None:
        if self.sample is not None:
            self._compare_all_rows(session)
            self._compare_sample()
            return
        with ExitStack() as stack:
            workers = None
            if self.rows >= PARALLEL_ROWS_MIN and not self.is_repairing:
                workers = stack.enter_context(self._workers())
                # Rows are compared here while worker processes sum up items.
                tasks = stack.enter_context(ThreadPoolExecutor(1))
                summed = tasks.submit(self._differing_places, workers)
                self._compare_all_rows(session)
                different = summed.result()
            else:
                self._compare_all_rows(session)
                different = self._differing_places(None)
        if different:
            self._compare_items(different)

    def _differs(
        self, side: str, table: str, key: str, what: str, *, is_repairable: bool = True
    ) -> bool:
        """Counts a difference, and returns whether to repair it."""
        is_repaired = self.is_repairing and is_repairable
        self.report.different += 1
        self.report.repaired += is_repaired
        if len(self.report.differences) < LISTED_MAX:
            difference = ItemDifference(
                side=side, table=table, key=key, what=what, is_repaired=is_repaired
            )
            self.report.differences.append(difference)
        return is_repaired

    # Rows of the source, and those of the state store.

    def _compare_all_rows(self, session: LogSession) -> None:
        for table in self.move.origin.tables:
            self._compare_rows(table, session)

    def _compare_rows(self, table: SourceTable, session: LogSession) -> None:
        """Compares the source's rows of a table with those of the state store."""
        if not table.primary_key:
            self._compare_counts(table, session)
            return
        keep = self._sampled_keys(table.name)
        compared = 0
        repairs: list[RowChange] = []
        unknown: set[str] = set()
        for rows in self._source_rows(table, session):
            keyed = {self.state.key_text(table.name, row): row for row in rows}
            if keep is not None:
                keyed = {key: row for key, row in keyed.items() if key in keep}
            compared += len(keyed)
            self.report.rows += len(keyed)
            self.behind("Rows", self.report.rows, self.rows)
            stored_rows = self.state.stored_rows(table.name, list(keyed))
            for key, row in keyed.items():
                stored = stored_rows.get(key)
                # Usually the same bytes; otherwise the columns may be in another order.
                if stored is not None and (
                    stored == self.state.encode(row) or self.state.decode(stored) == row
                ):
                    continue
                what = "differs" if stored is not None else "is not in the state store"
                if stored is None:
                    unknown.add(key)
                if self._differs("row", table.name, key.replace("\0", ", "), what):
                    repairs.append(RowChange(table.name, None, row))
        if keep is None and compared - len(unknown) < self.state.count(table.name):
            repairs += self._surplus(table, session)
        if repairs:
            self._repair_rows(repairs)

    def _surplus(self, table: SourceTable, session: LogSession) -> Iterator[RowChange]:
        """Yields the deletion of rows in the state store that the source does not have."""
        source_keys: set[str] = set()
        for rows in self._source_rows(table, session):
            source_keys.update(self.state.key_text(table.name, row) for row in rows)
        for row in list(self.state.rows(table.name)):
            key = self.state.key_text(table.name, row)
            if key not in source_keys and self._differs(
                "row", table.name, key.replace("\0", ", "), "is not in the source"
            ):
                yield RowChange(table.name, row, None)

    def _compare_counts(self, table: SourceTable, session: LogSession) -> None:
        """Compares a table without a primary key by its number of rows."""
        relation = session.source.relation(table)
        ((count,),) = session.source.rows(f"SELECT count(*) FROM {relation}")
        stored_count = self.state.count(table.name)
        self.report.rows += stored_count
        if int(count) != stored_count:
            what = f"the source has {count} rows and the state store {stored_count}"
            self._differs("row", table.name, "", what, is_repairable=False)

    def _source_rows(self, table: SourceTable, session: LogSession) -> Iterator[list[Item]]:
        columns = ", ".join(reading.sql for reading in self.move.origin.readings[table.name])
        statement = f"SELECT {columns} FROM {session.source.relation(table)}"
        options = {"stream_results": True, "max_row_buffer": CHUNK_ROWS}
        read_row, name = self.move.origin.read_row, table.name
        with session.source.errors():
            result = session.source.connection.execute(text(statement), execution_options=options)
            try:
                for part in result.partitions(CHUNK_ROWS):
                    yield [read_row(name, row) for row in part]
            finally:
                result.close()

    def _sampled_keys(self, table: str) -> set[str] | None:
        if self.sample is None:
            return None
        count = self.state.count(table)
        chosen = set(random.sample(range(count), min(self.sample, count)))
        keys = {
            self.state.key_text(table, row)
            for place, row in enumerate(self.state.rows(table))
            if place in chosen
        }
        self._sampled[table] = keys
        return keys

    def _repair_rows(self, repairs: list[RowChange]) -> None:
        applier = Applier(self.move, self.move.position)
        with self.state.transaction():
            applier.apply(SourceTransaction(self.move.position, "", time.time(), repairs))
            self.move.target.put_over_older(applier.take_writes(), ONLY_OVER_KNOWN)

    # Items of the target, and those that rows make.

    def _workers(self) -> WorkerProcesses[DigestSums]:
        count = worker_count()
        setup = worker_setup(self.move, count)
        return WorkerProcesses(digest_sums.__name__, setup, DigestSums, self.move.lock, count)

    def _differing_places(
        self, workers: WorkerProcesses[DigestSums] | None, *, by_key: bool = False
    ) -> set[int]:
        """Returns where the sums of both sides differ: numbers of tables, or places of keys."""
        made, scanned = SideTotal(), SideTotal()
        done, total = 0, sum(self.last.values())
        tasks = digest_sums.tasks(
            self.last, self.move.design.tables, SUMMED_ROWS, SEGMENTS, by_key=by_key
        )
        for sums_of_task in workers.in_order(tasks) if workers else self._sum_here(tasks):
            (made if sums_of_task.is_made else scanned).add(sums_of_task)
            done += sums_of_task.rows
            self.behind("Items once more" if by_key else "Items", done, total)
        self.report.items, self.report.tombstones = scanned.items, scanned.tombstones
        differing = made.differing(scanned)
        return (
            self._differing_places(workers, by_key=True) if differing and not by_key else differing
        )

    def _sum_here(self, tasks: Iterable[SumTask]) -> Iterator[DigestSums]:
        summing = DigestSummer(self.move.items, self.state, self.move.target)
        self.state.freeze(is_frozen=True)
        try:
            yield from map(summing.run, tasks)
        finally:
            self.state.freeze(is_frozen=False)

    def _compare_items(self, places: set[int]) -> None:
        """Compares the items whose keys are at these places, as many at once as fit in memory."""
        at_once = max(COMPARED_ITEMS * PLACES // max(self.report.items, self.rows, 1), 1)
        ordered = sorted(places)
        for first in range(0, len(ordered), at_once):
            self._compare_items_at(set(ordered[first : first + at_once]))

    def _compare_items_at(self, places: set[int]) -> None:
        items, state = self.move.items, self.state
        expected: dict[bytes, tuple[bytes, int, Item]] = {}
        for number, (table, entity) in enumerate(self.move.entities):
            for row in state.rows(entity.source):
                item = items.item_of(number, row)
                if item is not None and key_place(table, item) in places:
                    made = (item_digest(item), number, item)
                    expected.setdefault(key_hash(table, item), made)
        for table in self.move.design.tables:
            for page in self.move.target.pages(table.name):
                for item in page:
                    if not is_tombstone(item) and key_place(table, item) in places:
                        made_item = expected.pop(key_hash(table, item), None)
                        self._compare_item(table, item, made_item)
        for _, number, item in expected.values():
            self._missing(number, item)

    def _compare_sample(self) -> None:
        """Compares the items of a sample one by one."""
        for number, (table, entity) in enumerate(self.move.entities):
            for key in self._sampled.get(entity.source, set()):
                stored = self.state.find(entity.source, key)
                item = self.move.items.item_of(number, stored.row) if stored is not None else None
                if item is None:
                    continue
                existing = self.move.target.call(
                    "GetItem", TableName=table.name, Key=key_of(table, item), ConsistentRead=True
                ).get("Item")
                if existing is None or is_tombstone(existing):
                    self._missing(number, item)
                    continue
                self.report.items += 1
                self._compare_item(table, existing, (item_digest(item), number, item))

    def _compare_item(
        self, table: TableDesign, item: Item, made: tuple[bytes, int, Item] | None
    ) -> None:
        shown = _shown(table, item)
        if made is None:
            self._surplus_item(table, item, shown)
        elif item_digest(item) != made[0] and position_of(item) is None:
            self._leave_alone(table, shown)
        elif item_digest(item) != made[0]:
            if self._differs("item", table.name, shown, "is not what its row makes"):
                self._write_again(table, made[2])

    def _surplus_item(self, table: TableDesign, item: Item, shown: str) -> None:
        if position_of(item) is None:
            self._leave_alone(table, shown)
        elif self._differs("item", table.name, shown, "no row makes it"):
            gone = tombstone(key_of(table, item), self.move.position)
            self.move.target.put_over_older([(table, gone)], ONLY_OVER_KNOWN)

    def _leave_alone(self, table: TableDesign, shown: str) -> None:
        what = "was written by somebody else; left alone"
        self._differs("item", table.name, shown, what, is_repairable=False)

    def _missing(self, number: int, item: Item) -> None:
        table, entity = self.move.entities[number]
        shown = f"{entity.name} {_shown(table, item)}"
        if self._differs("item", table.name, shown, "is missing"):
            self._write_again(table, item)

    def _write_again(self, table: TableDesign, item: Item) -> None:
        again = stamp(item, self.move.position)
        self.move.target.put_over_older([(table, again)], ONLY_OVER_KNOWN)


def _shown(table: TableDesign, item: Item) -> str:
    return ", ".join(str(next(iter(item[key.name].values()))) for key in table.keys)
