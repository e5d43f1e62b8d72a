"""A private copy of the source, of the same kind, that statements may write to.

SQLite's is a file of its own; MariaDB, MySQL and PostgreSQL run for the length of a test on a port
of their own, from the programs that are installed here. MariaDB is never a copy of MySQL, nor the
other way round: they compare texts and count in other ways. Triggers are not taken along: what they
do is no part of a statement, and no design does it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.proving.sandbox.driver_values import column_value
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable, is_derived
from partita_migrate.understanding.sources.source_address import SourceAddress
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.workspace.migration_folder import SourceSettings

START_SECONDS_MAX = 60
LOCAL = "127.0.0.1"
NAME = "partita_copy"


class CopyNotPossible(PartitaError):
    """A private copy cannot be made here."""


@contextmanager
def private_copy(
    source: SourceDatabase, inventory: Inventory, rows: Mapping[str, Sequence[Item]]
) -> Iterator[SourceDatabase]:
    """The copy, with its tables and these rows, while the block runs."""
    family = "mysql" if source.dialect == "mariadb" else source.dialect
    with ExitStack() as stack:
        space = Path(stack.enter_context(TemporaryDirectory(prefix="partita-copy-")))
        url = stack.enter_context(_SERVERS[source.dialect](space, source))
        try:
            connection = stack.enter_context(_connect(url, family))
            _SCHEMAS[family](source, inventory, connection, url)
            copy = SourceDatabase(connection, SourceAddress(url), SourceSettings())
            _fill(copy, inventory, rows, family)
        except (SQLAlchemyError, OSError, subprocess.SubprocessError) as error:
            said = " ".join(str(error).split())[:300]
            raise CopyNotPossible(f"The private copy could not be made: {said}.") from error
        yield copy


@contextmanager
def _connect(url: URL, family: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    if family == "sqlite":
        # Nothing here has to last, and rows are inserted in any order.
        @event.listens_for(engine, "connect")
        def prepare(driver_connection: Any, record: Any) -> None:
            for setting in ("foreign_keys = OFF", "journal_mode = MEMORY", "synchronous = OFF"):
                driver_connection.execute(f"PRAGMA {setting}")

    if family == "mysql":

        @event.listens_for(engine, "connect")
        def in_utc(driver_connection: Any, record: Any) -> None:
            with driver_connection.cursor() as cursor:
                cursor.execute("SET SESSION time_zone = '+00:00'")

    with engine.connect() as connection:
        if family == "postgresql":
            connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        yield connection


# Servers.


@contextmanager
def _sqlite(space: Path, source: SourceDatabase) -> Iterator[URL]:
    yield URL.create("sqlite+pysqlite", database=str(space / "copy.db"))


@contextmanager
def _mariadb(space: Path, source: SourceDatabase) -> Iterator[URL]:
    server, install = _found("mariadbd"), _found("mariadb-install-db")
    made = [install, "--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]
    with _mysql_family(space, server, made, []) as url:
        yield url


@contextmanager
def _mysql(space: Path, source: SourceDatabase) -> Iterator[URL]:
    server = _mysqld()
    made = [server, "--no-defaults", "--initialize-insecure"]
    options = ["--mysqlx=OFF", "--secure-file-priv=NULL"]
    with _mysql_family(space, server, made, options) as url:
        yield url


def _mysqld() -> str:
    """Where MariaDB is installed, that name is often one of its own."""
    for folder in _folders():
        server = shutil.which("mysqld", path=folder)
        if server is None:
            continue
        said = subprocess.run([server, "--version"], capture_output=True, text=True).stdout
        if "MariaDB" not in said:
            return server
    raise CopyNotPossible("MySQL's mysqld is not installed here, and writes need a private copy.")


@contextmanager
def _mysql_family(
    space: Path, server: str, install: Sequence[str], options: Sequence[str]
) -> Iterator[URL]:
    user = ["--user=root"] if os.geteuid() == 0 else []
    made = subprocess.run(
        [*install, f"--datadir={space / 'data'}", *user],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(space)},
    )
    if made.returncode:
        said = [line for line in (made.stderr + made.stdout).splitlines() if "ERROR" in line]
        why = said[0].strip() if said else f"it ended with {made.returncode}"
        raise CopyNotPossible(f"{Path(install[0]).name} made no private copy: {why[:300]}.")
    (space / "init.sql").write_text(
        f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4;\n"
        f"CREATE USER partita@'%' IDENTIFIED BY 'partita';\nGRANT ALL ON *.* TO partita@'%';\n"
    )
    port = _free_port()
    command = [
        server, "--no-defaults", f"--datadir={space / 'data'}", f"--socket={space / 'socket'}",
        f"--pid-file={space / 'pid'}", f"--port={port}", f"--bind-address={LOCAL}",
        f"--tmpdir={space}",  # One that starts removes what others keep in the usual place.
        "--skip-name-resolve", "--character-set-server=utf8mb4", "--skip-log-bin",
        "--innodb-flush-log-at-trx-commit=0", f"--init-file={space / 'init.sql'}", *options, *user,
    ]  # fmt: skip
    url = URL.create(
        "mysql+pymysql", "partita", "partita", LOCAL, port, NAME, query={"charset": "utf8mb4"}
    )
    with _running(command, space, url):
        yield url


@contextmanager
def _postgresql(space: Path, source: SourceDatabase) -> Iterator[URL]:
    server, initdb = _found("postgres"), _found("initdb")
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL does not run as root.
        shutil.chown(space, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    locale = _locale(source)
    try:
        subprocess.run(
            [*as_user, initdb, f"--pgdata={space / 'data'}", "--username=postgres", "--auth=trust",
             "--encoding=UTF8", *locale, "--no-sync"],
            check=True, capture_output=True, cwd=space,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = " ".join(locale)
        raise CopyNotPossible(
            f"PostgreSQL has no {said} here, which the source sorts by."
        ) from error
    port = _free_port()
    command = [
        *as_user, server, "-D", str(space / "data"), f"--port={port}",
        f"--listen_addresses={LOCAL}", "--unix_socket_directories=", "--fsync=off",
    ]  # fmt: skip
    url = URL.create("postgresql+psycopg", "postgres", None, LOCAL, port, "postgres")
    with _running(command, space, url):
        yield url


def _locale(source: SourceDatabase) -> list[str]:
    """So that the copy compares and sorts texts as the source does."""
    ((collate, provider, icu),) = source.rows(
        "SELECT datcollate, to_jsonb(d) ->> 'datlocprovider',"
        " coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')"
        " FROM pg_database d WHERE datname = current_database()"
    )
    if provider == "i":
        return ["--locale=C.UTF-8", "--locale-provider=icu", f"--icu-locale={icu}"]
    return [f"--locale={icu if provider == 'b' else collate}"]


_SERVERS = {
    "sqlite": _sqlite,
    "mariadb": _mariadb,
    "mysql": _mysql,
    "postgresql": _postgresql,
}


@contextmanager
def _running(command: Sequence[str], space: Path, url: URL) -> Iterator[None]:
    with (space / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=space)
    try:
        _wait(process, url)
        yield
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: URL) -> None:
    end = time.monotonic() + START_SECONDS_MAX
    engine = create_engine(url, poolclass=NullPool)
    while True:
        try:
            engine.connect().close()
            return
        except SQLAlchemyError as error:
            if process.poll() is not None or time.monotonic() > end:
                raise CopyNotPossible(
                    "A private server of the source's kind did not start."
                ) from error
            time.sleep(0.1)


def _found(program: str) -> str:
    where = shutil.which(program, path=os.pathsep.join(_folders()))
    if where is None:
        raise CopyNotPossible(f"{program} is not installed here, and writes need a private copy.")
    return where


def _folders() -> list[str]:
    """Debian keeps servers out of a user's path."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", *map(str, versions)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        port: int = probe.getsockname()[1]
        return port


