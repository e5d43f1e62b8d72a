"""`python -m benchmarks.applications.pagehits`: the page hit counter, and the old one on
PostgreSQL, in one run.

Database on disk, web and counting are three processes; wrk posts batches of 100 visits as fast as
they are taken. At first most visits go to a few assets, as on real sites; then they are spread
evenly over a million, which is the worst case for memory. The spam filter is off, because the old
counter has none; `benchmarks.applications.spam` measures its cost. The figures go into
results/pagehits.json.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from benchmarks.drivers import wrk_driver
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from page_hit_counter.aws.aws_costs import read_prices
from page_hit_counter.legacy import counter_comparison
from page_hit_counter.legacy.counter_comparison import sample_visits
from page_hit_counter.legacy.relational_counter import PageHit, RelationalCounter
from page_hit_counter.processing.asset_catalogue import Asset, AssetCatalogue
from partita.client import Client
from partita.errors import PartitaError
from testkit.data.page_hit_pipeline import TYPES, Pipeline, asset_id, running, wait_for
from testkit.servers.database_servers import PostgreSQL

ASSETS = 1_000_000
BATCH = 100
BODIES = 2_000
CONNECTIONS = 8
SECONDS = 20
WINDOW_SECONDS = 60
LATENESS_SECONDS = 3
LIST_SECONDS = 10
LISTS_PER_SECOND = 2_000
LIST_CONNECTIONS = 16
LIST = "/?brand=abc&period=justnow"
DATABASE = "pagehits"
OLD_SECONDS = 10
VISITS_PER_SECOND_MIN = 20_000
TIMES_MIN = 10
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0"
SETTINGS = f"""
lateness_seconds = {LATENESS_SECONDS}
[[periods]]
name = "justnow"
code = "F"
seconds = {WINDOW_SECONDS}
count = 1
max_age_seconds = 30
[[periods]]
name = "day"
code = "H"
seconds = 3600
count = 24
max_age_seconds = 120
[[periods]]
name = "week"
code = "D"
seconds = 86400
count = 7
max_age_seconds = 300
[spam]
mode = "off"
"""
POST = """\
local bodies, at = {}, 0
function init(arguments)
  for body in io.lines("%s") do
    local headers = {["content-type"] = "application/json"}
    bodies[#bodies + 1] = wrk.format("POST", "/events", headers, body)
  end
end
function request()
  at = at %% #bodies + 1
  return bodies[at]
end
"""
DONE = """\
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"seconds":%f,"p99_us":%f,"failed":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(99),
    errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
"""


class Taken(NamedTuple):
    """The result of one load."""

    events_per_second: float
    """Over the time from the first posted visit to the last one that is counted and stored."""
    posted_per_second: float
    failed: int
    resident_mb: dict[str, float]


def main() -> None:
    options = _parser().parse_args()
    if options.lists:
        _compare_lists(options.lists)
        return
    results: dict[str, Any] = {"machine": machine.describe()}
    with tempfile.TemporaryDirectory(prefix="partita-pagehits-") as folder:
        results |= _measure_new(Path(folder), options.assets, options.seconds)
        if not options.without_old:
            results |= _measure_old()
    saved_results.keep(results, saved_results.PAGEHITS)
    say("\n\n".join(section(results)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.applications.pagehits", description=__doc__
    )
    parser.add_argument("--assets", type=int, default=ASSETS, help="in the catalogue")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each load")
    parser.add_argument("--without-old", action="store_true", help="leave PostgreSQL out")
    parser.add_argument(
        "--lists", type=int, default=0, metavar="RUNS", help="only runs of `pagehits compare`"
    )
    return parser


def _compare_lists(runs: int) -> None:
    """Compares uncached lists of a day, of both counters, on the same visits."""
    say(f"load {machine.describe()['load_at_start']:.1f} when it began")
    found = []
    with DurablePostgreSQL() as server:
        for number in range(runs):
            server.create(f"{DATABASE}{number}")
            password = quote(server.password, safe="")
            url = f"postgresql://postgres:{password}@127.0.0.1:{server.port}/{DATABASE}{number}"
            result = asyncio.run(
                counter_comparison.run(sample_visits(50_000), url, read_prices("today"))
            )
            found.append((result.old.first_lists_second, result.new.first_lists_second))
            say("lists/s, first read: {:.0f} on PostgreSQL, {:.0f} on Partita".format(*found[-1]))
    old, new = map(median, zip(*found, strict=True))
    say(f"medians of {runs} runs: {old:.0f} on PostgreSQL, {new:.0f} on Partita")


def _measure_new(folder: Path, assets: int, seconds: int) -> dict[str, Any]:
    path = wrk_driver.find()
    if path is None:
        raise PartitaError("wrk is not installed.")
    with running(folder, SETTINGS, parts=("processor,api", "counter,consumer")) as pipeline:
        say(f"putting {assets} assets into the catalogue")
        asyncio.run(_put_assets(pipeline, assets))
        results: dict[str, Any] = {"assets": assets}
        for name, choose in (("few", _mostly_few), ("all", _evenly)):
            say(f"posting visits of {name} assets for {seconds} s")
            bodies = _write_bodies(folder / f"{name}.jsonl", choose, assets)
            results[f"{name}_assets"] = _post(pipeline, path, bodies, seconds)._asdict()
        say("waiting for a window to close")
        results["served_after_seconds"] = _served_after(pipeline)
        say(f"asking for {LISTS_PER_SECOND} lists a second")
        results["lists"] = asyncio.run(_ask_steadily(pipeline))
        results["lists_per_second_max"] = _ask_at_most(pipeline, path, folder)
        return results


# Visits


def _mostly_few(chance: random.Random, assets: int) -> int:
    return min(int(chance.paretovariate(0.6)) - 1, assets - 1)


def _evenly(chance: random.Random, assets: int) -> int:
    return chance.randrange(assets)


def _write_bodies(path: Path, choose: Callable[[random.Random, int], int], assets: int) -> Path:
    chance = random.Random(1)
    with path.open("wb") as file:
        for _ in range(BODIES):
            batch = [_visit(chance, choose(chance, assets)) for _ in range(BATCH)]
            file.write(orjson.dumps(batch) + b"\n")
    return path


def _visit(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "assetId": asset_id(number),
        "sectionId": number % 40,
        "paidType": "free",
        "visitor": f"{chance.getrandbits(64):016x}",
        "url": f"https://www.abc.example/article/{asset_id(number)}",
        "agent": AGENT,
    }


async def _put_assets(pipeline: Pipeline, count: int) -> None:
    client = Client(pipeline.endpoint)
    catalogue = AssetCatalogue(client, "pagehits-assets", entries_max=1_000)
    numbers = iter(range(count))

    async def put_some() -> None:
        while some := [number for _, number in zip(range(500), numbers, strict=False)]:
            await catalogue.put({asset_id(n): Asset("abc", TYPES[n % 3]) for n in some})

    await asyncio.gather(*(put_some() for _ in range(8)))
    await client.close()


def _post(pipeline: Pipeline, path: str, bodies: Path, seconds: int) -> Taken:
    script = bodies.with_suffix(".lua")
    script.write_text(POST % bodies + DONE)
    before = pipeline.get("/brands")[2]["counted"]
    began = time.monotonic()
    result = _run_wrk(path, script, pipeline.url("processor"), CONNECTIONS, seconds)
    posted = result["requests"] * BATCH
    wait_for(lambda: pipeline.get("/brands")[2]["counted"] - before >= posted)
    took = time.monotonic() - began
    return Taken(posted / took, posted / result["seconds"], result["failed"], _resident(pipeline))


def _run_wrk(path: str, script: Path, url: str, connections: int, seconds: int) -> dict[str, Any]:
    arguments = ["--threads=1", f"--connections={connections}", f"--duration={seconds}s"]
    said = subprocess.run(
        [path, *arguments, "--timeout=30s", f"--script={script}", url],
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=True,
    ).stdout
    result: dict[str, Any] = orjson.loads(said.strip().splitlines()[-1])
    return result


def _resident(pipeline: Pipeline) -> dict[str, float]:
    resident = {}
    for name, server in pipeline.running.items():
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        kilobytes = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        resident[name] = int(kilobytes.split()[1]) / 1024
    return resident


# Lists


def _served_after(pipeline: Pipeline) -> float:
    """Returns the time from a window's close (end plus lateness) until its list is served."""
    now = time.time()
    end = now // WINDOW_SECONDS * WINDOW_SECONDS + WINDOW_SECONDS
    stop = threading.Event()
    visitors = threading.Thread(target=_visit_until, args=(pipeline, stop))
    visitors.start()
    try:
        stamp = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(end))
        wait_for(lambda: pipeline.get(LIST)[2]["lists"][0]["until"] == stamp, 2 * WINDOW_SECONDS)
        served = time.time()
    finally:
        stop.set()
        visitors.join()
    assert pipeline.get(LIST)[2]["lists"][0]["hits"]
    return served - (end + LATENESS_SECONDS)


