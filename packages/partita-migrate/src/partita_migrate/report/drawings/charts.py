"""Calculates the positions and lengths of bars; the templates draw them."""

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
    """Empty where labels would overlap."""
    is_over: bool
    """True for sizes beyond the limit of an item."""


class Histogram(NamedTuple):
    table: str
    figures: TableAnalysis
    bars: list[Bar]


class SkewBar(NamedTuple):
    table: str
    key: KeySkew
    top: float
    """The bar's width, out of 100: the share of the most frequent value."""
    even: float
    """The place where the bar would end if all values were equally frequent."""
    evenness: float | None
    """The entropy as a share of its maximum."""


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
    """Returns the histograms of the tables with the most bytes."""
    filled = [table for table in analysis.tables if table.sampled]
    filled.sort(key=lambda table: (-table.rows * table.item_bytes.mean, table.table))
    return [
        Histogram(table.table, table, list(bars(table.item_bytes)))
        for table in filled[:HISTOGRAMS_MAX]
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
        # A bar keeps a minimal height, so that a few rows stay visible.
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
    """Returns all keys with several rows for a value: hot keys first, then by skew."""
    skew_bars = [
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
    skew_bars.sort(key=lambda bar: (not bar.key.is_hot, -bar.top, bar.table, bar.key.columns))
    return skew_bars


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
    """Returns the figures that matter most when they double."""
    shown = [
        figure for figure in doubled if max(figure.provisioned_more, figure.on_demand_more) >= 0.005
    ]
    shown.sort(key=lambda figure: -max(figure.provisioned_more, figure.on_demand_more))
    shown = shown[:DOUBLED_MAX]
    longest = max(
        (max(figure.provisioned_more, figure.on_demand_more) for figure in shown), default=1.0
    )
    return [
        DoubledBar(
            doubled=figure,
            provisioned=round(max(0.0, figure.provisioned_more) / longest * 100, 2),
            on_demand=round(max(0.0, figure.on_demand_more) / longest * 100, 2),
        )
        for figure in shown
    ]
