"""`model --check`: everything that is wrong with a model, errors first."""

from __future__ import annotations

from partita.migrate.designing.checks.keeping import Keeping
from partita.migrate.designing.checks.limits import Limits
from partita.migrate.designing.checks.serving import Serving
from partita.migrate.model.design import Design
from partita.migrate.model.finding import Finding, Subject
from partita.migrate.model.references import References
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern

__all__ = ["Finding", "check"]


def check(design: Design, patterns: list[AccessPattern], volumes: Volumes) -> list[Finding]:
    """Names first: a model that names what is not there cannot be judged further."""
    subject = Subject(design, patterns, volumes)
    findings = list(dict.fromkeys(References(subject).findings()))
    if not findings:
        rules = (Limits(subject), Keeping(subject), Serving(subject))
        findings = list(dict.fromkeys(one for rule in rules for one in rule.findings()))
    return sorted(findings, key=lambda finding: finding.severity != "error")
