"""The move: load, follow, verify and cutover, from MariaDB and PostgreSQL, on this machine.

    python -m benchmarks.migration.moving --rows 200000 --changes 60000
    python -m benchmarks.migration.moving --rows 5000000 --changes 1000000

Client, source and target share the machine. Commands run as they do for a user, in processes of
their own, whose memory is added up. The load is compared with plain Python clients that write the
same items to empty tables of the same target with BatchWriteItem. Lag is measured from outside: how
long after its commit a change can be read in the target. A cutover is measured while 500 rows are
written in a second, each in a transaction of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from botocore.config import Config

from partita.client import Client
from partita_migrate.model.design import TableDesign
from partita_migrate.model.model_files import read_design
from partita_migrate.proving.sandbox.private_dynamodb import private_server
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, SCHEMA, LoggedMariaDB, LoggedPostgreSQL, Sql
from testkit.servers.database_servers import PASSWORD, DatabaseServer

SERVERS: dict[str, type[DatabaseServer]] = {"mysql": LoggedMariaDB, "postgresql": LoggedPostgreSQL}
NAMES = {"mysql": "MariaDB", "postgresql": "PostgreSQL"}
AUTHORS = 1000
INSERTED = 5000
BATCH_ITEMS = 25
AT_ONCE = 32
BOTO_THREADS = 8
CHANGES_IN_ONE = 100
PLAIN_ITEMS = 100_000
BOTO_ITEMS = 20_000
STEADY_CHANGES = 10
STEADY_PER_SECOND = 100
"""Transactions per second, each with several changes."""
TICKS = os.sysconf("SC_CLK_TCK")
MB = 1 << 20

TARGETS = {
    "load": "at least 50 % of a plain client",
    "memory": "below 300 MB",
    "follow": "at least 3,000 changes/s; a million within 6 minutes",
    "lag": "below 1 s",
    "verify": "at least 20,000 rows/s",
    "cutover": "below 2 s at 500 writes/s",
}
WRITES_PER_SECOND = 500
SECONDS_BEFORE_CUTOVER = 3.0


def filled(source: Sql, rows: int) -> None:
    authors = ",".join(f"({n}, 'a{n}@example.org', 'Author {n}')" for n in range(AUTHORS))
    source.run(f"INSERT INTO author VALUES {authors}")
    for first in range(0, rows, INSERTED):
        books = ",".join(
            f"({n}, {n % AUTHORS}, 'Title of book {n}', {n % 100}.50)"
            for n in range(first, min(first + INSERTED, rows))
        )
        source.run(f"INSERT INTO book VALUES {books}")


def changed(source: Sql, changes: int, rows: int) -> None:
    for first in range(0, changes, CHANGES_IN_ONE):
        numbers = range(first, min(first + CHANGES_IN_ONE, changes))
        source.run(
            ";".join(f"UPDATE book SET price = price + 1 WHERE id = {n % rows}" for n in numbers)
        )


# Plain clients.


def items_of(endpoint: str, table: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    pages = boto_client(endpoint).get_paginator("scan").paginate(TableName=table)
    for page in pages:
        found += page["Items"]
        if len(found) >= count:
            break
    return found[:count]


def boto_client(endpoint: str) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(max_pool_connections=BOTO_THREADS),
    )


@contextmanager
def empty_copy(endpoint: str, table: TableDesign) -> Iterator[str]:
    """Creates an empty table with the keys and indexes of another. Overwriting items with the same
    ones would be too fast for a comparison with a load, because no index changes."""
    client, name = boto_client(endpoint), f"{table.name}-plain"
    known = client.describe_table(TableName=table.name)["Table"]
    wanted = ("IndexName", "KeySchema", "Projection")
    indexes = [
        {name: one[name] for name in wanted} for one in known.get("GlobalSecondaryIndexes", [])
    ]
    client.create_table(
        TableName=name,
        AttributeDefinitions=known["AttributeDefinitions"],
        KeySchema=known["KeySchema"],
        BillingMode="PAY_PER_REQUEST",
        **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
    )
    every_second = {"Delay": 1, "MaxAttempts": 60}
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=every_second)
    yield name
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=every_second)


def plain_items_per_second(endpoint: str, table: str, items: list[dict[str, Any]]) -> float:
    """Measures our own client, with many requests at once from one process."""

    async def run() -> float:
        client = Client(endpoint, connections=AT_ONCE)
        left = iter(range(0, len(items), BATCH_ITEMS))

        async def work() -> None:
            for first in left:
                some = items[first : first + BATCH_ITEMS]
                puts = [{"PutRequest": {"Item": item}} for item in some]
                await client.call("dynamodb", "BatchWriteItem", {"RequestItems": {table: puts}})

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - began
        await client.close()
        return len(items) / seconds

    return asyncio.run(run())


def boto_items_per_second(endpoint: str, table: str, items: list[dict[str, Any]]) -> float:
    """Measures boto3 in threads."""
    client = boto_client(endpoint)

    def put(first: int) -> None:
        some = items[first : first + BATCH_ITEMS]
        puts = [{"PutRequest": {"Item": item}} for item in some]
        client.batch_write_item(RequestItems={table: puts})

    began = time.perf_counter()
    with ThreadPoolExecutor(BOTO_THREADS) as pool:
        list(pool.map(put, range(0, len(items), BATCH_ITEMS)))
    return len(items) / (time.perf_counter() - began)


# Processes.


def tree_of(pid: int) -> list[int]:
    """Returns a process and all its descendants."""
    found = [pid]
    for one in found:
        try:
            tasks = Path(f"/proc/{one}/task").iterdir()
            below = [(task / "children").read_text().split() for task in tasks]
        except OSError:
            continue
        found += [int(child) for some in below for child in some]
    return found


def memory_bytes(pid: int) -> int:
    """Returns the memory of a process and its descendants; shared pages count once."""
    total = 0
    for one in tree_of(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
    return total


def cpu_seconds(pid: int) -> float:
    total = 0
    for one in tree_of(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


class Command:
    """A run of `partita migrate ...`, with its output and its peak memory."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "partita.cli", "migrate", *map(str, arguments), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.memory = 0
        self._watch = threading.Thread(target=self._watched, daemon=True)
        self._watch.start()

    def _watched(self) -> None:
        while self.process.poll() is None:
            self.memory = max(self.memory, memory_bytes(self.process.pid))
            time.sleep(0.2)

    def answer(self) -> dict[str, Any]:
        said, _ = self.process.communicate()
        answer: dict[str, Any] = json.loads(said)
        return answer


