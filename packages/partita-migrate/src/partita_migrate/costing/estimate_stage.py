"""Stage `estimate`: capacity, storage and price of every design.

It also shows how much the price rises when one assumption (a rate, an item size, a row count) is
too low by a factor of two.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from partita.errors import PartitaError
from partita.foundation.service_limits import GB
from partita_migrate.costing.bill import Bill, EstimateSettings, bill
from partita_migrate.costing.capacity_estimate import (
    CapacityEstimate,
    PatternUnits,
    ResourceUnits,
    units,
)
from partita_migrate.costing.prices.price_list import Prices, PriceSource, read_prices
from partita_migrate.model.design import DESIGN_KINDS, Design
from partita_migrate.model.design_findings import subject_of
from partita_migrate.model.model_files import CHOSEN, file_name, read_design
from partita_migrate.model.unknown_names import refuse_unknown_names
from partita_migrate.model.volumes import Volumes, read_volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

ESTIMATE_JSON = "estimate.json"
ESTIMATE_CSV = "estimate.csv"
DOUBLED_TABLES_MAX = 20
"""Only the largest tables are doubled: the others hardly change the bill."""


class DoubledFigure(Struct, frozen=True, kw_only=True):
    """The monthly cost if one figure were twice as large."""

    what: str
    provisioned: float
    on_demand: float
    provisioned_more: float
    on_demand_more: float


class Estimate(Struct, frozen=True, kw_only=True):
    """One design with its capacity, its storage and its bill."""

    file: str
    kind: str
    read_units: float
    write_units: float
    stored_gb: float
    partitions: int
    patterns: list[PatternUnits]
    resources: list[ResourceUnits]
    bill: Bill
    doubled: list[DoubledFigure]


def monthly(estimate: Estimate) -> float:
    """Returns the monthly cost of the cheapest option without commitment, extras included."""
    return estimate.bill.cheapest.monthly + estimate.bill.extras_monthly


class Estimates(Struct, frozen=True, kw_only=True):
    """The result of stage `estimate`, as `estimate.json` holds it."""

    prices_of: str
    sources: list[PriceSource]
    estimates: list[Estimate]
    """The chosen design comes first."""


def estimate(
    folder: Folder,
    *,
    name: str | None = None,
    prices: Path | None = None,
    progress: Progress = silent,
) -> Estimates:
    """Estimates one model file, or without a name the chosen design and every proposal."""
    volumes = read_volumes(folder)
    patterns = read_patterns(folder, volumes.inventory).patterns
    settings = _settings(folder)
    price_list = read_prices(prices or (folder.path / settings.prices if settings.prices else None))
    estimates = []
    designs = {file: read_design(folder, file) for file in ([name] if name else _names(folder))}
    for number, (file, design) in enumerate(designs.items()):
        refuse_unknown_names(file, subject_of(design, patterns, volumes))
        progress("Estimates", number, len(designs))
        # When the chosen design is an unchanged proposal, that proposal would get the same bill.
        if number == 0 or design != designs.get(CHOSEN):
            estimates.append(_estimate(file, design, patterns, volumes, price_list, settings))
    progress("Estimates", len(designs), len(designs))
    result = Estimates(
        prices_of=f"{price_list.region}, {price_list.date}",
        sources=price_list.database_sources,
        estimates=estimates,
    )
    folder.write_json(ESTIMATE_JSON, result)
    folder.write_text(ESTIMATE_CSV, to_csv(result))
    return result


def _settings(folder: Folder) -> EstimateSettings:
    settings = folder.section("estimate", EstimateSettings)
    where = folder.path / "migration.toml"
    if not 0 < settings.utilization <= 1:
        raise PartitaError(f"{where}, [estimate] utilization must be above 0 and at most 1.")
    if settings.load <= 0 or settings.hours_per_month <= 0:
        raise PartitaError(f"{where}, [estimate] load and hours_per_month must be above 0.")
    return settings


def _names(folder: Folder) -> list[str]:
    candidates = [CHOSEN, *(file_name(kind) for kind in DESIGN_KINDS)]
    existing = [name for name in candidates if folder.has(name)]
    if not existing:
        raise PartitaError(
            f"{folder.path} has no model; run `partita migrate model` before estimate."
        )
    return existing


def _estimate(
    name: str,
    design: Design,
    patterns: list[AccessPattern],
    volumes: Volumes,
    prices: Prices,
    settings: EstimateSettings,
) -> Estimate:
    needed = units(design, patterns, volumes)
    return Estimate(
        file=name,
        kind=design.kind,
        read_units=needed.read_units,
        write_units=needed.write_units,
        stored_gb=needed.stored_bytes / GB,
        partitions=sum(resource.partitions for resource in needed.resources),
        patterns=needed.patterns,
        resources=needed.resources,
        bill=bill(needed, prices, settings),
        doubled=_Doubling(design, patterns, volumes, prices, settings, needed).all(),
    )


class _Doubling:
    """Prices the design again with one rate, one item size or one row count doubled."""

    def __init__(
        self,
        design: Design,
        patterns: list[AccessPattern],
        volumes: Volumes,
        prices: Prices,
        settings: EstimateSettings,
        needed: CapacityEstimate,
    ) -> None:
        self.design = design
        self.patterns = patterns
        self.volumes = volumes
        self.prices = prices
        self.settings = settings
        self.needed = needed
        self.before = bill(needed, prices, settings)

    def all(self) -> list[DoubledFigure]:
        """Returns what each doubling costs, the most expensive first."""
        doublings = [
            self._rate(pattern) for pattern in self.needed.patterns if pattern.calls_per_second
        ]
        for source in self._largest():
            doublings += [self._size(source), self._rows(source)]
        return sorted(doublings, key=lambda doubled: -doubled.provisioned_more)

    def _largest(self) -> list[str]:
        """Returns the tables whose items take the most bytes."""
        sizes: dict[str, float] = {}
        for _, entity in self.design.entities():
            size = self.volumes.items(entity) * self.volumes.item_bytes(entity)
            sizes[entity.source] = sizes.get(entity.source, 0.0) + size
        filled = [source for source, size in sizes.items() if size]
        return sorted(filled, key=lambda source: -sizes[source])[:DOUBLED_TABLES_MAX]

    def _rate(self, pattern: PatternUnits) -> DoubledFigure:
        """Doubles one pattern's rate: adds its units again to the tables and indexes that it
        uses."""
        resources = []
        for resource in self.needed.resources:
            name = f"{resource.table}/{resource.index}" if resource.index else resource.table
            read = pattern.read_units if name == pattern.served_by else 0.0
            write = pattern.write_units.get(name, 0.0)
            if read or write:
                resource = replace(
                    resource,
                    read_units=resource.read_units + read,
                    write_units=resource.write_units + write,
                )
            resources.append(resource)
        doubled = CapacityEstimate(patterns=self.needed.patterns, resources=resources)
        return self._doubled(f"rate of {pattern.pattern!r}", doubled)

    def _size(self, table: str) -> DoubledFigure:
        larger = self.volumes.scaled(table, size=2)
        return self._doubled(f"item size of {table}", units(self.design, self.patterns, larger))

    def _rows(self, table: str) -> DoubledFigure:
        more = self.volumes.scaled(table, rows=2)
        return self._doubled(f"rows of {table}", units(self.design, self.patterns, more))

    def _doubled(self, what: str, needed: CapacityEstimate) -> DoubledFigure:
        after = bill(needed, self.prices, self.settings)
        provisioned, on_demand = (
            after.option(name).monthly + after.extras_monthly
            for name in ("provisioned", "on-demand")
        )
        return DoubledFigure(
            what=what,
            provisioned=provisioned,
            on_demand=on_demand,
            provisioned_more=provisioned
            - self.before.option("provisioned").monthly
            - self.before.extras_monthly,
            on_demand_more=on_demand
            - self.before.option("on-demand").monthly
            - self.before.extras_monthly,
        )


CSV_COLUMNS = (
    "model",
    "part",
    "name",
    "served_by",
    "calls_per_second",
    "items",
    "item_kb",
    "read_units",
    "write_units",
    "gb",
    "partitions",
    "monthly",
)


def to_csv(estimates: Estimates) -> str:
    """Returns every figure as one CSV table, for spreadsheets."""
    text = io.StringIO()
    rows = csv.DictWriter(text, CSV_COLUMNS, restval="", lineterminator="\n")
    rows.writeheader()
    for estimate in estimates.estimates:
        for pattern in estimate.patterns:
            rows.writerow(_pattern_row(estimate, pattern))
        for resource in estimate.resources:
            rows.writerow(_resource_row(estimate, resource))
        for option in estimate.bill.options:
            rows.writerow(
                {
                    "model": estimate.file,
                    "part": "bill",
                    "name": f"{option.name}, {option.table_class}",
                    "monthly": f"{option.monthly:.2f}",
                }
            )
        for extra in estimate.bill.extras:
            rows.writerow(
                {
                    "model": estimate.file,
                    "part": "extra",
                    "name": extra.name,
                    "monthly": f"{extra.monthly:.2f}",
                }
            )
    return text.getvalue()


def _pattern_row(estimate: Estimate, pattern: PatternUnits) -> dict[str, str]:
    return {
        "model": estimate.file,
        "part": "pattern",
        "name": pattern.pattern,
        "served_by": pattern.served_by,
        "calls_per_second": f"{pattern.calls_per_second:g}",
        "items": f"{pattern.items:g}",
        "read_units": f"{pattern.read_units:g}",
        "write_units": f"{sum(pattern.write_units.values()):g}",
    }


def _resource_row(estimate: Estimate, resource: ResourceUnits) -> dict[str, str]:
    return {
        "model": estimate.file,
        "part": "index" if resource.index else "table",
        "name": f"{resource.table}/{resource.index}" if resource.index else resource.table,
        "items": f"{resource.items:.0f}",
        "item_kb": f"{resource.item_bytes / 1024:.4g}",
        "read_units": f"{resource.read_units:g}",
        "write_units": f"{resource.write_units:g}",
        "gb": f"{resource.stored_bytes / GB:.4g}",
        "partitions": str(resource.partitions),
    }
