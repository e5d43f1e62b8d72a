"""What a test found, as `test.json` keeps it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita_migrate.model.proofs import Verdict


class RowAcceptance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Acceptance: what became of the rows of one table."""

    table: str
    processed: int
    expected: int
    """What the source counted."""
    imported: int
    """Rows of which at least one item was made."""
    skipped: int = 0
    """Rows that the design has no items for."""
    skipped_why: str = ""
    failed: int = 0
    items: int = 0
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class WayBackCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    table: str
    is_exact: bool
    """Every row can be made again of its items."""
    why: str = ""


class KeyProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: str
    """two rows in one item, two types in one range, key too long, key empty, key of a wrong type,
    item too large, collection too large, row without an item, collation."""
    place: str
    detail: str
    count: int = 1
    line: str = ""
    """Where the model file says so."""


class AnswerDifference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call whose answers are not the same."""

    case: str
    parameters: dict[str, str]
    what: str
    """In words: rows that are missing, rows that are too many, another order."""
    sql: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    """Both answers, the first rows of them."""
    line: str = ""
    """The line of the model file that causes it."""


class PatternProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    pattern: str
    operation: str
    verdict: Verdict
    why: str = ""
    statement: str = ""
    cases: list[str] = field(default_factory=list)
    """The parameter sets that were tried, each in a word and with the rows of its answer."""
    rows: int = 0
    """Of all answers together."""
    requests: int = 0
    """Sent for all of them."""
    finish: str = ""
    """What is left to the application."""
    differences: list[AnswerDifference] = field(default_factory=list)


class ProofCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the non-functional and the recovery part."""

    name: str
    outcome: Literal["passed", "failed", "not done"]
    detail: str = ""


class Acceptor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that a person fills in."""

    question: str
    name: str = ""
    date: str = ""
    accepted: bool | None = None
    remark: str = ""


class ProofSummary(Struct, frozen=True, kw_only=True):
    proven: int
    differs: int
    unproven: int
    unserved: int
    key_problems: int


class ProofRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: str
    model: str
    fingerprint: str
    """Of the design as it was tested."""
    endpoint: str
    source: str
    is_all: bool
    """Every row was loaded, and statements ran on the source itself."""
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
        """Whether no pattern differs and no key is wrong; what is unproven is said, not failed."""
        return not self.summary.differs and not self.summary.key_problems

    def proof(self, pattern: str) -> PatternProof | None:
        return next((one for one in self.functional if one.pattern == pattern), None)
