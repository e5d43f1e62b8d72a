"""Servers die, networks are cut, disks are full, and sources do all of it at once; both sides are
equal afterwards."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from partita.errors import PartitaError
from partita.testing import database
from partita.testing.listener_thread import in_thread
from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.logs.source_changes import SchemaChanged
from partita_migrate.moving.move import POSITION_FACT
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.row_store.state_store import state_path
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, LoggedMariaDB, LoggedPostgreSQL, Sql, script
from testkit.servers.database_servers import PASSWORD, DatabaseServer, free_port
from testkit.servers.processes import Server
from testkit.servers.proxy import Proxy

from .conftest import KINDS, MakeSource, start
from .test_life import Application, ready, rows_of
from .test_move import assert_same, live, moved, writes_of

SERVERS = ("mysql", "postgresql")
QUICK_SERVERS = ("mysql", pytest.param("postgresql", marks=pytest.mark.soak))
"""One of them in the default suite."""
SERVER_TYPES: dict[str, type[DatabaseServer]] = {
    "mysql": LoggedMariaDB,
    "postgresql": LoggedPostgreSQL,
}
DISK_BYTES = 6 << 20
MANY = 100_000


@contextmanager
def written(source: Sql, seed: int = 1, pause_seconds: float = 0.01) -> Iterator[None]:
    """Writes all the while, and tries again when the source is away."""
    is_over = threading.Event()
    chance = random.Random(seed)

    def write() -> None:
        while not is_over.wait(pause_seconds):
            try:
                source.run(writes_of(chance))
            except Exception:
                is_over.wait(0.2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


@contextmanager
def following(folder: Folder, endpoint: str) -> Iterator[subprocess.Popen[str]]:
    process = start("follow", folder.path, "--endpoint", endpoint, "--verify")
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_followed(folder: Folder) -> None:
    """Waits until following has begun, because a command does not wait for a source that is
    away."""
    with closing(sqlite3.connect(state_path(folder))) as state:
        asked = "SELECT value FROM facts WHERE name = ?"
        before = state.execute(asked, (POSITION_FACT,)).fetchone()
        end = time.monotonic() + 30
        while state.execute(asked, (POSITION_FACT,)).fetchone() == before:
            assert time.monotonic() < end
            time.sleep(0.05)


def serve(path: Path, port: int, *more: str) -> Server:
    return Server("serve", "--port", str(port), "--data", path, *more)


# Servers.


@pytest.mark.soak
@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("killed", ["target", "both"])
def test_servers_that_are_killed_are_waited_for(
    tmp_path: Path, kind: str, killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    SERVER_TYPES[kind].require()
    port = free_port()
    with SERVER_TYPES[kind]() as sql_server:
        target = serve(tmp_path / "data", port)
        try:
            source = Sql(kind, tmp_path, sql_server, script(books=3000))
            folder = source.folder(PATTERNS, target.url)
            with written(source):
                loading = start("load", folder.path, "--endpoint", target.url, "--write-units=800")
                for _ in range(3):
                    time.sleep(1.5)
                    target.kill()
                    if killed == "both" and kind == "mysql":
                        sql_server.kill()
                        sql_server.start()
                    target = serve(tmp_path / "data", port)
                _, error = loading.communicate(timeout=120)
                assert loading.returncode == 0, error
                with following(folder, target.url) as process:
                    for _ in range(3):
                        time.sleep(1.5)
                        target.kill()
                        if killed == "both":
                            sql_server.kill()
                            time.sleep(1)
                            sql_server.start()
                        target = serve(tmp_path / "data", port)
                    time.sleep(2)
                    assert process.poll() is None, process.communicate()
            assert_same(verify(folder, target.url))
        finally:
            target.kill()


@pytest.mark.soak
@pytest.mark.parametrize("kind", SERVERS)
def test_a_network_that_is_cut_in_the_middle_of_batches_loses_nothing(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script(books=3000))
    with Proxy(int(target.rpartition(":")[2])) as network:
        endpoint = f"http://127.0.0.1:{network.port}"
        folder = source.folder(PATTERNS, endpoint)
        with written(source):
            loading = start("load", folder.path, "--endpoint", endpoint, "--write-units=800")
            cut_again_and_again(network, loading)
            _, error = loading.communicate(timeout=120)
            assert loading.returncode == 0, error
            with following(folder, endpoint) as process:
                cut_again_and_again(network, process)
                time.sleep(2)
                assert process.poll() is None, process.communicate()
        assert_same(verify(folder, endpoint))


def cut_again_and_again(network: Proxy, process: subprocess.Popen[str]) -> None:
    chance = random.Random(3)
    for _ in range(8):
        time.sleep(chance.uniform(0.1, 1.0))
        network.cut()
        time.sleep(chance.uniform(0.1, 0.5))
        network.mend()
        if process.poll() is not None:
            return


@pytest.mark.soak
@pytest.mark.parametrize("kind", SERVERS)
def test_a_source_whose_network_is_cut_is_followed_again(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script(books=300))
    assert source.server is not None
    with Proxy(source.server.port) as network:
        source.url = source.url.replace(f":{source.server.port}/", f":{network.port}/")
        folder = source.folder(PATTERNS, target)
        load(folder, target, is_followed=True)
        with written(source), following(folder, target) as process:
            wait_until_followed(folder)
            cut_again_and_again(network, process)
            time.sleep(3)
            assert process.poll() is None, process.communicate()
        assert_same(verify(folder, target))


@pytest.mark.soak
def test_a_target_that_throttles_to_a_tenth_is_written_to_more_slowly(
    make_source: MakeSource, tmp_path: Path
) -> None:
    source = make_source("mysql", script(books=1000))
    target = serve(tmp_path / "data", 0, "--capacity", "enforce")
    try:
        folder = source.folder(PATTERNS, target.url)
        (table,) = read_design(folder).tables
        client = target.client()
        client.update_table(
            TableName=table.name,
            BillingMode="PROVISIONED",
            ProvisionedThroughput={"ReadCapacityUnits": 500, "WriteCapacityUnits": 25},
            GlobalSecondaryIndexUpdates=[
                {"Update": {"IndexName": index.name, "ProvisionedThroughput": {
                    "ReadCapacityUnits": 500, "WriteCapacityUnits": 25}}}
                for index in table.indexes
            ],
        )  # fmt: skip
        loaded = load(folder, target.url, is_followed=True)
        assert sum(one.imported for one in loaded.tables) == 1010
        source.run("UPDATE book SET price = price + 1")
        follow(folder, target.url, is_once=True)
        assert_same(verify(folder, target.url))
    finally:
        target.kill()


@pytest.mark.soak
def test_a_full_disk_of_the_target_ends_a_load_that_goes_on_when_there_is_room(
    make_source: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.moving.target_access.target_client.AWAY_SECONDS_MAX", 3)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no filesystem can be mounted here")
    source = make_source("postgresql", script(books=3000))
    target = serve(disk / "data", 0)
    try:
        folder = source.folder(PATTERNS, target.url)
        source.run("UPDATE book SET title = repeat('t', 190)")
        ballast = disk / "ballast"
        with pytest.raises(OSError), ballast.open("wb") as file:
            while True:
                file.write(b"x" * 4096)
                file.flush()
        with pytest.raises(PartitaError, match="run the command again"):
            load(folder, target.url, is_followed=True)
        ballast.unlink()
        subprocess.run(["mount", "-o", f"remount,size={DISK_BYTES * 20}", str(disk)], check=True)
        loaded = load(folder, target.url, is_followed=True)
        assert [(one.imported, one.failed) for one in loaded.tables] == [(10, 0), (3000, 0)]
        assert_same(verify(folder, target.url))
    finally:
        target.kill()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


# Faults of sources.


@pytest.mark.parametrize("kind", QUICK_SERVERS)
def test_a_transaction_that_was_open_when_the_load_began_is_followed(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    assert source.server is not None
    connection = source.server.connect(source.database)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    cursor.execute("UPDATE book SET title = 'Open' WHERE id = 3")
    cursor.execute("DELETE FROM book WHERE id = 4")
    # PostgreSQL creates a slot only after all writing transactions have ended.
    ending = threading.Timer(1.0, lambda: cursor.execute("COMMIT"))
    ending.start()
    load(folder, target, is_followed=True)
    ending.join()
    connection.close()
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
    titles = {item["id"]["N"]: item["title"]["S"] for item in live(folder, target)
              if "title" in item}  # fmt: skip
    assert titles["3"] == "Open" and "4" not in titles


def test_who_keeps_postgresql_from_telling_a_place_in_its_log_is_named(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.moving.logs.postgresql_log.SLOT_SECONDS_MAX", 1)
    source = make_source("postgresql", script())
    folder = source.folder(PATTERNS, target)
    assert source.server is not None
    holder = source.server.connect(source.database)
    holder.execute("BEGIN")
    holder.execute("UPDATE book SET title = 'Open' WHERE id = 3")
    said: list[str] = []
    with pytest.raises(PartitaError, match=r"do not end: session \d+ of .* since"):
        load(folder, target, is_followed=True, progress=lambda what, *_: said.append(what))
    assert any(sentence.startswith("Waiting for session") for sentence in said)
    holder.execute("COMMIT")
    holder.close()
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))


@pytest.mark.parametrize("kind", QUICK_SERVERS)
@pytest.mark.parametrize("is_parent_first", [True, False], ids=["parent first", "child first"])
def test_a_parent_that_is_renamed_while_a_child_is_inserted_is_right_in_both(
    make_source: MakeSource, target: str, kind: str, is_parent_first: bool
) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    assert source.server is not None
    parent, child = (source.server.connect(source.database) for _ in range(2))
    if kind == "mysql":
        # With foreign keys, one writer would wait for the other.
        child.cursor().execute("SET foreign_key_checks = 0")
    for connection in (parent, child):
        connection.cursor().execute("BEGIN")
    parent.cursor().execute("UPDATE author SET name = 'Renamed' WHERE id = 3")
    child.cursor().execute("INSERT INTO book VALUES (900, 3, 'Child', 1)")
    first, second = (parent, child) if is_parent_first else (child, parent)
    process = start("follow", folder.path, "--endpoint", target)
    first.cursor().execute("COMMIT")
    time.sleep(1.2)
    process.kill()
    process.communicate()
    second.cursor().execute("COMMIT")
    parent.close()
    child.close()
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
    (book,) = [item for item in live(folder, target) if item.get("title") == {"S": "Child"}]
    assert {"S": "Renamed"} in book.values()


@pytest.mark.parametrize("kind", QUICK_SERVERS)
def test_rows_deleted_before_their_chunk_was_loaded_stay_away(
    make_source: MakeSource, target: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partita_migrate.moving.loading.lane_reader.CHUNK_ROWS", 50)
    source = make_source(kind, script(books=400))
    folder = source.folder(PATTERNS, target)
    seen = 0

    def interrupted(description: str, done: int, total: int) -> None:
        nonlocal seen
        seen = done
        if done >= 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(folder, target, is_followed=True, progress=interrupted)
    assert seen < 400
    source.run("DELETE FROM book WHERE id >= 300; UPDATE book SET title = 'x' WHERE id >= 290;"
               "INSERT INTO book VALUES (350, 1, 'again', 1)")  # fmt: skip
    load(folder, target, is_followed=True)
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))
    numbers = {int(one["id"]["N"]) for one in live(folder, target) if "price" in one}
    assert numbers == {*range(300), 350}


@pytest.mark.parametrize("kind", QUICK_SERVERS)
def test_a_schema_that_changes_during_the_load_stops_it_or_what_follows(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script(books=100))
    folder = source.folder(PATTERNS, target)
    source.run("ALTER TABLE book ADD COLUMN extra INT")
    with pytest.raises((SchemaChanged, PartitaError), match="book"):
        load(folder, target, is_followed=True)
        source.run("UPDATE book SET extra = 1 WHERE id = 1")
        follow(folder, target, is_once=True)


@pytest.mark.soak
@pytest.mark.parametrize("kind", SERVERS)
def test_a_parent_with_a_hundred_thousand_children_is_renamed_with_kills_between(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script(authors=3, books=0))
    for first in range(0, MANY, 5000):
        rows = ",".join(f"({n}, 1, 'T{n}', 1)" for n in range(first, first + 5000))
        source.run(f"INSERT INTO book VALUES {rows}")
    folder = moved(source, target)
    before = follow(folder, target, is_once=True).position
    source.run("UPDATE author SET name = 'Renamed' WHERE id = 1")
    for seconds in (6, 10):
        process = start("follow", folder.path, "--endpoint", target)
        time.sleep(seconds)
        process.kill()
        process.communicate()
    followed = follow(folder, target, is_once=True)
    assert followed.position > before
    assert_same(verify(folder, target))
    copies = [one for one in live(folder, target) if one.get("author_id") == {"N": "1"}]
    assert len(copies) == MANY
    assert all({"S": "Renamed"} in one.values() for one in copies)


@pytest.mark.parametrize("jump_seconds", [-7200.0, 7200.0])
def test_clocks_that_jump_change_nothing(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch, jump_seconds: float
) -> None:
    real = time.time
    source, folder, app = ready(make_source, target, "sqlite")
    assert cutover(folder, target).is_switched
    app.set(app.find("book", 3), "title", {"S": "At the target"})
    monkeypatch.setattr(time, "time", lambda: real() + jump_seconds)
    follow(folder, target, is_once=True)
    app.set(app.find("book", 5), "title", {"S": "Later"})
    assert rollback(folder, target).is_switched
    found = rows_of(source, "SELECT title FROM book WHERE id IN (3, 5) ORDER BY id")
    assert found == [("At the target",), ("Later",)]
    source.run("UPDATE book SET title = 'Back' WHERE id = 3")
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched


@pytest.mark.parametrize("is_ahead", [True, False], ids=["ahead", "back"])
def test_a_clock_of_the_target_that_jumps_changes_nothing(
    make_source: MakeSource, is_ahead: bool
) -> None:
    with database() as served, in_thread(served, "127.0.0.1", 0) as target:
        source = make_source("sqlite", script())
        folder = source.folder(PATTERNS, target)
        # Later than the creation of the tables, whichever way the clock jumps.
        served.clock.advance(hours=4)
        load(folder, target, is_followed=True)
        assert_same(verify(folder, target))
        app = Application(folder, target)
        assert cutover(folder, target).is_switched
        app.set(app.find("book", 3), "title", {"S": "At the target"})
        if is_ahead:
            served.clock.advance(hours=2)
        else:
            served.clock.set(time.time() + 7200)
        app.set(app.find("book", 5), "title", {"S": "Later"})
        app.delete(app.find("book", 6))
        follow(folder, target, is_once=True)
        app.put({**app.find("book", 7), "title": {"S": "Last"}})
        assert rollback(folder, target).is_switched
        found = rows_of(source, "SELECT title FROM book WHERE id IN (3, 5, 6, 7) ORDER BY id")
        assert found == [("At the target",), ("Later",), ("Last",)]
        source.run("UPDATE book SET title = 'Back' WHERE id = 3")
        assert_same(verify(folder, target))
        assert cutover(folder, target).is_switched
        app.set(app.find("book", 3), "title", {"S": "Once more"})
        follow(folder, target, is_once=True)
        assert rows_of(source, "SELECT title FROM book WHERE id = 3") == [("Once more",)]


# Everything at random.


class Model:
    """What both sides should contain: books by number, with author, title and price."""

    def __init__(self, books: int, authors: int) -> None:
        self.books = {n: (n % authors, f"Title {n}", f"{n}.50") for n in range(books)}
        self.authors = {n: f"Author {n}" for n in range(authors)}


class Life:
    """Random writes where they are accepted, and random commands in between."""

    def __init__(self, source: Sql, folder: Folder, endpoint: str, app: Any, seed: int) -> None:
        self.source, self.folder, self.endpoint, self.app = source, folder, endpoint, app
        self.chance = random.Random(seed)
        self.model = Model(40, 10)
        self.is_at_target = False
        self.next = 1000
        self.template = app.find("book", 3)

    def write(self) -> None:
        number = self.chance.choice([*self.model.books])
        kind = self.chance.choice(("put", "title", "price", "delete", "insert", "author"))
        text, price = f"T{self.chance.randint(0, 10**6)}", f"{self.chance.randint(0, 999)}.25"
        author, title, old_price = self.model.books[number]
        if kind == "delete" and len(self.model.books) > 5:
            del self.model.books[number]
            self._delete(number)
        elif kind == "insert":
            self.next += 1
            author = self.chance.randint(0, 9)
            self.model.books[self.next] = (author, text, price)
            self._put(self.next)
        elif kind == "author":
            writer = self.chance.choice([*self.model.authors])
            self.model.authors[writer] = text
            self._rename(writer, text)
        else:
            changed = {
                "put": (author, text, price),
                "title": (author, text, old_price),
                "price": (author, title, price),
            }
            self.model.books[number] = changed.get(kind, (author, title, old_price))
            self._put(number)

    def _put(self, number: int) -> None:
        author, title, price = self.model.books[number]
        if not self.is_at_target:
            self.source.run(
                f"DELETE FROM book WHERE id = {number}; INSERT INTO book VALUES"
                f" ({number}, {author}, '{title}', {price})"
            )
            return
        # Applications sometimes write wrong copies of the author's name.
        item = {
            **self.template,
            "PK": {"S": f"B#{number}"},
            "GSI1PK": {"S": f"A#{author}"},
            "GSI1SK": {"S": f"B#{quote(title)}#B#{number:019}"},
            "id": {"N": str(number)},
            "author_id": {"N": str(author)},
            "title": {"S": title},
            "price": {"N": price},
        }
        self.app.put(item)

    def _delete(self, number: int) -> None:
        if self.is_at_target:
            self.app.delete(self.app.find("book", number))
        else:
            self.source.run(f"DELETE FROM book WHERE id = {number}")

    def _rename(self, writer: int, name: str) -> None:
        if self.is_at_target:
            self.app.set(self.app.find("author", writer), "name", {"S": name})
        else:
            self.source.run(f"UPDATE author SET name = '{name}' WHERE id = {writer}")

    def command(self) -> None:
        kind = self.chance.choice(("follow", "verify", "switch", "killed", "killed switch"))
        switch: Callable[..., Any] = rollback if self.is_at_target else cutover
        if kind.startswith("killed"):
            name = switch.__name__ if "switch" in kind else "follow"
            if name != "follow":
                self._verified()
            process = start(name, self.folder.path, "--endpoint", self.endpoint)
            time.sleep(self.chance.uniform(0.8, 3.0))
            process.kill()
            process.communicate()
            kind = "switch" if name != "follow" else "follow"
        if kind == "switch":
            self._verified()
            assert switch(self.folder, self.endpoint).is_switched
            self.is_at_target = not self.is_at_target
        elif kind == "verify":
            self._verified()
        else:
            follow(self.folder, self.endpoint, is_once=True)
            self.compare_source()

    def _verified(self) -> None:
        if not self.is_at_target:
            assert_same(verify(self.folder, self.endpoint))

    def compare_source(self) -> None:
        """After a `follow`, rows contain what was written, on whichever side it was."""
        found = rows_of(self.source, "SELECT id, author_id, title, price FROM book")
        books = {int(n): (int(a), t, f"{float(p):.2f}") for n, a, t, p in found}
        assert books == self.model.books
        authors = rows_of(self.source, "SELECT id, name FROM author")
        assert {int(n): name for n, name in authors} == self.model.authors


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_random_writes_and_commands_forth_and_back_lose_nothing(
    make_source: MakeSource, target: str, kind: str, seed: int
) -> None:
    source, folder, app = ready(make_source, target, kind)
    life = Life(source, folder, target, app, seed)
    for _ in range(15):
        for _ in range(life.chance.randint(1, 25)):
            life.write()
        life.command()
    if life.is_at_target:
        assert rollback(folder, target).is_switched
    life.compare_source()
    assert_same(verify(folder, target))
    found = {
        int(item["id"]["N"]): (int(item["author_id"]["N"]), item["title"]["S"])
        for item in live(folder, target)
        if "price" in item
    }
    assert found == {n: one[:2] for n, one in life.model.books.items()}
