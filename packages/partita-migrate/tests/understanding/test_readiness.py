"""Tests that `plan` finds out whether the server allows a backup and reading its log."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import PASSWORD, DatabaseServer, MariaDB, PostgreSQL, find

from ..conftest import MakeFolder

SCRIPT = "CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2);"
DUMP_SECONDS_MAX = 60


class LoggingMariaDB(MariaDB):
    """A server with a binary log that can be followed."""

    def command(self) -> list[str]:
        return [
            *super().command(),
            "--log-bin",
            "--server-id=1",
            "--binlog-format=ROW",
            "--binlog-row-metadata=FULL",
        ]


class LogicalPostgreSQL(PostgreSQL):
    def command(self) -> list[str]:
        return [*super().command(), "--wal_level=logical"]


@pytest.fixture(scope="module")
def logging_mariadb() -> Iterator[DatabaseServer]:
    LoggingMariaDB.require()
    with LoggingMariaDB() as server:
        yield server


@pytest.fixture(scope="module")
def logical_postgresql() -> Iterator[DatabaseServer]:
    LogicalPostgreSQL.require()
    with LogicalPostgreSQL() as server:
        yield server


def missing(planned: MigrationPlan, purpose: str) -> dict[str, str]:
    return {
        one.setting: one.found
        for one in planned.server
        if one.purpose == purpose and not one.is_ready
    }


def advised(planned: MigrationPlan, phase: str) -> list[str]:
    """What blocks the first step of a phase."""
    return next(step.blocked_by for step in planned.recovery if step.phase == phase)


# PostgreSQL.


def can_make_a_slot(server: DatabaseServer, database: str) -> bool:
    import psycopg

    with server.connect(database) as connection:
        try:
            connection.execute("SELECT pg_create_logical_replication_slot('tried', 'pgoutput')")
        except psycopg.Error:
            return False
        connection.execute("SELECT pg_drop_replication_slot('tried')")
        return True


def test_a_slot_needs_wal_level_logical(
    postgresql: DatabaseServer, logical_postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(postgresql.create("slots", SCRIPT))
    planned = plan(folder)
    assert missing(planned, "changes") == {"wal_level": "replica"}
    assert not can_make_a_slot(postgresql, "slots")
    (sentence,) = advised(planned, "during")
    assert sentence.startswith("wal_level is replica. ALTER SYSTEM SET wal_level = 'logical'")
    assert "Not possible on this server yet:" in (folder.path / "plan.md").read_text()

    planned = plan(make_folder(logical_postgresql.create("slots", SCRIPT)))
    assert missing(planned, "changes") == {}
    assert can_make_a_slot(logical_postgresql, "slots")
    assert advised(planned, "during") == advised(planned, "before") == []


def test_used_up_slots_and_tables_without_a_key(
    logical_postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = logical_postgresql.create("crowded", SCRIPT + "CREATE TABLE heap (a INT);")
    slots = "SELECT pg_create_physical_replication_slot('taken' || n) FROM generate_series(1, 10) n"
    try:
        logical_postgresql.execute(slots, "crowded")
        found = missing(plan(make_folder(url)), "changes")
        assert found == {
            "max_replication_slots": "10, 10 in use",
            "the replica identity": "missing for heap",
        }
        assert not can_make_a_slot(logical_postgresql, "crowded")
    finally:
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        logical_postgresql.execute(drop, "crowded")


def test_rights_that_postgresql_wants(
    logical_postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    logical_postgresql.create(
        "rights",
        f"{SCRIPT} CREATE TABLE secret (id SERIAL PRIMARY KEY); DROP ROLE IF EXISTS reader;"
        f" CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT SELECT ON t TO reader;",
    )
    planned = plan(make_folder(logical_postgresql.url("rights", "reader")))
    lacks = "what the user may do"
    assert missing(planned, "changes") == {lacks: "too little, without REPLICATION"}
    assert missing(planned, "backup") == {
        lacks: "too little, without SELECT on secret, secret_id_seq"
    }
    assert "statistics" not in {one.purpose for one in planned.server if one.is_ready}


def test_pg_dump_works_as_advised(postgresql: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(postgresql.create("dumped", SCRIPT))
    planned = plan(folder)
    assert missing(planned, "backup") == {}
    environment = {
        "PGHOST": "127.0.0.1", "PGPORT": str(postgresql.port), "PGUSER": postgresql.user,
        "PGPASSWORD": PASSWORD,
    }  # fmt: skip
    run_backup(planned, folder, [], environment)
    assert (folder.path / "before-migration.dump").stat().st_size > 500


def run_backup(
    planned: MigrationPlan, folder: Folder, options: list[str], environment: dict[str, str]
) -> None:
    """Runs the backup command of the plan with the address of the server."""
    program, *rest = shlex.split(planned.recovery[0].command or "")
    path = find(program) or shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run(
        [path, *options, *rest],
        cwd=folder.path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DUMP_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr


# MariaDB.


@pytest.mark.parametrize("kind", ["mariadb", "logging_mariadb"])
def test_mariadb_dump_works_as_advised(
    kind: str, request: pytest.FixtureRequest, make_folder: MakeFolder
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    folder = make_folder(server.create("dumped", SCRIPT))
    planned = plan(folder)
    assert missing(planned, "backup") == {}
    address = [
        "--no-defaults", "--host=127.0.0.1", f"--port={server.port}", f"--user={server.user}",
        f"--password={PASSWORD}",
    ]  # fmt: skip
    run_backup(planned, folder, address, {})
    dump = (folder.path / "before-migration.sql").read_text()
    assert "INSERT INTO `t`" in dump
    # The position can only be written down where there is a log.
    assert ("CHANGE MASTER TO" in dump) == (kind == "logging_mariadb")


def test_changes_need_a_binary_log_of_rows(
    mariadb: DatabaseServer, logging_mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    planned = plan(make_folder(mariadb.create("logged", SCRIPT)))
    found = missing(planned, "changes")
    assert found["log_bin"] == "OFF"
    assert found["binlog_format"] == "MIXED"
    assert found["binlog_row_metadata"] == "NO_LOG"
    assert advised(planned, "during")[0].startswith("log_bin is OFF. Set log_bin in the section")
    (said,) = (one for one in planned.difficulties if one.kind == "server")
    assert said.what.startswith(
        "With its current settings, the server cannot follow the writes that go on:"
    )

    planned = plan(make_folder(logging_mariadb.create("logged", SCRIPT)))
    assert missing(planned, "changes") == {}
    assert not [one for one in planned.difficulties if one.kind == "server"]


def test_rights_and_engines_that_mariadb_wants(
    logging_mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    logging_mariadb.create(
        "rights",
        f"{SCRIPT} CREATE TABLE old (a INT PRIMARY KEY) ENGINE = MyISAM;"
        f" CREATE OR REPLACE USER reader IDENTIFIED BY '{PASSWORD}';"
        " GRANT SELECT, SHOW VIEW ON rights.* TO reader;",
    )
    planned = plan(make_folder(logging_mariadb.url("rights", "reader")))
    assert missing(planned, "backup") == {
        "what the user may do": "too little, without TRIGGER, EVENT, RELOAD, REPLICATION CLIENT",
        "the tables' engine": "not transactional for old (MyISAM)",
    }
    assert missing(planned, "changes") == {
        "what the user may do": "too little, without REPLICATION SLAVE, REPLICATION CLIENT"
    }


@pytest.mark.parametrize(
    ("granted", "is_here"),
    [("grant_it", True), ("grant\\_it", True), ("grant%", True), ("other", False),
     ("grant\\_", False)],
)  # fmt: skip
def test_grants_name_databases_by_a_pattern(
    mariadb: DatabaseServer, make_folder: MakeFolder, granted: str, is_here: bool
) -> None:
    mariadb.create(
        "grant_it",
        f"{SCRIPT} CREATE OR REPLACE USER reader IDENTIFIED BY '{PASSWORD}';"
        f" GRANT SELECT ON grant_it.t TO reader; GRANT EVENT ON `{granted}`.* TO reader;",
    )
    planned = plan(make_folder(mariadb.url("grant_it", "reader")))
    lacks = missing(planned, "backup")["what the user may do"]
    assert ("EVENT" in lacks) != is_here


def test_where_nobody_writes_no_log_is_missed(
    mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = mariadb.create("still", SCRIPT)
    planned = plan(make_folder(url, "[goals]\nwrites_continue = false\n"))
    assert not [one for one in planned.difficulties if one.kind == "server"]
