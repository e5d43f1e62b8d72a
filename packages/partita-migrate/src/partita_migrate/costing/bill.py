"""The monthly bill of a design, for each capacity mode and table class that AWS sells."""

from __future__ import annotations

import math

from msgspec import Struct

from partita.foundation.service_limits import GB, WRITE_UNIT_BYTES
from partita_migrate.costing.capacity_estimate import CapacityEstimate, ResourceUnits
from partita_migrate.costing.prices.price_list import ClassPrices, Prices, ReservedPrices

# Reserved capacity is sold in blocks of 100 units.
RESERVED_BLOCK = 100
MONTHS = {"one year": 12, "three years": 36}


class EstimateSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[estimate]` of `migration.toml`: assumptions of the arithmetic."""

    load: float = 1.0
    """The average load, as a share of the rates that the patterns state."""
    utilization: float = 0.7
    """The utilization that auto scaling aims at."""
    hours_per_month: float = 730
    prices: str | None = None
    """A price list to use instead of the built-in one, relative to the folder."""
    point_in_time_recovery: bool = True
    backups_kept: int = 0
    """The number of full on-demand backups that are kept at any time."""
    stream_readers: int = 0
    """Stream readers that AWS charges for. Lambda triggers read for free."""
    stream_polls_per_second: float = 1.0
    kinesis: bool = False
    """True when changes also go to a Kinesis data stream."""
    dax_node: str = "dax.r5.large"
    dax_nodes: int = 0
    dax_hit_share: float = 0.8


class PricingOption(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to pay for throughput and storage: a capacity mode with a table class."""

    name: str
    table_class: str = "Standard"
    throughput: float
    storage: float
    monthly: float
    upfront: float = 0.0
    """The payment at the start of a reservation; `monthly` already contains its share."""


class ExtraCost(Struct, frozen=True, kw_only=True):
    """A cost beside throughput and storage, such as backups."""

    name: str
    monthly: float
    detail: str


class BreakEven(Struct, frozen=True, kw_only=True):
    """The table size from which Standard-Infrequent Access costs less than Standard."""

    name: str
    stored_gb: float
    needed_gb: float
    """The break-even size, with throughput unchanged."""
    is_cheaper: bool
    saving: float


class Bill(Struct, frozen=True, kw_only=True):
    currency: str
    region: str
    prices_of: str
    stored_gb: float
    options: list[PricingOption]
    extras: list[ExtraCost]
    one_time: list[ExtraCost]
    break_even: list[BreakEven]

    @property
    def cheapest(self) -> PricingOption:
        """Returns the cheapest option that needs no upfront payment."""
        free = [option for option in self.options if not option.upfront]
        return min(free, key=lambda option: option.monthly)

    def option(self, name: str, table_class: str = "Standard") -> PricingOption:
        return next(
            option
            for option in self.options
            if option.name == name and option.table_class == table_class
        )

    @property
    def extras_monthly(self) -> float:
        return sum(extra.monthly for extra in self.extras)


def bill(units: CapacityEstimate, prices: Prices, settings: EstimateSettings) -> Bill:
    """Prices the capacity estimate in every capacity mode and table class."""
    writer = _BillWriter(units, prices, settings)
    return Bill(
        currency=prices.currency,
        region=prices.region,
        prices_of=prices.date,
        stored_gb=writer.gb,
        options=writer.options(),
        extras=writer.extras(),
        one_time=writer.one_time(),
        break_even=writer.break_even(),
    )


def whole_units(resource: ResourceUnits, amount: float) -> int:
    """Rounds up to whole units, at least one; a local index has none, it uses its table's units."""
    return max(math.ceil(round(amount, 9)), 0 if resource.is_local else 1)


class _BillWriter:
    def __init__(self, units: CapacityEstimate, prices: Prices, settings: EstimateSettings) -> None:
        self.units = units
        self.prices = prices
        self.settings = settings
        self.gb = units.stored_bytes / GB
        self.hours = settings.hours_per_month

    def options(self) -> list[PricingOption]:
        options = []
        classes = (("Standard", self.prices.standard), ("Standard-IA", self.prices.standard_ia))
        for name, prices in classes:
            storage = self.gb * prices.storage_gb_month
            for mode, throughput in (
                ("provisioned", self._provisioned(prices)),
                ("auto scaling", self._scaled(prices)),
                ("on-demand", self._on_demand(prices)),
            ):
                options.append(
                    PricingOption(
                        name=mode,
                        table_class=name,
                        throughput=throughput,
                        storage=storage,
                        monthly=throughput + storage,
                    )
                )
        # Reserved capacity is for the Standard class only.
        options.append(self._reserved("one year", self.prices.reserved.one_year))
        options.append(self._reserved("three years", self.prices.reserved.three_years))
        return options

    def _capacity(self, share: float) -> tuple[int, int]:
        """Read and write units to provision, whole ones for each table and index."""
        read = sum(
            whole_units(resource, resource.read_units * share) for resource in self.units.resources
        )
        write = sum(
            whole_units(resource, resource.write_units * share) for resource in self.units.resources
        )
        return read, write

    def _hourly(self, prices: ClassPrices, read: float, write: float) -> float:
        return (read * prices.read_unit_hour + write * prices.write_unit_hour) * self.hours

    def _provisioned(self, prices: ClassPrices) -> float:
        """For the stated rates, day and night."""
        return self._hourly(prices, *self._capacity(1))

    def _scaled(self, prices: ClassPrices) -> float:
        """For the average load, with the room above it that auto scaling keeps."""
        return self._hourly(prices, *self._capacity(self.settings.load / self.settings.utilization))

    def _on_demand(self, prices: ClassPrices) -> float:
        seconds = self.hours * 3600 * self.settings.load
        read = self.units.read_units * seconds / 1e6 * prices.read_requests_million
        return read + self.units.write_units * seconds / 1e6 * prices.write_requests_million

    def _reserved(self, term: str, reserved: ReservedPrices) -> PricingOption:
        """Prices reserved capacity for a term; units that fill no block are paid by the hour."""
        read, write = self._capacity(1)
        prices = self.prices.standard
        reads = self._blocks(
            read, prices.read_unit_hour, reserved.read_upfront_100, reserved.read_hour_100, term
        )
        writes = self._blocks(
            write, prices.write_unit_hour, reserved.write_upfront_100, reserved.write_hour_100, term
        )
        upfront = reads * reserved.read_upfront_100 + writes * reserved.write_upfront_100
        hourly = (reads * reserved.read_hour_100 + writes * reserved.write_hour_100) * self.hours
        rest = self._hourly(
            prices,
            max(read - reads * RESERVED_BLOCK, 0),
            max(write - writes * RESERVED_BLOCK, 0),
        )
        throughput = upfront / MONTHS[term] + hourly + rest
        storage = self.gb * self.prices.standard.storage_gb_month
        return PricingOption(
            name=f"reserved, {term}",
            throughput=throughput,
            storage=storage,
            monthly=throughput + storage,
            upfront=upfront,
        )

    def _blocks(self, units: int, unit_hour: float, upfront: float, hour: float, term: str) -> int:
        """Returns the number of blocks that costs least.

        The last block can be cheaper than the single units that it replaces, even when it is not
        full; and a reservation can cost more than it saves, then no block is bought.
        """
        block = upfront / MONTHS[term] + hour * self.hours

        def monthly(blocks: int) -> float:
            rest = max(units - blocks * RESERVED_BLOCK, 0)
            return blocks * block + rest * unit_hour * self.hours

        whole = units // RESERVED_BLOCK
        return min((whole, whole + 1, 0), key=monthly)

    # Beside throughput and storage.

    def extras(self) -> list[ExtraCost]:
        extras = [self._recovery(), self._backups(), self._streams(), self._kinesis(), self._dax()]
        return [extra for extra in extras if extra is not None]

    def _table_gb(self) -> float:
        return (
            sum(
                resource.stored_bytes for resource in self.units.resources if resource.index is None
            )
            / GB
        )

    def _recovery(self) -> ExtraCost | None:
        if not self.settings.point_in_time_recovery:
            return None
        gb = self._table_gb()
        return ExtraCost(
            name="point-in-time recovery",
            monthly=gb * self.prices.backup.point_in_time_gb_month,
            detail=f"{gb:,.1f} GB of tables, without indexes",
        )

    def _backups(self) -> ExtraCost | None:
        kept = self.settings.backups_kept
        if not kept:
            return None
        gb = self._table_gb() * kept
        return ExtraCost(
            name="on-demand backups",
            monthly=gb * self.prices.backup.on_demand_gb_month,
            detail=f"{kept} full backups, {gb:,.1f} GB",
        )

    def _streams(self) -> ExtraCost | None:
        readers = self.settings.stream_readers
        if not readers:
            return None
        shards = sum(
            resource.partitions for resource in self.units.resources if resource.index is None
        )
        requests = shards * readers * self.settings.stream_polls_per_second * self.hours * 3600
        return ExtraCost(
            name="streams",
            monthly=requests / 1e5 * self.prices.streams.read_requests_100k,
            detail=f"{readers} readers of {shards} shards, {requests:,.0f} requests",
        )

    def _kinesis(self) -> ExtraCost | None:
        if not self.settings.kinesis:
            return None
        written = sum(
            resource.write_units for resource in self.units.resources if resource.index is None
        )
        captured = written * self.hours * 3600 * self.settings.load
        return ExtraCost(
            name="changes to Kinesis",
            monthly=captured / 1e6 * self.prices.streams.kinesis_units_million,
            detail=f"{captured:,.0f} change data capture units; the stream itself is extra",
        )

    def _dax(self) -> ExtraCost | None:
        nodes, node = self.settings.dax_nodes, self.settings.dax_node
        if not nodes:
            return None
        price = self.prices.dax.get(node)
        if price is None:
            return ExtraCost(name="DAX", monthly=0.0, detail=f"the prices do not know {node}")
        cost = nodes * price * self.hours
        saved = self.settings.dax_hit_share * self.units.read_units * self.hours
        saved *= self.prices.standard.read_unit_hour
        return ExtraCost(
            name="DAX",
            monthly=cost - saved,
            detail=(
                f"{nodes} nodes {node} {cost:,.2f}, less {saved:,.2f} for reads that"
                f" {self.settings.dax_hit_share:.0%} hits save"
            ),
        )

    def one_time(self) -> list[ExtraCost]:
        gb, backup = self._table_gb(), self.prices.backup
        written = sum(
            resource.items * math.ceil(resource.item_bytes / WRITE_UNIT_BYTES)
            for resource in self.units.resources
        )
        million = self.prices.standard.write_requests_million
        return [
            ExtraCost(
                name="load by import from S3",
                monthly=gb * backup.import_gb,
                detail=f"{gb:,.1f} GB uncompressed, once",
            ),
            ExtraCost(
                name="load by on-demand writes",
                monthly=written / 1e6 * million,
                detail=f"{written:,.0f} write units over tables and indexes, once",
            ),
            ExtraCost(
                name="restore",
                monthly=gb * backup.restore_gb,
                detail=f"{gb:,.1f} GB, each time",
            ),
        ]

    def break_even(self) -> list[BreakEven]:
        options = self.options()
        difference = (
            self.prices.standard.storage_gb_month - self.prices.standard_ia.storage_gb_month
        )
        break_even_points = []
        for name in ("provisioned", "auto scaling", "on-demand"):
            standard, ia = (option for option in options if option.name == name)
            more = ia.throughput - standard.throughput
            break_even_points.append(
                BreakEven(
                    name=name,
                    stored_gb=self.gb,
                    needed_gb=more / difference if difference > 0 else math.inf,
                    is_cheaper=ia.monthly < standard.monthly,
                    saving=standard.monthly - ia.monthly,
                )
            )
        return break_even_points
