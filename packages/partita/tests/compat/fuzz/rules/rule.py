"""The form of rules, how they are written, and the sources of their claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...answers import Answer
from ..requests import Request

CONFORMANCE = "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026"
DYNALITE = "dynalite's tests, recorded from the service in 2019 and 2020"
ALTERNATOR = "ScyllaDB Alternator's tests, which pass on the service"
UNKNOWN = "not known of the service"
RECORDED = "recorded from the service in 2026, kept by tests/wire"

Pair = tuple[Answer, Answer]
Change = Callable[[Request, Answer, Answer], Pair]
Test = Callable[[Request, Answer, Answer], bool]


@dataclass(frozen=True)
class Rule:
    reason: str
    source: str
    apply: Change


class Rules(list[Rule]):
    """The rules of a module: `@RULES.change(...)` and `@RULES.accept(...)` add functions to it."""

    def change(self, reason: str, source: str) -> Callable[[Change], Change]:
        """Registers a function whose results for both responses are compared."""

        def add(apply: Change) -> Change:
            self.append(Rule(reason, source, apply))
            return apply

        return add

    def accept(self, reason: str, source: str) -> Callable[[Test], Test]:
        """Registers a function that is True when Partita's response is correct."""

        def add(accepts: Test) -> Test:
            def apply(request: Request, local: Answer, partita: Answer) -> Pair:
                return (partita if accepts(request, local, partita) else local), partita

            self.append(Rule(reason, source, apply))
            return accepts

        return add


def both_succeed(local: Answer, partita: Answer) -> bool:
    return local.status == partita.status == 200


def without(value: Any, member: str) -> Any:
    """Returns the body of a response without a member, at any depth."""
    if isinstance(value, dict):
        return {name: without(one, member) for name, one in value.items() if name != member}
    return [without(one, member) for one in value] if isinstance(value, list) else value


def without_capacity(*answers: Answer) -> tuple[Answer, ...]:
    return tuple(replace(one, body=without(one.body, "ConsumedCapacity")) for one in answers)


def statement(request: Request) -> str:
    return str(request.body.get("Statement", ""))
