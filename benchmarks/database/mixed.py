"""`python -m benchmarks.database.mixed`: how long reads take beside a client that writes at full
speed.

One durable server. A client with four connections puts new items into one table with
BatchWriteItem, as fast as they are answered. Six connections read four other tables, to which
nobody writes: GetItem, Query of a partition, Scan of a few items. In the first mix all six are
busy. In the second, Query and Scan come now and then, so that much is written from one range read
to the next. No request is sent twice: no response comes out of a cache. The driver is one thread,
on the second core. The figures go into results/mixed.json.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import orjson
import uvloop

from benchmarks.drivers import socket_driver
from benchmarks.drivers.single_request import Client
from benchmarks.drivers.socket_driver import Stream
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import SERVERS, Running
from benchmarks.servers.peers import PEERS
from benchmarks.workload import dataset
from benchmarks.workload.dataset import BATCH_ITEMS, PARTITION_ITEMS, Json
from benchmarks.workload.operations import batch_put

WRITTEN_TABLE = "bench-mixed-written"
READ_TABLES = tuple(f"bench-mixed-read-{number}" for number in range(4))
READ_ITEMS = 1_000
SCAN_ITEMS = 20
FAMILY = "mixed"
TEXT = "A new item, as long as a short note. " * 4
WRITERS = 4
READERS = {"GetItem": 3, "Query": 2, "Scan": 1}
"""The number of connections for each operation."""
RANGE_READS = ("Query", "Scan")
MIXES = {"busy": 0.0, "now and then": 0.05}
"""Seconds between two range reads on the same connection."""
WARM_UP_SECONDS = 2
SECONDS = 6
ROUNDS = 3
P99_MS_MAX = 15.0
SEED = 1
WHITE_SPACE = str.maketrans("01", " \t")


Rows = dict[str, dict[str, float]]
"""The figures of each operation."""


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.MIXED)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    PEERS.mkdir(exist_ok=True)
    (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", "disk"))
    with tempfile.TemporaryDirectory(prefix="mixed-", dir=PEERS) as name:
        results: dict[str, Any] = {"machine": machine.describe()}
        with closing(Running(server, Path(name) / "data")) as running:
            _fill(running)
            requests = {**{kind: _reads(kind) for kind in READERS}, "BatchWriteItem": _writes()}
            _round(running, _streams(requests, 0.0), WARM_UP_SECONDS)
            rounds: dict[str, list[Rows]] = {mix: [] for mix in MIXES}
            for _ in range(ROUNDS):
                for mix, pause_seconds in MIXES.items():
                    running.settle()
                    rows = _round(running, _streams(requests, pause_seconds), SECONDS)
                    rounds[mix].append(rows)
                    say(f"{mix}: " + "  ".join(_short(kind, row) for kind, row in rows.items()))
        results["mixes"] = {mix: _medians(found) for mix, found in rounds.items()}
    return results


# Tables and requests


def _fill(running: Running) -> None:
    definition = dataset.tables()[1]
    with closing(Client(running.port)) as client:
        for name in (WRITTEN_TABLE, *READ_TABLES):
            client.call("CreateTable", {**definition, "TableName": name})
        for name in READ_TABLES:
            for start in range(0, READ_ITEMS, BATCH_ITEMS):
                items = [dataset.item(FAMILY, start + place) for place in range(BATCH_ITEMS)]
                client.call("BatchWriteItem", batch_put(name, items))


def _streams(requests: dict[str, Iterator[bytes]], pause_seconds: float) -> dict[str, Stream]:
    connections = {"BatchWriteItem": WRITERS, **READERS}
    return {
        kind: Stream(found, connections[kind], pause_seconds if kind in RANGE_READS else 0.0)
        for kind, found in requests.items()
    }


def _get_item(number: int) -> Json:
    return {"Key": dataset.key(FAMILY, number)}


def _query(number: int) -> Json:
    return {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": dataset.key(FAMILY, number)["pk"]},
    }


def _scan(number: int) -> Json:
    return {"Limit": SCAN_ITEMS, "ExclusiveStartKey": dataset.key(FAMILY, number)}


REQUESTS: dict[str, Callable[[int], Json]] = {
    "GetItem": _get_item,
    "Query": _query,
    "Scan": _scan,
}


def _reads(operation: str) -> Iterator[bytes]:
    random = Random(SEED)
    for place in count():
        request = REQUESTS[operation](random.randrange(READ_ITEMS))
        body = orjson.dumps({"TableName": READ_TABLES[place % len(READ_TABLES)], **request})
        yield socket_driver.formatted(operation, _numbered(body, place))


def _numbered(body: bytes, place: int) -> bytes:
    """Makes a body unique: puts white space before it that encodes a number in binary."""
    return f"{place:024b}".translate(WHITE_SPACE).encode() + body


def _writes() -> Iterator[bytes]:
    for start in count(0, BATCH_ITEMS):
        items = [
            {
                **dataset.key("new", start + place),
                "rank": {"N": str(start + place)},
                "text": {"S": TEXT},
            }
            for place in range(BATCH_ITEMS)
        ]
        body = orjson.dumps(batch_put(WRITTEN_TABLE, items))
        yield socket_driver.formatted("BatchWriteItem", body)


# Figures


def _round(running: Running, streams: dict[str, Stream], seconds: int) -> Rows:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        driven = socket_driver.drive_beside(running.port, list(streams.values()), seconds)
        tallies = dict(zip(streams, runner.run(driven), strict=True))
    failed = sum(tally.refused + tally.broken for tally in tallies.values())
    if failed:
        raise SystemExit(f"{failed} requests were not answered with 2xx.")
    reads = [latency for kind in READERS for latency in tallies[kind].latencies]
    rows = {kind: _row(tally.latencies, seconds) for kind, tally in tallies.items()}
    return {"all reads": _row(reads, seconds), **rows}


def _row(latencies: list[float], seconds: int) -> dict[str, float]:
    ordered = sorted(latencies)
    return {
        "per_second": len(ordered) / seconds,
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


def _medians(rounds: list[Rows]) -> Rows:
    """Returns the medians of the rounds; the longest time is that of all rounds."""
    return {
        kind: {
            figure: (max if figure == "max_ms" else median)(rows[kind][figure] for rows in rounds)
            for figure in row
        }
        for kind, row in rounds[0].items()
    }


def _short(kind: str, row: dict[str, float]) -> str:
    return f"{kind} {row['per_second']:,.0f}/s, p99 {row['p99_ms']:.1f}, max {row['max_ms']:.1f} ms"


# The page


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    lines = [
        _line(mix, kind, row)
        for mix, rows in results["mixes"].items()
        for kind, row in rows.items()
    ]
    pause_ms = MIXES["now and then"] * 1000
    text = (
        "`python -m benchmarks.database.mixed`: "
        f"a durable server, one client that puts {BATCH_ITEMS} new "
        f"items with each BatchWriteItem, on {WRITERS} connections as fast as they are answered, "
        f"and beside it {sum(READERS.values())} connections that read {len(READ_TABLES)} other "
        f"tables: GetItem, Query ({PARTITION_ITEMS} items), Scan ({SCAN_ITEMS} items), no request "
        f"twice; in the second mix Query and Scan pause {pause_ms:.0f} ms after each answer. "
        f"Medians of {ROUNDS} times {SECONDS} s, and the longest of all. "
        f"{origin(results['machine'])}"
    )
    head = ["mix", "operation", "requests/s", "p50 (ms)", "p99 (ms)", "max (ms)", "p99 below", ""]
    return ["## Reads beside bulk writes", text, table(head, lines)]


def _line(mix: str, kind: str, row: dict[str, float]) -> list[str]:
    times = [f"{row['p50_ms']:.1f}", f"**{row['p99_ms']:.1f}**", f"{row['max_ms']:.1f}"]
    verdict = "met" if row["p99_ms"] < P99_MS_MAX else "**above**"
    target = ["", ""] if kind == "BatchWriteItem" else [f"{P99_MS_MAX:.0f}", verdict]
    return [mix, kind, f"{row['per_second']:,.0f}", *times, *target]


if __name__ == "__main__":
    main()
