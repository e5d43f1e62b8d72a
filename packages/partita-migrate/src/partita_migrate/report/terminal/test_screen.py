"""Prints the result of `partita migrate test`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from partita_migrate.proving.proof_run.proof_results import AnswerDifference, PatternProof, ProofRun
from partita_migrate.report.terminal.terminal_tables import bullets, grid
from partita_migrate.workspace.readable_lists import number_of

STYLES = {"proven": "green", "unserved": "yellow", "unproven": "yellow", "differs": "red"}
"""In the order of display: what needs attention comes last, next to the prompt."""


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
        "No way back", (f"{way.table}: {way.why}" for way in run.way_back if not way.is_exact)
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
    for proof in sorted(run.functional, key=lambda proof: [*STYLES].index(proof.verdict)):
        yield from _pattern(proof)
    summary = run.summary
    yield Text()
    yield Text(
        f"{summary.proven} proven, {summary.differs} differ, {summary.unproven} unproven,"
        f" {summary.unserved} unserved; {summary.key_problems} problems with keys;"
        f" {run.seconds:.1f} seconds."
    )
    yield Text("Written: test.json, and a dated copy of the run in tests/")


def _pattern(proof: PatternProof) -> Iterator[RenderableType]:
    line = Text()
    line.append(f"{proof.verdict:9}", style=STYLES[proof.verdict])
    line.append(f" {proof.pattern}")
    if proof.verdict == "proven":
        done = "" if proof.operation in ("read", "aggregate") else " written"
        calls, rows = number_of(len(proof.cases), "call"), number_of(proof.rows, "row")
        line.append(f": {calls}, {rows}{done}")
    if proof.why:
        line.append(f": {proof.why}")
    yield Padding(line, (0, 0, 0, 2))
    for difference in proof.differences[:2]:
        yield from _difference(difference)


def _difference(difference: AnswerDifference) -> Iterator[RenderableType]:
    parameters = ", ".join(f"{name}={value}" for name, value in difference.parameters.items())
    yield Padding(
        Text(f"{difference.case} ({parameters}): {difference.what}; {difference.line}"),
        (0, 0, 0, 12),
    )
    for side, rows in (("SQL", difference.sql), ("items", difference.items)):
        for row in rows[:2]:
            yield Padding(Text(f"{side}: {row}"), (0, 0, 0, 14))
