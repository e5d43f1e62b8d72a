"""Everything that `model --check` finds in a model, errors first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita_migrate.designing.checks.completeness_check import check_completeness
from partita_migrate.designing.checks.service_limits_check import check_limits
from partita_migrate.designing.checks.serving_check import check_serving
from partita_migrate.model.design import Design
from partita_migrate.model.design_findings import CheckedDesign, DesignFinding, subject_of
from partita_migrate.model.unknown_names import find_unknown_names
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern

RULES: tuple[Callable[[CheckedDesign], Iterator[DesignFinding]], ...] = (
    check_limits,
    check_completeness,
    check_serving,
)


def check(design: Design, patterns: list[AccessPattern], volumes: Volumes) -> list[DesignFinding]:
    """Returns the findings. Unknown names hide the others: the remaining rules cannot run on
    them."""
    subject = subject_of(design, patterns, volumes)
    findings = list(dict.fromkeys(find_unknown_names(subject)))
    if not findings:
        findings = list(dict.fromkeys(finding for rule in RULES for finding in rule(subject)))
    return sorted(findings, key=lambda finding: finding.severity != "error")
