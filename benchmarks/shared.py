"""`python -m benchmarks.shared`: servers over PostgreSQL, next to what PostgreSQL itself reaches.

A private PostgreSQL that waits for the disk. One server with 64 connections; then, with 5 ms on the
way to the database and back, one and three servers with 16 connections each on one table with a
stream; then a counter that 64 clients of three servers count up. The figures go into
results/shared.json.
"""

from __future__ import annotations

import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from benchmarks import drivers, kept, machine
from benchmarks.load import Driver, Load, Measurement
from benchmarks.markdown import table
from benchmarks.run import say
from benchmarks.wire import Client
from tests import processes
from tests.migrate.servers import PostgreSQL, find
from tests.shared.proxy import Proxy

SECONDS = 6
ITEMS = 60_000
CONNECTIONS = 64
FAR_CONNECTIONS = 16
FAR_SECONDS = 0.0025
"""In each direction."""
TARGETS = {
    "PutItem": 5000.0,
    "GetItem": 6000.0,
    "Query": 2000.0,
    "counter": 1000.0,
    "three servers": 2.5,
}
UPSERT = (
    "\\set k random(1, 60000)\n"
    "INSERT INTO bench VALUES ('key ' || :k, repeat('x', 300))"
    " ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value;\n"
)


class SyncedPostgreSQL(PostgreSQL):
    def __init__(self) -> None:
        super().__init__()
        # Not in memory: its disk is part of what is measured.
        self.folder = Path(tempfile.mkdtemp(prefix="partita-bench-"))

    def command(self) -> list[str]:
        settings = ("--fsync=on", "--max_connections=100", "--shared_buffers=512MB")
        return [*(one for one in super().command() if "max_conn" not in one), *settings]


def main() -> None:
    results = measure()
    kept.keep(results, kept.RESULTS / "shared.json")
    lines = [(name, f"{value:,.1f}") for name, value in results["figures"].items()]
    say("\n" + table(("figure", "measured"), lines))


def measure() -> dict[str, Any]:
    figures: dict[str, float] = {}
    with SyncedPostgreSQL() as postgresql, tempfile.TemporaryDirectory() as folder:
        figures["pgbench, one-row upserts/s"] = _pgbench(postgresql, Path(folder))
        driver = drivers.choose(Path(folder))
        figures |= _near(postgresql, driver)
        figures |= _far(postgresql, driver)
    return {"machine": machine.describe(), "targets": TARGETS, "figures": figures}


