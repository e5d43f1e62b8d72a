"""A session with a source: read-only, in UTC, with short statements, and without waiting for
locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Protocol

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from partita.errors import PartitaError
from partita.installation.optional_packages import install_command
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.dialects import (
    mysql_dialect,
    postgresql_dialect,
    sqlite_dialect,
)
from partita_migrate.understanding.sources.dialects.catalog_facts import CatalogFacts
from partita_migrate.understanding.sources.quoted_names import quoted
from partita_migrate.understanding.sources.source_address import SourceAddress, address_of
from partita_migrate.workspace.migration_folder import Folder, SourceSettings


class Dialect(Protocol):
    """The interface of the modules in `dialects`, one for each kind of server."""

    def engine_options(self, url: URL, connect_seconds_max: float) -> dict[str, Any]: ...

    def prepare(self, driver_connection: Any, statement_seconds_max: float) -> None:
        """Makes a new session read-only and limits the duration of its statements."""

    def limit_statements(self, connection: Connection, seconds: float) -> None: ...

    def server_version(self, connection: Connection) -> str: ...

    def read_catalog(self, connection: Connection, settings: SourceSettings) -> CatalogFacts: ...

    def error_text(self, cause: BaseException) -> str:
        """Returns the driver's message, for people."""

    def advice(self, cause: BaseException) -> str | None:
        """Returns what to do about an error, if that is known."""

    def wants_password(self, cause: BaseException) -> bool: ...


SERVERS: dict[str, Dialect] = {
    "mysql": mysql_dialect,
    "postgresql": postgresql_dialect,
    "sqlite": sqlite_dialect,
}

Ask = Callable[[str], str]
"""Asks a person for the password of the source that the text names."""


class SourceError(PartitaError):
    """Raised when the source refuses a statement, or is gone."""


