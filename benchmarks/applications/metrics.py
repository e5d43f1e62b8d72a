"""`python -m benchmarks.applications.metrics`: reads/s of the metric catalogue, from MariaDB and
from DynamoDB.

One catalogue of 20,000 metrics in a private MariaDB and in a durable Partita, with one server of
the catalogue in each mode. wrk requests metrics by name, from both modes in turn, several times.
The figures go into results/metrics.json.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.drivers import wrk_driver
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import ROOT, SERVERS, Running
from benchmarks.servers.peers import PEERS
from metric_catalogue import catalogue_service
from metric_catalogue.migration import copy_to_dynamodb, dimensions_and_groups
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from partita.errors import PartitaError
from testkit.data.metric_population import fill
from testkit.servers.database_servers import MariaDB

METRICS = 20_000
CONNECTIONS = 64
WARM_UP_SECONDS = 2
SECONDS = 5
ROUNDS = 5
MODES = ("legacy", "dynamodb")
TIMES_FASTER_MIN = 3.0
READS_PER_SECOND_MIN = 100 * 8_000_000 / 86_400
"""A hundred times the reads of the platform that the catalogue is modelled on."""
DATABASE = "metrics"
SCRIPT = """\
function request()
  return wrk.format("GET", "/metrics/m" .. math.random(1, %d))
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%%d,"seconds":%%f,"p50_us":%%f,"p99_us":%%f,"failed":%%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
"""


class TunedMariaDB(MariaDB):
    """MariaDB tuned to read as fast as possible: all data in memory, and no instrumentation."""

    def command(self) -> list[str]:
        plain = [part for part in super().command() if "performance-schema" not in part]
        return [*plain, "--innodb-buffer-pool-size=512M"]


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.METRICS)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    described = machine.describe()
    PEERS.mkdir(exist_ok=True)
    path = wrk_driver.find()
    if path is None:
        raise PartitaError("wrk is not installed: run `apt-get install wrk`.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory("-metrics", dir=PEERS)))
        (server,) = (one for one in SERVERS if (one.name, one.mode) == ("partita", "disk"))
        partita = stack.enter_context(closing(Running(server, folder / "data")))
        mariadb = stack.enter_context(TunedMariaDB())
        mysql, endpoint = mariadb.create(DATABASE), f"http://127.0.0.1:{partita.port}"
        os.environ["PARTITA_METRICS_PASSWORD"] = mariadb.password
        asyncio.run(fill_both(mariadb, mysql, endpoint))
        where = {"legacy": ["--mysql", mysql], "dynamodb": ["--endpoint", endpoint]}
        urls = {mode: stack.enter_context(served(mode, where[mode])) for mode in MODES}
        script = folder / "reads.lua"
        script.write_text(SCRIPT % METRICS)
        rounds: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
        for seconds in [WARM_UP_SECONDS, *[SECONDS] * ROUNDS]:
            for mode in MODES:
                answer = drive(path, script, urls[mode], seconds)
                if seconds == SECONDS:
                    rounds[mode].append(answer)
                    say(f"{mode}: {answer['requests'] / answer['seconds']:,.0f} reads/s")
    return {"machine": described, "rounds": rounds}


async def fill_both(mariadb: MariaDB, mysql: str, endpoint: str) -> None:
    """Writes the same catalogue to both databases."""
    say(f"{METRICS:,} metrics into both databases")
    async with catalogue_service.open_stores(mysql, endpoint, CatalogueTables()) as stores:
        assert stores.mariadb and stores.dynamodb
        names = fill(mariadb, DATABASE, METRICS)
        await dimensions_and_groups.copy_to_dynamodb(stores.mariadb, stores.dynamodb)
        places = asyncio.Semaphore(16)

        async def migrate(name: str) -> None:
            assert stores.mariadb and stores.dynamodb
            async with places:
                await copy_to_dynamodb.migrate_one(stores.mariadb, stores.dynamodb, name)

        await asyncio.gather(*map(migrate, names))


@contextmanager
def served(mode: str, where: list[str]) -> Iterator[str]:
    """Runs a server of the catalogue with these options, and yields its URL."""
    command = [sys.executable, "-m", "partita.cli", "metrics", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--mode", mode, *where], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        ready = re.search(r"http://\S+", process.stdout.readline())
        assert ready is not None
        yield ready.group()
    finally:
        process.terminate()
        process.wait()


def drive(
    path: str, script: Path, url: str, seconds: int, connections: int = CONNECTIONS
) -> dict[str, float]:
    options = ["--threads=1", f"--connections={connections}", f"--duration={seconds}s"]
    said = subprocess.run(
        [path, *options, f"--script={script}", url], capture_output=True, text=True, check=True
    ).stdout
    answer: dict[str, float] = orjson.loads(said.strip().splitlines()[-1])
    if answer["failed"]:
        raise PartitaError(f"{answer['failed']:.0f} reads failed at {url}.")
    return answer


def section(results: dict[str, Any] | None) -> list[str]:
    """The section of the benchmarks page."""
    if results is None:
        return []
    rates = {
        mode: [answer["requests"] / answer["seconds"] for answer in results["rounds"][mode]]
        for mode in MODES
    }
    faster = median(new / old for old, new in zip(rates["legacy"], rates["dynamodb"], strict=True))
    rows = [
        [
            mode,
            f"{median(rates[mode]):,.0f}",
            f"{median(answer['p50_us'] for answer in results['rounds'][mode]) / 1000:.1f}",
            f"{median(answer['p99_us'] for answer in results['rounds'][mode]) / 1000:.1f}",
        ]
        for mode in MODES
    ]
    reached = median(rates["dynamodb"])
    return [
        "## The metric catalogue",
        "`python -m benchmarks.applications.metrics`: "
        f"GET /metrics/NAME of {METRICS:,} metrics, {CONNECTIONS} "
        f"connections, medians of {ROUNDS} rounds of {SECONDS} s, both modes in turn. "
        f"{origin(results['machine'])}",
        table(["mode", "reads/s", "p50 ms", "p99 ms"], rows),
        f"DynamoDB mode is {faster:.1f} times as fast (goal: {TIMES_FASTER_MIN:.0f}) and answers "
        f"{reached:,.0f} reads/s (goal: {READS_PER_SECOND_MIN:,.0f}).",
    ]


if __name__ == "__main__":
    main()
