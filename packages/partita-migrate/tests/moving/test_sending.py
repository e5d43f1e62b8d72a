"""Many writes are sent by a separate process, and give the same result as those that are not."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import boto3
import pytest

from partita_migrate.model.model_files import read_design
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.target_access import write_pipeline
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import script

from .conftest import MakeSource, start
from .test_move import assert_same, live, moved


@pytest.fixture(autouse=True)
def _many_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_pipeline, "PROCESS_WRITES_MIN", 0)


def test_what_another_process_sends_is_what_the_source_has(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("mysql", script())
    folder = moved(source, target)
    source.run("UPDATE author SET name = 'Renamed'; DELETE FROM book WHERE id < 5")
    found = follow(folder, target, is_once=True)
    assert found.writes == 10 + 35 + 5
    assert found.rejects == 0
    assert_same(verify(folder, target))
    assert len(live(folder, target)) == 10 + 10 + 35


def test_an_item_of_somebody_else_is_not_overwritten(make_source: MakeSource, target: str) -> None:
    source = make_source("mysql", script())
    folder = moved(source, target)
    (table,) = read_design(folder).tables
    theirs = {"PK": {"S": "B#500"}, "SK": {"S": "root"}, "by": {"S": "somebody else"}}
    client = boto3.client("dynamodb", endpoint_url=target, region_name="us-east-1",
                          aws_access_key_id="x", aws_secret_access_key="x")  # fmt: skip
    client.put_item(TableName=table.name, Item=theirs)
    source.run("INSERT INTO book VALUES (500, 1, 'Ours', 1)")
    source.run("INSERT INTO book VALUES (501, 1, 'Ours too', 1)")
    assert follow(folder, target, is_once=True).rejects == 1
    found = {one["PK"]["S"]: one for one in live(folder, target)}
    assert found["B#500"] == theirs
    assert found["B#501"]["title"] == {"S": "Ours too"}


def sending_process(pid: int) -> int | None:
    """Returns the process that sends for another, once it has started."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            if b"processes.put_process" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
    return None


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_killed_while_another_process_sends_nothing_is_lost_or_twice(
    make_source: MakeSource, target: str, kind: str
) -> None:
    chance = random.Random(14)
    source = make_source(kind, script(authors=10, books=4000))
    folder = moved(source, target)
    kills = 0
    for number in range(6):
        for first in range(0, 4000, 100):
            source.run(f"UPDATE book SET price = price + 1, title = 'Title {number}'"
                       f" WHERE id >= {first} AND id < {first + 100}")  # fmt: skip
        process = start("follow", folder.path, "--endpoint", target, "--once")
        while process.poll() is None and not (sender := sending_process(process.pid)):
            time.sleep(0.01)
        if process.poll() is None and sender:
            time.sleep(chance.random())
            os.kill(chance.choice([process.pid, sender]), 9)
            kills += 1
        process.communicate()
    assert kills >= 3
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target, is_dry_run=True))
    books = [item for item in live(folder, target) if item["PK"]["S"].startswith("B#")]
    assert len(books) == 4000 and {item["title"]["S"] for item in books} == {"Title 5"}
