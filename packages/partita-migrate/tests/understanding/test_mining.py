"""Tests patterns that are mined from the statements of a library on real servers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy.engine import URL

from partita.errors import PartitaError
from partita_migrate.report.terminal.analyze_screen import summarize
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.patterns.access_patterns import Patterns
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.understanding.sources.source_connection import connect
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import DatabaseServer

from .. import bookshop

MakeFolder = Callable[..., Folder]

DRIVERS = {"mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg"}
SETTING_SECONDS_MAX = 60


def driver_url(server: DatabaseServer, database: str) -> URL:
    return URL.create(
        DRIVERS[server.scheme],
        username=server.user,
        password=server.password,
        host="127.0.0.1",
        port=server.port,
        database=database,
    )


def mined(folder: Folder) -> Patterns:
    with connect(folder) as source:
        inventory = reflect(source)
    folder.write_json("inventory.json", inventory)
    found = analyze(folder)
    assert found.problems == []
    return read_patterns(folder, inventory)


def unlimited(patterns: Patterns) -> set[str]:
    return {re.sub(r", first \d+", "", one.name) for one in patterns.patterns}


@pytest.fixture(scope="module")
def used(server: DatabaseServer) -> Iterator[DatabaseServer]:
    """Returns a server whose database `books` was used, with every statement in its log."""
    server.create("books")
    if server.scheme == "mysql":
        server.execute("TRUNCATE performance_schema.events_statements_summary_by_digest", "books")
        bookshop.create(driver_url(server, "books"))
        log = server.folder / "general.log"
        slow = server.folder / "slow.log"
        server.execute(
            f"SET GLOBAL general_log_file = '{log}'; SET GLOBAL slow_query_log_file = '{slow}';"
            "SET GLOBAL log_output = 'FILE,TABLE'; SET GLOBAL long_query_time = 0;"
            "SET GLOBAL general_log = 1; SET GLOBAL slow_query_log = 1",
            "books",
        )
    else:
        server.execute("CREATE EXTENSION pg_stat_statements", "books")
        bookshop.create(driver_url(server, "books"))
        server.execute("SELECT pg_stat_statements_reset()", "books")
        log_statements(server, "all")
    bookshop.use(driver_url(server, "books"))
    if server.scheme == "mysql":
        server.execute("SET GLOBAL general_log = 0; SET GLOBAL slow_query_log = 0", "books")
    else:
        log_statements(server, "none")
    yield server


def log_statements(postgresql: DatabaseServer, which: str) -> None:
    """Settings are read again some time after they were changed."""
    for statement in (f"ALTER SYSTEM SET log_statement = '{which}'", "SELECT pg_reload_conf()"):
        postgresql.execute(statement, "books")
    deadline = time.monotonic() + SETTING_SECONDS_MAX
    while logged_statements(postgresql) != which:
        assert time.monotonic() < deadline, "the settings were not read again"
        time.sleep(0.05)


def logged_statements(postgresql: DatabaseServer) -> str:
    connection = postgresql.connect("books")
    try:
        ((found,),) = connection.execute("SELECT current_setting('log_statement')").fetchall()
        return str(found)
    finally:
        connection.close()


def test_what_the_server_counted_becomes_the_patterns_of_the_application(
    used: DatabaseServer, make_folder: MakeFolder
) -> None:
    patterns = mined(make_folder(used.url("books")))
    assert unlimited(patterns) == bookshop.PATTERNS
    assert patterns.unexplained == []
    assert patterns.window_seconds >= 1
    by_name = {one.name: one for one in patterns.patterns}
    calls = {
        name: round(one.calls_per_second * patterns.window_seconds, 1)
        for name, one in by_name.items()
    }
    assert calls["book with author by author.email"] == bookshop.ROUNDS
    assert calls["author with book by id"] == bookshop.ROUNDS
    assert by_name["book with author by author.email"].items == 5
    assert by_name["book with author by author.email"].joins == ["author"]
    assert by_name["author by email"].category == "by distinct value"
    assert by_name["book by id, locked"].is_consistent
    newest = by_name["book by genre.name, newest first"]
    assert (newest.is_descending, newest.items) == (True, 5)
    assert by_name["insert into book"].category == "write only"


def test_logs_tell_the_same_patterns(used: DatabaseServer, make_folder: MakeFolder) -> None:
    names = {"mysql": ("general.log", "slow.log"), "postgresql": ("log",)}[used.scheme]
    for name in names:
        path = used.folder / name
        patterns = mined(make_folder(used.url("books"), f'[analyze]\nlogs = ["{path}"]\n'))
        assert unlimited(patterns) == bookshop.PATTERNS, name
        assert patterns.unexplained == []
        assert (
            "book by genre.name, newest first, first 5" in {one.name for one in patterns.patterns}
            or used.scheme == "postgresql"
        )


def test_the_tables_of_mysql_s_logs_are_read_when_there_are_no_digests(
    used: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    if used.scheme != "mysql":
        pytest.skip("only MySQL keeps its logs in tables")
    from partita_migrate.understanding.patterns.mining import statement_statistics

    monkeypatch.setattr(statement_statistics, "_digests", lambda source: None)
    patterns = mined(make_folder(used.url("books")))
    assert "mysql.general_log" in patterns.origin
    assert unlimited(patterns) == bookshop.PATTERNS
    monkeypatch.setattr(statement_statistics, "_general_log", lambda source: None)
    patterns = mined(make_folder(used.url("books")))
    assert "mysql.slow_log" in patterns.origin
    assert unlimited(patterns) == bookshop.PATTERNS


def test_partita_does_not_mine_itself(used: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(used.url("books"), "[analyze]\nsample = 50\n")
    before = mined(folder)
    again = mined(folder)
    assert unlimited(again) == unlimited(before) == bookshop.PATTERNS
    assert "Partita's own reading" in {one.kind for one in again.ignored}


def test_no_value_of_the_application_is_written_down(
    used: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(used.url("books"))
    mined(folder)
    written = (folder.path / "patterns.mined.toml").read_text()
    assert "example.org" not in written
    assert "Author 1" not in written


def test_a_server_that_keeps_nothing_is_a_problem_with_advice(
    postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(postgresql.create("silent", "CREATE TABLE t (id INT PRIMARY KEY)"))
    with connect(folder) as source:
        folder.write_json("inventory.json", reflect(source))
    found = analyze(folder)
    assert [one.table for one in found.tables] == ["t"]
    (problem,) = found.problems
    assert problem.subject == "patterns"
    assert "CREATE EXTENSION pg_stat_statements" in problem.reason


def test_a_log_that_is_not_there_is_a_problem_of_its_own(
    postgresql: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = postgresql.create("silent", "CREATE TABLE t (id INT PRIMARY KEY)")
    folder = make_folder(url, '[analyze]\nlogs = ["nowhere/*.log"]\n')
    with connect(folder) as source:
        folder.write_json("inventory.json", reflect(source))
    (problem,) = analyze(folder).problems
    assert problem.reason == "[analyze] logs lists nowhere/*.log, which does not exist."


def test_settings_that_are_wrong_are_told(make_folder: MakeFolder) -> None:
    folder = make_folder("sqlite:///none.db", "[analyze]\nsample = 0\n")
    with pytest.raises(PartitaError, match="sample must be between 1 and"):
        analyze(folder)


def test_names_that_are_keywords_and_parts_of_dates_come_out_of_digests(
    mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    """Both are spelled in another way there: SYSTEM_USER, SQL_TSI_MONTH ( ... )."""
    url = mariadb.create(
        "keywords",
        "CREATE TABLE user (id INT PRIMARY KEY, hour INT, born DATE, KEY (hour));"
        "INSERT INTO user VALUES (1, 2, '2021-11-22')",
    )
    for statement in (
        "SELECT user.id FROM user WHERE hour = 3",
        "SELECT id FROM user WHERE born > NOW() - INTERVAL 3 DAY",
        "SELECT id FROM user WHERE MONTH(born) = 4",
    ):
        mariadb.execute(statement, "keywords")
    found = mined(make_folder(url))
    assert {"user by hour", "user by range of born"} <= unlimited(found)
    assert not any(one.filters for one in found.patterns)
    assert found.unexplained == []


def test_a_user_without_the_right_to_statistics_is_told_which(
    server: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "CREATE TABLE t (id INT PRIMARY KEY)"
    if server.scheme == "mysql":
        grant = "CREATE OR REPLACE USER clerk IDENTIFIED BY 'x'; GRANT SELECT ON rights.* TO clerk"
    else:
        grant = (
            "CREATE EXTENSION pg_stat_statements; DROP ROLE IF EXISTS clerk;"
            "CREATE ROLE clerk LOGIN PASSWORD 'x'; GRANT SELECT ON t TO clerk; SELECT id FROM t"
        )
    server.create("rights", f"{table}; {grant}")
    folder = make_folder(server.url("rights", "clerk"))
    monkeypatch.setenv(PASSWORD_ENV, "x")
    with connect(folder) as source:
        inventory = reflect(source)
    folder.write_json("inventory.json", inventory)
    analysis = analyze(folder)
    problems = [one.reason for one in analysis.problems]
    hidden = [one.reason for one in read_patterns(folder, inventory).unexplained]
    advice = {"mysql": "GRANT SELECT ON performance_schema", "postgresql": "pg_read_all_stats"}
    assert any(advice[server.scheme] in reason for reason in [*problems, *hidden])
    shown = " ".join(map(str, summarize(folder, analysis)))
    assert "not among the patterns" in shown or not hidden


def test_references_that_only_statements_know_are_named_once_and_served(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    script = (
        "CREATE TABLE actor (id INT PRIMARY KEY, name VARCHAR(20));"
        "CREATE TABLE edits (id INT PRIMARY KEY, actor_id INT, page VARCHAR(20))"
    )
    extension = "CREATE EXTENSION pg_stat_statements;" if server.scheme == "postgresql" else ""
    url = server.create("undeclared", f"{extension}{script}")
    server.execute(
        "SELECT e.page FROM edits e JOIN actor a ON a.id = e.actor_id WHERE a.name = 'x'",
        "undeclared",
    )
    told = mined(make_folder(url)).references
    assert told == ["edits.actor_id = actor.id"]
    folder = make_folder(url, f"references = {told}\n")
    assert mined(folder).references == []
    plan(folder)
    assert [one.kind for one in read_inventory(folder).relationships] == ["one-to-many"]
