"""A mixed load for minutes or an hour: neither the server's memory nor its folder grows.

Everything that a server does is in it: reads, writes, conditions, transactions, statements, items
that expire, a stream and its reader, requests that are refused, connections that come and go. Keys
are few and written again and again, so that a sound server has as much to keep at the end as after
the warm-up. PARTITA_SOAK_MINUTES says how long; an hour is the full test.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pytest

MINUTES = float(os.environ.get("PARTITA_SOAK_MINUTES", "10"))
WARM_UP_SHARE = 1 / 3
SAMPLE_SECONDS = 1.0
WORKERS = 4
REQUESTS_PER_CONNECTION = 100
KEYS = 300
EXPRESSIONS_KEPT_MAX = 3_000
"""More expressions than any cache keeps."""

MEMORY_GROWTH_BYTES_MAX = 3 << 20
"""The allowed growth from the end of the warm-up to the end, by a line through all samples."""
FOLDER_GROWTH_BYTES_MAX = 4 << 20
"""The allowed growth besides the records that a stream keeps for a day."""
STREAM_RECORD_BYTES_MAX = 1_000
"""The size of a stream record of the items below, with its share of half-empty pages."""

MIXED, STREAMED, INDEX = "mixed", "streamed", "by-group"
OPERATIONS, STREAMS = "DynamoDB_20120810", "DynamoDBStreams_20120810"
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=soak/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=0"
    ),
    "X-Amz-Date": "20260101T000000Z",
}

Json = dict[str, Any]


# The load


@dataclass
class Worker:
    """A client that sends random requests, and opens a new connection now and then."""

    port: int
    chance: random.Random
    answers: dict[int, int] = field(default_factory=dict)
    records: int = 0
    """The number of changes that were written to the stream."""
    _connection: http.client.HTTPConnection | None = None

    def work(self, until: threading.Event) -> None:
        actions, weights = zip(*ACTIONS.items(), strict=True)
        while not until.is_set():
            (action,) = self.chance.choices(actions, weights)
            action(self)
        self.hang_up()

    def ask(self, operation: str, service: str = OPERATIONS, **request: Any) -> Json:
        connection = self._connection
        if connection is None or self.chance.random() < 1 / REQUESTS_PER_CONNECTION:
            self.hang_up()
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self._connection = connection
        target = {"X-Amz-Target": f"{service}.{operation}"}
        connection.request("POST", "/", json.dumps(request).encode(), {**HEADERS, **target})
        response = connection.getresponse()
        body = response.read()
        self.answers[response.status] = self.answers.get(response.status, 0) + 1
        assert response.status in (200, 400), (operation, response.status, body[:500])
        answer: Json = json.loads(body) if body else {}
        return answer

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def key(self) -> Json:
        return {"pk": {"S": f"key-{self.chance.randrange(KEYS)}"}}

    def item(self) -> Json:
        chance = self.chance
        return {
            **self.key(),
            "group": {"S": f"group-{chance.randrange(20)}"},
            "count": {"N": str(chance.randrange(1000))},
            "text": {"S": "x" * chance.choice((10, 300, 3000))},
            "info": {"M": {"tags": {"SS": ["a", "b"]}, "list": {"L": [{"BOOL": True}]}}},
        }


def get(worker: Worker) -> None:
    worker.ask("GetItem", TableName=MIXED, Key=worker.key())


def query(worker: Worker) -> None:
    group = {":group": {"S": f"group-{worker.chance.randrange(20)}"}}
    worker.ask(
        "Query",
        TableName=MIXED,
        IndexName=INDEX,
        KeyConditionExpression="#group = :group",
        ExpressionAttributeNames={"#group": "group"},
        ExpressionAttributeValues=group,
        Limit=10,
    )


def scan(worker: Worker) -> None:
    """Scans with a new filter each time."""
    name = f"a{worker.chance.randrange(1 << 40)}"
    worker.ask("Scan", TableName=MIXED, FilterExpression=f"attribute_not_exists({name})", Limit=20)


def put(worker: Worker) -> None:
    worker.ask("PutItem", TableName=MIXED, Item=worker.item())


def update(worker: Worker) -> None:
    """Updates an item. This is often refused: the item does not exist, or the count is too high."""
    worker.ask(
        "UpdateItem",
        TableName=MIXED,
        Key=worker.key(),
        UpdateExpression="SET #count = #count + :one, info.seen = :seen",
        ConditionExpression="#count < :most",
        ExpressionAttributeNames={"#count": "count"},
        ExpressionAttributeValues={
            ":one": {"N": "1"},
            ":most": {"N": str(worker.chance.randrange(1000))},
            ":seen": {"N": str(worker.chance.random())},
        },
    )


def delete(worker: Worker) -> None:
    worker.ask("DeleteItem", TableName=MIXED, Key=worker.key(), ReturnValues="ALL_OLD")


def batch(worker: Worker) -> None:
    items = {item["pk"]["S"]: item for item in (worker.item() for _ in range(10))}
    puts = [{"PutRequest": {"Item": item}} for item in items.values()]
    worker.ask("BatchWriteItem", RequestItems={MIXED: puts})


def transact(worker: Worker) -> None:
    items = {item["pk"]["S"]: item for item in (worker.item() for _ in range(3))}
    actions = [{"Put": {"TableName": MIXED, "Item": item}} for item in items.values()]
    # Tokens are kept for ten minutes, so there are few.
    token = {"ClientRequestToken": f"token-{worker.chance.random()}"}
    worker.ask(
        "TransactWriteItems",
        TransactItems=actions,
        **(token if worker.chance.random() < 0.05 else {}),
    )


def expire(worker: Worker) -> None:
    when = int(time.time()) + worker.chance.randrange(-1, 5)
    item = {"pk": {"S": f"expiring-{worker.chance.randrange(KEYS)}"}, "expires": {"N": str(when)}}
    worker.ask("PutItem", TableName=MIXED, Item=item)


def change_stream(worker: Worker) -> None:
    worker.records += 1
    item = {**worker.key(), "value": {"N": str(worker.chance.random())}}
    worker.ask("PutItem", TableName=STREAMED, Item=item)


def read_stream(worker: Worker) -> None:
    table = worker.ask("DescribeTable", TableName=STREAMED)["Table"]
    arn = table["LatestStreamArn"]
    stream = worker.ask("DescribeStream", STREAMS, StreamArn=arn)["StreamDescription"]
    shard = worker.chance.choice(stream["Shards"])["ShardId"]
    kind = worker.chance.choice(("LATEST", "TRIM_HORIZON"))
    iterator = worker.ask(
        "GetShardIterator", STREAMS, StreamArn=arn, ShardId=shard, ShardIteratorType=kind
    )
    worker.ask("GetRecords", STREAMS, ShardIterator=iterator["ShardIterator"], Limit=50)


def execute_statement(worker: Worker) -> None:
    """Executes a statement with a new text each time."""
    key = worker.key()["pk"]["S"]
    number = worker.chance.randrange(1 << 40)
    statement = worker.chance.choice(
        (
            f'SELECT * FROM "{MIXED}" WHERE pk = \'{key}\' AND "count" <> {number}',
            f"UPDATE \"{MIXED}\" SET seen = {number} WHERE pk = '{key}'",
            f"INSERT INTO \"{MIXED}\" VALUE {{'pk': '{key}', 'seen': {number}}}",
            f"DELETE FROM \"{MIXED}\" WHERE pk = '{key}'",
        )
    )
    worker.ask("ExecuteStatement", Statement=statement)


def be_refused(worker: Worker) -> None:
    """Sends a request that is refused with a new message each time."""
    word = f"a{worker.chance.randrange(1 << 40)}"
    operation, request = worker.chance.choice(
        (
            ("GetItem", {"TableName": word, "Key": {"pk": {"S": "x"}}}),
            ("GetItem", {"TableName": MIXED, "Key": {word: {"S": "x"}}}),
            ("PutItem", {"TableName": MIXED, "Item": {"pk": {"N": word}}}),
            ("Scan", {"TableName": MIXED, "FilterExpression": f"{word} = = :x"}),
            ("Query", {"TableName": MIXED, "KeyConditionExpression": f"{word} = :x"}),
            ("ExecuteStatement", {"Statement": f"SELECT {word} WHERE"}),
            (word, {}),
        )
    )
    assert "__type" in worker.ask(operation, **request)


def come_and_go(worker: Worker) -> None:
    """Opens a connection and sends nothing, half a request, or nonsense."""
    said = worker.chance.choice((b"", b"POST / HTTP/1.1\r\nContent-Le", b"nonsense\r\n\r\n"))
    with closing(socket.create_connection(("127.0.0.1", worker.port), 60)) as connection:
        connection.sendall(said)


ACTIONS: dict[Callable[[Worker], None], int] = {
    get: 20,
    query: 10,
    scan: 3,
    put: 15,
    update: 15,
    delete: 5,
    batch: 3,
    transact: 5,
    expire: 5,
    change_stream: 2,
    read_stream: 1,
    execute_statement: 8,
    be_refused: 6,
    come_and_go: 2,
}


def fill_what_is_kept(worker: Worker) -> None:
    """Fills the caches of compiled expressions, whose limits the load alone would reach late."""
    table_and_key: Json = {"TableName": MIXED, "Key": worker.key()}
    for number in range(EXPRESSIONS_KEPT_MAX):
        word = f"w{number}"
        worker.ask("GetItem", **table_and_key, ProjectionExpression=word)
        worker.ask(
            "UpdateItem",
            **table_and_key,
            UpdateExpression=f"REMOVE {word}",
            ConditionExpression=f"attribute_not_exists({word})",
        )
        worker.ask(
            "Query",
            TableName=MIXED,
            KeyConditionExpression=f"pk = :{word}",
            ExpressionAttributeValues={f":{word}": {"S": "x"}},
        )
        worker.ask("ExecuteStatement", Statement=f"SELECT {word} FROM {MIXED} WHERE pk = 'x'")
    worker.hang_up()


def create_tables(client: Any) -> None:
    key = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
    key_type = {"AttributeName": "pk", "AttributeType": "S"}
    client.create_table(
        TableName=MIXED,
        **key,
        AttributeDefinitions=[key_type, {"AttributeName": "group", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    client.update_time_to_live(
        TableName=MIXED, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    client.create_table(
        TableName=STREAMED,
        **key,
        AttributeDefinitions=[key_type],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        BillingMode="PAY_PER_REQUEST",
    )


# What is measured


@dataclass(frozen=True)
class Sample:
    seconds: float
    memory_bytes: int
    folder_bytes: int
    records: int


def memory_bytes(pid: int) -> int:
    """Returns the resident memory without the mapped data file, which is measured as the folder."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def sampled(pid: int, folder: Path, workers: list[Worker], seconds: float) -> Iterator[Sample]:
    started_at = time.monotonic()
    while (now := time.monotonic() - started_at) < seconds:
        records = sum(worker.records for worker in workers)
        yield Sample(now, memory_bytes(pid), folder_bytes(folder), records)
        time.sleep(SAMPLE_SECONDS)


