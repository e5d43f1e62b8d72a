"""The risk register: everything that can go wrong, from all stages, with the reason and what to
do."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from partita.foundation.service_limits import ITEM_BYTES_MAX
from partita_migrate.report.folder_contents import FolderContents, ReportedDesign
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.planning.difficulties.difficulty import (
    SEVERITIES,
    Difficulty,
    Severity,
)
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.understanding.planning.plan_page import bytes_text

FINDINGS: dict[Severity, str] = {"obstacle": "error", "care": "warning"}
"""The severity of a check's finding, by the severity of the risk."""
NOT_SERVED = " is not served: "
"""Separates the pattern from the reason in a design's risks."""


class Risk(Struct, frozen=True, kw_only=True):
    severity: Severity
    kind: str
    what: list[str]
    """One sentence for each place where the risk was found."""
    strategy: str = ""
    tables: list[str] = field(default_factory=list)


def find_risks(contents: FolderContents) -> list[Risk]:
    """Returns the risks, the most severe first. Risks with the same remedy are joined."""
    risks: list[Risk] = []
    if contents.chosen:
        risks += _of_model(contents.chosen)
    if contents.analysis:
        risks += _of_rows(contents.analysis)
    if contents.plan:
        risks += _of_plan(contents.plan)
    return sorted(risks, key=lambda risk: SEVERITIES.index(risk.severity))


def _of_model(model: ReportedDesign) -> Iterator[Risk]:
    """Yields the findings of the check. For an unserved pattern the design itself knows the
    reason."""
    reasons = {
        f"access {risk.partition(NOT_SERVED)[0]}": risk
        for risk in model.design.risks
        if NOT_SERVED in risk
    }
    reported = []
    for severity, found in FINDINGS.items():
        findings = [finding for finding in model.findings if finding.severity == found]
        what = [
            reasons.get(finding.place) or f"{finding.place}: {finding.message.rstrip('.')}."
            for finding in findings
        ]
        reported += what
        if what:
            yield Risk(
                severity=severity,
                kind="model check",
                what=list(dict.fromkeys(what)),
                strategy=f"Change {model.file}; `partita migrate model --check` verifies it.",
            )
    others = [risk for risk in model.design.risks if risk not in reported]
    if others:
        yield Risk(severity="care", kind="design", what=others)


def _of_rows(analysis: Analysis) -> Iterator[Risk]:
    large = [table for table in analysis.tables if table.item_bytes.max > ITEM_BYTES_MAX]
    if large:
        yield Risk(
            severity="obstacle",
            kind="large items",
            what=[
                f"{one.table} has items of up to {bytes_text(one.item_bytes.max)}; an item may"
                f" have at most {bytes_text(ITEM_BYTES_MAX)}."
                for one in large
            ],
            strategy="Keep the large values in S3 with their address in the item, compress them,"
            " or spread them over several items.",
            tables=[one.table for one in large],
        )
    hot = [(table, key) for table in analysis.tables for key in table.keys if key.is_hot]
    if hot:
        yield Risk(
            severity="care",
            kind="hot keys",
            what=[f"{table.table} by {', '.join(key.columns)}: {key.reason}" for table, key in hot],
            strategy="As a partition key such a value needs write sharding, a cache in front of it,"
            " or a second part that spreads it.",
            tables=[table.table for table, _ in hot],
        )


def _of_plan(plan: MigrationPlan) -> Iterator[Risk]:
    alike: dict[tuple[Severity, str, str], list[Difficulty]] = {}
    for one in [*plan.challenges, *plan.difficulties]:
        alike.setdefault((one.severity, one.kind, one.strategy), []).append(one)
    for (severity, kind, strategy), members in alike.items():
        yield Risk(
            severity=severity,
            kind=kind,
            what=[member.what for member in members],
            strategy=strategy,
            tables=[member.table for member in members if member.table],
        )
