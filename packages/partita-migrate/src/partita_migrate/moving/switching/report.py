"""The final report of a move: counts, times, differences, costs, and what was seen over days."""

from __future__ import annotations

import time

from msgspec import Struct, field

from partita_migrate.moving.loading.reports import TableLoad
from partita_migrate.moving.switching.phases import Turn
from partita_migrate.moving.switching.watching import Watched
from partita_migrate.proving.results import Acceptor


class Finished(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    position: int
    is_dry_run: bool = False
    is_given_up: bool = False
    seconds: float = 0.0
    rows: int = 0
    items: int = 0
    tombstones: int = 0
    """That were removed."""
    different: int = 0
    obstacles: list[str] = field(default_factory=list)
    """What was written at the target and could not be in the source."""
    removed: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    checks: list[tuple[str, bool]] = field(default_factory=list)
    accepted: list[Acceptor] = field(default_factory=list)
    """The checklist that people fill in, as `test` has asked it."""
    tables: list[TableLoad] = field(default_factory=list)
    load_seconds: float = 0.0
    watched: Watched | None = None
    monthly_cost: float | None = None


def page(found: Finished) -> str:
    lines = [f"# The move of {found.source} to {found.endpoint}", ""]
    if found.is_given_up:
        lines += ["Given up: the source stayed authoritative.", ""]
    lines += [
        f"- {found.rows:,} rows and {found.items:,} items compared,"
        f" {found.different:,} differences",
        f"- {found.tombstones:,} tombstones removed",
    ]
    if found.tables:
        lines += [f"- loaded in {found.load_seconds:,.1f} s"]
    lines += [
        f"- {turn.step} at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(turn.at))} UTC:"
        f" writes refused for {turn.refused_seconds:.1f} s"
        for turn in found.turns
    ]
    if found.monthly_cost is not None:
        lines += [f"- estimated cost a month: {found.monthly_cost:,.2f} USD"]
    if found.watched is not None:
        seen = found.watched
        lines += [
            f"- watched for {seen.days:.1f} days, {seen.samples:,} times: {seen.errors:,} errors,"
            f" median latency {seen.latency_ms_median:.1f} ms, 99th percentile"
            f" {seen.latency_ms_99th:.1f} ms, at most {seen.lag_seconds_max:.1f} s behind and"
            f" {seen.differences_max:,} differences"
        ]
    lines += ["", "## Checklist", ""]
    lines += [f"- [{'x' if is_met else ' '}] {check}" for check, is_met in found.checks]
    lines += [_acceptance(one) for one in found.accepted]
    if found.tables:
        lines += ["", "## Rows", "", "| table | rows | imported | skipped | failed | left |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
        lines += [
            f"| {one.table} | {one.rows:,} | {one.imported:,} | {one.skipped:,} | {one.failed:,} |"
            f" {one.stay:,} |"
            for one in found.tables
        ]
    lines += ["", "## Removed", "", *(f"- {one}" for one in found.removed)]
    if found.obstacles:
        lines += ["", "## Not in the source", "", *(f"- {one}" for one in found.obstacles)]
    return "\n".join(lines) + "\n"


def _acceptance(one: Acceptor) -> str:
    who = f" ({one.name}, {one.date})" if one.name else ""
    remark = f": {one.remark}" if one.remark else ""
    return f"- [{'x' if one.accepted else ' '}] {one.question}{who}{remark}"
