"""`python -m benchmarks.database.scaling`: the cost of a request with few items and with many.

Two durable servers of the same program run side by side, one on 10 thousand items and one on 5
million. They are filled with BatchWriteItem over a few connections while their durability is
relaxed, and started again to be measured: for each operation in turn, several times, with keys
that are drawn from the whole range. Both get as many different requests, so that an answer which a
server remembers helps both alike. The figures go into results/scaling.json.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.drivers import driver_choice
from benchmarks.drivers.load import Driver, Load
from benchmarks.drivers.single_request import Client, WireError
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import SERVERS, Mode, Running
from benchmarks.servers.peers import PEERS
from benchmarks.workload.dataset import BATCH_ITEMS, KEY_SCHEMA, PARTITION_ITEMS, Json, key
from benchmarks.workload.operations import batch_put

TABLE = "bench-scaling"
FAMILY = "item"
FEW_ITEMS = 10_000
MANY_ITEMS = 5_000_000
# Five million items, with the free space between them, must stay below 12 GB.
TEXT = "An item among many, as long as a short note. " * 8
LOADERS = 4
BATCHES_PER_TURN = 2_000
REQUESTS = 100_000
CONNECTIONS = 16
WARM_UP_SECONDS = 2
SECONDS = 5
REPEATS = 3
COST_RATIO_MAX = 1.5
SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.database.scaling",
        description="Measures the cost of a large table.",
    )
    parser.add_argument("--items", type=int, default=MANY_ITEMS, help=f"{MANY_ITEMS} unless given")
    results = measure(parser.parse_args().items)
    saved_results.keep(results, saved_results.SCALING)
    say("\n" + "\n\n".join(section(results)))


def measure(many: int) -> dict[str, Any]:
    PEERS.mkdir(exist_ok=True)
    # Next to the peers: the system's temporary folder may be in memory.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="many-", dir=PEERS)))
        results: dict[str, Any] = {"machine": machine.describe(), "few": FEW_ITEMS, "many": many}
        folders = {count: folder / f"data-{count}" for count in (FEW_ITEMS, many)}
        results["load_seconds"] = [fill(data, count) for count, data in folders.items()]
        results["bytes"] = [(data / "data.mdb").stat().st_blocks * 512 for data in folders.values()]
        driver = driver_choice.choose(folder)
        running = {
            count: stack.enter_context(closing(_start("disk", data)))
            for count, data in folders.items()
        }
        results["driver"] = driver.name
        results["measured"] = _measure_all(driver, running)
    return results


def _start(mode: Mode, data: Path) -> Running:
    (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", mode))
    return Running(server, data)


# Items


def item(number: int) -> Json:
    return {**key(FAMILY, number), "rank": {"N": str(number)}, "text": {"S": TEXT}}


def fill(data: Path, count: int) -> float:
    """Puts that many items into a new folder; returns the seconds that it took."""
    started_at = time.monotonic()
    with closing(_start("relaxed", data)) as running, ExitStack() as stack:
        clients = [stack.enter_context(closing(Client(running.port))) for _ in range(LOADERS)]
        clients[0].call("CreateTable", _definition())
        batches = iter(range(0, count, BATCH_ITEMS))
        with ThreadPoolExecutor(LOADERS) as pool:
            while turn := list(itertools.islice(batches, BATCHES_PER_TURN)):
                shares = [turn[number::LOADERS] for number in range(LOADERS)]
                list(pool.map(_put_batches, clients, shares, [count] * LOADERS))
                _say_progress(turn[-1], count, started_at)
        described = clients[0].call("DescribeTable", {"TableName": TABLE})["Table"]
        if described["ItemCount"] != count:
            raise SystemExit(f"{described['ItemCount']} items were loaded instead of {count}")
    # Otherwise the system would write the rest to disk while other servers are measured.
    os.sync()
    return time.monotonic() - started_at


def _definition() -> Json:
    return {
        "TableName": TABLE,
        "KeySchema": KEY_SCHEMA,
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def _put_batches(client: Client, starts: list[int], count: int) -> None:
    for start in starts:
        items = [item(number) for number in range(start, min(start + BATCH_ITEMS, count))]
        if client.call("BatchWriteItem", batch_put(TABLE, items)).get("UnprocessedItems"):
            raise WireError("BatchWriteItem left items unprocessed")


def _say_progress(done: int, count: int, started_at: float) -> None:
    seconds = time.monotonic() - started_at
    if done % 500_000 < BATCHES_PER_TURN * BATCH_ITEMS:
        say(f"{done:>9,} of {count:,} items after {seconds:.0f} s")


# Requests


def get_item(number: int, place: int = 0) -> Json:
    return {"TableName": TABLE, "Key": key(FAMILY, number)}


def put_item(number: int, place: int) -> Json:
    """Returns a put that changes the value, but not its length, so that the table does not grow."""
    rank = {"N": str(MANY_ITEMS + place)}
    return {"TableName": TABLE, "Item": {**item(number), "rank": rank}}


def query(number: int, place: int = 0) -> Json:
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key(FAMILY, number)["pk"]},
        "Limit": PARTITION_ITEMS,
    }


OPERATIONS = {"GetItem": get_item, "PutItem": put_item, "Query": query}


def _load(operation: str, count: int) -> Load:
    """Returns requests that are all different; a key that is repeated gets more space before it.

    Every key comes at least twice, so that a put never finds the value that it writes, even when
    the driver begins again.
    """
    different = range(0, count, PARTITION_ITEMS if operation == "Query" else 1)
    numbers = random.Random(SEED).sample(different, min(len(different), REQUESTS // 2))
    keys = itertools.islice(itertools.cycle(numbers), REQUESTS)
    bodies = [
        b" " * (place // len(numbers)) + orjson.dumps(OPERATIONS[operation](number, place))
        for place, number in enumerate(keys)
    ]
    return Load(f"{operation}-{count}", operation, bodies)


def _check(running: Running, count: int) -> None:
    """Checks that the items at both ends of the range exist."""
    with closing(Client(running.port)) as client:
        for number in (0, count - 1):
            assert client.call("GetItem", get_item(number))["Item"]["pk"] == item(number)["pk"]
            assert client.call("Query", query(number))["Count"] == PARTITION_ITEMS


def _measure_all(driver: Driver, running: dict[int, Running]) -> list[dict[str, Any]]:
    for count, server in running.items():
        _check(server, count)
    measured = []
    for operation in OPERATIONS:
        loads = {count: _load(operation, count) for count in running}
        rates: dict[int, list[float]] = {count: [] for count in running}
        for count, rate in _alternate(driver, running, loads):
            rates[count].append(rate)
        few, many = (median(found) for found in rates.values())
        measured.append({"operation": operation, "few": few, "many": many, "cost": few / many})
        say(f"{operation:<9}{few:>9,.0f}/s {many:>9,.0f}/s  {few / many:.2f}x")
    return measured


def _alternate(
    driver: Driver, running: dict[int, Running], loads: dict[int, Load]
) -> Iterator[tuple[int, float]]:
    """Measures both servers in turns, so that other load of the machine affects both."""
    for count, server in running.items():
        driver.drive(server.port, loads[count], CONNECTIONS, WARM_UP_SECONDS)
    for _ in range(REPEATS):
        for count, server in running.items():
            server.settle()
            done = driver.drive(server.port, loads[count], CONNECTIONS, SECONDS)
            if done.refused or done.broken:
                raise SystemExit(
                    f"{done.refused + done.broken} requests were not answered with 2xx"
                )
            yield count, done.requests_per_second


# The page


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    few, many = results["few"], results["many"]
    lines = [
        [
            row["operation"],
            f"{row['few']:,.0f}",
            f"{row['many']:,.0f}",
            f"**{row['cost']:.2f}x**",
            f"{COST_RATIO_MAX}x",
            "met" if row["cost"] <= COST_RATIO_MAX else "**above**",
        ]
        for row in results["measured"]
    ]
    text = (
        "`python -m benchmarks.database.scaling`: "
        f"requests per second with {CONNECTIONS} connections to a "
        f"durable Partita with {few:,} items and to one with {many:,}: {REQUESTS:,} requests that "
        "are all different, their keys drawn from the whole range, the median of "
        f"{REPEATS} times {SECONDS} s. Filled with BatchWriteItem in "
        f"{results['load_seconds'][1]:,.0f} s; {results['bytes'][1] / (1 << 30):.1f} GB on disk. "
        f"{origin(results['machine'])}"
    )
    head = ["operation", f"{few:,} items (1/s)", f"{many:,} items (1/s)", "cost", "target", ""]
    return ["## Many items", text, table(head, lines)]


if __name__ == "__main__":
    main()
