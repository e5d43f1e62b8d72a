"""`python -m benchmarks.database.shared`: servers over PostgreSQL, compared with PostgreSQL itself.

A private PostgreSQL that waits for the disk. One server with 64 connections, its writes between two
runs of `pgbench`, so that whatever else the machine does is in both; then, with 5 ms on the way to
the database and back, one and three servers in turns with 16 connections each on one table with a
stream; then a counter that 64 clients of three servers count up, none of which may be lost. The
figures go into results/shared.json, each with what it should be.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from benchmarks.drivers import driver_choice
from benchmarks.drivers.load import Driver, Load, Measurement
from benchmarks.drivers.single_request import Client
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import table
from benchmarks.run import say
from benchmarks.servers import machine
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL, find
from testkit.servers.proxy import Proxy

SECONDS = 6
TURNS = 2
ITEMS = 60_000
CONNECTIONS = 64
FAR_CONNECTIONS = 16
FAR_SECONDS = 0.0025
"""The simulated latency in each direction."""
UPSERT = (
    "\\set k random(1, 60000)\n"
    "INSERT INTO bench VALUES ('key ' || :k, repeat('x', 300))"
    " ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value;\n"
)


class SyncedPostgreSQL(PostgreSQL):
    def __init__(self) -> None:
        super().__init__()
        # Not in memory, because the disk is part of the measurement.
        self.folder = Path(tempfile.mkdtemp(prefix="partita-bench-"))

    def command(self) -> list[str]:
        settings = ("--fsync=on", "--max_connections=100", "--shared_buffers=512MB")
        return [*(one for one in super().command() if "max_conn" not in one), *settings]


class Figure(NamedTuple):
    measured: float
    target: float = 0.0
    """The minimum; if it is negative, its absolute value is the maximum."""

    @property
    def verdict(self) -> str:
        if not self.target:
            return ""
        is_met = self.measured >= self.target if self.target > 0 else self.measured <= -self.target
        return "yes" if is_met else "no"


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.database.shared", description=__doc__
    ).parse_args()
    figures = measure()
    results = {
        "machine": machine.describe(),
        "figures": {name: figure._asdict() for name, figure in figures.items()},
    }
    saved_results.keep(results, saved_results.RESULTS / "shared.json")
    lines = [
        (name, f"{one.measured:,.1f}", f"{abs(one.target):,.1f}" if one.target else "", one.verdict)
        for name, one in figures.items()
    ]
    say("\n" + table(("figure", "measured", "target", "met"), lines))


def measure() -> dict[str, Figure]:
    with SyncedPostgreSQL() as postgresql, tempfile.TemporaryDirectory() as folder:
        postgresql.create("bench", "CREATE TABLE bench (key text PRIMARY KEY, value text)")
        driver = driver_choice.choose(Path(folder))
        return {
            **_near(postgresql, driver, Path(folder)),
            **_far(postgresql, driver),
        }


def _pgbench(postgresql: PostgreSQL, folder: Path) -> float:
    """Runs pgbench on 16 connections, as in DEPENDENCIES.md."""
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


def _near(postgresql: PostgreSQL, driver: Driver, folder: Path) -> dict[str, Figure]:
    with ExitStack() as stack:
        (port,) = _servers(stack, _storage(postgresql, "near"), 1)
        _create(port, "items", sort=True)
        driver.drive(port, _puts("First", "items"), CONNECTIONS, SECONDS)
        upserts, puts = [_pgbench(postgresql, folder)], []
        for turn in range(TURNS):
            puts.append(_rate(driver, port, _puts(f"PutItem{turn}", "items")))
            upserts.append(_pgbench(postgresql, folder))
        put, upsert = sum(puts) / len(puts), sum(upserts) / len(upserts)
        get, update = _rate(driver, port, _gets()), _rate(driver, port, _updates("items"))
        query = _rate(driver, port, _queries())
    one = f"one server, {CONNECTIONS} connections,"
    return {
        "pgbench, one-row upserts/s": Figure(upsert),
        f"{one} PutItem/s": Figure(put, min(5000.0, upsert / 2)),
        f"{one} PutItem, of pgbench": Figure(put / upsert),
        f"{one} GetItem/s": Figure(get, 6000.0),
        f"{one} UpdateItem/s": Figure(update, put / 2),
        f"{one} Query of 10 items/s": Figure(query, 2000.0),
    }


def _rate(driver: Driver, port: int, load: Load) -> float:
    measured = driver.drive(port, load, CONNECTIONS, SECONDS)
    _expect_answers(load.name, measured)
    return measured.requests_per_second


def _far(postgresql: PostgreSQL, driver: Driver) -> dict[str, Figure]:
    storage = _storage(postgresql, "far")
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(postgresql.port))
        proxy.delay_seconds = FAR_SECONDS
        ports = _servers(stack, storage.replace(f":{postgresql.port}/", f":{proxy.port}/"), 3)
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        _create(ports[0], "watched", StreamSpecification=stream)
        one, three = 0.0, 0.0
        for turn in range(TURNS):
            one += _rates(_together(driver, ports[:1], f"One{turn}", _puts, FAR_CONNECTIONS))
            three += _rates(_together(driver, ports, f"Three{turn}", _puts, FAR_CONNECTIONS))
        proxy.delay_seconds = 0.0
        counters = _together(driver, ports, "Counter", _counts, CONNECTIONS // 3)
        counted = _rates(counters)
        lost = sum(each.requests for each in counters) - _counter(ports[0])
    return {
        "one far server, PutItem/s": Figure(one / TURNS),
        "three far servers, PutItem/s": Figure(three / TURNS),
        "three far servers, times one": Figure(three / one, 2.5),
        "contended counter/s": Figure(counted, 1000.0),
        "contended counter, longest p99 ms": Figure(max(one.p99_ms for one in counters), -2000.0),
        "contended counter, lost updates": Figure(max(0, lost), -0.5),
    }


def _rates(measured: list[Measurement]) -> float:
    for each in measured:
        _expect_answers("far", each)
    return sum(each.requests_per_second for each in measured)


def _counter(port: int) -> int:
    client = Client(port)
    key = {"pk": {"S": "counter"}}
    found = client.call("GetItem", {"TableName": "watched", "Key": key, "ConsistentRead": True})
    client.close()
    return int(found["Item"]["n"]["N"])


def _together(
    driver: Driver, ports: list[int], name: str, load: Any, connections: int
) -> list[Measurement]:
    """Runs a driver for each server, all at once."""
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
    # Another value each time, because an unchanged item is not written.
    text = {"text": {"S": f"{name:x<300}"}}
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
