"""A session that may write to the source: plain statements in explicit transactions.

Statements contain `VALUE` where a value goes, whatever placeholder the driver uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.understanding.schema.inventory import SourceTable

VALUE = "\0"
LOCK_SECONDS = 2
"""How long a lock is waited for; sessions of the application queue behind us meanwhile."""
BUSY_SECONDS = 30
QUOTES = {"postgresql": '"', "mysql": "`", "sqlite": '"'}
AWAY = (1927, 1317, 2002, 2003, 2006, 2013, 2014, 1053)
BUSY = (1205, 1213)
"""MariaDB's error numbers for a lock wait timeout and a deadlock."""
BUSY_STATES = ("55P03", "40P01", "40001", "57014")


class SourceUnavailable(PartitaError):
    """Raised when no session can be opened or the session was lost."""


def _driver_of(family: str) -> Any:
    """Imports the driver of a kind of source."""
    if family == "postgresql":
        import psycopg

        return psycopg
    if family == "mysql":
        import pymysql

        return pymysql
    import sqlite3

    return sqlite3


class SourceSession:
    """One connection to the source."""

    def __init__(self, origin: MoveSource, connection: Any) -> None:
        self.origin = origin
        self.family = origin.family
        self.connection = connection
        self.driver: Any = _driver_of(self.family)
        self._savepoints = 0

    # Statements.

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(self.connection.cursor()) as cursor:
            self._execute(cursor, statement, values)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def change(self, statement: str, *values: Any) -> int:
        """Runs a statement and returns the number of rows that it matched."""
        with closing(self.connection.cursor()) as cursor:
            self._execute(cursor, statement, values)
            return int(cursor.rowcount)

    def _execute(self, cursor: Any, statement: str, values: Sequence[Any]) -> None:
        if self.family == "sqlite":
            cursor.execute(statement.replace(VALUE, "?"), values)
        elif values:
            cursor.execute(statement.replace("%", "%%").replace(VALUE, "%s"), values)
        else:
            cursor.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.run("BEGIN IMMEDIATE" if self.family == "sqlite" else "BEGIN")
        try:
            yield
        except BaseException:
            self._roll_back("ROLLBACK")
            raise
        self.run("COMMIT")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undoes what the block did when it fails, and nothing else of the transaction."""
        self._savepoints += 1
        name = f"partita_{self._savepoints}"
        self.run(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self._roll_back(f"ROLLBACK TO SAVEPOINT {name}")
            raise
        self.run(f"RELEASE SAVEPOINT {name}")

    def _roll_back(self, statement: str) -> None:
        try:
            self.run(statement)
        except self.driver.Error:
            # The connection is gone, and the server has rolled back by itself.
            return

    # Names.

    def quote(self, name: str) -> str:
        mark = QUOTES[self.family]
        return mark + name.replace(mark, mark * 2) + mark

    def relation(self, table: SourceTable) -> str:
        if table.schema is None:
            return self.quote(table.name)
        short = table.name.removeprefix(f"{table.schema}.")
        return f"{self.quote(table.schema)}.{self.quote(short)}"

    # Errors.

    def is_away(self, error: BaseException) -> bool:
        """True when the server is gone, rather than refusing a statement."""
        if self.family == "postgresql":
            return bool(self.connection.closed or self.connection.broken)
        if self.family == "mysql":
            return bool(error.args) and error.args[0] in AWAY
        return False

    def is_busy(self, error: BaseException) -> bool:
        """True when a lock was not available, so that the same statement may succeed later."""
        if self.family == "postgresql":
            return getattr(error, "sqlstate", None) in BUSY_STATES
        if self.family == "mysql":
            return bool(error.args) and error.args[0] in BUSY
        return "locked" in str(error)

    def message_of(self, error: BaseException) -> str:
        """Returns the driver's message on one line, without the password."""
        text = str(error.args[-1]) if self.family == "mysql" and error.args else str(error)
        return self.origin.address.scrub(text.splitlines()[0] if text else type(error).__name__)


@contextmanager
def open_session(origin: MoveSource, lock_seconds: float = LOCK_SECONDS) -> Iterator[SourceSession]:
    """Opens a session in autocommit mode and in UTC, with strict SQL modes."""
    driver: Any = _driver_of(origin.family)
    try:
        connection = _connect(origin, driver, lock_seconds)
    except driver.Error as error:
        message = origin.address.scrub(str(error.args[-1] if error.args else error))
        raise SourceUnavailable(f"{origin.address} cannot be opened: {message}.") from error
    with closing(connection):
        session = SourceSession(origin, connection)
        try:
            yield session
        except driver.Error as error:
            kind = SourceUnavailable if session.is_away(error) else PartitaError
            raise kind(f"{origin.address} refused: {session.message_of(error)}.") from error


def _connect(origin: MoveSource, driver: Any, lock_seconds: float) -> Any:
    if origin.family == "sqlite":
        connection = driver.connect(
            str(origin.address.url.database), timeout=BUSY_SECONDS, isolation_level=None
        )
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    with origin.connect() as source:
        arguments = origin.arguments(source)
    if origin.family == "postgresql":
        options = (
            f"-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres"
            f" -c lock_timeout={round(lock_seconds * 1000)}"
        )
        name = {"application_name": "partita migrate"}
        return driver.connect(**{**arguments, **name, "options": options}, autocommit=True)
    from pymysql.constants import CLIENT

    flags = {"client_flag": CLIENT.FOUND_ROWS, "autocommit": True, "charset": "utf8mb4"}
    connection = driver.connect(**{**arguments, **flags})
    with connection.cursor() as cursor:
        # NO_AUTO_VALUE_ON_ZERO: MariaDB would otherwise give a row with the key 0 a new number.
        modes = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO"
        cursor.execute(f"SET SESSION time_zone = '+00:00', sql_mode = '{modes}'")
        cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {max(1, round(lock_seconds))}")
        cursor.execute(f"SET SESSION lock_wait_timeout = {max(1, round(lock_seconds))}")
    return connection
