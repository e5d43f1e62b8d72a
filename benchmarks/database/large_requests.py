"""`python -m benchmarks.database.large_requests`: how long others wait while one client sends the
most that the API allows.

One durable server. One connection sends large requests of one kind, the next when one is answered;
two others get and put small items of another table, with a short pause after each answer. No
request of theirs is sent twice. The figures go into results/large_requests.json.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, cycle
from pathlib import Path
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
from benchmarks.workload.dataset import Json

LARGE_TABLE, SMALL_TABLE = "bench-large", "bench-small"
FAMILY = "beside"
LIST_MEMBERS = 60_000
LISTS = 25
MAP_MEMBERS = 40_000
UPDATED_LISTS = 100
BODY_BYTES_MAX = 16 * 1024 * 1024
PAUSE_SECONDS = 0.005
SECONDS = 12
P99_MS_MAX = 100.0


def _item(number: int, content: Json) -> Json:
    return {**dataset.key("large", number), "content": content}


def _list(number: int) -> Json:
    return _item(number, {"L": [{"N": "1"}] * LIST_MEMBERS})


def _small_values(number: int) -> Json:
    return _item(number, {"M": {f"{place:x}": {"S": "v"} for place in range(MAP_MEMBERS)}})


def _batch(items: list[Json]) -> Json:
    return {"RequestItems": {LARGE_TABLE: [{"PutRequest": {"Item": item}} for item in items]}}


def _as_many_as_fit(make: Callable[[int], Json]) -> list[Json]:
    each = len(orjson.dumps(make(0))) + len('{"PutRequest":{"Item":}},')
    return [make(number) for number in range(min(LISTS, (BODY_BYTES_MAX - 1000) // each))]


def _updates(lists: int) -> Json:
    """Returns a transaction of the most updates; a refusal for their size comes only at the end."""
    return {
        "TransactItems": [
            {
                "Update": {
                    "TableName": LARGE_TABLE,
                    "Key": dataset.key("large", number),
                    "UpdateExpression": "SET seen = if_not_exists(seen, :zero) + :one",
                    "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}},
                }
            }
            for number in range(lists)
        ]
    }


def _projected(lists: int) -> Json:
    keys = [dataset.key("large", number) for number in range(lists)]
    wanted = {"Keys": keys, "ProjectionExpression": "content[59999]"}
    return {"RequestItems": {LARGE_TABLE: wanted}}


KINDS: dict[str, tuple[str, Callable[[], Json]]] = {
    "16 MB of small values": (
        "BatchWriteItem",
        lambda: _batch(_as_many_as_fit(_small_values)),
    ),
    f"{LISTS} lists of {LIST_MEMBERS:,} members": (
        "BatchWriteItem",
        lambda: _batch(_as_many_as_fit(_list)),
    ),
    f"{UPDATED_LISTS} transactional updates of such lists": (
        "TransactWriteItems",
        lambda: _updates(UPDATED_LISTS),
    ),
    "one member of each of such lists": (
        "BatchGetItem",
        lambda: _projected(UPDATED_LISTS),
    ),
}


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.LARGE_REQUESTS)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    PEERS.mkdir(exist_ok=True)
    (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", "disk"))
    results: dict[str, Any] = {"machine": machine.describe(), "kinds": {}}
    with (
        tempfile.TemporaryDirectory(prefix="large-", dir=PEERS) as name,
        closing(Running(server, Path(name) / "data")) as running,
    ):
        _fill(running)
        for kind, (operation, make) in KINDS.items():
            body = orjson.dumps(make())
            rows = _round(running, operation, body)
            results["kinds"][kind] = {"operation": operation, "megabytes": len(body) / 1e6, **rows}
            say(f"{kind}: {results['kinds'][kind]}")
            running.settle()
    return results


def _fill(running: Running) -> None:
    definition = dataset.tables()[1]
    with closing(Client(running.port)) as client:
        for name in (LARGE_TABLE, SMALL_TABLE):
            client.call("CreateTable", {**definition, "TableName": name})
        for number in range(UPDATED_LISTS):
            client.call("PutItem", {"TableName": LARGE_TABLE, "Item": _list(number)})


def _gets() -> Iterator[bytes]:
    for number in count():
        request = {"TableName": SMALL_TABLE, "Key": dataset.key(FAMILY, number)}
        yield socket_driver.formatted("GetItem", orjson.dumps(request))


def _puts() -> Iterator[bytes]:
    for number in count():
        request = {"TableName": SMALL_TABLE, "Item": dataset.item(FAMILY, number)}
        yield socket_driver.formatted("PutItem", orjson.dumps(request))


def _round(running: Running, operation: str, body: bytes) -> dict[str, Any]:
    streams = {
        "large": Stream(cycle([socket_driver.formatted(operation, body)]), 1),
        "GetItem": Stream(_gets(), 1, PAUSE_SECONDS),
        "PutItem": Stream(_puts(), 1, PAUSE_SECONDS),
    }
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        driven = socket_driver.drive_beside(running.port, list(streams.values()), SECONDS)
        tallies = dict(zip(streams, runner.run(driven), strict=True))
    broken = sum(tally.broken for tally in tallies.values())
    if broken or tallies["GetItem"].refused or tallies["PutItem"].refused:
        raise SystemExit(f"{operation}: requests were not answered.")
    return {
        "answered": len(tallies["large"].latencies),
        "refused": tallies["large"].refused,
        **{one: _row(tallies[one].latencies) for one in ("GetItem", "PutItem")},
    }


def _row(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    return {
        "count": len(ordered),
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    lines = [
        _line(kind, found, operation)
        for kind, found in results["kinds"].items()
        for operation in ("GetItem", "PutItem")
    ]
    text = (
        "`python -m benchmarks.database.large_requests`: "
        "a durable server, one connection that sends large "
        f"requests of one kind for {SECONDS} s, and beside it one that gets and one that puts "
        f"small items of another table, {PAUSE_SECONDS * 1000:.0f} ms after each answer. "
        f"{origin(results['machine'])}"
    )
    head = ["large requests", "beside", "p50 (ms)", "p99 (ms)", "max (ms)", "p99 below", ""]
    return ["## Others beside the largest requests", text, table(head, lines)]


def _line(kind: str, found: dict[str, Any], operation: str) -> list[str]:
    row = found[operation]
    verdict = "met" if row["p99_ms"] < P99_MS_MAX else "**above**"
    times = [f"{row['p50_ms']:.1f}", f"**{row['p99_ms']:.1f}**", f"{row['max_ms']:.1f}"]
    shown = f"{kind} ({found['operation']}, {found['megabytes']:.1f} MB)"
    return [shown, operation, *times, f"{P99_MS_MAX:.0f}", verdict]


if __name__ == "__main__":
    main()
