"""One run: start every server, fill all with the same items, check the answers, measure.

All servers run all the time, and only one has work at a time. For each operation and number of
connections they are measured one after the other, so that other load of the machine affects all.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from benchmarks.drivers.load import Driver, Load, Measurement
from benchmarks.drivers.single_request import Client, WireError
from benchmarks.servers.measured_servers import Running, Server
from benchmarks.servers.peers import Unavailable
from benchmarks.workload import dataset
from benchmarks.workload.dataset import BATCH_ITEMS, READ_TABLE, WRITE_TABLE, Json
from benchmarks.workload.operations import Operation, WrongAnswer, batch_put, delete_item

ACTIVE_SECONDS_MAX = 30
ANSWERS_PER_CONNECTION_MIN = 10
SLOW_FACTOR = 4
DELETIONS_FIRST = 1_000
DELETIONS_MAX = 150_000
DELETIONS_MARGIN = 1.2
DELETIONS_ATTEMPTS_MAX = 3


@dataclass(frozen=True)
class Plan:
    servers: list[Server]
    operations: list[Operation]
    connections: list[int]
    warm_up_seconds: int
    seconds: int


@dataclass
class Results:
    """The results of a run, all of which can be saved as JSON."""

    machine: dict[str, Any]
    started: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Seconds until ready and idle memory in MB, by label."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reason why something was not measured, by label, or by label and operation."""
    measured: list[dict[str, Any]] = field(default_factory=list)


def run(plan: Plan, driver: Driver, folder: Path, results: Results) -> None:
    with ExitStack() as stack:
        running = [
            server for server in (_start(s, folder, stack, results) for s in plan.servers) if server
        ]
        for operation in plan.operations:
            ready = [server for server in running if _is_right(server, operation, results)]
            for connections in plan.connections:
                for server in ready:
                    _measure_one(server, operation, connections, plan, driver, results)


def _start(server: Server, folder: Path, stack: ExitStack, results: Results) -> Running | None:
    try:
        running = Running(server, folder / server.label.replace("/", "-"))
        stack.callback(running.close)
        _fill(running)
    except (Unavailable, WireError) as reason:
        results.skipped[server.label] = str(reason)
        say(f"{server.label}: skipped, {reason}")
        return None
    results.started[server.label] = {
        "ready_seconds": running.ready_seconds,
        "idle_mb": running.idle_mb,
    }
    say(f"{server.label}: ready after {running.ready_seconds:.2f} s, {_mb(running.idle_mb)}")
    return running


# The same items for all


def _fill(running: Running) -> None:
    client = Client(running.port)
    if running.server.operations is None:
        for table in dataset.tables():
            client.call("CreateTable", table)
            _wait_until_active(client, table["TableName"])
        by_table: dict[str, list[Json]] = {}
        for name, item in dataset.seed():
            by_table.setdefault(name, []).append(item)
        for name, items in by_table.items():
            put_all(client, name, items)
    else:
        # The bare loop has no tables and batches, and needs only the items that GetItem reads.
        for name, item in dataset.seed():
            if name == READ_TABLE:
                client.call("PutItem", {"TableName": name, "Item": item})
    client.close()


def _wait_until_active(client: Client, table: str) -> None:
    deadline = time.monotonic() + ACTIVE_SECONDS_MAX
    while time.monotonic() < deadline:
        if client.call("DescribeTable", {"TableName": table})["Table"]["TableStatus"] == "ACTIVE":
            return
        time.sleep(0.05)
    raise Unavailable(f"its table is not ACTIVE after {ACTIVE_SECONDS_MAX} seconds")


def put_all(client: Client, table: str, items: list[Json]) -> None:
    for start in range(0, len(items), BATCH_ITEMS):
        request = batch_put(table, items[start : start + BATCH_ITEMS])
        if client.call("BatchWriteItem", request).get("UnprocessedItems"):
            raise WireError("BatchWriteItem left items unprocessed")


