"""The results of a test, as `test.json` has them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita_migrate.model.proofs import Verdict


class RowAcceptance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Acceptance: what became of the rows of one table."""

    table: str
    processed: int
    expected: int
    """The number of rows that the source counted."""
    imported: int
    """Rows of which at least one item was made."""
    skipped: int = 0
    """Rows for which the design has no items."""
    skipped_why: str = ""
    failed: int = 0
    items: int = 0
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class WayBackCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of making the rows of a table again from items."""

    table: str
    is_exact: bool
    """True when every row can be made again from its items."""
    why: str = ""


class KeyProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem with keys or item sizes."""

    kind: str
    """One of: two rows in one item, two types in one range, key too long, key empty, key of a wrong
    type, item too large, collection too large, row without an item, collation."""
    place: str
    detail: str
    count: int = 1
    line: str = ""
    """The line of the model file that causes it."""


class AnswerDifference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call whose two answers differ."""

    case: str
    parameters: dict[str, str]
    what: str
    """The difference in words: missing rows, surplus rows, another order."""
    sql: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    """The first rows of both answers."""
    line: str = ""
    """The line of the model file that causes it."""


class PatternProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The proof of one access pattern."""

    pattern: str
    operation: str
    verdict: Verdict
    why: str = ""
    statement: str = ""
    cases: list[str] = field(default_factory=list)
    """The parameter sets that were tried, each with the number of rows in its answer."""
    rows: int = 0
    """Rows of all answers together."""
    requests: int = 0
    """Requests that were sent for all of them."""
    finish: str = ""
    """What is left for the application to do."""
    differences: list[AnswerDifference] = field(default_factory=list)


class ProofCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the non-functional or the recovery part."""

    name: str
    outcome: Literal["passed", "failed", "not done"]
    detail: str = ""


class Acceptor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the checklist, which a person fills in."""

    question: str
    name: str = ""
    date: str = ""
    accepted: bool | None = None
    remark: str = ""


class ProofSummary(Struct, frozen=True, kw_only=True):
    """The number of patterns with each verdict."""

    proven: int
    differs: int
    unproven: int
    unserved: int
    key_problems: int


class ProofRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of `test`."""

    at: str
    model: str
    fingerprint: str
    """Identifies the design as it was tested."""
    endpoint: str
    source: str
    is_all: bool
    """True when every row was loaded and statements ran on the source itself."""
    seconds: float
    summary: ProofSummary
    acceptance: list[RowAcceptance] = field(default_factory=list)
    way_back: list[WayBackCheck] = field(default_factory=list)
    keys: list[KeyProblem] = field(default_factory=list)
    functional: list[PatternProof] = field(default_factory=list)
    non_functional: list[ProofCheck] = field(default_factory=list)
    recovery: list[ProofCheck] = field(default_factory=list)
    user_acceptance: list[Acceptor] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        """True when no pattern differs and no key has a problem; unproven patterns are reported,
        not failed."""
        return not self.summary.differs and not self.summary.key_problems

    def proof(self, pattern: str) -> PatternProof | None:
        return next((proof for proof in self.functional if proof.pattern == pattern), None)
