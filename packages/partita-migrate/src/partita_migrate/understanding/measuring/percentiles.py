"""Percentiles of a sample, and their confidence intervals.

The intervals are distribution-free: the number of sampled rows below the true percentile is
binomial however sizes are distributed, so two ranks of the sorted sample enclose it with known
probability.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence

from partita.foundation.service_limits import ITEM_BYTES_MAX, KB
from partita_migrate.understanding.analysis import SizeDistribution

CONFIDENCE = 0.95

# The bounds are finer where capacity units change: below 1 KB, then at the steps of writes and
# reads.
HISTOGRAM_BOUNDS = (
    64, 128, 256, 384, 512, 768, KB, 2 * KB, 3 * KB, 4 * KB, 8 * KB, 16 * KB, 32 * KB, 64 * KB,
    128 * KB, 256 * KB, ITEM_BYTES_MAX,
)  # fmt: skip


def distribution(sizes: array[int], is_exact: bool) -> SizeDistribution:
    if not sizes:
        return SizeDistribution(mean=0.0, p50=0, p95=0, p99=0, max=0)
    ordered = sorted(sizes)
    return SizeDistribution(
        mean=round(sum(ordered) / len(ordered), 1),
        p50=percentile(ordered, 0.50),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        max=ordered[-1],
        p95_interval=None if is_exact else interval(ordered, 0.95),
        histogram=histogram(ordered),
    )


def percentile(ordered: Sequence[int], share: float) -> int:
    """Returns the smallest value that at least this share of all values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def interval(ordered: Sequence[int], share: float) -> tuple[int, int]:
    """Returns an interval that contains the whole table's percentile with probability
    `CONFIDENCE`."""
    below, above = _ranks(len(ordered), share)
    return ordered[below], ordered[above]


def _ranks(count: int, share: float) -> tuple[int, int]:
    """Returns ranks of the sorted sample with a probability of (1 - CONFIDENCE) / 2
    outside each."""
    tail = (1 - CONFIDENCE) / 2
    below = _quantile(count, share, tail) - 1
    above = _quantile(count, share, 1 - tail)
    return max(0, below), min(count - 1, above)


def _quantile(count: int, share: float, probability: float) -> int:
    """Returns the smallest k for which Binomial(count, share) is at most k with this
    probability."""
    mean, deviation = count * share, math.sqrt(count * share * (1 - share))
    # The tails beyond 12 standard deviations do not matter.
    k = max(0, math.floor(mean - 12 * deviation))
    total = 0.0
    while k < count:
        total += math.exp(_log_binomial(count, k, share))
        if total >= probability:
            break
        k += 1
    return k


def _log_binomial(count: int, k: int, share: float) -> float:
    ways = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
    return ways + k * math.log(share) + (count - k) * math.log1p(-share)


def histogram(ordered: Sequence[int]) -> list[tuple[int, int]]:
    """Returns (upper bound, rows) pairs up to the bound that covers the largest value."""
    bounds = [*HISTOGRAM_BOUNDS]
    if ordered[-1] > bounds[-1]:
        bounds.append(ordered[-1])
    ends = [0, *(bisect_left(ordered, bound + 1) for bound in bounds)]
    counted = [(bound, ends[i + 1] - ends[i]) for i, bound in enumerate(bounds)]
    last = next(i for i, end in enumerate(ends[1:]) if end == len(ordered))
    return counted[: last + 1]
