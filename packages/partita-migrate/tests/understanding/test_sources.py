"""Tests sessions with real servers: read-only, short, and with clear error messages."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV, address_of
from partita_migrate.understanding.sources.source_connection import SourceError, connect
from testkit.servers.database_servers import PASSWORD, DatabaseServer, MariaDB, PostgreSQL

from ..conftest import MakeFolder

WRONG = "wr0ng-s3cret"
SLEEP = {"mysql": "SELECT SLEEP(20)", "postgresql": "SELECT pg_sleep(20)"}

LEAVING_SECONDS_MAX = 60


@pytest.fixture
def url(server: DatabaseServer) -> str:
    return server.create("reading", "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)")


def test_a_session_reads_and_cannot_write(url: str, make_folder: MakeFolder) -> None:
    with connect(make_folder(url)) as source:
        assert source.rows("SELECT a FROM t WHERE a = :a", a=1) == [(1,)]
        for statement in ("DELETE FROM t", "CREATE TABLE u (a INT)", "UPDATE t SET a = 2"):
            with pytest.raises(SourceError, match=r"(?i)read.only"):
                source.rows(statement)
        assert source.rows("SELECT a FROM t") == [(1,)]


def test_long_answers_come_in_chunks(url: str, make_folder: MakeFolder) -> None:
    with connect(make_folder(url)) as source:
        many = "SELECT a FROM t UNION ALL SELECT 2 UNION ALL SELECT 3"
        assert [len(chunk) for chunk in source.stream(many, chunk=2)] == [2, 1]


def test_a_statement_that_takes_too_long_is_ended(
    server: DatabaseServer, url: str, make_folder: MakeFolder
) -> None:
    with connect(make_folder(url, "statement_seconds_max = 0.3")) as source:
        with pytest.raises(SourceError, match="statement_seconds_max"):
            source.rows(SLEEP[server.scheme])
        assert source.rows("SELECT 1") == [(1,)]


ODD_NAMES = ("a b", "select", "half:past", "100%", "%s", "back\\slash", "it's", "Größe", 'say "x"')


def test_names_of_any_kind(server: DatabaseServer, make_folder: MakeFolder) -> None:
    mark = "`" if server.scheme == "mysql" else '"'
    names = [mark + name.replace(mark, mark + mark) + mark for name in ODD_NAMES]
    script = ";".join(
        f"CREATE TABLE {name} ({name} INT PRIMARY KEY); INSERT INTO {name} VALUES (7)"
        for name in names
    )
    with connect(make_folder(server.create("naming", script))) as source:
        inventory = reflect(source)
        assert sorted(table.name for table in inventory.tables) == sorted(ODD_NAMES)
        for table in inventory.tables:
            assert (table.row_count, table.is_row_count_exact) == (1, True), table.name
            assert table.primary_key == [table.name]
            column = source.quote(table.name)
            read = f"SELECT {column} FROM {source.relation(table)} WHERE {column} = :x"
            assert source.rows(read, x=7) == [(7,)]


# Passwords


def told(error: BaseException) -> str:
    """Returns all texts of an exception and its causes."""
    return "".join(traceback.format_exception(error))


def test_a_wrong_password(
    url: str,
    make_folder: MakeFolder,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = make_folder(url)
    monkeypatch.setenv(PASSWORD_ENV, WRONG)
    with pytest.raises(PartitaError) as caught, connect(folder):
        pass
    assert str(caught.value).endswith("; check the user and the password.")
    assert "\n" not in str(caught.value)
    assert WRONG not in told(caught.value) + caplog.text


def test_a_wrong_password_in_the_url(url: str, make_folder: MakeFolder) -> None:
    with (
        pytest.raises(PartitaError, match="check the user and the password") as caught,
        connect(make_folder(url.replace("@", f":{WRONG}@"))),
    ):
        pass
    assert WRONG not in told(caught.value)


def test_a_password_in_the_url_is_used_and_not_shown(url: str, make_folder: MakeFolder) -> None:
    folder = make_folder(url.replace("@", f":{quote(PASSWORD, safe='')}@"))
    with connect(folder) as source:
        assert source.rows("SELECT 1") == [(1,)]
        shown = f"{source.address} {source.address!r} {source.connection.engine!r}"
        assert PASSWORD not in shown and quote(PASSWORD, safe="") not in shown


def test_a_password_from_a_variable_and_from_a_file(
    url: str, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    for setting in ('password_env = "SHOP_PASSWORD"', 'password_file = "secret"'):
        folder = make_folder(url, setting)
        monkeypatch.delenv(PASSWORD_ENV, raising=False)
        with connect(folder) as source:
            assert source.rows("SELECT 1") == [(1,)]


def test_a_person_is_asked_only_when_there_is_no_password(
    url: str, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(url)
    asked = []

    def ask(source: str) -> str:
        asked.append(source)
        return PASSWORD

    with connect(folder, ask):
        assert asked == []
    monkeypatch.delenv(PASSWORD_ENV)
    with connect(folder, ask) as source:
        assert source.rows("SELECT 1") == [(1,)]
    assert asked == [url]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mysql://u:a@b@host/db", "more than one @; write an @ in the password as %40"),
        ("oracle://u:hush@host/db", "expected mysql, mariadb, postgresql or sqlite"),
        ("no url, but hush", "is not a database URL"),
        ("mysql://u:hush@host:port/db", "is not a database URL"),
        ("mysql://u:hush@host", "has no database"),
        ("", "needs a url"),
    ],
)
def test_a_url_that_is_none(make_folder: MakeFolder, text: str, sentence: str) -> None:
    folder = make_folder(text)
    with pytest.raises(PartitaError, match=sentence) as caught:
        address_of(folder)
    assert "hush" not in told(caught.value).replace(str(folder.path), "")


def test_a_password_among_the_parameters_of_the_url(make_folder: MakeFolder) -> None:
    address = address_of(make_folder("postgresql://u@host/db?password=hush&sslmode=require"))
    assert address.password == "hush"
    assert "hush" not in f"{address} {address!r}"
    assert dict(address.url.query) == {"sslmode": "require"}


# Servers that are not there


def test_a_database_that_does_not_exist(server: DatabaseServer, make_folder: MakeFolder) -> None:
    with (
        pytest.raises(PartitaError, match=r"(does not exist|Unknown database).*; check the name"),
        connect(make_folder(server.url("nowhere"))),
    ):
        pass


def test_a_server_that_is_not_there(server: DatabaseServer, make_folder: MakeFolder) -> None:
    gone = server.url("reading").replace(f":{server.port}", ":1")
    with (
        pytest.raises(PartitaError, match="check the host and the port, and that the server runs"),
        connect(make_folder(gone)),
    ):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hush@127.0.0.1:99999/db",
        "postgresql://u:hush@127.0.0.1:99999/db",
        "mysql://u:hush@127.0.0.1:1/db?shape=round",
        "postgresql://u:hush@127.0.0.1:1/db?shape=round",
        "mysql://u:hush@no..host/db",
        "postgresql://u:hush@no..host/db",
    ],
)
def test_an_address_that_leads_nowhere(make_folder: MakeFolder, url: str) -> None:
    folder = make_folder(url)
    with pytest.raises(SourceError, match="cannot be") as caught, connect(folder):
        pass
    assert "\n" not in str(caught.value)
    assert "hush" not in told(caught.value)


def test_only_the_tables_that_are_asked_for(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    tables = ("log_1", "log_2", "orders", "scratch")
    script = ";".join(f"CREATE TABLE {name} (a INT PRIMARY KEY)" for name in tables)
    wanted = 'tables = ["log_*", "orders"]\nexclude = ["*_2"]'
    with connect(make_folder(server.create("choosing", script), wanted)) as source:
        inventory = reflect(source)
    assert [table.name for table in inventory.tables] == ["log_1", "orders"]
    assert {one.name: one.reason for one in inventory.skipped} == {
        "log_2": "excluded by [source]",
        "scratch": "not among the tables of [source]",
    }


@pytest.fixture(params=[MariaDB, PostgreSQL])
def short_lived(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    request.param.require()
    with request.param() as server:
        yield server


def test_a_server_that_goes_away(short_lived: DatabaseServer, make_folder: MakeFolder) -> None:
    folder = make_folder(short_lived.create("leaving"))
    with (
        pytest.raises(SourceError, match="went away; run the stage again"),
        connect(folder) as source,
    ):
        short_lived.kill()
        deadline = time.monotonic() + LEAVING_SECONDS_MAX
        try:
            # PostgreSQL's process for this session outlives the server for a moment.
            while time.monotonic() < deadline:
                source.rows("SELECT 1")
        finally:
            assert source.is_lost