def _visit_until(pipeline: Pipeline, stop: threading.Event) -> None:
    chance = random.Random(2)
    while not stop.wait(0.05):
        pipeline.post([_visit(chance, _mostly_few(chance, 10_000)) for _ in range(BATCH)])


async def _ask_steadily(pipeline: Pipeline) -> dict[str, float]:
    """Sends requests at a fixed rate; the latency counts from when a request was due."""
    host, port = pipeline.url("api").removeprefix("http://").split(":")
    request = f"GET {LIST} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    latencies: list[float] = []
    began = time.monotonic() + 0.1

    async def ask_on(place: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for due in _due(began, place):
            await asyncio.sleep(due - time.monotonic())
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(time.monotonic() - due)
        writer.close()

    await asyncio.gather(*(ask_on(place) for place in range(LIST_CONNECTIONS)))
    latencies.sort()
    took = time.monotonic() - began
    return {
        "per_second": len(latencies) / took,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }


def _due(began: float, place: int) -> Iterator[float]:
    total = LISTS_PER_SECOND * LIST_SECONDS
    return (began + n / LISTS_PER_SECOND for n in range(place, total, LIST_CONNECTIONS))


def _ask_at_most(pipeline: Pipeline, path: str, folder: Path) -> float:
    script = folder / "lists.lua"
    script.write_text(DONE)
    url = f"{pipeline.url('api')}{LIST}"
    result = _run_wrk(path, script, url, LIST_CONNECTIONS, LIST_SECONDS)
    assert not result["failed"]
    return float(result["requests"] / result["seconds"])


# The old counter


class DurablePostgreSQL(PostgreSQL):
    """PostgreSQL that syncs to its disk, unlike in tests, because the new counter does too."""

    def command(self) -> list[str]:
        return [option.replace("--fsync=off", "--fsync=on") for option in super().command()]


def _measure_old() -> dict[str, Any]:
    """Measures the old counter with the same batches, by direct calls instead of HTTP requests."""
    say(f"the old counter on PostgreSQL, for {OLD_SECONDS} s")
    with DurablePostgreSQL() as server:
        server.create(DATABASE)
        with closing(RelationalCounter(server.connect(DATABASE))) as counter:
            counter.create()
        return {
            "old_connections": CONNECTIONS,
            "old_events_per_second": _at_a_time(server, _count_old, CONNECTIONS),
            "old_lists_per_second": _at_a_time(server, _ask_old, LIST_CONNECTIONS),
        }


def _at_a_time(
    server: PostgreSQL, work: Callable[[RelationalCounter, random.Random], int], connections: int
) -> float:
    """Counts on as many connections as the new counter has, each in a thread."""
    done: list[int] = []
    ends = time.monotonic() + OLD_SECONDS

    def work_on(seed: int) -> None:
        chance = random.Random(seed)
        with closing(RelationalCounter(server.connect(DATABASE))) as counter:
            while time.monotonic() < ends:
                done.append(work(counter, chance))

    threads = [threading.Thread(target=work_on, args=(n,)) for n in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / OLD_SECONDS


def _count_old(counter: RelationalCounter, chance: random.Random) -> int:
    # In order of the key, so that two connections do not wait for each other in a circle.
    numbers = sorted(_mostly_few(chance, ASSETS) for _ in range(BATCH))
    now = time.time()
    counter.count([PageHit(asset_id(n), 1, n % 40, TYPES[n % 3], "free", now) for n in numbers])
    return BATCH


def _ask_old(counter: RelationalCounter, chance: random.Random) -> int:
    counter.most_popular("justnow", time.time() + 60)
    return 1


def section(results: dict[str, Any] | None) -> list[str]:
    """The section of the benchmarks page."""
    if results is None:
        return []
    few, evenly = results["few_assets"], results["all_assets"]
    old_visits = results.get("old_events_per_second")
    old_lists = results.get("old_lists_per_second")
    lists_max = results["lists_per_second_max"]
    lines = [
        [
            "visits/s, most of them to a few assets",
            f"{few['events_per_second']:,.0f}",
            f"{VISITS_PER_SECOND_MIN:,}",
            *_against(few["events_per_second"], old_visits),
        ],
        [
            f"visits/s, evenly to {results['assets']:,} assets",
            f"{evenly['events_per_second']:,.0f}",
            f"{VISITS_PER_SECOND_MIN:,}",
            "",
            "",
        ],
        ["cached lists/s", f"{lists_max:,.0f}", "", *_against(lists_max, old_lists)],
        _figure("cached list, p99 at 2,000/s", f"{results['lists']['p99_ms']:.1f} ms", "5 ms"),
        _figure(
            "time until a closed window is served",
            f"{results['served_after_seconds']:.1f} s",
            "5 s",
        ),
        _figure("memory of web and counting", f"{_services_mb(evenly):,.0f} MB", "bounded"),
    ]
    text = (
        "`python -m benchmarks.applications.pagehits`: "
        f"batches of {BATCH} visits over HTTP for {SECONDS} s, "
        "from the first that is posted to the last that is counted and on disk; the old counter "
        f"gets the same batches on {results.get('old_connections', 4)} connections to a durable "
        "PostgreSQL, and is asked for lists that it does not cache. "
        f"{origin(results['machine'])}"
    )
    head = ["", "measured", "at least / at most", "old counter", f"times (goal: {TIMES_MIN})"]
    return ["## The page hit counter", text, table(head, lines)]


def _against(measured: float, old: float | None) -> list[str]:
    return ["", ""] if old is None else [f"{old:,.0f}", f"**{measured / old:.1f}x**"]


def _figure(name: str, measured: str, target: str) -> list[str]:
    return [name, measured, target, "", ""]


def _services_mb(taken: dict[str, Any]) -> float:
    return float(sum(mb for name, mb in taken["resident_mb"].items() if name != "database"))


if __name__ == "__main__":
    main()
