"""Bars: where each begins and how long it is. The templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from partita.foundation.service_limits import ITEM_BYTES_MAX
from partita_migrate.costing.bill import Bill, PricingOption
from partita_migrate.costing.estimate_stage import DoubledFigure
from partita_migrate.understanding.analysis import (
    Analysis,
    KeySkew,
    SizeDistribution,
    TableAnalysis,
)
from partita_migrate.understanding.planning.plan_page import bytes_text

HISTOGRAMS_MAX = 24
SKEWS_MAX = 60
DOUBLED_MAX = 12

WIDTH = 320.0
HEIGHT = 96.0
LABELS_MAX = 5


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    title: str
    label: str
    """Empty where labels would lie on each other."""
    is_over: bool
    """Larger than an item may be."""


class Histogram(NamedTuple):
    table: str
    figures: TableAnalysis
    bars: list[Bar]


class SkewBar(NamedTuple):
    table: str
    key: KeySkew
    top: float
    """Width of the bar, of 100: the share of the most frequent value."""
    even: float
    """Where it would end if all values were equally frequent."""
    evenness: float | None
    """Entropy as a part of what it could be at most."""


class OptionBar(NamedTuple):
    option: PricingOption
    throughput: float
    storage: float
    is_cheapest: bool


class DoubledBar(NamedTuple):
    doubled: DoubledFigure
    provisioned: float
    on_demand: float


def histograms(analysis: Analysis) -> list[Histogram]:
    """Of the tables with the most bytes."""
    filled = [table for table in analysis.tables if table.sampled]
    filled.sort(key=lambda one: (-one.rows * one.item_bytes.mean, one.table))
    return [
        Histogram(one.table, one, list(bars(one.item_bytes))) for one in filled[:HISTOGRAMS_MAX]
    ]


def bars(sizes: SizeDistribution) -> Iterator[Bar]:
    counts = sizes.histogram
    while counts and not counts[0][1]:
        counts = counts[1:]
    most = max((count for _, count in counts), default=0) or 1
    total = sum(count for _, count in counts)
    step = WIDTH / max(len(counts), 8)
    every = math.ceil(len(counts) / LABELS_MAX)
    for number, (bound, count) in enumerate(counts):
        # A bar that is there is seen, however few rows it stands for.
        height = max(1.5, count / most * HEIGHT) if count else 0.0
        yield Bar(
            x=round(number * step + 1.5, 2),
            y=round(HEIGHT - height, 2),
            width=round(step - 3, 2),
            height=round(height, 2),
            title=f"up to {bytes_text(bound)}: {count:,} ({count / total:.1%})",
            label=bytes_text(bound).replace(".0 ", " ") if number % every == 0 else "",
            is_over=bound > ITEM_BYTES_MAX,
        )


def skews(analysis: Analysis) -> list[SkewBar]:
    """Of all keys with more rows than values: the hot ones first, then the most uneven."""
    found = [
        SkewBar(
            table=table.table,
            key=key,
            top=round(key.top_share * 100, 3),
            even=round(100 / key.distinct, 3),
            evenness=key.entropy_bits / math.log2(key.distinct) if key.distinct > 1 else None,
        )
        for table in analysis.tables
        for key in table.keys
        if key.distinct and not key.is_unique
    ]
    found.sort(key=lambda one: (not one.key.is_hot, -one.top, one.table, one.key.columns))
    return found


def option_bars(bill: Bill) -> list[OptionBar]:
    longest = max((option.monthly for option in bill.options), default=0.0) or 1.0
    return [
        OptionBar(
            option=option,
            throughput=round(option.throughput / longest * 100, 2),
            storage=round(option.storage / longest * 100, 2),
            is_cheapest=option is bill.cheapest,
        )
        for option in sorted(bill.options, key=lambda option: option.monthly)
    ]


def doubled_bars(doubled: Iterable[DoubledFigure]) -> list[DoubledBar]:
    """What matters most when it doubles."""
    shown = [one for one in doubled if max(one.provisioned_more, one.on_demand_more) >= 0.005]
    shown.sort(key=lambda one: -max(one.provisioned_more, one.on_demand_more))
    shown = shown[:DOUBLED_MAX]
    longest = max((max(one.provisioned_more, one.on_demand_more) for one in shown), default=1.0)
    return [
        DoubledBar(
            doubled=one,
            provisioned=round(max(0.0, one.provisioned_more) / longest * 100, 2),
            on_demand=round(max(0.0, one.on_demand_more) / longest * 100, 2),
        )
        for one in shown
    ]
