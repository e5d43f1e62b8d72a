"""Decides between moving, moving in part, and staying, with the three reasons that weigh most.

A migration costs work as well as money. What a small server handles with ease stays where it is,
whatever DynamoDB would cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from partita.foundation.service_limits import GB
from partita_migrate.costing.amounts import amount, money, percent
from partita_migrate.costing.estimate_stage import Estimate, monthly
from partita_migrate.report.folder_contents import FolderContents, ReportedDesign
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.planning.plan_page import bytes_text
from partita_migrate.workspace.readable_lists import first_names, number_of

Decision = Literal["go", "go in part", "stay", "not decided"]

TITLES: dict[Decision, str] = {
    "go": "Go",
    "go in part": "Go in part",
    "stay": "Stay on SQL",
    "not decided": "Not decided yet",
}
ONCE_PROVEN = ", once every pattern is proven"
REASONS = 3

SMALL_BYTES = GB
SMALL_CALLS_PER_SECOND = 50
"""Below these limits, one small server keeps everything in memory and answers with ease."""
LARGE_BYTES = 100 * GB
LARGE_CALLS_PER_SECOND = 1000
"""From these limits on, a database that grows without a bigger server is worth the move."""
DEARER = 1.2
MUCH_DEARER = 3.0
CHEAPER = 0.8
"""Bounds of DynamoDB's cost as a multiple of today's bill. In between, the cost decides nothing."""
MOVABLE_MIN = 0.2
"""The share of calls that has to move. With less, two databases are more work than one."""
NAMES_MAX = 3


class VerdictReason(Struct, frozen=True, kw_only=True):
    speaks_for: Decision
    weight: int
    text: str


class Verdict(Struct, frozen=True, kw_only=True):
    decision: Decision
    title: str
    reasons: list[str]
    """The reasons, the deciding one first."""
    today: float | None
    """The setting `monthly_cost` of `[goals]`."""
    monthly: float | None
    """The monthly cost of the chosen design."""


def decide(contents: FolderContents) -> Verdict:
    chosen = contents.chosen
    estimate = chosen.estimate if chosen else None
    if chosen is None or estimate is None or not contents.patterns.patterns:
        reasons = list(_missing(contents))
        return _verdict(contents, "not decided", reasons, estimate)
    case = _Case(contents, chosen, estimate)
    decision = case.decision()
    is_open = decision in ("go", "go in part") and not case.is_proven
    condition = ONCE_PROVEN if is_open else ""
    return _verdict(contents, decision, case.reasons(), estimate, condition)


def _verdict(
    contents: FolderContents,
    decision: Decision,
    reasons: list[VerdictReason],
    estimate: Estimate | None,
    condition: str = "",
) -> Verdict:
    """Returns the verdict with the strongest reasons: first those for the decision, then those
    against it."""
    ranked = sorted(reasons, key=lambda reason: (_rank(reason, decision), -reason.weight))
    return Verdict(
        decision=decision,
        title=TITLES[decision] + condition,
        reasons=[_said(one, decision) for one in ranked[:REASONS]],
        today=contents.goals.monthly_cost,
        monthly=monthly(estimate) if estimate else None,
    )


def _rank(reason: VerdictReason, decision: Decision) -> int:
    """Ranks a reason. For "go in part", reasons to go come before reasons to stay."""
    if reason.speaks_for == decision:
        return 0
    return 2 if "stay" in (reason.speaks_for, decision) else 1


def _said(reason: VerdictReason, decision: Decision) -> str:
    """Returns a reason's text. A reason to move speaks against staying, and the other way round."""
    sides = {reason.speaks_for, decision}
    is_against = "stay" in sides and bool(sides & {"go", "go in part"})
    return f"Against it: {reason.text}" if is_against else reason.text


def _missing(contents: FolderContents) -> Iterator[VerdictReason]:
    for one in contents.missing:
        text = f"{one.why} Run `{one.command}`."
        yield VerdictReason(speaks_for="not decided", weight=2, text=text)
    if not contents.patterns.patterns and contents.inventory:
        yield VerdictReason(
            speaks_for="not decided",
            weight=3,
            text="There are no access patterns, so the work for DynamoDB is unknown.",
        )
    if contents.inventory:
        size = sum(table.data_bytes or 0 for table in contents.inventory.tables)
        if size:
            text = f"The source holds {bytes_text(size)}."
            if size < SMALL_BYTES:
                text += " That is so little that it stays on SQL, unless it is read very often."
            yield VerdictReason(speaks_for="not decided", weight=1, text=text)
    if contents.goals.monthly_cost is None:
        yield VerdictReason(speaks_for="not decided", weight=0, text=_ask_for_bill())


