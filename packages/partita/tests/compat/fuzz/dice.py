"""Chance from a seed: the same seed makes the same choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

Option = TypeVar("Option")


class Dice(Random):
    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def some(self, options: Sequence[Option], least: int, most: int) -> list[Option]:
        """Different options, in any order."""
        return self.sample(options, min(len(options), self.randint(least, most)))

    def weighted(self, options: Sequence[tuple[int, Option]]) -> Option:
        weights = [weight for weight, _ in options]
        return self.choices([option for _, option in options], weights)[0]

    def times(self, least: int, most: int, make: Callable[[], Option]) -> list[Option]:
        return [make() for _ in range(self.randint(least, most))]
