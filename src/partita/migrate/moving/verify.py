"""Stage `verify`: both sides at one position, every row accounted for, every item explained.

The source is read in one transaction, and what was committed up to it is followed first, and
nothing behind it. Then its rows are those of the state store, and the items of the target are those
that the state store's rows make: each way, none is missing, none is too many, none differs.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, field
from sqlalchemy import text

from partita.database.item.values import Item
from partita.errors import PartitaError
from partita.migrate.folder import Folder
from partita.migrate.model.design import TableDesign
from partita.migrate.moving.applying import Applier
from partita.migrate.moving.follow import Follower
from partita.migrate.moving.logs.changes import Change, Session, Transaction
from partita.migrate.moving.logs.unlogged import Unlogged
from partita.migrate.moving.moves import Move, item_digest, key_hash, open_move
from partita.migrate.moving.positions import (
    ONLY_OVER_KNOWN,
    is_tombstone,
    key_of,
    position_of,
    stamped,
    tombstone,
)
from partita.migrate.moving.switching.phases import BACKWARD, phase_of
from partita.migrate.progress import Progress, silent
from partita.migrate.understanding.schema.inventory import Table

CHUNK_ROWS = 500
LISTED_MAX = 1000
TRIES = 20


class Different(Struct, frozen=True, kw_only=True):
    side: str
    """Where it lies: the state store's rows, or the target's items."""
    table: str
    key: str
    what: str
    is_repaired: bool = False


class Verified(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    position: int
    is_sample: bool
    rows: int = 0
    items: int = 0
    tombstones: int = 0
    rejected: int = 0
    seconds: float = 0.0
    different: int = 0
    repaired: int = 0
    differences: list[Different] = field(default_factory=list)
    """The first of them."""

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
) -> Verified:
    """`sample`: so many rows of each table, and their items. A dry run follows nothing first."""
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask) as move:
        verifier = _Verifier(move, is_repairing and not is_dry_run, sample, progress)
        verifier.run(is_following=not is_dry_run)
        found = verifier.found
        found.seconds = round(time.monotonic() - began, 3)
        folder.write_json("verify.json", found)
        return found


def compare_sides(move: Move, progress: Progress = silent) -> Verified:
    """As both are, where nothing is left to follow."""
    verifier = _Verifier(move, False, None, progress)
    verifier.run(is_following=False)
    return verifier.found


class _Verifier:
    def __init__(
        self, move: Move, is_repairing: bool, sample: int | None, progress: Progress
    ) -> None:
        self.move = move
        self.state = move.state
        self.is_repairing = is_repairing
        self.sample = sample
        self.progress = progress
        self.follower = Follower(move)
        self.found = Verified(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=0,
            is_sample=sample is not None,
        )
        self._sampled: dict[str, set[str]] = {}

    def run(self, *, is_following: bool) -> None:
        if phase_of(self.move.state).name == BACKWARD:
            if is_following:
                from partita.migrate.moving.back.following import catch_up_back

                catch_up_back(self.move)
            is_following = False
        for _ in range(TRIES):
            with self.move.log.sessions() as open_session, open_session() as session:
                if is_following and not isinstance(self.move.log, Unlogged):
                    self.follower.run(session.position, is_exact=True)
                    if self.move.position < session.position:
                        # A log of triggers is read to its end, which has moved on.
                        self.follower.run(self.follower.log_end())
                        continue
                self.found.position = self.move.position
                for table in self.move.origin.tables:
                    self._compare_rows(table, session)
            self._compare_items()
            self.found.rejected = len(self.state.rejects())
            return
        raise PartitaError(
            f"{self.move.origin.address} is written to so often that no moment was found at which"
            " both sides could be compared; try again at a quieter time."
        )

    def _differs(self, side: str, table: str, key: str, what: str) -> bool:
        """Counts it, and tells whether it is to be repaired."""
        self.found.different += 1
        self.found.repaired += self.is_repairing
        if len(self.found.differences) < LISTED_MAX:
            one = Different(
                side=side, table=table, key=key, what=what, is_repaired=self.is_repairing
            )
            self.found.differences.append(one)
        return self.is_repairing

    # Rows of the source, and those of the state store.

    def _compare_rows(self, table: Table, session: Session) -> None:
        if not table.primary_key:
            self._compare_counts(table, session)
            return
        keep = self._chosen(table.name)
        seen = 0
        repairs: list[Change] = []
        unknown: set[str] = set()
        for rows in self._source_rows(table, session):
            keyed = {self.state.key_text(table.name, row): row for row in rows}
            if keep is not None:
                keyed = {key: row for key, row in keyed.items() if key in keep}
            seen += len(keyed)
            known = self.state.found_rows(table.name, list(keyed))
            for key, row in keyed.items():
                if known.get(key) == row:
                    continue
                what = "differs" if key in known else "is not in the state store"
                if key not in known:
                    unknown.add(key)
                if self._differs("row", table.name, key.replace("\0", ", "), what):
                    repairs.append(Change(table.name, None, row))
        self.found.rows += seen
        self.progress("Rows", self.found.rows, 0)
        if keep is None and seen - len(unknown) < self.state.count(table.name):
            repairs += self._surplus(table, session)
        if repairs:
            self._repair_rows(repairs)

    def _surplus(self, table: Table, session: Session) -> Iterator[Change]:
        """Rows of the state store that the source does not have."""
        there: set[str] = set()
        for rows in self._source_rows(table, session):
            there.update(self.state.key_text(table.name, row) for row in rows)
        for _, row in list(self.state.rows(table.name)):
            key = self.state.key_text(table.name, row)
            if key not in there and self._differs(
                "row", table.name, key.replace("\0", ", "), "is not in the source"
            ):
                yield Change(table.name, row, None)

    def _compare_counts(self, table: Table, session: Session) -> None:
        relation = session.source.relation(table)
        ((count,),) = session.source.rows(f"SELECT count(*) FROM {relation}")
        held = self.state.count(table.name)
        self.found.rows += held
        if int(count) != held:
            what = f"the source has {count} rows and the state store {held}"
            self._differs("row", table.name, "", what)
            self.found.repaired -= self.is_repairing

    def _source_rows(self, table: Table, session: Session) -> Iterator[list[Item]]:
        asked = self.move.origin.readings[table.name]
        names = [reading.column.name for reading in asked]
        columns = ", ".join(reading.sql for reading in asked)
        statement = f"SELECT {columns} FROM {session.source.relation(table)}"
        options = {"stream_results": True, "max_row_buffer": CHUNK_ROWS}
        with session.source.errors():
            result = session.source.connection.execute(text(statement), execution_options=options)
            try:
                for part in result.partitions(CHUNK_ROWS):
                    yield [
                        self.move.origin.row(table.name, dict(zip(names, row, strict=True)))
                        for row in part
                    ]
            finally:
                result.close()

    def _chosen(self, table: str) -> set[str] | None:
        if self.sample is None:
            return None
        count = self.state.count(table)
        wanted = set(random.sample(range(count), min(self.sample, count)))
        keys = {
            self.state.key_text(table, row)
            for place, (_, row) in enumerate(self.state.rows(table))
            if place in wanted
        }
        self._sampled[table] = keys
        return keys

    def _repair_rows(self, repairs: list[Change]) -> None:
        applier = Applier(self.move, self.move.position)
        with self.state.transaction():
            applier.apply(Transaction(self.move.position, "", time.time(), repairs))
            self.move.target.put_over_older(applier.taken_writes(), ONLY_OVER_KNOWN)

    # Items of the target, and those that rows make.

    def _compare_items(self) -> None:
        with TemporaryDirectory(prefix="partita-verify-") as space:
            expected = sqlite3.connect(Path(space) / "items", isolation_level=None)
            try:
                expected.execute("PRAGMA journal_mode = OFF")
                expected.execute("PRAGMA synchronous = OFF")
                expected.execute(
                    "CREATE TABLE items (hash BLOB PRIMARY KEY, digest BLOB, home INT, row TEXT,"
                    " seen INT DEFAULT 0) WITHOUT ROWID"
                )
                expected.execute("BEGIN")
                self._make_expected(expected)
                if self.sample is None:
                    for table in self.move.design.tables:
                        self._compare_table(table, expected)
                else:
                    self._ask_for(expected)
                self._find_missing(expected)
            finally:
                expected.close()

    def _make_expected(self, expected: sqlite3.Connection) -> None:
        self.state.freeze(is_frozen=True)
        for number, (table, entity) in enumerate(self.move.homes):
            keep = self._sampled.get(entity.source)
            chunk = []
            for place, row in self.state.rows(entity.source):
                has_key = bool(self.state.tables[entity.source].primary_key)
                key = self.state.key_text(entity.source, row) if has_key else f"#{place}"
                if keep is not None and key not in keep:
                    continue
                item = self.follower.applier.made(number, row)
                if item is not None:
                    chunk.append((key_hash(table, item), item_digest(item), number, key))
                if len(chunk) == CHUNK_ROWS:
                    self._expect(expected, chunk)
                    chunk = []
            self._expect(expected, chunk)
        self.state.freeze(is_frozen=False)

    def _expect(
        self, expected: sqlite3.Connection, chunk: list[tuple[bytes, bytes, int, str]]
    ) -> None:
        expected.executemany(
            "INSERT OR IGNORE INTO items (hash, digest, home, row) VALUES (?, ?, ?, ?)", chunk
        )

    def _compare_table(self, table: TableDesign, expected: sqlite3.Connection) -> None:
        for item in self.move.target.items(table.name):
            if is_tombstone(item):
                self.found.tombstones += 1
                continue
            self.found.items += 1
            if self.found.items % CHUNK_ROWS == 0:
                self.progress("Items", self.found.items, 0)
            self._compare_item(table, item, expected)

    def _compare_item(self, table: TableDesign, item: Item, expected: sqlite3.Connection) -> None:
        hashed = key_hash(table, item)
        made = expected.execute(
            "SELECT digest, home, row FROM items WHERE hash = ?", (hashed,)
        ).fetchone()
        shown = _shown(table, item)
        if made is None:
            self._surplus_item(table, item, shown)
            return
        expected.execute("UPDATE items SET seen = 1 WHERE hash = ?", (hashed,))
        if item_digest(item) != made[0]:
            if self._differs("item", table.name, shown, "is not what its row makes"):
                self._write_again(made[1], made[2])

    def _surplus_item(self, table: TableDesign, item: Item, shown: str) -> None:
        if position_of(item) is None:
            self._differs("item", table.name, shown, "was written by somebody else; left alone")
            self.found.repaired -= self.is_repairing
        elif self._differs("item", table.name, shown, "no row makes it"):
            gone = tombstone(key_of(table, item), self.move.position)
            self.move.target.put_over_older([(table, gone)], ONLY_OVER_KNOWN)

    def _ask_for(self, expected: sqlite3.Connection) -> None:
        """The items of a sample, one by one."""
        for number, row in expected.execute("SELECT home, row FROM items").fetchall():
            table, entity = self.move.homes[number]
            kept = self.state.find(entity.source, row)
            made = self.follower.applier.made(number, kept.row) if kept is not None else None
            if made is None:
                continue
            answer = self.move.target.call(
                "GetItem", TableName=table.name, Key=key_of(table, made), ConsistentRead=True
            )
            if "Item" in answer and not is_tombstone(answer["Item"]):
                self.found.items += 1
                self._compare_item(table, answer["Item"], expected)

    def _find_missing(self, expected: sqlite3.Connection) -> None:
        for number, row in expected.execute("SELECT home, row FROM items WHERE seen = 0"):
            table, entity = self.move.homes[number]
            shown = f"{entity.name} of {row}".replace("\0", ", ")
            if self._differs("item", table.name, shown, "is missing"):
                self._write_again(number, row)

    def _write_again(self, number: int, key: str) -> None:
        table, entity = self.move.homes[number]
        kept = self.state.find(entity.source, key)
        item = self.follower.applier.made(number, kept.row) if kept is not None else None
        if item is not None:
            again = stamped(item, self.move.position)
            self.move.target.put_over_older([(table, again)], ONLY_OVER_KNOWN)


def _shown(table: TableDesign, item: Item) -> str:
    return ", ".join(str(next(iter(item[key.name].values()))) for key in table.keys)
