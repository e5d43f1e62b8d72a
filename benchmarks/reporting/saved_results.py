"""Saved measurements: one file for each command, which only that command writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from benchmarks.servers.measured_servers import ROOT

RESULTS = ROOT / "benchmarks" / "results"
LATEST = RESULTS / "latest.json"
PARTIAL = RESULTS / "partial.json"
SUITE = RESULTS / "suite.json"
SCALING = RESULTS / "scaling.json"
WATCHED = RESULTS / "watched.json"
MIXED = RESULTS / "mixed.json"
PROTECTED = RESULTS / "protected.json"
LARGE_REQUESTS = RESULTS / "large_requests.json"
METRICS = RESULTS / "metrics.json"
METRIC_DATA = RESULTS / "metric_data.json"
CONSOLE = RESULTS / "console.json"
PAGEHITS = RESULTS / "pagehits.json"


def keep(results: dict[str, Any], path: Path) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / ".gitignore").write_text("*\n")
    path.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2))


def read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    results: dict[str, Any] = orjson.loads(path.read_bytes())
    return results
