"""The hunt for differences: rounds of requests to both servers, and what they found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..answers import Answer
from .generator import first_items, requests
from .intended import is_intended
from .kinds import kind
from .requests import Request
from .shrink import Shrinking
from .twins import Exchange, State, Twins

SHOWN_CHARS_MAX = 2_000


@dataclass
class Finding:
    """A kind of difference: how often it was met, where first, and its smallest example."""

    kind: str
    seed: int
    state: State
    exchange: Exchange
    is_shrunk: bool
    count: int = 1

    def __str__(self) -> str:
        request = self.exchange.request
        lines = [
            f"{self.count} x {self.kind}",
            f"  seed     {self.seed}{'' if self.is_shrunk else ' (not from these items alone)'}",
            *(
                f"  item     {name} {_shown(item)}"
                for name, items in self.state.items()
                for item in items
            ),
            f"  request  {request.operation} {_shown(request.body)}",
            f"  local    {_said(self.exchange.local)}",
            f"  partita  {_said(self.exchange.partita)}",
        ]
        if self.exchange.diverged:
            lines.append(f"  left     local   {_shown(self.exchange.left_local)}")
            lines.append(f"           partita {_shown(self.exchange.left_partita)}")
        return "\n".join(lines)


def _shown(body: object) -> str:
    return json.dumps(body, ensure_ascii=False)[:SHOWN_CHARS_MAX]


def _said(answer: Answer) -> str:
    return str(answer)[:SHOWN_CHARS_MAX]


@dataclass
class Hunt:
    """The counts of comparisons and differences so far."""

    twins: Twins
    shrinks: bool = True
    compared: int = 0
    answered: int = 0
    intended: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)

    def run(self, seeds: Iterable[int], seconds: float = float("inf")) -> None:
        deadline = time.monotonic() + seconds
        for seed in seeds:
            self.round(seed)
            if time.monotonic() > deadline:
                return

    def round(self, seed: int) -> None:
        self.twins.reset(first_items(seed))
        for request in requests(seed):
            self.ask(seed, request)

    def ask(self, seed: int, request: Request) -> None:
        before = dict(self.twins.state)
        exchange = self.twins.ask(request)
        self.compared += 1
        self.answered += exchange.partita.status == 200
        if not exchange.differs:
            return
        if is_intended(exchange):
            self.intended += 1
        else:
            self._note(seed, before, exchange)
        if exchange.diverged:
            self.twins.reset({**before, **exchange.left_partita})

    def _note(self, seed: int, before: State, exchange: Exchange) -> None:
        """A new finding, shrunk, or one more of those that are known."""
        known = self.findings.get(kind(exchange))
        if known is not None:
            known.count += 1
            return
        finding = Finding(kind(exchange), seed, before, exchange, is_shrunk=False)
        self.findings[finding.kind] = finding
        if self.shrinks:
            after = dict(self.twins.state)
            self._shrink(finding)
            self.twins.reset(after)

    def _shrink(self, finding: Finding) -> None:
        tables = {table.name for table in finding.exchange.request.tables}
        state = {name: items for name, items in finding.state.items() if name in tables}
        shrinking = Shrinking(self.twins, finding.kind, lambda one: not is_intended(one))
        smallest = shrinking.shrunk(state, finding.exchange.request)
        if smallest is not None:
            finding.state, finding.exchange = smallest
            finding.is_shrunk = True

    def summary(self) -> str:
        return (
            f"{self.compared} requests compared, {self.answered} of them answered with 200, "
            f"{self.intended} intended differences, {len(self.findings)} kinds of others."
        )

    def report(self) -> str:
        findings = sorted(self.findings.values(), key=lambda one: -one.count)
        return "\n\n".join([self.summary(), *map(str, findings)])
