"""kill -9 of functions, of the process that runs them and of the server, while shards split and
merge: every record arrives at least once, those of a key in order."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testkit.packaging.function_packages import children, companion, create, wait_for
from testkit.servers.processes import Server

KEYS = 50
PUT_RECORDS_MAX = 500
CATCH_UP_SECONDS_MAX = 1800
SOURCE = """
import base64, os

OUT = os.open("{path}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def handler(event, context):
    seen = []
    for record in event["Records"]:
        data = base64.b64decode(record["kinesis"]["data"]).decode()
        seen.append(record["kinesis"]["partitionKey"] + " " + data)
    os.write(OUT, ("\\n".join(seen) + "\\n").encode())
"""


class Story:
    """Records are put, shards split and merge, processes are killed."""

    def __init__(self, serve: Any, folder: Path, seed: int) -> None:
        self._serve = serve
        self._chance = random.Random(seed)
        self._arguments = ("serve", "--port", "0", "--data", folder / "data")
        self._path = folder / "seen"
        self._next = [0] * KEYS
        self.server: Server = serve(*self._arguments)
        kinesis = self.server.client("kinesis")
        kinesis.create_stream(StreamName="visits", ShardCount=2)
        functions = self.server.client("lambda")
        create(functions, "count", SOURCE.replace("{path}", str(self._path)))
        functions.create_event_source_mapping(
            EventSourceArn="arn:aws:kinesis:us-east-1:123456789012:stream/visits",
            FunctionName="count",
            StartingPosition="TRIM_HORIZON",
            BatchSize=1000,
            ParallelizationFactor=2,
        )

    def put(self, count: int) -> None:
        """Puts that many records. The numbers of each key count up."""
        kinesis = self.server.client("kinesis")
        for start in range(0, count, PUT_RECORDS_MAX):
            records = []
            for _ in range(min(PUT_RECORDS_MAX, count - start)):
                key = self._chance.randrange(KEYS)
                records.append({"PartitionKey": str(key), "Data": str(self._next[key]).encode()})
                self._next[key] += 1
            answer = kinesis.put_records(StreamName="visits", Records=records)
            assert answer["FailedRecordCount"] == 0

    def reshard(self, shards: int) -> None:
        self.server.client("kinesis").update_shard_count(
            StreamName="visits", TargetShardCount=shards, ScalingType="UNIFORM_SCALING"
        )

    def kill_functions(self) -> None:
        for child in children(companion(self.server)):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def kill_companion(self) -> None:
        os.kill(companion(self.server), signal.SIGKILL)

    def kill_server(self) -> None:
        self.server.kill()
        self.server = self._serve(*self._arguments)

    def seen(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            key, _, number = line.partition(" ")
            found[key].append(int(number))
        return found

    def check(self) -> None:
        deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
        while True:
            seen = self.seen()
            missing = sum(count - len(set(seen[str(key)])) for key, count in enumerate(self._next))
            if not missing:
                break
            assert time.monotonic() < deadline, f"{missing} records did not arrive"
            time.sleep(0.5)
        for numbers in seen.values():
            first_times = list(dict.fromkeys(numbers))
            assert first_times == sorted(first_times), "records came out of order"


def test_kills_and_resharding_lose_no_record_and_keep_the_order(serve: Any, tmp_path: Path) -> None:
    story = Story(serve, tmp_path, seed=1)
    story.put(1000)
    story.reshard(3)
    story.put(1000)
    wait_for(lambda: len(story.seen()) > 0)
    story.kill_functions()
    story.put(1000)
    story.kill_companion()
    story.reshard(2)
    story.put(1000)
    story.kill_server()
    story.put(1000)
    story.check()


@pytest.mark.soak
def test_a_million_records_of_a_resharding_stream(serve: Any, tmp_path: Path) -> None:
    story = Story(serve, tmp_path, seed=2)
    chance = random.Random(2)
    kills = [story.kill_functions, story.kill_companion, story.kill_server]
    for turn in range(100):
        story.put(10_000)
        if turn % 10 == 4:
            with suppress(ClientError):
                story.reshard(chance.randint(2, 4))
        if turn % 10 == 9:
            with suppress(LookupError, BotoCoreError):
                chance.choice(kills)()
    story.check()
    assert sum(len(set(numbers)) for numbers in story.seen().values()) == 1_000_000


def test_functions_that_are_killed_again_and_again_get_every_change(
    serve: Any, tmp_path: Path
) -> None:
    """A trigger of a table runs the same code as a mapping."""
    (tmp_path / "shop.py").write_text(
        "import json\ndef handle(event, context):\n"
        "    with open('seen', 'a') as seen:\n"
        "        keys = [record['dynamodb']['Keys'] for record in event['Records']]\n"
        "        seen.write(json.dumps(keys) + '\\n')\n"
    )
    settings = tmp_path / "partita.toml"
    settings.write_text(
        '[[triggers]]\nname = "t"\ntable = "orders"\nfunction = "shop:handle"\nbatch_size = 5\n'
    )
    server = serve(*("serve", "--port", "0", "--data", tmp_path / "data", "--config", settings))
    client = server.client()
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    wanted = set()
    for number in range(200):
        client.put_item(TableName="orders", Item={"pk": {"S": str(number)}})
        wanted.add(str(number))
        if number % 50 == 49:
            for child in children(companion(server)):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def seen() -> set[str]:
        path = tmp_path / "seen"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        whole = [json.loads(line) for line in lines if line.endswith("\n")]
        return {key["pk"]["S"] for batch in whole for key in batch}

    wait_for(seen, lambda found: found == wanted)
