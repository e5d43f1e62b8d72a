"""`partita migrate test` in a screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from partita_migrate.proving.proof_run.proof_results import AnswerDifference, PatternProof, ProofRun
from partita_migrate.report.terminal.terminal_tables import bullets, grid
from partita_migrate.workspace.readable_lists import number_of

STYLES = {"proven": "green", "unserved": "yellow", "unproven": "yellow", "differs": "red"}
"""In the order in which they are shown: what needs attention is nearest to the end."""


def summarize(run: ProofRun) -> Iterator[RenderableType]:
    yield grid(
        "Rows",
        ["table", "processed", "imported", "skipped", "failed", "items", "way back"],
        (
            (
                rows.table,
                f"{rows.processed:,}",
                f"{rows.imported:,}",
                f"{rows.skipped:,}",
                f"{rows.failed:,}",
                f"{rows.items:,}",
                "exact" if way.is_exact else "none",
            )
            for rows, way in zip(run.acceptance, run.way_back, strict=True)
        ),
        numbers=["processed", "imported", "skipped", "failed", "items"],
    )
    yield from bullets(
        "No way back", (f"{one.table}: {one.why}" for one in run.way_back if not one.is_exact)
    )
    yield from bullets(
        "Keys",
        (
            f"{key.kind}, {key.count:,} times: {key.place}, {key.detail} {key.line}".rstrip()
            for key in run.keys
        ),
    )
    checks = [*run.non_functional, *run.recovery]
    yield from bullets(
        "Beyond rows", (f"{check.name}: {check.outcome}. {check.detail}" for check in checks)
    )
    yield Text("Patterns", style="bold")
    for one in sorted(run.functional, key=lambda proof: [*STYLES].index(proof.verdict)):
        yield from _pattern(one)
    found = run.summary
    yield Text()
    yield Text(
        f"{found.proven} proven, {found.differs} differ, {found.unproven} unproven,"
        f" {found.unserved} unserved; {found.key_problems} problems with keys;"
        f" {run.seconds:.1f} seconds."
    )
    yield Text("Written: test.json, and the run under its date in tests/")


def _pattern(one: PatternProof) -> Iterator[RenderableType]:
    line = Text()
    line.append(f"{one.verdict:9}", style=STYLES[one.verdict])
    line.append(f" {one.pattern}")
    if one.verdict == "proven":
        done = "" if one.operation in ("read", "aggregate") else " written"
        calls, rows = number_of(len(one.cases), "call"), number_of(one.rows, "row")
        line.append(f": {calls}, {rows}{done}")
    if one.why:
        line.append(f": {one.why}")
    yield Padding(line, (0, 0, 0, 2))
    for difference in one.differences[:2]:
        yield from _difference(difference)


def _difference(difference: AnswerDifference) -> Iterator[RenderableType]:
    given = ", ".join(f"{name}={value}" for name, value in difference.parameters.items())
    yield Padding(
        Text(f"{difference.case} ({given}): {difference.what}; {difference.line}"), (0, 0, 0, 12)
    )
    for side, rows in (("SQL", difference.sql), ("items", difference.items)):
        for row in rows[:2]:
            yield Padding(Text(f"{side}: {row}"), (0, 0, 0, 14))