# Tables.


def _sqlite_schema(
    source: SourceDatabase, inventory: Inventory, copy: Connection, url: URL
) -> None:
    names = {table.name for table in inventory.tables}
    for name, sql in source.rows(
        "SELECT tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND type IN ('table', 'index') ORDER BY type DESC"
    ):
        if name in names:
            copy.exec_driver_sql(sql)


def _mysql_schema(source: SourceDatabase, inventory: Inventory, copy: Connection, url: URL) -> None:
    copy.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 0")
    for table in inventory.tables:
        ((_, sql, *_),) = source.rows(f"SHOW CREATE TABLE {source.quote(table.name)}")
        copy.exec_driver_sql(sql.replace("%", "%%"))


def _postgresql_schema(
    source: SourceDatabase, inventory: Inventory, copy: Connection, url: URL
) -> None:
    address = source.address.url
    environment = {**os.environ, "PGPASSWORD": source.address.password or ""}
    command = [
        _found("pg_dump"), "--schema-only", "--no-owner", "--no-privileges",
        f"--host={address.host or 'localhost'}", f"--port={address.port or 5432}",
        f"--username={address.username or ''}", str(address.database or ""),
    ]  # fmt: skip
    cursor = copy.connection.driver_connection
    assert cursor is not None
    for section in ("pre-data", "post-data"):
        found = subprocess.run(
            [*command, f"--section={section}"], capture_output=True, text=True, env=environment
        )
        if found.returncode:
            raise CopyNotPossible(f"pg_dump cannot read the schema: {found.stderr.strip()[:200]}.")
        lines = [line for line in found.stdout.splitlines() if not line.startswith("\\")]
        script = "\n".join(lines)
        parts = [script] if section == "pre-data" else script.split(";\n")
        for part in parts:
            bare = "\n".join(line for line in part.splitlines() if not line.startswith("--"))
            if bare.strip() and not bare.strip().startswith(("CREATE TRIGGER", "CREATE RULE")):
                cursor.execute(part)
    copy.exec_driver_sql("SET search_path TO public")


