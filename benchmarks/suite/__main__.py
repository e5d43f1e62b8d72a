"""`python -m benchmarks.suite`: the suite on every backend, several times each, in turn.

Keeps the figures in results/suite.json, which the page of `make bench` shows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

from benchmarks.reporting import saved_results
from benchmarks.run import say
from benchmarks.servers import machine, peers
from benchmarks.servers.measured_servers import ROOT, SOURCES
from benchmarks.servers.peers import Unavailable
from benchmarks.suite.backends import FIXTURES
from benchmarks.suite.report import TITLES, section

TESTS = 50
REPEATS = 5
RUN_SECONDS_MAX = 600
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
# Fetched before the clock starts.
NEEDED: dict[str, tuple[Callable[[], object], ...]] = {
    "moto": (peers.moto,),
    "moto-server": (peers.moto,),
    "dynamodb-local": (peers.java, peers.dynamodb_local),
}


@dataclass(frozen=True)
class Run:
    seconds: float
    test_ms: float
    """The time of the median test, with its setup and teardown."""
    failed: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite", description="Measures a test suite on every backend."
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"{REPEATS} unless given")
    results = measure(parser.parse_args().repeats)
    saved_results.keep(results, saved_results.SUITE)
    say("\n" + "\n\n".join(section(results)))


def measure(repeats: int) -> dict[str, Any]:
    origin = machine.describe()
    skipped = {name: reason for name in FIXTURES if (reason := _missing(name))}
    runs: dict[str, list[Run]] = {name: [] for name in FIXTURES if name not in skipped}
    for number in range(repeats):
        for name, done in runs.items():
            done.append(_run(name))
            say(f"{number + 1} of {repeats}  {TITLES[name]:<32}{done[-1].seconds:>8.2f} s")
    return {
        "machine": origin,
        "tests": TESTS,
        "repeats": repeats,
        "backends": {name: _summary(done) for name, done in runs.items()},
        "skipped": skipped,
    }


def _missing(name: str) -> str | None:
    try:
        for fetch in NEEDED.get(name, ()):
            fetch()
    except Unavailable as reason:
        return str(reason)
    return None


def _run(name: str) -> Run:
    """Runs the suite in its own process, as a user would start it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        plugin = ["-p", "partita.testing.pytest_plugin"] if name.startswith("partita") else []
        command = [sys.executable, "-m", "pytest", "benchmarks/suite", "--backend", name, *plugin]
        quiet = ["-q", "-W", "ignore", "-p", "no:cacheprovider", f"--junitxml={report}"]
        started_at = time.monotonic()
        done = subprocess.run(
            [*command, *quiet],
            cwd=ROOT,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
        )
        seconds = time.monotonic() - started_at
        if not report.exists():
            raise SystemExit(f"pytest did not run on {name}: {done.stdout}{done.stderr}")
        cases = ElementTree.parse(report).getroot().findall(".//testcase")
    # pytest reports an error in setup or teardown as a separate case.
    tests = {case.attrib["name"] for case in cases}
    if len(tests) != TESTS:
        raise SystemExit(f"{name} ran {len(tests)} tests instead of {TESTS}: {done.stdout[-2000:]}")
    failed = {case.attrib["name"] for case in cases if len(case.findall("*"))}
    times = [float(case.attrib["time"]) for case in cases]
    return Run(seconds, median(times) * 1000, tuple(sorted(failed)))


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [*SOURCES, os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        **CREDENTIALS,
        "PYTHONPATH": path,
        # No plugins are loaded except the named ones.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def _summary(runs: list[Run]) -> dict[str, Any]:
    return {
        "seconds": median(run.seconds for run in runs),
        "test_ms": median(run.test_ms for run in runs),
        "runs_seconds": [run.seconds for run in runs],
        "failed": sorted({test for run in runs for test in run.failed}),
    }


if __name__ == "__main__":
    main()
