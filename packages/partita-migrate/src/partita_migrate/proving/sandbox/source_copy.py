"""A private copy of the source, of the same kind, to which statements may write.

For SQLite it is a file; MariaDB, MySQL and PostgreSQL are started for the duration of a test, on a
free port, from programs that are installed here. MariaDB never stands in for MySQL or the other way
round: they compare texts and count rows differently. Triggers are left out: what they do is not
part of a statement, and designs do not do it.
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
    """Raised when a private copy cannot be made on this machine."""


@contextmanager
def private_copy(
    source: SourceDatabase, inventory: Inventory, rows: Mapping[str, Sequence[Item]]
) -> Iterator[SourceDatabase]:
    """Yields the copy with its tables and these rows while the block runs."""
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
            message = " ".join(str(error).split())[:300]
            raise CopyNotPossible(f"The private copy could not be made: {message}.") from error
        yield copy


@contextmanager
def _connect(url: URL, family: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    if family == "sqlite":
        # The copy is thrown away, so it need not be durable; rows are inserted in any order.
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
    server, install = _program_path("mariadbd"), _program_path("mariadb-install-db")
    install_command = [
        install,
        "--no-defaults",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    ]
    with _mysql_family(space, server, install_command, []) as url:
        yield url


@contextmanager
def _mysql(space: Path, source: SourceDatabase) -> Iterator[URL]:
    server = _mysqld()
    install_command = [server, "--no-defaults", "--initialize-insecure"]
    options = ["--mysqlx=OFF", "--secure-file-priv=NULL"]
    with _mysql_family(space, server, install_command, options) as url:
        yield url


def _mysqld() -> str:
    """Returns MySQL's server; where MariaDB is installed, `mysqld` is often a link to its
    server."""
    for folder in _program_folders():
        server = shutil.which("mysqld", path=folder)
        if server is None:
            continue
        version = subprocess.run([server, "--version"], capture_output=True, text=True).stdout
        if "MariaDB" not in version:
            return server
    raise CopyNotPossible("MySQL's mysqld is not installed here, and writes need a private copy.")


@contextmanager
def _mysql_family(
    space: Path, server: str, install: Sequence[str], options: Sequence[str]
) -> Iterator[URL]:
    user = ["--user=root"] if os.geteuid() == 0 else []
    installed = subprocess.run(
        [*install, f"--datadir={space / 'data'}", *user],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(space)},
    )
    if installed.returncode:
        errors = [
            line for line in (installed.stderr + installed.stdout).splitlines() if "ERROR" in line
        ]
        why = errors[0].strip() if errors else f"it ended with {installed.returncode}"
        raise CopyNotPossible(
            f"{Path(install[0]).name} could not make a private copy: {why[:300]}."
        )
    (space / "init.sql").write_text(
        f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4;\n"
        f"CREATE USER partita@'%' IDENTIFIED BY 'partita';\nGRANT ALL ON *.* TO partita@'%';\n"
    )
    port = _free_port()
    command = [
        server, "--no-defaults", f"--datadir={space / 'data'}", f"--socket={space / 'socket'}",
        f"--pid-file={space / 'pid'}", f"--port={port}", f"--bind-address={LOCAL}",
        f"--tmpdir={space}",  # A starting server removes other servers' files in a shared tmpdir.
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
    server, initdb = _program_path("postgres"), _program_path("initdb")
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
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
        options = " ".join(locale)
        raise CopyNotPossible(
            f"PostgreSQL does not support {options} here, by which the source sorts."
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
    """Returns the options of initdb that make the copy compare and sort texts as the source
    does."""
    # to_jsonb reads columns that older servers do not have: datlocprovider came with PostgreSQL 15,
    # and daticulocale was renamed to datlocale in 17.
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
        _wait_until_ready(process, url)
        yield
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: URL) -> None:
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


def _program_path(program: str) -> str:
    where = shutil.which(program, path=os.pathsep.join(_program_folders()))
    if where is None:
        raise CopyNotPossible(f"{program} is not installed here, and writes need a private copy.")
    return where


def _program_folders() -> list[str]:
    """Returns where programs are looked for; Debian installs servers outside of a user's PATH."""
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
        _program_path("pg_dump"), "--schema-only", "--no-owner", "--no-privileges",
        f"--host={address.host or 'localhost'}", f"--port={address.port or 5432}",
        f"--username={address.username or ''}", str(address.database or ""),
    ]  # fmt: skip
    cursor = copy.connection.driver_connection
    assert cursor is not None
    for section in ("pre-data", "post-data"):
        dump = subprocess.run(
            [*command, f"--section={section}"], capture_output=True, text=True, env=environment
        )
        if dump.returncode:
            raise CopyNotPossible(f"pg_dump cannot read the schema: {dump.stderr.strip()[:200]}.")
        # Lines with a backslash are commands for psql, not SQL.
        lines = [line for line in dump.stdout.splitlines() if not line.startswith("\\")]
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
    # Foreign keys are not checked while rows are inserted, in any order.
    if family == "postgresql":
        copy.connection.exec_driver_sql("SET session_replication_role = replica")
    for table in inventory.tables:
        for row in rows.get(table.name, ()):
            insert(copy, table, row, family)
    if family == "postgresql":
        copy.connection.exec_driver_sql("SET session_replication_role = origin")
        _advance_sequences(copy, inventory)
    if family == "mysql":
        copy.connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 1")
    if family == "sqlite" and inventory.keeps_references:
        copy.connection.exec_driver_sql("PRAGMA foreign_keys = ON")


def insert(copy: SourceDatabase, table: SourceTable, row: Item, family: str) -> None:
    columns = [column for column in table.columns if not is_derived(column) and column.name in row]
    names = ", ".join(copy.quote(column.name) for column in columns)
    marks = ", ".join(f":v{number}" for number in range(len(columns)))
    values = {
        f"v{number}": column_value(column, row[column.name], family)
        for number, column in enumerate(columns)
    }
    overriding = " OVERRIDING SYSTEM VALUE" if family == "postgresql" else ""
    copy.connection.execute(
        text(f"INSERT INTO {copy.relation(table)} ({names}){overriding} VALUES ({marks})"), values
    )


def _advance_sequences(copy: SourceDatabase, inventory: Inventory) -> None:
    """Sets sequences behind the rows that were inserted."""
    for table in inventory.tables:
        for column in table.columns:
            if not column.is_auto_increment:
                continue
            name = copy.relation(table).removeprefix("ONLY ")
            (sequence,) = copy.rows(
                "SELECT pg_get_serial_sequence(:name, :column)", name=name, column=column.name
            )
            if sequence[0]:
                copy.connection.execute(
                    text(
                        f"SELECT setval(:sequence, (SELECT coalesce(max({copy.quote(column.name)}),"
                        f" 0) + 1 FROM {copy.relation(table)}))"
                    ),
                    {"sequence": sequence[0]},
                )
