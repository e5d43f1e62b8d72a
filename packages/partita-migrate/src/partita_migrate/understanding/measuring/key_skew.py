"""Key skew: the distribution of a table's rows over the values of a candidate key.

The figures of the whole table are estimated from n sampled rows of N, with d values among them, of
which f1 were seen once. Distinct values: n d / (n - f1 + f1 n / N), after frequent values are set
aside with their rows (Haas and Stokes 1998, "Duj1" and the idea of "Duj2a"). Entropy: Chao and Shen
2003, which allows for unseen values. Two rows drawn at random share a value with the same
probability as two sampled rows (Simpson 1949), which gives the rows that a call finds.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from partita_migrate.understanding.analysis import KeySkew, significant

EXAMPLES_MAX = 500
"""The number of values that are kept at random. The most frequent value is among them if it is
frequent enough to matter."""

FREQUENT = 50
"""A value that was sampled more often than this has a frequency that is known well enough."""


class KeyCounts:
    """Collects the values of some columns, row by row."""

    def __init__(self, columns: Sequence[str], *, is_unique: bool, is_shown: bool) -> None:
        self.columns = list(columns)
        self.is_unique = is_unique
        self._is_telling = is_shown
        self.seen = 0
        self.nulls = 0
        self._hashes = array("q")
        self._examples: list[tuple[int, str]] = []
        self._random = Random(" ".join(columns))

    def add(self, contents: Sequence[Any]) -> None:
        """Adds the contents of the columns in one row."""
        self.seen += 1
        if None in contents:
            self.nulls += 1
            return
        hashed = hash(_text_of(contents))
        self._hashes.append(hashed)
        if self._is_telling:
            self._keep_example(hashed, contents)

    def _keep_example(self, hashed: int, contents: Sequence[Any]) -> None:
        if len(self._examples) < EXAMPLES_MAX:
            self._examples.append((hashed, ", ".join(map(str, contents))))
            return
        position = int(self._random.random() * len(self._hashes))
        if position < EXAMPLES_MAX:
            self._examples[position] = (hashed, ", ".join(map(str, contents)))

    def skew(self, rows_in_table: float, is_exact: bool) -> KeySkew:
        """Returns the figures of the whole table; zeros if there are no rows, or only NULLs."""
        sampled = len(self._hashes)
        null_share = self.nulls / self.seen if self.seen else 0.0
        rows = max(rows_in_table * (1 - null_share), sampled)
        if not sampled:
            return KeySkew(
                columns=self.columns, distinct=0, rows_per_value=0.0, rows_per_value_max=0,
                top_share=0.0, entropy_bits=0.0, null_share=round(null_share, 6),
                is_unique=self.is_unique, is_distinct_exact=is_exact,
            )  # fmt: skip
        counts = self._counts()
        if self.is_unique:
            distinct, top, entropy, per_call = rows, 1 / rows, math.log2(rows), 1.0
        else:
            is_census = is_exact and self.seen >= rows_in_table
            distinct = counts.distinct if is_census else counts.estimate_distinct(rows)
            # If no value was sampled twice, that only shows how many values there are.
            top = counts.top / sampled if counts.top > 1 or is_census else 1 / distinct
            entropy = counts.entropy(is_census, distinct)
            # The rows per call are never fewer than the mean over the values.
            per_call = max(counts.shared(is_census) * rows, rows / distinct)
        return KeySkew(
            columns=self.columns,
            distinct=round(distinct),
            rows_per_value=round(rows / distinct, 2),
            rows_per_value_max=max(1, round(top * rows)),
            rows_per_call=round(per_call, 2),
            top_share=significant(top, 6),
            entropy_bits=round(entropy, 2) + 0.0,
            top_value=counts.top_value if not self.is_unique else None,
            null_share=round(null_share, 6),
            is_unique=self.is_unique,
            is_distinct_exact=is_exact,
        )

    def _counts(self) -> ValueCounts:
        frequencies: Counter[int] = Counter()
        top = run = 0
        ordered = sorted(self._hashes)
        for position, hashed in enumerate(ordered):
            run += 1
            if position + 1 == len(ordered) or ordered[position + 1] != hashed:
                frequencies[run] += 1
                top = max(top, run)
                run = 0
        return ValueCounts(len(ordered), frequencies, top, self._example(ordered, top))

    def _example(self, ordered: list[int], times: int) -> str | None:
        """Returns the first kept value with the highest count. The order of the hashes must not
        decide, because Python salts text hashes in each process."""
        for hashed, text in self._examples:
            if bisect_right(ordered, hashed) - bisect_left(ordered, hashed) == times:
                return text
        return None


class ValueCounts(NamedTuple):
    """The number of times that each value was sampled."""

    sampled: int
    frequencies: Counter[int]
    """The number of values by how often they were sampled."""
    top: int
    top_value: str | None

    @property
    def distinct(self) -> int:
        return self.frequencies.total()

    def estimate_distinct(self, rows: float) -> float:
        frequent = {times: values for times, values in self.frequencies.items() if times > FREQUENT}
        set_aside = sum(frequent.values())
        n = self.sampled - sum(times * values for times, values in frequent.items())
        if not n:
            return self.distinct
        once = self.frequencies[1]
        rows_left = rows * n / self.sampled
        estimate = n * (self.distinct - set_aside) / (n - once + once * n / rows_left)
        return min(rows, max(self.distinct, set_aside + estimate))

    def shared(self, is_census: bool) -> float:
        """Returns the probability that two rows drawn at random have the same value."""
        n = self.sampled
        if is_census or n < 2:
            return sum(values * times**2 for times, values in self.frequencies.items()) / n**2
        pairs = sum(values * times * (times - 1) for times, values in self.frequencies.items())
        return pairs / (n * (n - 1))

    def entropy(self, is_census: bool, distinct: float) -> float:
        """Returns the entropy in bits, at most that of equally frequent values."""
        n = self.sampled
        coverage = 1.0 if is_census else 1 - min(self.frequencies[1], n - 1) / n
        total = 0.0
        for times, values in self.frequencies.items():
            share = coverage * times / n
            probability_seen = (
                1.0 if is_census else -math.expm1(n * math.log1p(-share)) if share < 1 else 1.0
            )
            total -= values * share * math.log2(share) / probability_seen
        return min(max(total, 0.0), math.log2(distinct))


def _text_of(contents: Sequence[Any]) -> Any:
    """Returns something hashable. Numbers become texts, because hash(-1) equals hash(-2)."""
    if len(contents) == 1:
        return contents[0] if isinstance(contents[0], str) else repr(contents[0])
    return tuple(content if isinstance(content, str) else repr(content) for content in contents)
