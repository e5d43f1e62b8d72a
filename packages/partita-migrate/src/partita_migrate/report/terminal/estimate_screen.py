"""Prints the result of `partita migrate estimate`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita.foundation.service_limits import GB, KB
from partita_migrate.costing.bill import Bill
from partita_migrate.costing.capacity_estimate import ResourceUnits
from partita_migrate.costing.estimate_stage import ESTIMATE_CSV, ESTIMATE_JSON, Estimate, Estimates
from partita_migrate.report.terminal.terminal_tables import (
    ROWS_SHOWN_MAX,
    figure,
    gigabytes,
    grid,
    more,
)

DOUBLED_SHOWN_MAX = 8


def summarize(estimates: Estimates) -> Iterator[RenderableType]:
    """Prints the chosen design in full, and the others beside it."""
    chosen = estimates.estimates[0]
    yield Text(f"{chosen.file} ({chosen.kind})", style="bold")
    if chosen.patterns:
        yield _patterns(chosen)
    else:
        yield Text("There are no access patterns: these figures are for storage alone.")
    if rest := more(len(chosen.patterns), ESTIMATE_CSV):
        yield Text(rest)
    yield _resources(chosen)
    if rest := more(len(chosen.resources), ESTIMATE_CSV):
        yield Text(rest)
    yield _month(chosen.bill)
    yield _doubled(chosen)
    if len(estimates.estimates) > 1:
        yield _side_by_side(estimates)
    yield Text(f"Prices of {estimates.prices_of}.")
    yield Text(f"Written: {ESTIMATE_JSON}, {ESTIMATE_CSV}")


def _side_by_side(estimates: Estimates) -> RenderableType:
    return grid(
        "All models",
        ["file", "RCU", "WCU", "GB", "a month", "paid by"],
        (
            (
                estimate.file,
                figure(estimate.read_units),
                figure(estimate.write_units),
                gigabytes(estimate.stored_gb),
                f"{estimate.bill.cheapest.monthly + estimate.bill.extras_monthly:,.2f}",
                f"{estimate.bill.cheapest.name}, {estimate.bill.cheapest.table_class}",
            )
            for estimate in estimates.estimates
        ),
        numbers=["RCU", "WCU", "GB", "a month"],
    )


def _patterns(estimate: Estimate) -> RenderableType:
    return grid(
        "Capacity for each pattern",
        ["pattern", "calls/s", "items", "served by", "RCU", "WCU"],
        (
            (
                pattern.pattern,
                figure(pattern.calls_per_second),
                figure(pattern.items),
                pattern.served_by,
                figure(pattern.read_units),
                figure(sum(pattern.write_units.values())),
            )
            for pattern in estimate.patterns[:ROWS_SHOWN_MAX]
        ),
        numbers=["calls/s", "items", "RCU", "WCU"],
    )


def _resources(estimate: Estimate) -> RenderableType:
    return grid(
        "Tables and indexes",
        ["", "WCU", "RCU", "items", "item KB", "GB", "partitions"],
        (
            (
                _name(resource),
                figure(resource.write_units),
                figure(resource.read_units),
                f"{resource.items:,.0f}",
                f"{resource.item_bytes / KB:.2f}",
                gigabytes(resource.stored_bytes / GB),
                str(resource.partitions),
            )
            for resource in estimate.resources[:ROWS_SHOWN_MAX]
        ),
        numbers=["WCU", "RCU", "items", "item KB", "GB", "partitions"],
    )


def _name(resource: ResourceUnits) -> str:
    return f"{resource.table}/{resource.index}" if resource.index else resource.table


def _month(bill: Bill) -> RenderableType:
    rows = [
        (
            option.name,
            option.table_class,
            f"{option.throughput:,.2f}",
            f"{option.storage:,.2f}",
            f"{option.monthly:,.2f}",
        )
        for option in bill.options
    ]
    rows += [(extra.name, "", "", "", f"{extra.monthly:,.2f}") for extra in bill.extras]
    return grid(
        f"A month, in {bill.currency}",
        ["paid by", "class", "throughput", "storage", "together"],
        rows,
        numbers=["throughput", "storage", "together"],
    )


def _doubled(estimate: Estimate) -> RenderableType:
    return grid(
        "When it doubles, a month costs more by",
        ["", "provisioned", "on-demand"],
        (
            (doubled.what, f"{doubled.provisioned_more:,.2f}", f"{doubled.on_demand_more:,.2f}")
            for doubled in estimate.doubled[:DOUBLED_SHOWN_MAX]
        ),
        numbers=["provisioned", "on-demand"],
    )
