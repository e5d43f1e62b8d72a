"""Copying a whole database from one storage into another: a folder into PostgreSQL, or back.

Both are walked side by side, a piece at a time, and only what differs is written: a copy that was
interrupted goes on where it was, and a second walk shows that both are the same. Until then the
target says that it is being copied into, and nobody serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import psycopg
from psycopg import Connection

from partita.database.logs.change_log import change_log_layout as change_layout
from partita.database.recovery.chunk_manifests import CHUNKS, MANIFESTS
from partita.database.recovery.recovery_layout import record_key
from partita.database.shared.rounds.fetched_view import COUNTED, Pair, bucket_of
from partita.database.shared.rounds.write_rounds import INSTANCE_BITS
from partita.database.shared.stored_snapshot import StoredSnapshot
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.embedded_engine import EmbeddedEngine
from partita.database.storage.engine import Changes, Snapshot, prefix_end
from partita.database.storage.postgresql.long_keys import stored_key, stored_value
from partita.database.storage.postgresql.optimistic_commit import PROMISE_STAMPS, stamp_row
from partita.database.storage.postgresql.postgresql_archive import PostgresqlArchive
from partita.database.storage.postgresql.postgresql_pool import SESSION, failure
from partita.database.storage.postgresql.postgresql_schema import COPYING, SCHEMA_VERSION
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.database.storage.recovery_log import STAMP_KEY
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import COPYING_FORMAT, FORMAT_VERSION
from partita.database.tables.table_statistics import collection_size_in, statistics_delta
from partita.errors import StorageError
from partita.foundation.service_limits import MB

SPACES: Final = tuple(bytes([space]) for space in range(0x20))
PIECE_PAIRS: Final = 2000
PIECE_BYTES: Final = 8 * MB
LEASE: Final = "copy"
LEFT: Final = (STAMP_KEY, record_key("base", ""), *table_layout.NOTES)
"""The past of tables with recovery on stays behind: their new place takes a base of its own."""

_PUT: Final = """
    INSERT INTO partita_rows (key, bucket, value, version)
    SELECT key, bucket, value, %s FROM unnest(%b::bytea[], %b::smallint[], %b::bytea[])
        AS x(key, bucket, value)
    ON CONFLICT (key, bucket) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version"""
_PUT_SUMS: Final = """
    INSERT INTO partita_sums (key, bucket, items, bytes)
    SELECT * FROM unnest(%b::bytea[], %b::smallint[], %b::bigint[], %b::bigint[])
    ON CONFLICT (key, bucket) DO UPDATE SET items = EXCLUDED.items, bytes = EXCLUDED.bytes"""
_PUT_SEQUENCES: Final = """
    INSERT INTO partita_sequences (key, last) SELECT * FROM unnest(%b::bytea[], %b::bigint[])
    ON CONFLICT (key) DO UPDATE SET last = EXCLUDED.last"""
_DELETE: Final = "DELETE FROM {} WHERE key = ANY(%b::bytea[])"
_REGISTER: Final = "INSERT INTO partita_instances DEFAULT VALUES RETURNING number"
_TAKE_OVER: Final = """
    INSERT INTO partita_leases AS l (name, holder, token, expires_at)
    VALUES (%s, 0, 1, 'infinity')
    ON CONFLICT (name) DO UPDATE SET token = l.token + 1 RETURNING token"""
_HOLD: Final = "SELECT 1 FROM partita_leases WHERE name = %s AND token = %s FOR SHARE"
_RELEASE: Final = "DELETE FROM partita_leases WHERE name = %s"
_HAS_DATA: Final = "SELECT EXISTS (SELECT 1 FROM partita_rows WHERE key <> ALL (%s))"
_SERVERS: Final = """
    SELECT count(*) FROM partita_instances
    WHERE seen_at > now() - interval '10 seconds' AND endpoint <> ''"""


class CopyTarget(Protocol):
    """Where a copy goes."""

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]: ...

    def write(self, changes: Changes) -> None: ...

    def finish(self) -> None:
        """From now on, it may be served."""


class CopySummary(NamedTuple):
    pairs: int
    written: int


def copy(
    source: Snapshot,
    target: CopyTarget,
    after_piece: Callable[[int], None] = lambda pairs: None,
    left: tuple[bytes, ...] = LEFT,
) -> CopySummary:
    """Make the target the same as the source, but for keys that begin with what is left."""
    pairs = written = 0
    for piece, changes in _differences(source, target, left):
        pairs += piece
        if changes:
            target.write(changes)
            written += len(changes)
        after_piece(piece)
    return CopySummary(pairs, written)


def apply(changes: Changes, target: CopyTarget) -> None:
    """What a commit has changed in the source."""
    by_space: dict[bytes, dict[bytes, bytes | None]] = {}
    for key, value in changes.items():
        if not _is_left(key, LEFT):
            by_space.setdefault(key[:1], {})[key] = value
    for piece in by_space.values():
        target.write(piece)


def copy_backups(source: Archive, target: Archive) -> None:
    """Chunks first, so that no manifest names what is not there."""
    for prefix in (CHUNKS, MANIFESTS):
        for name in source.names(prefix):
            if not target.has(name):
                target.put(name, source.get(name))
    target.sync()


def _is_left(key: bytes, left: tuple[bytes, ...]) -> bool:
    return key == table_layout.FORMAT_KEY or key.startswith(left)


def verify(source: Snapshot, target: CopyTarget, left: tuple[bytes, ...] = LEFT) -> None:
    for _, changes in _differences(source, target, left):
        for key in changes:
            raise StorageError(f"The copy differs at {key[:40].hex()}: run it again.")


def _differences(
    source: Snapshot, target: CopyTarget, left: tuple[bytes, ...]
) -> Iterator[tuple[int, Changes]]:
    """For each piece how much is in it, and what has to change in the target."""
    for space in SPACES:
        start, stop = space, prefix_end(space)
        while start < stop:
            given = _piece(source.range(start, stop))
            end = given[-1][0] + b"\x00" if _is_full(given) else stop
            there = dict(target.pairs(start, end))
            wanted = {key: value for key, value in given if not _is_left(key, left)}
            there.pop(table_layout.FORMAT_KEY, None)
            changes: dict[bytes, bytes | None] = {
                key: value for key, value in wanted.items() if there.get(key) != value
            }
            changes.update(dict.fromkeys(there.keys() - wanted.keys()))
            yield len(given), changes
            start = end


def _piece(pairs: Iterator[Pair]) -> list[Pair]:
    piece: list[Pair] = []
    size = 0
    for key, value in pairs:
        piece.append((key, value))
        size += len(key) + len(value)
        if len(piece) == PIECE_PAIRS or size >= PIECE_BYTES:
            break
    return piece


def _is_full(piece: list[Pair]) -> bool:
    return len(piece) == PIECE_PAIRS or sum(len(key) + len(v) for key, v in piece) >= PIECE_BYTES


class FolderTarget:
    def __init__(self, folder: Path) -> None:
        self._engine = EmbeddedEngine(folder)
        snapshot = self._engine.snapshot()
        found = snapshot.get(table_layout.FORMAT_KEY)
        if found not in (None, COPYING_FORMAT):
            self._engine.close()
            raise StorageError(f"{folder} has data already: copy into a new folder.")
        self.write({table_layout.FORMAT_KEY: COPYING_FORMAT})

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]:
        return list(self._engine.snapshot().range(start, stop))

    def write(self, changes: Changes) -> None:
        self._engine.commit(changes)
        self._engine.refresh()

    def finish(self) -> None:
        self.write({table_layout.FORMAT_KEY: str(FORMAT_VERSION).encode()})

    def close(self) -> None:
        self._engine.close()


class PostgresqlTarget:
    """What writes later takes over: a copy that hangs must not go on in what others serve."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        with connection.transaction():
            self._lease = FencingLease(LEASE, self._value(_TAKE_OVER, LEASE))
            found = self._value("SELECT max(version) FROM partita_format")
            if found != COPYING and self._value(
                _HAS_DATA, [table_layout.FORMAT_KEY, table_layout.SECRET_KEY]
            ):
                raise StorageError("The database has data already: copy into a new one.")
            if self._value(_SERVERS):
                raise StorageError("Servers are running on the database: stop them first.")
            self._run("UPDATE partita_format SET version = %s", COPYING)
            self._version = self._value(_REGISTER) << INSTANCE_BITS
        self.archive = PostgresqlArchive(lambda: connection, lambda: self._lease)

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]:
        with self._connection.transaction():
            return list(StoredSnapshot(self._connection).range(start, stop))

    def write(self, changes: Changes) -> None:
        """A piece, which has keys of one space."""
        puts = {key: value for key, value in changes.items() if value is not None}
        gone = [key for key, value in changes.items() if value is None]
        space = next(iter(changes))[:1]
        with self._connection.transaction():
            self._hold()
            if space in COUNTED:
                self._put_sums(puts, gone)
            elif space == change_layout.SEQUENCES:
                numbers = [int.from_bytes(value, "big") for value in puts.values()]
                self._run(_PUT_SEQUENCES, list(puts), numbers)
                self._run(_DELETE.format("partita_sequences"), gone)
            else:
                self._version += 1
                buckets = [bucket_of(key) for key in puts]
                values = [stored_value(key, value) for key, value in puts.items()]
                self._run(_PUT, self._version, list(map(stored_key, puts)), buckets, values)
                self._run(_DELETE.format("partita_rows"), list(map(stored_key, gone)))

    def _put_sums(self, puts: dict[bytes, bytes], gone: list[bytes]) -> None:
        # What is appended beside a sum would count twice.
        self._run(_DELETE.format("partita_counts"), [*puts, *gone])
        self._run(_DELETE.format("partita_sums"), gone)
        figures = [
            (0, collection_size_in(value))
            if key.startswith(table_layout.COLLECTIONS)
            else statistics_delta(None, value)
            for key, value in puts.items()
        ]
        buckets = [bucket_of(key) for key in puts]
        items, sizes = [one[0] for one in figures], [one[1] for one in figures]
        self._run(_PUT_SUMS, list(puts), buckets, items, sizes)

    def promise_stamps(self, stamp: int, prefixes: Iterable[bytes]) -> None:
        """Later commits of some tables have later stamps."""
        self._run(PROMISE_STAMPS, stamp, [stamp_row(prefix) for prefix in prefixes])

    def finish(self) -> None:
        with self._connection.transaction():
            self._hold()
            self._run(_RELEASE, LEASE)
            self._run("UPDATE partita_catalog SET version = version + 1")
            self._run("UPDATE partita_format SET version = %s", SCHEMA_VERSION)

    def _run(self, statement: str, *parameters: Any) -> None:
        self._connection.execute(statement, parameters, binary=True)

    def _hold(self) -> None:
        if self._value(_HOLD, *self._lease) is None:
            raise StorageError("Another copy into the database has begun: this one ends.")

    def _value(self, statement: str, *parameters: Any) -> Any:
        row = self._connection.execute(statement, parameters).fetchone()
        return None if row is None else row[0]


@contextmanager
def postgresql_target(url: str) -> Iterator[PostgresqlTarget]:
    try:
        with psycopg.connect(url, **SESSION) as connection:
            yield PostgresqlTarget(connection)
    except psycopg.Error as error:
        raise failure(url, error) from error


@contextmanager
def folder_target(folder: Path) -> Iterator[FolderTarget]:
    target = FolderTarget(folder)
    try:
        yield target
    finally:
        target.close()
