"""The final report of a move: counts, times, differences, costs, and samples over days."""

from __future__ import annotations

import time

from msgspec import Struct, field

from partita_migrate.moving.following.move_samples import SampleSummary
from partita_migrate.moving.loading.load_report import TableLoad
from partita_migrate.moving.switching.move_phase import AuthorityChange
from partita_migrate.proving.proof_run.proof_results import Acceptor


class FinalReport(Struct, kw_only=True, omit_defaults=True):
    """The final report."""

    source: str
    endpoint: str
    position: int
    is_dry_run: bool = False
    is_given_up: bool = False
    seconds: float = 0.0
    rows: int = 0
    items: int = 0
    tombstones: int = 0
    """Tombstones that were removed from the target."""
    different: int = 0
    obstacles: list[str] = field(default_factory=list)
    """Items that were written at the target and could not be carried into the source."""
    removed: list[str] = field(default_factory=list)
    turns: list[AuthorityChange] = field(default_factory=list)
    checks: list[tuple[str, bool]] = field(default_factory=list)
    accepted: list[Acceptor] = field(default_factory=list)
    """The checklist of `test`, as people have filled it in."""
    tables: list[TableLoad] = field(default_factory=list)
    load_seconds: float = 0.0
    watched: SampleSummary | None = None
    monthly_cost: float | None = None


def render_page(report: FinalReport) -> str:
    """Returns the report as Markdown."""
    lines = [f"# The move of {report.source} to {report.endpoint}", ""]
    if report.is_given_up:
        lines += ["Given up: the source stayed authoritative.", ""]
    lines += [
        f"- {report.rows:,} rows and {report.items:,} items compared,"
        f" {report.different:,} differences",
        f"- {report.tombstones:,} tombstones removed",
    ]
    if report.tables:
        lines += [f"- loaded in {report.load_seconds:,.1f} s"]
    lines += [
        f"- {turn.step} at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(turn.at))} UTC:"
        f" writes refused for {turn.refused_seconds:.1f} s"
        for turn in report.turns
    ]
    if report.monthly_cost is not None:
        lines += [f"- estimated cost a month: {report.monthly_cost:,.2f} USD"]
    if report.watched is not None:
        samples = report.watched
        lines += [
            f"- watched for {samples.days:.1f} days, {samples.samples:,} times:"
            f" {samples.errors:,} errors, median latency {samples.latency_ms_median:.1f} ms, 99th"
            f" percentile {samples.latency_ms_99th:.1f} ms, at most {samples.lag_seconds_max:.1f} s"
            f" behind and {samples.differences_max:,} differences"
        ]
    lines += ["", "## Checklist", ""]
    lines += [f"- [{'x' if is_met else ' '}] {check}" for check, is_met in report.checks]
    lines += [_acceptance(acceptor) for acceptor in report.accepted]
    if report.tables:
        lines += ["", "## Rows", "", "| table | rows | imported | skipped | failed | left |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
        lines += [
            f"| {table.table} | {table.rows:,} | {table.imported:,} | {table.skipped:,} |"
            f" {table.failed:,} | {table.stay:,} |"
            for table in report.tables
        ]
    lines += ["", "## Removed", "", *(f"- {table}" for table in report.removed)]
    if report.obstacles:
        lines += ["", "## Not in the source", "", *(f"- {table}" for table in report.obstacles)]
    return "\n".join(lines) + "\n"


def _acceptance(acceptor: Acceptor) -> str:
    who = f" ({acceptor.name}, {acceptor.date})" if acceptor.name else ""
    remark = f": {acceptor.remark}" if acceptor.remark else ""
    return f"- [{'x' if acceptor.accepted else ' '}] {acceptor.question}{who}{remark}"