# Measurements.


def steady_lag(source: Sql, folder: Folder, endpoint: str, seconds: float) -> list[float]:
    """Returns the seconds from commits to their copies, with 1,000 changes per second."""
    table = read_design(folder).tables[0].name
    client = boto_client(endpoint)
    command = Command("follow", folder.path, "--endpoint", endpoint)
    is_over = threading.Event()
    writer = threading.Thread(target=write_steadily, args=(source, is_over))
    key = author_key(client, table)
    lags: list[float] = []
    try:
        write_mark(source, "warm")
        wait_for(client, table, key, "warm", 120)
        writer.start()
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            write_mark(source, f"mark {number}")
            lags.append(wait_for(client, table, key, f"mark {number}", 60))
            time.sleep(0.2)
    finally:
        is_over.set()
        if writer.ident is not None:
            writer.join()
        command.process.send_signal(2)
        command.process.communicate()
    return lags


def write_steadily(source: Sql, is_over: threading.Event) -> None:
    """Writes in one session, at even intervals."""
    assert source.server is not None
    connection = source.server.connect(source.database)
    cursor = connection.cursor()
    began, done = time.monotonic(), 0
    while not is_over.is_set():
        first = done * STEADY_CHANGES % 1000
        numbers = range(first, first + STEADY_CHANGES)
        updates = ";".join(f"UPDATE book SET price = price + 1 WHERE id = {n}" for n in numbers)
        cursor.execute(f"BEGIN; {updates}; COMMIT")
        while cursor.nextset():
            pass
        done += 1
        time.sleep(max(began + done / STEADY_PER_SECOND - time.monotonic(), 0))
    connection.close()


def author_key(client: Any, table: str) -> dict[str, Any]:
    """Returns the key of the last author, who has no books, so that a change is one copy only."""
    for page in client.get_paginator("scan").paginate(TableName=table):
        for item in page["Items"]:
            if item.get("email", {}).get("S") == "mark@example.org" and "name" in item:
                known = client.describe_table(TableName=table)["Table"]["KeySchema"]
                return {one["AttributeName"]: item[one["AttributeName"]] for one in known}
    raise LookupError("the author that is marked has no item")


def write_mark(source: Sql, mark: str) -> None:
    source.run(f"UPDATE author SET name = '{mark}' WHERE id = {AUTHORS}")


def wait_for(client: Any, table: str, key: dict[str, Any], mark: str, seconds: float) -> float:
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        found = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
        if found.get("name", {}).get("S") == mark:
            return time.monotonic() - began
        time.sleep(0.01)
    raise TimeoutError(f"{mark} did not come within {seconds:.0f} s")


