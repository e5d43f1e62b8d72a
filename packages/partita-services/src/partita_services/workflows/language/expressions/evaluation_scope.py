"""The scope of an expression: its data, the context object, variables, and the current time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from partita_services.workflows.language.json_values import Json


class StepMoment(NamedTuple):
    """The time and the source of randomness of a step. They are passed in: nothing in the language
    reads a clock, so a step can be repeated."""

    now: float
    random: random.Random


class EvaluationScope(NamedTuple):
    """The values that an expression can refer to."""

    data: Json
    """The value of `$`."""
    context: Json
    """The value of `$$` and `$states.context`."""
    variables: Mapping[str, Json]
    moment: StepMoment
    states: Mapping[str, Json]
    """`$states` of JSONata, apart from the context: input, result, errorOutput."""
    inspected: dict[str, Json] | None = None
    """Collects intermediate data when a state is tested (TestState)."""

    def note(self, name: str, value: Json) -> Json:
        if self.inspected is not None:
            self.inspected[name] = value
        return value
