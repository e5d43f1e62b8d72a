"""`python -m benchmarks.database.watched`: the cost of a stream and of insights for PutItem.

One durable server, three tables: a plain one, one with a stream, one with a stream and insights.
Each is driven in turn, several times, and the rates are compared pairwise, so that a change in the
machine's mood meets all of them. The figures go into results/watched.json.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.drivers import driver_choice
from benchmarks.drivers.load import Load
from benchmarks.drivers.single_request import Client
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import SERVERS, Running
from benchmarks.servers.peers import PEERS
from benchmarks.workload import dataset
from benchmarks.workload.dataset import Json
from benchmarks.workload.operations import VERSIONS

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
TABLES: dict[str, Json] = {
    "plain": {},
    "stream": {"StreamSpecification": STREAM},
    "stream and insights": {"StreamSpecification": STREAM},
}
ITEMS = 2_000
CONNECTIONS = 16
WARM_UP_SECONDS = 1
SECONDS = 4
ROUNDS = 5
SHARE_MIN = 0.7


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.WATCHED)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    PEERS.mkdir(exist_ok=True)
    (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", "disk"))
    with tempfile.TemporaryDirectory(prefix="watched-", dir=PEERS) as name:
        folder = Path(name)
        results: dict[str, Any] = {"machine": machine.describe()}
        with closing(Running(server, folder / "data")) as running:
            _create_tables(running)
            driver = driver_choice.choose(folder)
            loads = {kind: _puts(kind) for kind in TABLES}
            for load in loads.values():
                driver.drive(running.port, load, CONNECTIONS, WARM_UP_SECONDS)
            rates: dict[str, list[float]] = {kind: [] for kind in TABLES}
            for _ in range(ROUNDS):
                for kind, load in loads.items():
                    running.settle()
                    done = driver.drive(running.port, load, CONNECTIONS, SECONDS)
                    rates[kind].append(done.requests_per_second)
        results["rates"] = {kind: median(found) for kind, found in rates.items()}
        results["shares"] = {
            kind: median(one / plain for one, plain in zip(found, rates["plain"], strict=True))
            for kind, found in rates.items()
        }
    return results


def _name(kind: str) -> str:
    return f"bench-{kind.replace(' ', '-')}"


def _create_tables(running: Running) -> None:
    definition = dataset.tables()[1]
    with closing(Client(running.port)) as client:
        for kind, more in TABLES.items():
            client.call("CreateTable", {**definition, **more, "TableName": _name(kind)})
        client.call(
            "UpdateContributorInsights",
            {
                "TableName": _name("stream and insights"),
                "ContributorInsightsAction": "ENABLE",
            },
        )


def _puts(kind: str) -> Load:
    bodies = [
        orjson.dumps({"TableName": _name(kind), "Item": dataset.item("watched", number, version)})
        for version in VERSIONS
        for number in range(ITEMS)
    ]
    return Load(_name(kind), "PutItem", bodies)


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    lines = [
        [kind, f"{results['rates'][kind]:,.0f}", f"**{share:.0%}**", f"{SHARE_MIN:.0%}"]
        for kind, share in results["shares"].items()
    ]
    text = (
        "`python -m benchmarks.database.watched`: "
        "durable PutItem per second to three tables of one server, "
        f"{CONNECTIONS} connections, {ROUNDS} times {SECONDS} s in turn; the share is the median "
        f"of the pairwise ratios. {origin(results['machine'])}"
    )
    head = ["table", "PutItem/s", "share of plain", "at least"]
    return ["## Streams and insights", text, table(head, lines)]


if __name__ == "__main__":
    main()
