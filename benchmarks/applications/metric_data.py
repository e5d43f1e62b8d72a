"""`python -m benchmarks.applications.metric_data`: values/s of GetMetricData, with 20,000 metrics.

The catalogue of `benchmarks.applications.metrics`, a third of it hybrid, in a private MariaDB and
in a durable Partita; a week of daily values of every primitive metric in Partita. wrk asks for
values of all metrics at random: of one day, and every fifth time of the whole week: first as fast
as the server answers, then with pauses that make about as many requests a second as the goal has.
Servers take turns: one with definitions in MariaDB, one with them in DynamoDB, each with its cache
and without any. The figures go into results/metric_data.json.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.applications.metrics import (
    DATABASE,
    METRICS,
    TunedMariaDB,
    drive,
    fill_both,
    served,
)
from benchmarks.drivers import wrk_driver
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import SERVERS, Running
from benchmarks.servers.peers import PEERS
from metric_catalogue.data.value_store import StoredValue, ValueStore
from metric_catalogue.stores.dynamodb.batched_reads import BatchedReads
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables, create_tables
from partita.client import Client
from partita.errors import PartitaError

CONNECTIONS = 16
DAYS = 7
WARM_UP_SECONDS = 2
SECONDS = 5
ROUNDS = 3
STEADY_CONNECTIONS = 32
PAUSE_MS = (4, 12)
"""The random pause before a request: with responses in 2 ms, 32 connections send 3,200 a second."""
REQUESTS_PER_SECOND_MIN = 3000
P99_MS_MAX = 20
THESIS_REQUESTS_PER_SECOND = 8_000_000 / 86_400
SCRIPT = """\
function request()
  local path = "/metrics/m" .. math.random(%d, %d) .. "/data?"
  if math.random(5) == 1 then
    return wrk.format("GET", path .. "start=2026-01-01&end=2026-02-01")
  end
  return wrk.format("GET", path .. "time=2026-01-0" .. math.random(1, %d))
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%%d,"seconds":%%f,"p50_us":%%f,"p99_us":%%f,"failed":%%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
"""
PAUSE = """\
function delay()
  return math.random(%d, %d)
