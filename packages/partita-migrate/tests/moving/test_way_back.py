"""The way back on sources with triggers, restarts and open transactions of their own."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.moving.way_back import follow_back
from partita_migrate.report.terminal.switching_screen import summarize_cutover
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from testkit.data.moves import LoggedPostgreSQL, Sql
from testkit.servers.database_servers import PASSWORD

from .conftest import KINDS, MakeSource
from .test_life import connected, ready, rows_of
from .test_move import assert_same

TRIGGERS = {
    "sqlite": "CREATE TRIGGER stamp AFTER UPDATE ON book BEGIN SELECT 1; END",
    "mysql": "CREATE TRIGGER stamp BEFORE UPDATE ON book FOR EACH ROW SET @updated = 1",
    "postgresql": "CREATE TRIGGER stamp BEFORE UPDATE ON book FOR EACH ROW EXECUTE FUNCTION"
    " suppress_redundant_updates_trigger()",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cutover_names_the_triggers_that_fire_on_the_way_back(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, _ = ready(make_source, target, kind)
    connection = connected(source)
    connection.cursor().execute(TRIGGERS[kind])
    connection.close()
    told = cutover(folder, target, is_dry_run=True)
    assert told.triggers == ["stamp of book"]
    assert any("Triggers of the source" in str(line) for line in summarize_cutover(told))
    assert cutover(folder, target).triggers == ["stamp of book"]


def test_a_source_that_restarts_is_waited_for_on_the_way_back(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    monkeypatch.setattr(follow_back, "TRIES", 1)
    LoggedPostgreSQL.require()
    with LoggedPostgreSQL() as server:
        source, folder, app = ready(
            lambda kind, script: Sql(kind, tmp_path, server, script), target, "postgresql"
        )
        cutover(folder, target)
        stop = threading.Event()
        failed: list[BaseException] = []

        def run() -> None:
            try:
                follow(folder, target, stop=stop)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            app.set(app.find("author", 1), "name", {"S": "before"})
            _wait_for(source, "before", thread)
            server.kill()
            app.set(app.find("author", 1), "name", {"S": "meanwhile"})
            time.sleep(2)
            server.start()
            _wait_for(source, "meanwhile", thread)
        finally:
            stop.set()
            thread.join()
        assert failed == []


def _wait_for(source: Sql, name: str, thread: threading.Thread) -> None:
    end = time.monotonic() + 30
    while rows_of(source, "SELECT name FROM author WHERE id = 1") != [(name,)]:
        assert thread.is_alive()
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_transactions_that_keep_triggers_away_are_named(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, _ = ready(make_source, target, kind)
    connection = connected(source)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    cursor.execute("UPDATE book SET title = 'open' WHERE id = 1")
    try:
        with pytest.raises(
            PartitaError, match=r"triggers cannot be created at .*open: session \d+ of "
        ):
            cutover(folder, target, wait_seconds=0.5)
    finally:
        connection.close()


def test_a_row_whose_parent_is_on_its_way_does_not_end_a_rollback(
    make_source: MakeSource, target: str
) -> None:
    source, folder, app = ready(make_source, target, "postgresql")
    cutover(folder, target)
    author = {**app.copy(app.find("author", 1), 1, 77), "email": {"S": "a77@x"}}
    app.put({**app.copy(app.find("book", 3), 3, 300), "author_id": {"N": "77"}})
    late = iter([author])

    def progress(description: str, done: int, total: int) -> None:
        if done:
            for one in late:
                app.put(one)

    assert rollback(folder, target, progress=progress).is_switched
    assert rows_of(source, "SELECT author_id FROM book WHERE id = 300") == [(77,)]
    assert_same(verify(folder, target))
