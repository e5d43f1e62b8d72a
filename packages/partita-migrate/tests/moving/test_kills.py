"""Kill -9 of every command while it works and others write.

Afterwards both sides are equal; no acknowledged write is lost, and none is there twice.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.move_status import status
from partita_migrate.moving.run_stages import next_stage
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.move_phase import FINISHED
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, Sql, script

from .conftest import KINDS, MakeSource, start
from .test_fence import Writer
from .test_life import ready, rows_of, slots_of
from .test_move import assert_same, live, writes_of

ROUNDS = 20
TRIES_MAX = 80
LOADED_ROWS = 45_000
"""Enough for several processes and many chunks."""


class Killer:
    """Starts commands and kills each at a random moment after it has begun to work."""

    def __init__(self, endpoint: str, seed: int) -> None:
        self.endpoint = endpoint
        self.chance = random.Random(seed)
        self.tried: Counter[str] = Counter()
        self.hit: Counter[str] = Counter()
        """How often each was killed before it was done."""

    def kill(self, command: str, folder: Folder, *more: str, seconds: float = 1.0) -> None:
        self.tried[command] += 1
        process = start(command, folder.path, "--endpoint", self.endpoint, *more)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "\t" in line:
                # Squared: half of the moments are in the first quarter.
                time.sleep(seconds * self.chance.random() ** 2)
                break
        is_hit = process.poll() is None
        process.kill()
        said += process.communicate()[1]
        assert is_hit or process.returncode == 0, "".join(said)
        self.hit[command] += is_hit

    def is_over(self, command: str, rounds: int) -> bool:
        assert self.tried[command] < TRIES_MAX, (self.tried, self.hit)
        return self.hit[command] >= rounds


@contextmanager
def written(source: Sql, seed: int) -> Iterator[None]:
    """Writes all the while until that is refused.

    Once the move is over, the source is free again, and nothing that is written then is carried
    over.
    """
    is_over = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        chance = random.Random(seed)
        while not is_over.wait(0.01):
            try:
                source.run(writes_of(chance))
            except Exception as error:
                if "was moved" not in str(error):
                    failed.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()
    assert not failed, failed


def many(make_source: MakeSource, kind: str, books: int) -> Sql:
    """Returns many rows, most with numbers and authors that writers do not use."""
    source = make_source(kind, script(authors=20, books=10))
    if source.server is None:
        # Without WAL, nobody can commit while a table is read.
        with closing(sqlite3.connect(source.file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    for first in range(200_000, 200_000 + books, 5000):
        rows = ",".join(f"({n}, {10 + n % 10}, 'T{n}', 1)" for n in range(first, first + 5000))
        source.run(f"INSERT INTO book VALUES {rows}")
    return source


def books_of(source: Sql) -> int:
    ((count,),) = rows_of(source, "SELECT count(*) FROM book")
    return int(count)


# Loads, followers and verifications.


def survive_following(
    make_source: MakeSource, target: str, kind: str, rounds: int, seed: int
) -> None:
    killer = Killer(target, seed)
    source = make_source(kind, script(books=300))
    folder = source.folder(PATTERNS, target)
    with written(source, seed):
        killer.kill("load", folder, "--follow", seconds=0.1)
        load(folder, target, is_followed=True)
        for command in ("follow", "verify"):
            while not killer.is_over(command, rounds):
                killer.kill(command, folder)
                assert_same(verify(folder, target))
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target, is_dry_run=True))


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments_nothing_is_lost_or_twice(
    make_source: MakeSource, target: str, kind: str
) -> None:
    survive_following(make_source, target, kind, rounds=1, seed=5)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_followers_and_verifications_are_killed_twenty_times_each(
    make_source: MakeSource, target: str, kind: str
) -> None:
    survive_following(make_source, target, kind, rounds=ROUNDS, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_loads_are_killed_twenty_times(make_source: MakeSource, target: str, kind: str) -> None:
    killer = Killer(target, 2)
    while not killer.is_over("load", ROUNDS):
        source = many(make_source, kind, LOADED_ROWS)
        folder = source.folder(PATTERNS, target)
        with written(source, killer.tried["load"]):
            while next_stage(folder) == "load" and not killer.is_over("load", ROUNDS):
                killer.kill("load", folder, "--follow", seconds=2.0)
            loaded = load(folder, target, is_followed=True)
            assert sum(one.failed for one in loaded.tables) == 0
            assert_same(verify(folder, target))
        follow(folder, target, is_once=True)
        assert len([item for item in live(folder, target) if "price" in item]) == books_of(source)


# Cutovers and rollbacks.


@contextmanager
def resting(writer: Writer) -> Iterator[None]:
    """Stops the writers: both sides can only be compared while nobody writes at the target."""
    writer.rests.clear()
    writer.is_paused.set()
    writer.rests.wait()
    try:
        yield
    finally:
        writer.is_paused.clear()


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_cutovers_and_rollbacks_are_killed_twenty_times_each(
    make_source: MakeSource, target: str, kind: str, seed: int
) -> None:
    killer = Killer(target, seed)
    source, folder, app = ready(make_source, target, kind)
    writer = Writer(source, app)
    writer.start()

    def compared() -> None:
        with resting(writer):
            assert_same(verify(folder, target))

    steps: dict[str, Any] = {"cutover": cutover, "rollback": rollback}
    try:
        # A quarter of the rounds with each seed.
        while not all(killer.is_over(command, ROUNDS // 4) for command in steps):
            for command, run in steps.items():
                killer.kill(command, folder, seconds=2.5)
                compared()
                assert run(folder, target).is_switched
                assert status(folder).refusal == ""
                compared()
                killer.kill("follow", folder)
    finally:
        writer.is_over.set()
        writer.join()
    found = rows_of(source, "SELECT id, price FROM book WHERE id < 10")
    assert {int(number): int(price) for number, price in found} == writer.said
    assert_same(verify(folder, target))
    items = {int(item["id"]["N"]): int(item["price"]["N"]) for item in live(folder, target)
             if "price" in item and int(item["id"]["N"]) < 10}  # fmt: skip
    assert items == writer.said


# The cockpit and the end.


def assert_finished(source: Sql, folder: Folder, target: str) -> None:
    finished = json.loads((folder.path / "finish.json").read_text())
    assert (finished.get("different", 0), finished.get("obstacles", [])) == (0, [])
    assert len([item for item in live(folder, target) if "price" in item]) == books_of(source)
    # Nothing of the move is left, so no write is refused.
    source.run("UPDATE author SET name = 'free' WHERE id = 1")
    assert slots_of(source) == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_killed_twenty_times(make_source: MakeSource, target: str, kind: str) -> None:
    killer = Killer(target, 4)
    arguments = ("--until", "finish", "--follow")
    while not killer.is_over("run", ROUNDS):
        source = make_source(kind, script(books=300))
        folder = source.folder(PATTERNS, target)
        with written(source, killer.tried["run"]):
            while status(folder).phase != FINISHED and not killer.is_over("run", ROUNDS):
                killer.kill("run", folder, *arguments, seconds=3.0)
                if next_stage(folder) not in ("load", "finish", ""):
                    assert_same(verify(folder, target))
        process = start("run", folder.path, "--endpoint", target, *arguments, "--json")
        said, error = process.communicate(timeout=240)
        assert process.returncode == 0, error
        assert json.loads(said).get("next", "") == ""
        assert_finished(source, folder, target)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_finishes_are_killed_twenty_times(make_source: MakeSource, target: str, kind: str) -> None:
    killer = Killer(target, 5)
    while not killer.is_over("finish", ROUNDS):
        source, folder, app = ready(make_source, target, kind)
        source.run("DELETE FROM book WHERE id IN (30, 31, 32)")
        assert cutover(folder, target).is_switched
        app.set(app.find("book", 3), "price", {"N": "77"})
        app.delete(app.find("book", 4))
        while status(folder).phase != FINISHED and not killer.is_over("finish", ROUNDS):
            killer.kill("finish", folder, seconds=0.5)
        finish(folder, target)
        assert_finished(source, folder, target)
        ((price,),) = rows_of(source, "SELECT price FROM book WHERE id = 3")
        assert (int(price), books_of(source)) == (77, 36)