def _ask_for_bill() -> str:
    return "The cost of today's database is unknown: put `monthly_cost` into [goals]."


class _Case:
    """Weighs the figures of one folder."""

    def __init__(
        self, contents: FolderContents, chosen: ReportedDesign, estimate: Estimate
    ) -> None:
        self.contents = contents
        self.chosen = chosen
        self.estimate = estimate
        self.patterns = contents.patterns.patterns
        self.calls = sum(pattern.calls_per_second for pattern in self.patterns)
        self.unserved = [pattern for pattern in self.patterns if not self._is_served(pattern)]
        self.poor = self._poor_tables()
        self.size = self._size()

    def _is_served(self, pattern: AccessPattern) -> bool:
        has_request = any(
            one.pattern == pattern.name and one.request != "none"
            for one in self.chosen.design.access
        )
        return has_request and self.contents.proof(pattern.name) not in ("differs", "unserved")

    def _poor_tables(self) -> list[str]:
        """Returns tables that suit DynamoDB badly but are part of the design."""
        candidates = self.contents.plan.candidates if self.contents.plan else []
        poor = {
            candidate.table for candidate in candidates if candidate.verdict == "poor candidate"
        }
        taken = {entity.source for _, entity in self.chosen.design.entities()}
        return sorted(poor & taken)

    def _size(self) -> float:
        """Returns the source's size, or the size that `[expect]` states."""
        inventory = self.contents.inventory
        data_bytes = sum(table.data_bytes or 0 for table in inventory.tables) if inventory else 0
        if not data_bytes or self.is_expected:
            return self.estimate.stored_gb * GB
        return float(data_bytes)

    @property
    def is_expected(self) -> bool:
        return any(one.rows for one in self.contents.expect.values())

    @property
    def monthly(self) -> float:
        return monthly(self.estimate)

    @property
    def today(self) -> float | None:
        return self.contents.goals.monthly_cost

    @property
    def is_small(self) -> bool:
        return self.size < SMALL_BYTES and self.calls < SMALL_CALLS_PER_SECOND

    @property
    def is_proven(self) -> bool:
        """True when every served pattern has a proof."""
        return all(
            self.contents.proof(pattern.name) == "proven"
            for pattern in self.patterns
            if pattern not in self.unserved
        )

    @property
    def is_large(self) -> bool:
        return self.size >= LARGE_BYTES or self.calls >= LARGE_CALLS_PER_SECOND

    def _share(self, patterns: list[AccessPattern]) -> float:
        """Returns the share of all calls; without known rates, the share of all patterns."""
        if self.calls:
            return sum(pattern.calls_per_second for pattern in patterns) / self.calls
        return len(patterns) / len(self.patterns)

    def _staying(self) -> list[AccessPattern]:
        """Returns patterns that are not served, or that read tables that suit DynamoDB badly."""
        return [
            pattern
            for pattern in self.patterns
            if pattern in self.unserved or pattern.table in self.poor
        ]

    # The decision.

    def decision(self) -> Decision:
        if self.is_small or self._is_too_dear() or 1 - self._share(self._staying()) < MOVABLE_MIN:
            return "stay"
        if not self.is_large and not self._is_cheaper():
            # Nothing would pay for the work; or only today's bill can tell.
            return "stay" if self.today else "not decided"
        return "go in part" if self._staying() or self.poor else "go"

    def _is_cheaper(self) -> bool:
        return bool(self.today) and self.monthly < (self.today or 0.0) * CHEAPER

    def _is_too_dear(self) -> bool:
        if not self.today:
            return False
        limit = DEARER if "costs" in self.contents.goals.aims else MUCH_DEARER
        return self.monthly > self.today * limit

    # The reasons.

    def reasons(self) -> list[VerdictReason]:
        looks = (self._of_size, self._of_cost, self._of_patterns, self._of_tables, self._obstacles)
        return [reason for look in looks for reason in look()]

    def _of_size(self) -> Iterator[VerdictReason]:
        size = bytes_text(round(self.size)) + (" (expected)" if self.is_expected else "")
        figures = f"{size} and {_calls(self.calls)}"
        if self.is_small:
            text = (
                f"{figures}: one small server handles that with ease, so the work of moving would"
                " not pay off."
            )
            yield VerdictReason(speaks_for="stay", weight=10, text=text + self._reservation())
        elif self.is_large:
            yield VerdictReason(
                speaks_for="go",
                weight=4,
                text=f"{figures}: DynamoDB grows with the load, while a server has to be replaced"
                " by a larger one.",
            )
        else:
            decision = self.decision()
            yield VerdictReason(
                speaks_for=decision if decision == "stay" else "not decided",
                weight=1,
                text=f"{figures}: either database handles that, so size does not decide.",
            )

    def _reservation(self) -> str:
        minutes = self.contents.patterns.window_seconds / 60
        if 0 < minutes < 60:
            return f" (The rates come from {number_of(round(minutes) or 1, 'minute')}.)"
        return ""

    def _of_cost(self) -> Iterator[VerdictReason]:
        currency = self.estimate.bill.currency
        costs = money(self.monthly, currency)
        if not self.today:
            text = f"DynamoDB would cost {costs} a month. {_ask_for_bill()}"
            yield VerdictReason(speaks_for=self.decision(), weight=2, text=text)
            return
        share = self.monthly / self.today
        text = (
            f"DynamoDB would cost {costs} a month, {_share_text(share)} of today's"
            f" {money(self.today, currency)}"
        )
        if share > DEARER:
            yield VerdictReason(speaks_for="stay", weight=9, text=f"{text}.")
        elif share < CHEAPER:
            saved = f"{money((self.today - self.monthly) * 12, currency)} less in a year"
            if self.is_small:
                saved += ", which a smaller server would save as well"
            yield VerdictReason(speaks_for="go", weight=6, text=f"{text}: {saved}.")
        elif self.decision() == "stay":
            text = f"{text}: too little to pay for the work of moving."
            yield VerdictReason(speaks_for="stay", weight=2, text=text)
        else:
            yield VerdictReason(speaks_for="go", weight=2, text=f"{text}: about the same.")

    def _holds_back(self) -> Decision:
        """Returns the decision that a reason against moving everything speaks for."""
        return "stay" if self.decision() == "stay" else "go in part"

    def _of_patterns(self) -> Iterator[VerdictReason]:
        if self.unserved:
            share = self._share(self.unserved)
            part = f"{percent(share)} of the calls" if self.calls else "rates unknown"
            yield VerdictReason(
                speaks_for=self._holds_back(),
                weight=8,
                text=f"The design does not serve {len(self.unserved)} of"
                f" {number_of(len(self.patterns), 'pattern')} ({part}):"
                f" {first_names([one.name for one in self.unserved], NAMES_MAX, '; ')}.",
            )
        served = [pattern for pattern in self.patterns if pattern not in self.unserved]
        proven = [one for one in served if self.contents.proof(one.name) == "proven"]
        if served:
            yield VerdictReason(
                speaks_for="go",
                weight=5,
                text=f"{_asked_by_key(len(served), len(self.patterns))}"
                f"{self._proven_text(len(proven), len(served))}",
            )

    def _proven_text(self, proven: int, served: int) -> str:
        if proven == served:
            return ", proven on the source's own rows."
        if proven:
            return f", {proven} proven on the source's own rows; the others are unproven."
        if self.decision() == "stay":
            return ", unproven."
        return ", unproven: run `partita migrate test` before anything moves."

    def _of_tables(self) -> Iterator[VerdictReason]:
        patterns = [pattern for pattern in self.patterns if pattern.table in self.poor]
        if not self.poor:
            return
        part = percent(self._share(patterns))
        share = f", with {part} of the calls" if patterns and self.calls else ""
        one = len(self.poor) == 1
        yield VerdictReason(
            speaks_for=self._holds_back(),
            weight=7,
            text=f"{first_names(self.poor, NAMES_MAX)} {'suits' if one else 'suit'} DynamoDB"
            f" badly{share}: {'it is' if one else 'they are'} better left on SQL, or moved to"
            " another service.",
        )

    def _obstacles(self) -> Iterator[VerdictReason]:
        plan = self.contents.plan
        obstacles = (
            [difficulty for difficulty in plan.difficulties if difficulty.severity == "obstacle"]
            if plan
            else []
        )
        if obstacles:
            kinds: list[str] = list(dict.fromkeys(one.kind for one in obstacles))
            yield VerdictReason(
                speaks_for=self._holds_back(),
                weight=3,
                text=f"{number_of(len(obstacles), 'obstacle')} to solve first:"
                f" {first_names(kinds, NAMES_MAX)}.",
            )


def _calls(rate: float) -> str:
    if not rate:
        return "no known rates"
    return "1 call a second" if rate == 1 else f"{amount(rate)} calls a second"


def _share_text(share: float) -> str:
    return f"{share:.0%}" if share < 10 else f"{share:,.0f} times"


def _asked_by_key(count: int, total: int) -> str:
    if total == 1:
        return "The one pattern has a request of its own by key"
    some = f"All {total}" if count == total else f"{count} of {total}"
    return f"{some} patterns have requests of their own by key"