def growth(samples: list[Sample], value: Callable[[Sample], int]) -> float:
    """Returns how much the line through all samples rises from its beginning to its end."""
    times = [sample.seconds for sample in samples]
    slope = linear_regression(times, [value(sample) for sample in samples]).slope
    return slope * (times[-1] - times[0])


def under_load(server: Any, workers: list[Worker], folder: Path) -> list[Sample]:
    over = threading.Event()
    with ThreadPoolExecutor(len(workers)) as pool:
        working = [pool.submit(worker.work, over) for worker in workers]
        try:
            samples = list(sampled(server.process.pid, folder, workers, MINUTES * 60))
        finally:
            over.set()
        for one in working:
            one.result(timeout=60)
    return samples


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
def test_neither_memory_nor_the_folder_grows_under_load(
    serve: Any, run: Any, tmp_path: Path
) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    create_tables(server.client())
    workers = [Worker(server.port, random.Random(number)) for number in range(WORKERS)]
    fill_what_is_kept(workers[0])
    samples = under_load(server, workers, tmp_path)
    measured = [one for one in samples if one.seconds >= MINUTES * 60 * WARM_UP_SHARE]
    memory_grown = growth(measured, lambda sample: sample.memory_bytes)
    folder_grown = growth(measured, lambda sample: sample.folder_bytes)
    records = measured[-1].records - measured[0].records
    answers = {status: sum(w.answers.get(status, 0) for w in workers) for status in (200, 400)}
    course = samples[:: max(1, len(samples) // 20)]
    sys.stdout.write(
        f"{answers} in {MINUTES:g} minutes; {records} records in the stream\n"
        f"memory (KB): grown by {memory_grown / 1024:.0f}, "
        f"{[sample.memory_bytes >> 10 for sample in course]}\n"
        f"folder (KB): grown by {folder_grown / 1024:.0f}, "
        f"{[sample.folder_bytes >> 10 for sample in course]}\n"
    )
    assert min(answers.values()) > MINUTES * 60, "hardly any load"
    assert memory_grown <= MEMORY_GROWTH_BYTES_MAX
    assert folder_grown <= FOLDER_GROWTH_BYTES_MAX + records * STREAM_RECORD_BYTES_MAX
    assert server.terminate() == (0, "")
    checked = run("check", tmp_path)
    assert checked.returncode == 0, checked.stdout[-5000:] + checked.stderr
