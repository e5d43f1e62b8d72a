"""The switch: where an application reads and writes while its database is moved.

One table in the source, `partita_switch`, which any language can read. For a scope, a row says
which side is authoritative, how far its move is, which percentage of reads the target answers, and
which percentage is read from both sides and compared:

    scope            side    state         read_percent  shadow_percent
    *                source  IN_MIGRATION             5              10
    orders           target  MIGRATED               100               0
    orders/42        source  IN_MIGRATION             0               0
    flag:checkout    source  IN_MIGRATION            20               0

The row of an entity takes precedence over that of its table, and that over the row `*`. `cutover`
and `rollback` change every row except flags. Programs ask the switch of their own accord; those
that do not are refused by the source's fence.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from partita.errors import PartitaError

logger = logging.getLogger(__name__)

TABLE = "partita_switch"
ALL = "*"
FLAG = "flag:"
SOURCE, TARGET = "source", "target"
NOT_MIGRATED, IN_MIGRATION, MIGRATED = "NOT_MIGRATED", "IN_MIGRATION", "MIGRATED"
KNOWN = {"side": (SOURCE, TARGET), "state": (NOT_MIGRATED, IN_MIGRATION, MIGRATED)}
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (scope VARCHAR(128) PRIMARY KEY,"
    " side VARCHAR(10) NOT NULL, state VARCHAR(20) NOT NULL,"
    " read_percent INTEGER NOT NULL, shadow_percent INTEGER NOT NULL)"
)
SELECT = f"SELECT scope, side, state, read_percent, shadow_percent FROM {TABLE}"
COLUMNS = ("side", "state", "read_percent", "shadow_percent")
REFRESH_SECONDS = 1.0
LEASE_SECONDS = 10.0
"""How long the last rows stay valid when they cannot be read again."""
SETTLE_SECONDS = 1.0
"""A difference is read again after this time: the change may still have been on its way."""
MISSING_TABLE = (1146, "42P01")
"""The error codes of MariaDB and PostgreSQL; SQLite only has a message."""

T = TypeVar("T")


class InMigration(PartitaError):
    """Raised while an entity is being copied and takes no update; try again in a moment."""


class SwitchRow(NamedTuple):
    """One row of `partita_switch`."""

    scope: str
    side: str
    state: str
    read_percent: int
    shadow_percent: int


def scope_of(table: str, key: object = None) -> str:
    """Returns the scope of an entity, such as `orders/42`, or of a table."""
    return table if key is None else f"{table}/{key}"


def bucket(text: str) -> int:
    """Returns 0 to 99, the same in every process and language: CRC-32 of the UTF-8 bytes, modulo
    100."""
    return zlib.crc32(text.encode()) % 100


# In the source, over any connection of Python's database API.


def create(connection: Any) -> None:
    """Creates the table before the move does, so that an application can be deployed first.
    Commits."""
    _run(connection, CREATE)
    connection.commit()


def rows_of(connection: Any) -> list[SwitchRow]:
    """Returns all rows; an empty list when there is no table.

    Ends the connection's transaction, whose snapshot would otherwise show the same rows for ever,
    so use a connection for this alone.
    """
    try:
        return [SwitchRow(*row) for row in _run(connection, SELECT)]
    except Exception as error:
        if not _is_missing_table(error):
            raise
        return []
    finally:
        connection.rollback()


def turn(connection: Any, scope: str, **columns: Any) -> None:
    """Changes or adds a row, such as `turn(connection, "*", shadow_percent=10)`. Commits."""
    unknown = sorted(columns.keys() - set(COLUMNS))
    if unknown:
        raise PartitaError(f"The switch has no column {unknown[0]}; it has {', '.join(COLUMNS)}.")
    rows = {row.scope: row for row in rows_of(connection)}
    row = _checked(
        rows.get(scope, SwitchRow(scope, SOURCE, NOT_MIGRATED, 0, 0))._replace(**columns)
    )
    mark = "?" if type(connection).__module__ == "sqlite3" else "%s"
    if scope in rows:
        changes = ", ".join(f"{name} = {mark}" for name in COLUMNS)
        statement = f"UPDATE {TABLE} SET {changes} WHERE scope = {mark}"
        _run(connection, statement, (*row[1:], scope))
    else:
        marks = ", ".join([mark] * len(row))
        _run(connection, f"INSERT INTO {TABLE} VALUES ({marks})", row)
    connection.commit()


def _checked(row: SwitchRow) -> SwitchRow:
    for name, allowed in KNOWN.items():
        if getattr(row, name) not in allowed:
            raise PartitaError(
                f"{name} is one of {', '.join(allowed)}, not {getattr(row, name)!r}."
            )
    for name in ("read_percent", "shadow_percent"):
        if getattr(row, name) not in range(101):
            raise PartitaError(f"{name} is a number from 0 to 100, not {getattr(row, name)!r}.")
    return row


def _run(connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, tuple(values))
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def _is_missing_table(error: Exception) -> bool:
    codes = {getattr(error, "sqlstate", None), *error.args[:1]}
    return bool(codes & set(MISSING_TABLE)) or "no such table" in str(error)


# In the application.


class Switch:
    """The current rows, read again every second. Threads may share it.

    `read` returns the rows: `lambda: rows_of(connection)`, with a connection for this alone.
    `default` is the side without any row: the source before a move, the target once `finish` has
    removed the table. Shadow reads run in `executor`, so that callers do not wait for them; without
    one, they do.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[SwitchRow]],
        *,
        default: str = SOURCE,
        refresh_seconds: float = REFRESH_SECONDS,
        settle_seconds: float = SETTLE_SECONDS,
        executor: Executor | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        state = MIGRATED if default == TARGET else NOT_MIGRATED
        self._default = SwitchRow(ALL, default, state, 100 if default == TARGET else 0, 0)
        self._read = read
        self._refresh_seconds = refresh_seconds
        self._settle_seconds = settle_seconds
        self._executor = executor
        self._now = now
        self._lock = Lock()
        self._rows: dict[str, SwitchRow] = {}
        self._read_at: float | None = None
        self._tried_at = 0.0
        self.compared = self.different = self.failed = 0
        """Shadow reads: all of them, those that differed twice, and those where the other side
        failed."""

    # Which side.

    def row(self, table: str, key: object = None) -> SwitchRow:
        """Returns the row that applies to an entity or a table."""
        rows = self._current()
        scopes = [scope_of(table, key), table, ALL]
        return next((rows[scope] for scope in scopes if scope in rows), self._default)

    def write_side(self, table: str, key: object = None) -> str:
        """Returns the side to write to. Raises InMigration while this very entity is being
        copied."""
        row = self.row(table, key)
        if key is not None and row.scope == scope_of(table, key) and row.state == IN_MIGRATION:
            raise InMigration(f"{row.scope} is being migrated: try again in a moment.")
        return row.side

    def read_side(self, table: str, key: object = None, caller: object = None) -> str:
        """Returns the side to read from.

        A percentage of callers reads from the target, always the same ones: chosen by `caller`,
        such as a user, or else by key.
        """
        row = self.row(table, key)
        if row.side == TARGET:
            return TARGET
        hashed = f"{table}/{key if caller is None else caller}"
        return TARGET if bucket(hashed) < row.read_percent else SOURCE

    def is_on(self, flag: str, caller: object) -> bool:
        """True when a feature flag is on for this caller, as it is for `read_percent` of them."""
        row = self._current().get(FLAG + flag)
        return row is not None and bucket(f"{flag}/{caller}") < row.read_percent

    # Reads of both sides.

    def read(
        self,
        table: str,
        key: object,
        from_source: Callable[[], T],
        from_target: Callable[[], T],
        *,
        caller: object = None,
        is_same: Callable[[T, T], bool] | None = None,
    ) -> T:
        """Reads from one side and returns its answer; a percentage is compared with the other side.

        The other side can neither make the call fail nor change the answer.
        """
        sides = {SOURCE: from_source, TARGET: from_target}
        side = self.read_side(table, key, caller)
        answer = sides[side]()
        hashed = f"shadow {table}/{key if caller is None else caller}"
        if bucket(hashed) < self.row(table, key).shadow_percent:
            same = is_same or _equals
            self._submit(lambda: self._compare(scope_of(table, key), side, answer, sides, same))
        return answer

    def _submit(self, work: Callable[[], None]) -> None:
        if self._executor is None:
            work()
        else:
            self._executor.submit(work)

    def _compare(
        self,
        scope: str,
        side: str,
        answer: T,
        sides: dict[str, Callable[[], T]],
        is_same: Callable[[T, T], bool],
    ) -> None:
        other = SOURCE if side == TARGET else TARGET
        try:
            shadow = sides[other]()
            is_equal = is_same(answer, shadow)
            if not is_equal:
                # The entity may have been written in between, or not be carried over yet.
                time.sleep(self._settle_seconds)
                answer, shadow = sides[side](), sides[other]()
                is_equal = is_same(answer, shadow)
        except Exception as error:
            self._count(failed=1)
            logger.warning("A shadow read of %s failed: %s", scope, error)
            return
        self._count(different=int(not is_equal))
        if not is_equal:
            logger.warning("%s differs: %s has %r, %s has %r", scope, side, answer, other, shadow)

    def _count(self, different: int = 0, failed: int = 0) -> None:
        with self._lock:
            self.compared += 1
            self.different += different
            self.failed += failed

    # The rows.

    def _current(self) -> dict[str, SwitchRow]:
        now = self._now()
        if self._read_at is not None and now - self._tried_at < self._refresh_seconds:
            return self._rows
        with self._lock:
            self._tried_at = now
            try:
                self._rows = {row.scope: row for row in self._read()}
                self._read_at = now
            except Exception as error:
                if self._read_at is None or now - self._read_at > LEASE_SECONDS:
                    raise PartitaError(
                        f"{TABLE} cannot be read, so the authoritative side is unknown: {error}."
                    ) from error
                logger.warning("%s cannot be read; its last rows stay valid: %s", TABLE, error)
        return self._rows


def _equals(answer: Any, other: Any) -> bool:
    return bool(answer == other)
