"""Prints the result of `partita migrate model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from partita_migrate.costing.design_comparison import DesignComparison
from partita_migrate.designing.model_stage import COMPARISON, ModelResult
from partita_migrate.model.design import Design, PatternAccess, Technique
from partita_migrate.model.design_findings import DesignFinding
from partita_migrate.model.proofs import Proof
from partita_migrate.report.terminal.terminal_tables import (
    ROWS_SHOWN_MAX,
    bullets,
    gigabytes,
    grid,
    more,
)

COMPARED: dict[str, Callable[[DesignComparison], str]] = {
    "a month": lambda one: f"{one.monthly:,.2f}",
    "paid by": lambda one: one.paid_by,
    "tables and indexes": lambda one: f"{one.tables} and {one.indexes}",
    "read units": lambda one: f"{one.read_units:,.1f}",
    "write units": lambda one: f"{one.write_units:,.1f}",
    "writes for a row": lambda one: f"{one.write_amplification:.2f}",
    "stored GB": lambda one: gigabytes(one.stored_gb),
    "requests, most for a pattern": lambda one: f"{max(one.requests.values(), default=0):g}",
    "requests a second": lambda one: f"{one.requests_per_second:,.1f}",
    "patterns not served": lambda one: str(len(one.not_served)),
}
STYLES = {"error": "red", "warning": "yellow"}


def summarize(models: ModelResult) -> Iterator[RenderableType]:
    for proposal in models.proposals:
        yield Text(proposal.file, style="bold")
        yield from bullets("Choices", proposal.design.choices)
        yield from bullets("Techniques", map(_technique, proposal.design.techniques))
        if proposal.design.access:
            yield _served(proposal.design)
        if rest := more(len(proposal.design.access), proposal.file):
            yield Text(rest)
        yield from bullets("Risks", proposal.design.risks)
        yield from _findings(proposal.findings)
    kinds = [design.kind for design in models.comparison.designs]
    rows = [
        (name, *(value(design) for design in models.comparison.designs))
        for name, value in COMPARED.items()
    ]
    proven: dict[str, str] = {
        proposal.kind: proven_of(proposal.proof) for proposal in models.proposals
    }
    rows.append(("patterns proven", *(proven.get(kind, "") for kind in kinds)))
    yield grid("Compared", ["", *kinds], rows, numbers=kinds)
    yield Text(models.chosen)
    files = [proposed.file for proposed in models.proposals]
    yield Text(f"Written: {', '.join([*files, COMPARISON])}")


def proven_of(pattern_proofs: list[Proof]) -> str:
    """Says how many patterns a test of this exact design has proven."""
    count = sum(proof.verdict == "proven" for proof in pattern_proofs)
    return (
        f"{count} of {len(pattern_proofs)}"
        if any(proof.at for proof in pattern_proofs)
        else "not tested"
    )


def summarize_check(name: str, findings: list[DesignFinding]) -> Iterator[RenderableType]:
    if not findings:
        yield Text(f"{name} serves every pattern, and nothing is wrong with it.")
    yield from _findings(findings)


def _findings(findings: list[DesignFinding]) -> Iterator[RenderableType]:
    for finding in findings:
        severity = (finding.severity, STYLES[finding.severity])
        line = Text.assemble(severity, f" in {finding.place}: {finding.message}")
        yield Padding(line, (0, 0, 0, 2))


def _technique(technique: Technique) -> str:
    patterns = ", ".join(map(repr, technique.patterns[:3]))
    return (
        f"{technique.name[0].upper()}{technique.name[1:]} for {patterns}: {technique.why}"
        f" Cost: {technique.cost}. Limit: {technique.limit}. Next best: {technique.next_best}."
    )


def _served(design: Design) -> RenderableType:
    return grid(
        "How each pattern is served",
        ["pattern", "request", "served by", "key"],
        (
            (
                access.pattern,
                access.request,
                f"{access.table}/{access.index}" if access.index else access.table,
                _key(access),
            )
            for access in design.access[:ROWS_SHOWN_MAX]
        ),
    )


def _key(access: PatternAccess) -> str:
    """Returns a request's key in the whitepaper's notation: GameId=X, limit=1."""
    parts = []
    for condition in access.key:
        sign = "=" if condition.comparison == "=" else f" {condition.comparison} "
        parts.append(f"{condition.attribute}{sign.replace('_', ' ')}{condition.value}")
    if access.limit:
        parts.append(f"limit={access.limit}")
    return ", ".join(parts)
