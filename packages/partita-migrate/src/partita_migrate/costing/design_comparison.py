"""Compares the proposed designs: cost, requests, writes and size. Proof comes later, from
`test`."""

from __future__ import annotations

from msgspec import Struct

from partita.foundation.service_limits import GB
from partita_migrate.costing.bill import Bill, EstimateSettings, bill
from partita_migrate.costing.capacity_estimate import CapacityEstimate, units
from partita_migrate.costing.prices.price_list import Prices
from partita_migrate.model.design import Design
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern


class DesignComparison(Struct, frozen=True, kw_only=True):
    """The figures of one design."""

    kind: str
    tables: int
    indexes: int
    monthly: float
    """The monthly cost of the cheapest option without commitment."""
    paid_by: str
    read_units: float
    write_units: float
    write_amplification: float
    """Items and index entries that are written for each row that a pattern writes."""
    stored_gb: float
    requests: dict[str, float]
    """Requests per call, by pattern."""
    requests_per_second: float = 0.0
    """All patterns together, at their stated rates."""
    not_served: list[str]


class DesignComparisons(Struct, frozen=True, kw_only=True):
    designs: list[DesignComparison]
    recommended: str
    why: str


def compare(
    designs: list[Design],
    patterns: list[AccessPattern],
    volumes: Volumes,
    prices: Prices,
    settings: EstimateSettings,
) -> DesignComparisons:
    """Recommends the design that serves the most patterns and, among equals, costs the least."""
    compared = []
    for design in designs:
        needed = units(design, patterns, volumes)
        compared.append(_compared(design, patterns, needed, bill(needed, prices, settings)))
    best = min(compared, key=lambda design: (len(design.not_served), round(design.monthly, 2)))
    return DesignComparisons(designs=compared, recommended=best.kind, why=_why(best, compared))


def _compared(
    design: Design, patterns: list[AccessPattern], needed: CapacityEstimate, priced: Bill
) -> DesignComparison:
    served = {access.pattern for access in design.access}
    writes = [pattern for pattern in needed.patterns if pattern.items_written]
    rows = sum(write.calls_per_second * write.items for write in writes)
    written = sum(write.calls_per_second * write.items_written for write in writes)
    requests = _requests(needed)
    return DesignComparison(
        kind=design.kind,
        tables=len(design.tables),
        indexes=sum(len(table.indexes) for table in design.tables),
        monthly=priced.cheapest.monthly + priced.extras_monthly,
        paid_by=f"{priced.cheapest.name}, {priced.cheapest.table_class}",
        read_units=needed.read_units,
        write_units=needed.write_units,
        write_amplification=written / rows if rows else 1.0,
        stored_gb=needed.stored_bytes / GB,
        requests=requests,
        requests_per_second=sum(
            pattern.calls_per_second * requests.get(pattern.name, 0.0) for pattern in patterns
        ),
        not_served=[pattern.name for pattern in patterns if pattern.name not in served],
    )


def _requests(needed: CapacityEstimate) -> dict[str, float]:
    requests: dict[str, float] = {}
    for pattern in needed.patterns:
        requests[pattern.pattern] = requests.get(pattern.pattern, 0) + pattern.requests
    return requests


def _why(best: DesignComparison, compared: list[DesignComparison]) -> str:
    others = [design for design in compared if design is not best]
    if not others:
        return ""
    other = others[0]
    if len(best.not_served) < len(other.not_served):
        return f"It serves {len(other.not_served) - len(best.not_served)} patterns more."
    if round(best.monthly, 2) == round(other.monthly, 2):
        return "Both cost the same; the first has fewer item types to think about."
    writes, others_writes = (f"{design.write_amplification:.1f}" for design in (best, other))
    both = f"{writes} writes for a row"
    return (
        f"It costs {best.monthly:,.2f} a month instead of {other.monthly:,.2f}, with"
        f" {both if writes == others_writes else f'{both} instead of {others_writes}'}."
    )