end
"""
FIRST_METRIC = 10
"""The first hybrid metrics of the catalogue have no metric to consume."""
SERVED = {
    "legacy": ("legacy", []),
    "legacy, no cache": ("legacy", ["--cache-seconds", "0"]),
    "dynamodb": ("dynamodb", []),
    "dynamodb, no cache": ("dynamodb", ["--cache-seconds", "0"]),
}
"""The mode and the options of each server."""
TABLES = {"legacy": CatalogueTables("legacy-metrics"), "dynamodb": CatalogueTables()}


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.METRIC_DATA)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    described = machine.describe()
    PEERS.mkdir(exist_ok=True)
    path = wrk_driver.find()
    if path is None:
        raise PartitaError("wrk is not installed: run `apt-get install wrk`.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory("-values", dir=PEERS)))
        (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", "disk"))
        partita = stack.enter_context(closing(Running(server, folder / "data")))
        mariadb = stack.enter_context(TunedMariaDB())
        mysql, endpoint = mariadb.create(DATABASE), f"http://127.0.0.1:{partita.port}"
        os.environ["PARTITA_METRICS_PASSWORD"] = mariadb.password
        asyncio.run(fill_both(mariadb, mysql, endpoint))
        count = asyncio.run(_fill_values(endpoint))
        script, steady = folder / "data.lua", folder / "steady.lua"
        script.write_text(SCRIPT % (FIRST_METRIC, METRICS, DAYS))
        steady.write_text(script.read_text() + PAUSE % PAUSE_MS)
        loads = {"rounds": (script, CONNECTIONS), "steady": (steady, STEADY_CONNECTIONS)}
        measured: dict[str, dict[str, list[dict[str, float]]]] = {load: {} for load in loads}
        for name, (mode, options) in SERVED.items():
            # Two catalogues in DynamoDB, because all servers of one agree on the mode.
            where = ["--endpoint", endpoint, "--table", TABLES[mode].metrics, *options]
            if mode == "legacy":
                where = [*where, "--mysql", mysql]
            with served(mode, where) as url:
                drive(path, script, url, WARM_UP_SECONDS, CONNECTIONS)
                for load, (how, connections) in loads.items():
                    measured[load][name] = _measure_one(name, path, how, url, connections)
    return {"machine": described, "values": count, **measured}


async def _fill_values(endpoint: str) -> int:
    chance = random.Random(1)
    values = [
        StoredValue(
            f"m{number}",
            "",
            f"2026-01-0{day}T00:00:00.000Z",
            Decimal(chance.randrange(1, 10**9)).scaleb(-3),
            Decimal(1),
            1,
        )
        for number in range(1, METRICS + 1)
        if number % 3
        for day in range(1, DAYS + 1)
    ]
    say(f"{len(values):,} values")
    client = Client(endpoint)
    for tables in TABLES.values():
        await create_tables(client, tables)
        await ValueStore(BatchedReads(client), tables, 0, lambda: 0.0).put(values)
    await client.close()
    return len(values)


def _measure_one(
    name: str, path: str, script: Path, url: str, connections: int
) -> list[dict[str, float]]:
    rounds = []
    for _ in range(ROUNDS):
        rounds.append(drive(path, script, url, SECONDS, connections))
        rate = rounds[-1]["requests"] / rounds[-1]["seconds"]
        say(f"{name}: {rate:,.0f} requests/s, p99 {rounds[-1]['p99_us'] / 1000:.1f} ms")
    return rounds


def section(results: dict[str, Any] | None) -> list[str]:
    """The section of the benchmarks page."""
    if results is None:
        return []
    most = {name: _medians(rounds) for name, rounds in results["rounds"].items()}
    steady = {name: _medians(rounds) for name, rounds in results["steady"].items()}
    rows = [
        [
            name,
            f"{most[name].rate:,.0f}",
            f"{most[name].p50_ms:.1f}",
            f"{most[name].p99_ms:.1f}",
            f"{steady[name].rate:,.0f}",
            f"{steady[name].p99_ms:.1f}",
            f"{most[name].rate / THESIS_REQUESTS_PER_SECOND:.0f}",
        ]
        for name in most
    ]
    goal = [
        name
        for name, one in steady.items()
        if one.rate >= REQUESTS_PER_SECOND_MIN and one.p99_ms <= P99_MS_MAX
    ]
    faster = most["dynamodb"].rate / most["legacy"].rate
    faster_uncached = most["dynamodb, no cache"].rate / most["legacy, no cache"].rate
    heads = ["definitions in", "requests/s", "p50 ms", "p99 ms"]
    heads += ["with pauses: requests/s", "p99 ms", "times 8 million a day"]
    return [
        "## GetMetricData",
        "`python -m benchmarks.applications.metric_data`: "
        f"values of {METRICS:,} metrics, a third of them "
        f"hybrid, from {results['values']:,} stored values, medians of {ROUNDS} rounds of "
        f"{SECONDS} s: {CONNECTIONS} connections as fast as they are answered, and "
        f"{STEADY_CONNECTIONS} with pauses of {PAUSE_MS[0]} to {PAUSE_MS[1]} ms. "
        f"{origin(results['machine'])}",
        table(heads, rows),
        f"Goal: {REQUESTS_PER_SECOND_MIN:,} requests/s at p99 {P99_MS_MAX} ms, reached by: "
        f"{', '.join(goal) or 'none'}. Definitions in DynamoDB answer {faster:.1f} times as many "
        f"requests as definitions in MariaDB, and {faster_uncached:.1f} times without the cache.",
    ]


class Medians(NamedTuple):
    rate: float
    p50_ms: float
    p99_ms: float


def _medians(rounds: list[dict[str, float]]) -> Medians:
    return Medians(
        median(one["requests"] / one["seconds"] for one in rounds),
        median(one["p50_us"] for one in rounds) / 1000,
        median(one["p99_us"] for one in rounds) / 1000,
    )


if __name__ == "__main__":
    main()