def _pgbench(postgresql: PostgreSQL, folder: Path) -> float:
    """On 16 connections, as DEPENDENCIES.md has it."""
    postgresql.create("bench", "CREATE TABLE bench (key text PRIMARY KEY, value text)")
    script = folder / "upsert.sql"
    script.write_text(UPSERT)
    said = subprocess.run(
        [
            *(str(find("pgbench")), "-h", "127.0.0.1", "-p", str(postgresql.port)),
            *("-U", postgresql.user, "-n", "-c", "16", "-j", "2", "-T", str(SECONDS)),
            *("-M", "prepared", "-f", str(script), "bench"),
        ],
        env={"PGPASSWORD": postgresql.password, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (line,) = (line for line in said.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


def _near(postgresql: PostgreSQL, driver: Driver) -> dict[str, float]:
    with ExitStack() as stack:
        (port,) = _servers(stack, _storage(postgresql, "near"), 1)
        _create(port, "items", sort=True)
        put = driver.drive(port, _puts("PutItem", "items"), CONNECTIONS, SECONDS)
        loads = {"GetItem": _gets(), "UpdateItem": _updates("items"), "Query": _queries()}
        found = {
            name: driver.drive(port, load, CONNECTIONS, SECONDS) for name, load in loads.items()
        }
        for name, measured in {"PutItem": put, **found}.items():
            _expect_answers(name, measured)
    return {
        f"one server, {CONNECTIONS} connections, {name}/s": measured.requests_per_second
        for name, measured in {"PutItem": put, **found}.items()
    }


def _far(postgresql: PostgreSQL, driver: Driver) -> dict[str, float]:
    storage = _storage(postgresql, "far")
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(postgresql.port))
        proxy.delay_seconds = FAR_SECONDS
        ports = _servers(stack, storage.replace(f":{postgresql.port}/", f":{proxy.port}/"), 3)
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        _create(ports[0], "watched", StreamSpecification=stream)
        one = driver.drive(ports[0], _puts("One", "watched"), FAR_CONNECTIONS, SECONDS)
        three = _together(driver, ports, "Three", _puts, FAR_CONNECTIONS)
        proxy.delay_seconds = 0.0
        counters = _together(driver, ports, "Counter", _counts, CONNECTIONS // 3)
        for measured in (one, *three, *counters):
            _expect_answers("PutItem", measured)
    rate, rates = one.requests_per_second, sum(each.requests_per_second for each in three)
    return {
        "one far server, PutItem/s": rate,
        "three far servers, PutItem/s": rates,
        "three far servers, times one": rates / rate,
        "contended counter/s": sum(each.requests_per_second for each in counters),
        "contended counter, p99 ms": max(each.p99_ms for each in counters),
    }


def _together(
    driver: Driver, ports: list[int], name: str, load: Any, connections: int
) -> list[Measurement]:
    """One driver for each server, all at once."""
    with ThreadPoolExecutor(len(ports)) as pool:
        loads = [load(f"{name}{place}", "watched") for place in range(len(ports))]
        sent = [
            pool.submit(driver.drive, port, one, connections, SECONDS)
            for port, one in zip(ports, loads, strict=True)
        ]
        return [one.result() for one in sent]


def _expect_answers(name: str, measured: Measurement) -> None:
    assert not measured.refused and not measured.broken, f"{name}: {measured}"


def _storage(postgresql: PostgreSQL, name: str) -> str:
    url = postgresql.create(name)
    user = postgresql.user
    url = url.replace(f"{user}@", f"{user}:{quote(postgresql.password, safe='')}@")
    assert processes.run("storage", "init", url).returncode == 0
    return url


def _servers(stack: ExitStack, storage: str, count: int) -> list[int]:
    start = stack.enter_context(processes.starting())
    return [
        start("serve", "--port", "0", "--storage", storage, stderr=None).port for _ in range(count)
    ]


def _create(port: int, name: str, *, sort: bool = False, **more: Any) -> None:
    keys = {"pk": "HASH", **({"sk": "RANGE"} if sort else {})}
    client = Client(port)
    client.call(
        "CreateTable",
        {
            "TableName": name,
            "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
            "BillingMode": "PAY_PER_REQUEST",
            **more,
        },
    )
    client.close()


def _load(name: str, operation: str, bodies: list[dict[str, Any]]) -> Load:
    return Load(name, operation, [orjson.dumps(body) for body in bodies])


def _key(place: int, name: str) -> dict[str, Any]:
    if name != "items":
        return {"pk": {"S": f"k{place}"}}
    return {"pk": {"S": f"p{place // 10}"}, "sk": {"S": f"s{place % 10}"}}


def _puts(name: str, target: str) -> Load:
    text = {"text": {"S": "x" * 300}}
    own = {"items": 0}.get(target, hash(name) % 1000 * ITEMS)
    bodies = [
        {"TableName": target, "Item": {**_key(own + place, target), **text}}
        for place in range(ITEMS)
    ]
    return _load(name, "PutItem", bodies)


def _gets() -> Load:
    bodies = [
        {"TableName": "items", "Key": _key(place, "items"), "ConsistentRead": True}
        for place in range(ITEMS)
    ]
    return _load("GetItem", "GetItem", bodies)


def _updates(target: str) -> Load:
    change = {
        "UpdateExpression": "SET n = if_not_exists(n, :zero) + :one",
        "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}},
    }
    bodies = [{"TableName": target, "Key": _key(place, target), **change} for place in range(ITEMS)]
    return _load("UpdateItem", "UpdateItem", bodies)


def _queries() -> Load:
    bodies = [
        {
            "TableName": "items",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": f"p{place}"}},
        }
        for place in range(ITEMS // 10)
    ]
    return _load("Query", "Query", bodies)


def _counts(name: str, target: str) -> Load:
    change = {
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    body = {"TableName": target, "Key": {"pk": {"S": "counter"}}, **change}
    return _load(name, "UpdateItem", [body])


if __name__ == "__main__":
    main()
