"""`python -m benchmarks`: measures, saves the figures in results/latest.json, writes the report."""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from benchmarks.applications import metric_data, metrics, pagehits
from benchmarks.database import console, large_requests, mixed, scaling, watched
from benchmarks.drivers import driver_choice
from benchmarks.reporting import saved_results
from benchmarks.reporting.report import Report
from benchmarks.run import Plan, Results, run, say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import NAMES, ROOT, SERVERS
from benchmarks.servers.peers import PEERS
from benchmarks.suite import report as suite
from benchmarks.workload.operations import OPERATIONS

PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"
PLOT = ROOT / "docs" / "pictures" / "benchmarks.svg"

CONNECTIONS = [1, 16, 64]
QUICK_CONNECTIONS = [16]
SECONDS = 2
QUICK_SECONDS = 1
WARM_UP_SECONDS = 1


def main() -> None:
    options = _parser().parse_args()
    # An exception, so that the servers are stopped.
    signal.signal(signal.SIGTERM, _exit_on_signal)
    if not options.report:
        _run(_plan(options), writes_page=not (options.only or options.operations))
    else:
        _write_page()


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures Partita beside its peers."
    )
    names = [operation.name for operation in OPERATIONS]
    parser.add_argument("--quick", action="store_true", help="1 s each, 16 connections only")
    parser.add_argument(
        "--only", type=_names(NAMES), metavar="SERVERS", help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--operations", type=_names(names), metavar="NAMES", help=f"of {', '.join(names)}"
    )
    parser.add_argument(
        "--report", action="store_true", help="write the page from the last run, measure nothing"
    )
    return parser


def _names(known: list[str] | tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        given = text.split(",")
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return given

    return parse


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        servers=[s for s in SERVERS if not options.only or s.name in options.only],
        operations=[
            o for o in OPERATIONS if not options.operations or o.name in options.operations
        ],
        connections=QUICK_CONNECTIONS if options.quick else CONNECTIONS,
        warm_up_seconds=WARM_UP_SECONDS,
        seconds=QUICK_SECONDS if options.quick else SECONDS,
    )


def _run(plan: Plan, *, writes_page: bool) -> None:
    """Measures and saves the results; a partial run is printed, but does not change the page."""
    PEERS.mkdir(exist_ok=True)
    # Next to the peers: the system's temporary folder may be in memory.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=PEERS) as folder:
        driver = driver_choice.choose(Path(folder))
        results = Results(
            {
                **machine.describe(),
                "driver": driver.name,
                "seconds": plan.seconds,
                "warm_up_seconds": plan.warm_up_seconds,
            }
        )
        try:
            run(plan, driver, Path(folder), results)
        finally:
            # An interrupted run keeps the results that it has.
            saved_results.keep(
                asdict(results), saved_results.LATEST if writes_page else saved_results.PARTIAL
            )
    if writes_page:
        _write_page()
    else:
        say(Report(asdict(results)).markdown())


def _write_page() -> None:
    latest = saved_results.read(saved_results.LATEST)
    if latest is None:
        raise SystemExit("There is no run to report yet.")
    others = [
        *scaling.section(saved_results.read(saved_results.SCALING)),
        *watched.section(saved_results.read(saved_results.WATCHED)),
        *console.section(saved_results.read(saved_results.CONSOLE)),
        *mixed.section(saved_results.read(saved_results.MIXED)),
        *large_requests.section(saved_results.read(saved_results.LARGE_REQUESTS)),
        *suite.section(saved_results.read(saved_results.SUITE)),
        *metrics.section(saved_results.read(saved_results.METRICS)),
        *metric_data.section(saved_results.read(saved_results.METRIC_DATA)),
        *pagehits.section(saved_results.read(saved_results.PAGEHITS)),
    ]
    report = Report(latest, others)
    PAGE.write_text(report.markdown())
    PLOT.write_text(report.svg())
    say(f"{PAGE.relative_to(ROOT)} and {PLOT.relative_to(ROOT)} are written.")


if __name__ == "__main__":
    main()