class SourceDatabase:
    """An open session with a source. Statements take :name parameters; answers are plain tuples."""

    def __init__(
        self, connection: Connection, address: SourceAddress, settings: SourceSettings
    ) -> None:
        self.connection = connection
        self.address = address
        self.settings = settings
        self.server = SERVERS[connection.dialect.name]

    @property
    def dialect(self) -> str:
        """Returns "mysql", "mariadb", "postgresql" or "sqlite"."""
        is_mariadb = getattr(self.connection.dialect, "is_mariadb", False)
        return "mariadb" if is_mariadb else self.connection.dialect.name

    @property
    def is_lost(self) -> bool:
        """True when the server has gone away, so that it cannot answer any more."""
        return self.connection.invalidated

    @property
    def server_version(self) -> str:
        return self.server.server_version(self.connection)

    @property
    def database(self) -> str:
        name = self.address.url.database or ""
        return os.path.basename(name) if self.address.is_file else name

    def rows(self, statement: str, **parameters: Any) -> Sequence[tuple[Any, ...]]:
        """Returns all rows of a short answer. Raises SourceError if the server refuses or is
        gone."""
        with self.errors():
            return [tuple(row) for row in self.connection.execute(text(statement), parameters)]

    def stream(
        self, statement: str, chunk: int = 1000, **parameters: Any
    ) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yields chunks of a long answer, which is never in memory as a whole."""
        options = {"stream_results": True, "max_row_buffer": chunk}
        with (
            self.errors(),
            self._cursor_block(),
            closing(
                self.connection.execute(text(statement), parameters, execution_options=options)
            ) as result,
        ):
            for part in result.partitions(chunk):
                yield [tuple(row) for row in part]

    @contextmanager
    def _cursor_block(self) -> Iterator[None]:
        """Opens a transaction for the cursor, because PostgreSQL closes a cursor with its
        transaction."""
        if self.dialect != "postgresql":
            yield
            return
        self.connection.exec_driver_sql("BEGIN")
        try:
            yield
        finally:
            if not self.is_lost:
                # Nothing was written; the rollback only ends the transaction, also after an error.
                self.connection.exec_driver_sql("ROLLBACK")

    def quote(self, name: str) -> str:
        """Returns the quoted name of a column, or of a table without its schema, for `rows` and
        `stream`."""
        return quoted(self.connection, name)

    def quote_table(self, name: str, schema: str | None = None) -> str:
        """Returns the quoted name of a table. Pass the `name` and `schema` of the inventory."""
        if schema is None:
            return self.quote(name)
        return f"{self.quote(schema)}.{self.quote(name.removeprefix(f'{schema}.'))}"

    def relation(self, table: SourceTable) -> str:
        """Returns what to write after FROM to read a table's own rows, and only those."""
        only = "ONLY " if table.is_inherited else ""
        return only + self.quote_table(table.name, table.schema)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Sets another statement timeout for the block."""
        limit_statements = self.server.limit_statements
        limit_statements(self.connection, seconds)
        try:
            yield
        finally:
            if not self.is_lost:
                limit_statements(self.connection, self.settings.statement_seconds_max)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns exceptions of the driver into a SourceError with one sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            raise SourceError(_sentence(self.address, error)) from error


@contextmanager
def connect(
    folder: Folder, ask: Ask | None = None, environment: Mapping[str, str] = os.environ
) -> Iterator[SourceDatabase]:
    """Opens the folder's source until the block ends.

    If the server wants a password and none is set, `ask` is called for it.
    """
    settings = folder.source
    address = address_of(folder, environment)
    try:
        connection = _open(address, settings)
    except SourceError as error:
        # Some servers need no password (peer authentication), so people are asked only on refusal.
        wants = _wants_password(SERVERS[address.url.get_backend_name()], error)
        if ask is None or address.password is not None or not wants:
            raise
        address = replace(address, password=ask(str(address)))
        connection = _open(address, settings)
    source = SourceDatabase(connection, address, settings)
    try:
        with source.errors():
            yield source
    finally:
        connection.close()


def _open(address: SourceAddress, settings: SourceSettings) -> Connection:
    try:
        backend = address.url.get_backend_name()
        server = SERVERS[backend]
        engine = create_engine(
            address.url.set(password=address.password) if address.password else address.url,
            # The session is really closed at the end, not returned to a pool.
            poolclass=NullPool,
            # An open transaction would hold a snapshot on PostgreSQL and metadata locks on MySQL.
            isolation_level="AUTOCOMMIT",
            # Parameters are values of rows, which must not appear in error messages.
            hide_parameters=True,
            **server.engine_options(address.url, settings.connect_seconds_max),
        )

        @event.listens_for(engine, "connect")
        def prepare(driver_connection: Any, record: Any) -> None:
            server.prepare(driver_connection, settings.statement_seconds_max)

        return engine.connect()
    except (ImportError, NoSuchModuleError) as error:
        raise SourceError(
            f"The driver for {backend} is not installed; to install it: "
            f"{install_command('partita-migrate')}"
        ) from error
    except SQLAlchemyError as error:
        raise SourceError(_sentence(address, error)) from error
    except (OSError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        # Drivers pass some exceptions on as they are: a port over 65535, an unknown parameter, a
        # login method that needs another package.
        raise SourceError(f"{address} cannot be opened: {address.scrub(str(error))}.") from error


def _wants_password(server: Dialect, error: SourceError) -> bool:
    cause = error.__cause__
    if not isinstance(cause, DBAPIError) or cause.orig is None:
        return False
    return server.wants_password(cause.orig)


def _sentence(address: SourceAddress, error: SQLAlchemyError) -> str:
    """Returns one sentence: which source, what it answered, and what to do about it."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if cause is None:
        return f"{address} cannot be read: {address.scrub(str(error)).rstrip('.')}."
    server = SERVERS[address.url.get_backend_name()]
    answer = address.scrub(server.error_text(cause)).rstrip(".")
    advice = server.advice(cause)
    return f"{address} cannot be read: {answer}{f'; {advice}' if advice else ''}."