class Writer(threading.Thread):
    """Sends single writes at even intervals, until the source refuses them."""

    def __init__(self, source: Sql, rows: int) -> None:
        super().__init__()
        self.source, self.rows = source, rows
        self.is_over = threading.Event()
        self.accepted = 0
        self.seconds = 0.0

    def run(self) -> None:
        assert self.source.server is not None
        connection = self.source.server.connect(self.source.database)
        cursor = connection.cursor()
        began = time.monotonic()
        while not self.is_over.is_set():
            number = self.accepted % self.rows
            try:
                cursor.execute(f"UPDATE book SET price = price + 1 WHERE id = {number}")
            except Exception:
                break
            self.accepted += 1
            self.seconds = time.monotonic() - began
            time.sleep(max(began + self.accepted / WRITES_PER_SECOND - time.monotonic(), 0))
        connection.close()


def cut_over(source: Sql, folder: Folder, endpoint: str, rows: int) -> tuple[Writer, float]:
    writer = Writer(source, rows)
    writer.start()
    try:
        time.sleep(SECONDS_BEFORE_CUTOVER)
        answer = Command("cutover", folder.path, "--endpoint", endpoint).answer()
    finally:
        writer.is_over.set()
        writer.join()
    return writer, float(answer["refused_seconds"])


@contextmanager
def moving(kind: str, rows: int) -> Iterator[tuple[Sql, Folder, str]]:
    with SERVERS[kind]() as server, TemporaryDirectory() as space, private_server() as endpoint:
        source = Sql(kind, Path(space), server, SCHEMA)
        filled(source, rows)
        source.run(f"INSERT INTO author VALUES ({AUTHORS}, 'mark@example.org', 'mark')")
        yield source, source.folder(PATTERNS, endpoint), endpoint


def measure(kind: str, rows: int, changes: int, say: Callable[[str, str, str], None]) -> None:
    with moving(kind, rows) as (source, folder, endpoint):
        assert source.server is not None and source.server._process is not None
        pid = source.server._process.pid
        cpu = cpu_seconds(pid)
        command = Command("load", folder.path, "--endpoint", endpoint, "--follow")
        loaded = command.answer()
        cpu = cpu_seconds(pid) - cpu
        items = sum(one["items"] for one in loaded["tables"])
        rate = items / loaded["seconds"]
        table = read_design(folder).tables[0]
        same = items_of(endpoint, table.name, PLAIN_ITEMS)
        rates = []
        for _ in range(3):
            with empty_copy(endpoint, table) as copy:
                rates.append(plain_items_per_second(endpoint, copy, same))
        plain = statistics.median(rates)
        with empty_copy(endpoint, table) as copy:
            boto = boto_items_per_second(endpoint, copy, same[:BOTO_ITEMS])
        say("load", f"{rate:,.0f} items/s of {rows:,} rows in {loaded['seconds']:.1f} s:"
            f" {rate / plain:.0%} of our client's {plain:,.0f}, {rate / boto:.0%} of boto3's"
            f" {boto:,.0f}", TARGETS["load"])  # fmt: skip
        say("memory", f"{command.memory / MB:,.0f} MB", TARGETS["memory"])
        seen = loaded["on_source"]
        say("load on the source", f"{cpu:.1f} s of CPU; read for {seen['seconds']:.1f} s,"
            f" {seen['rows_per_second']:,.0f} rows/s; {seen['counters']}", "stated")  # fmt: skip
        changed(source, changes, rows)
        followed = Command("follow", folder.path, "--endpoint", endpoint, "--once").answer()
        say("follow", f"{followed['changes'] / followed['seconds']:,.0f} changes/s, {changes:,} in"
            f" {followed['seconds']:.1f} s", TARGETS["follow"])  # fmt: skip
        lags = steady_lag(source, folder, endpoint, 10)
        say("lag", f"median {statistics.median(lags):.2f} s, longest {max(lags):.2f} s at 1,000"
            " changes/s", TARGETS["lag"])  # fmt: skip
        command = Command("verify", folder.path, "--endpoint", endpoint)
        verified = command.answer()
        say("verify", f"{verified['rows'] / verified['seconds']:,.0f} rows/s,"
            f" {verified.get('different', 0)} differences, {command.memory / MB:,.0f} MB",
            TARGETS["verify"])  # fmt: skip
        writer, refused = cut_over(source, folder, endpoint, rows)
        say("cutover", f"writes refused for {refused:.2f} s; {writer.accepted:,} were accepted"
            f" before, {writer.accepted / writer.seconds:,.0f}/s", TARGETS["cutover"])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--changes", type=int, default=60_000)
    parser.add_argument("--source", choices=list(SERVERS), action="append")
    asked = parser.parse_args()
    os.environ.setdefault(PASSWORD_ENV, PASSWORD)
    for kind in asked.source or SERVERS:

        def say(what: str, found: str, wanted: str, kind: str = kind) -> None:
            sys.stdout.write(f"{NAMES[kind]}: {what}: {found} (wanted: {wanted})\n")
            sys.stdout.flush()

        measure(kind, asked.rows, asked.changes, say)


if __name__ == "__main__":
    main()