_SCHEMAS = {
    "sqlite": _sqlite_schema,
    "mysql": _mysql_schema,
    "postgresql": _postgresql_schema,
}


# Rows.


def _fill(
    copy: SourceDatabase, inventory: Inventory, rows: Mapping[str, Sequence[Item]], family: str
) -> None:
    if family == "postgresql":
        copy.connection.exec_driver_sql("SET session_replication_role = replica")
    for table in inventory.tables:
        for row in rows.get(table.name, ()):
            insert(copy, table, row, family)
    if family == "postgresql":
        copy.connection.exec_driver_sql("SET session_replication_role = origin")
        _move_sequences(copy, inventory)
    if family == "mysql":
        copy.connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 1")
    if family == "sqlite" and inventory.keeps_references:
        copy.connection.exec_driver_sql("PRAGMA foreign_keys = ON")


def insert(copy: SourceDatabase, table: SourceTable, row: Item, family: str) -> None:
    columns = [one for one in table.columns if not is_derived(one) and one.name in row]
    names = ", ".join(copy.quote(one.name) for one in columns)
    marks = ", ".join(f":v{number}" for number in range(len(columns)))
    values = {
        f"v{number}": column_value(one, row[one.name], family) for number, one in enumerate(columns)
    }
    overriding = " OVERRIDING SYSTEM VALUE" if family == "postgresql" else ""
    copy.connection.execute(
        text(f"INSERT INTO {copy.relation(table)} ({names}){overriding} VALUES ({marks})"), values
    )


def _move_sequences(copy: SourceDatabase, inventory: Inventory) -> None:
    """Numbers that are counted up go on behind the rows that are there."""
    for table in inventory.tables:
        for column in table.columns:
            if not column.is_auto_increment:
                continue
            name = copy.relation(table).removeprefix("ONLY ")
            (found,) = copy.rows(
                "SELECT pg_get_serial_sequence(:name, :column)", name=name, column=column.name
            )
            if found[0]:
                copy.connection.execute(
                    text(
                        f"SELECT setval(:sequence, (SELECT coalesce(max({copy.quote(column.name)}),"
                        f" 0) + 1 FROM {copy.relation(table)}))"
                    ),
                    {"sequence": found[0]},
                )