# Check, then measure


def _is_right(running: Running, operation: Operation, results: Results) -> bool:
    server = running.server
    if server.operations is not None and operation.name not in server.operations:
        return False
    client = Client(running.port)
    try:
        operation.check(client, operation.requests()[0])
    except (WireError, WrongAnswer, KeyError, ValueError) as reason:
        results.skipped[f"{server.label} {operation.name}"] = str(reason) or repr(reason)
        say(f"{server.label} {operation.name}: skipped, {reason!r}")
        return False
    finally:
        client.close()
    return True


def _measure_one(
    running: Running,
    operation: Operation,
    connections: int,
    plan: Plan,
    driver: Driver,
    results: Results,
) -> None:
    label = running.server.label
    try:
        measurement = _measure(running, operation, connections, plan, driver)
    except (WireError, OSError, subprocess.SubprocessError) as reason:
        results.skipped[f"{label} {operation.name} {connections}"] = str(reason)
        say(f"{label} {operation.name} {connections}: failed, {reason}")
        return
    finally:
        running.settle()
    resident_mb = running.resident_mb()
    results.measured.append(
        {
            "server": running.server.name,
            "mode": running.server.mode,
            "operation": operation.name,
            "connections": connections,
            "resident_mb": resident_mb,
            **asdict(measurement),
        }
    )
    lost = measurement.refused + measurement.broken
    say(
        f"{operation.name:<19}{connections:>3}  {label:<22}"
        f"{measurement.requests_per_second:>9,.0f}/s  p50 {measurement.p50_ms:>8.2f} ms  "
        f"p99 {measurement.p99_ms:>8.2f} ms  {_mb(resident_mb):>8}"
        + (f"  {lost} not answered with 2xx" if lost else "")
    )


def _measure(
    running: Running, operation: Operation, connections: int, plan: Plan, driver: Driver
) -> Measurement:
    if operation.consumes:
        return _measure_deletions(running, operation, connections, plan, driver)
    load = Load(operation.name, operation.target, operation.bodies())
    warm = driver.drive(running.port, load, connections, plan.warm_up_seconds)
    running.settle()
    return driver.drive(running.port, load, connections, _enough_seconds(warm, connections, plan))


def _enough_seconds(warm: Measurement, connections: int, plan: Plan) -> int:
    """Returns a longer time for slow operations, as requests in flight at the end do not count."""
    answered = warm.requests_per_second * plan.seconds
    is_slow = answered < connections * ANSWERS_PER_CONNECTION_MIN
    return plan.seconds * (SLOW_FACTOR if is_slow else 1)


def _measure_deletions(
    running: Running, operation: Operation, connections: int, plan: Plan, driver: Driver
) -> Measurement:
    """Measures deletions of existing items, as many as the warm-up suggests that it will manage.

    The warm-up runs out of items and continues with deletions of missing ones, which are as fast.
    """
    client = Client(running.port)

    def drive(count: int, seconds: int) -> Measurement:
        put_all(client, WRITE_TABLE, [dataset.item("delete", n) for n in range(count)])
        bodies = [orjson.dumps(request) for request in delete_item(count)]
        load = Load(operation.name, operation.target, bodies)
        return driver.drive(running.port, load, connections, seconds)

    try:
        warm = drive(DELETIONS_FIRST, plan.warm_up_seconds)
        rate = warm.requests_per_second
        for _ in range(DELETIONS_ATTEMPTS_MAX):
            count = min(int(rate * plan.seconds * DELETIONS_MARGIN) + connections, DELETIONS_MAX)
            measurement = drive(count, plan.seconds)
            if measurement.requests <= count:
                break
            rate = measurement.requests_per_second
        return measurement
    finally:
        client.close()


def _mb(resident_mb: float | None) -> str:
    return "? MB" if resident_mb is None else f"{resident_mb:.0f} MB"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
