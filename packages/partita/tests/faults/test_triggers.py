"""kill -9 under a trigger: its function gets every change, in order, some of them twice."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from testkit.requirements import needs_services

from .killing import kill_under

pytestmark = needs_services

TABLE = "watched"
WRITERS = 4
KEYS_PER_WRITER = 4
LOAD_SECONDS_MAX = 1.5
CATCH_UP_SECONDS_MAX = 180

# Fails now and then, takes its time, and writes down what it gets in one go, or half of it.
FUNCTION = """
import json
import os
import random
import time


def handle(event, context):
    if random.random() < 0.1:
        raise RuntimeError("not now")
    time.sleep(random.random() * 0.01)
    lines = "".join(
        json.dumps([
            record["dynamodb"]["Keys"]["pk"]["S"],
            int(record["dynamodb"]["NewImage"]["n"]["N"]),
        ]) + "\\n"
        for record in event["Records"]
    )
    seen = os.open("seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(seen, lines.encode())
    os.close(seen)
    if random.random() < 0.1:
        raise RuntimeError("too late")
"""
SETTINGS = f"""
[[triggers]]
name = "watcher"
table = "{TABLE}"
function = "watching:handle"
batch_size = 7
bisect_on_error = true
"""


class Writer:
    """Counts up in items of its own."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.chance = chance
        self.acknowledged: set[tuple[str, int]] = set()
        self.count = 0

    def write(self, client: Any) -> None:
        """Until the server is gone."""
        while True:
            self.count += 1
            key = f"{self.name}-{self.chance.randrange(KEYS_PER_WRITER)}"
            item = {"pk": {"S": key}, "n": {"N": str(self.count)}}
            try:
                client.put_item(TableName=TABLE, Item=item)
            except BotoCoreError:
                return
            self.acknowledged.add((key, self.count))


def seen(folder: Path) -> dict[str, list[int]]:
    """What the function wrote down, by item."""
    found: dict[str, list[int]] = {}
    path = folder / "seen"
    for line in path.read_text().splitlines() if path.exists() else ():
        key, number = json.loads(line)
        found.setdefault(key, []).append(number)
    return found


def is_through(
    found: dict[str, list[int]], written: set[tuple[str, int]], last: dict[str, int]
) -> bool:
    """Whether all was seen, and nothing is on its way again: half a batch may come twice."""
    is_all = written <= {(key, number) for key, numbers in found.items() for number in numbers}
    return is_all and all(found[key][-1] == number for key, number in last.items())


def run_rounds(
    rounds: int, serve: Any, assert_clean: Callable[[Path], None], folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    (folder / "watching.py").write_text(FUNCTION)
    settings, data = folder / "partita.toml", folder / "data"
    settings.write_text(SETTINGS)
    writers = [Writer(f"w{number}", random.Random(chance.random())) for number in range(WRITERS)]
    server = serve(data, "--config", str(settings))
    server.client().create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    for _ in range(rounds):
        client = server.client()
        loads = [partial(writer.write, client) for writer in writers]
        kill_under(
            loads,
            server,
            chance.uniform(0.3, LOAD_SECONDS_MAX),
            lambda: all(writer.acknowledged for writer in writers),
        )
        assert_clean(data)
        server = serve(data, "--config", str(settings))
    # What was written just before a kill may be there without having been acknowledged.
    items = server.client().scan(TableName=TABLE)["Items"]
    last = {item["pk"]["S"]: int(item["n"]["N"]) for item in items}
    written = set(last.items()).union(*(writer.acknowledged for writer in writers))
    deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
    while not is_through(found := seen(folder), written, last):
        assert time.monotonic() < deadline, "the trigger does not catch up"
        time.sleep(0.1)
    for numbers in found.values():
        first_times = list(dict.fromkeys(numbers))
        assert first_times == sorted(first_times), "records came out of order"
    code, said = server.terminate()
    assert code == 0
    assert "Traceback" not in said
    assert_clean(data)


@pytest.mark.soak
def test_three_kills_lose_no_record_and_keep_the_order(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(3, serve, assert_clean, tmp_path, seed)


@pytest.mark.soak
def test_twenty_kills_lose_no_record_and_keep_the_order(
    serve: Any, assert_clean: Callable[[Path], None], tmp_path: Path, seed: int
) -> None:
    run_rounds(20, serve, assert_clean, tmp_path, seed)
