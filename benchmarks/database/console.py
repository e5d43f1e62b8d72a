"""`python -m benchmarks.database.console`: the cost of the console for requests that do not use it.

Two durable servers, one without a console and one whose pages were opened. Each is driven in turn,
several times, and the rates are compared pairwise, so that other load of the machine affects both.
 The figures go into results/console.json.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import orjson

from benchmarks.drivers import driver_choice
from benchmarks.drivers.load import Load
from benchmarks.drivers.single_request import HOST, Client
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import Running, Server, partita
from benchmarks.servers.peers import PEERS
from benchmarks.workload import dataset
from benchmarks.workload.operations import VERSIONS

KINDS = ("off", "on")
TABLE = "bench-console"
ITEMS = 20_000
CONNECTIONS = 16
WARM_UP_SECONDS = 1
SECONDS = 3
ROUNDS = 7


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.CONSOLE)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    PEERS.mkdir(exist_ok=True)
    results: dict[str, Any] = {"machine": machine.describe(), "operations": {}}
    with tempfile.TemporaryDirectory(prefix="console-", dir=PEERS) as name, ExitStack() as opened:
        folder = Path(name)
        driver = driver_choice.choose(folder)
        running = {kind: opened.enter_context(closing(_started(kind, folder))) for kind in KINDS}
        for load in _loads():
            rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
            costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for number in range(ROUNDS + 1):
                seconds = SECONDS if number else WARM_UP_SECONDS
                # Each server is first as often as it is second.
                order = KINDS if number % 2 else KINDS[::-1]
                for kind in order:
                    server = running[kind]
                    server.settle()
                    began = server.processor_seconds()
                    done = driver.drive(server.port, load, CONNECTIONS, seconds)
                    spent = server.processor_seconds() - began
                    if number:
                        rates[kind].append(done.requests_per_second)
                        costs[kind].append(spent / done.requests * 1e6)
            results["operations"][load.target] = {
                "rates": {kind: median(found) for kind, found in rates.items()},
                "microseconds": {kind: median(found) for kind, found in costs.items()},
                "share": _ratio(rates),
                "cost": _ratio(costs),
            }
    return results


def _ratio(found: dict[str, list[float]]) -> float:
    return median(on / off for on, off in zip(found["on"], found["off"], strict=True))


def _started(kind: str, folder: Path) -> Running:
    server = Server("partita", "disk", partita("--console", kind, on_disk=True))
    running = Running(server, folder / kind)
    with closing(Client(running.port)) as client:
        client.call("CreateTable", {**dataset.tables()[1], "TableName": TABLE})
    if kind == "on":
        for page in ("/console", "/console/api/session"):
            with urlopen(f"http://{HOST}:{running.port}{page}") as answer:
                answer.read()
    return running


def _loads() -> list[Load]:
    items = [dataset.item("console", n, version) for version in VERSIONS for n in range(ITEMS)]
    keys = [key["AttributeName"] for key in dataset.tables()[1]["KeySchema"]]
    puts = [orjson.dumps({"TableName": TABLE, "Item": item}) for item in items]
    gets = [
        orjson.dumps({"TableName": TABLE, "Key": {name: item[name] for name in keys}})
        for item in items[:ITEMS]
    ]
    return [Load(TABLE, "PutItem", puts), Load(TABLE, "GetItem", gets)]


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    lines = [
        [
            name,
            *(f"{found['rates'][kind]:,.0f}" for kind in KINDS),
            f"{found['share']:.1%}",
            *(f"{found['microseconds'][kind]:.1f}" for kind in KINDS),
            f"**{found['cost']:.1%}**",
        ]
        for name, found in results["operations"].items()
    ]
    text = (
        "`python -m benchmarks.database.console`: "
        "requests per second to a durable server without a console "
        f"and to one whose pages were opened, {CONNECTIONS} connections, {ROUNDS} times {SECONDS} "
        "s in turn, and the time that the server's processor takes for one request, which a busy "
        "machine changes less; shares are medians of the pairwise ratios. "
        f"{origin(results['machine'])}"
    )
    head = ["operation", "off/s", "on/s", "share", "off, \u00b5s", "on, \u00b5s", "cost of on"]
    return ["## The console", text, table(head, lines)]


if __name__ == "__main__":
    main()
