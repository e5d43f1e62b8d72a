"""AWS's prices, read from a dated file that users can replace."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct, field

from partita.errors import PartitaError

NEWEST = "us-east-1.2026-11.toml"
COMPARED = ("lambda", "fargate", "aurora", "kinesis", "analytics", "delivery")
"""Sections that DynamoDB is compared with; a price list of the user's may leave them out."""
MONTH_HOURS = 730
"""Hours of a month, as AWS's calculator counts them."""


class ClassPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of one table class."""

    write_unit_hour: float
    read_unit_hour: float
    write_requests_million: float
    read_requests_million: float
    storage_gb_month: float


class ReservedPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of 100 reserved capacity units for a term."""

    write_upfront_100: float
    write_hour_100: float
    read_upfront_100: float
    read_hour_100: float


class Reserved(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of reserved capacity, by term."""

    one_year: ReservedPrices
    three_years: ReservedPrices


class BackupPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of backups, restores, imports and exports."""

    point_in_time_gb_month: float
    on_demand_gb_month: float
    restore_gb: float
    import_gb: float
    export_gb: float


class StreamPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of change streams."""

    read_requests_100k: float
    kinesis_units_million: float


class LambdaPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of a function with 128 MB."""

    execution: float
    execution_ms: int
    """Milliseconds that one `execution` pays for; a started one is charged in full."""
    requests_million: float


class FargatePrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of containers."""

    vcpu_hour: float
    gb_hour: float
    seconds_min: int


class AuroraPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of a db.t3.medium."""

    instance_hour: float
    io_million: float
    storage_gb_month: float
    month_hours: int = MONTH_HOURS
    reserved_three_years_hour: float | None = None
    """Price an hour of an instance reserved for three years, upfront payment included."""


class KinesisPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of Kinesis data streams."""

    shard_hour: float
    puts_million: float
    """Price of a million payload units of 25 KB."""


class AnalyticsPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of Kinesis Analytics, now Managed Service for Apache Flink."""

    unit_hour: float
    """Price of a Kinesis Processing Unit (KPU): one virtual CPU and 4 GB."""


class DeliveryPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of Data Firehose, S3 requests, SNS and EventBridge Scheduler."""

    stream_gb: float
    puts_thousand: float
    gets_thousand: float
    notifications_million: float
    schedules_million: float


class PriceSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The published source of some figures."""

    figures: list[str]
    source: str
    as_of: str
    is_assumed: bool = False
    """True for figures that are not published anywhere."""


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price list: one region at one date."""

    region: str
    date: str
    currency: str = "USD"
    standard: ClassPrices
    standard_ia: ClassPrices
    reserved: Reserved
    backup: BackupPrices
    streams: StreamPrices
    dax: dict[str, float] = field(default_factory=dict)
    """Price of a node for an hour, by node type."""
    functions: LambdaPrices | None = field(name="lambda", default=None)
    fargate: FargatePrices | None = None
    aurora: AuroraPrices | None = None
    kinesis: KinesisPrices | None = None
    analytics: AnalyticsPrices | None = None
    delivery: DeliveryPrices | None = None
    sources: list[PriceSource] = field(default_factory=list)

    @property
    def database_sources(self) -> list[PriceSource]:
        """The sources of DynamoDB's own prices."""
        return [
            source
            for source in self.sources
            if not all(figure.partition(".")[0] in COMPARED for figure in source.figures)
        ]


def read_prices(path: Path | None = None) -> Prices:
    """Reads a user's price list, or the newest one that comes with Partita."""
    where = str(path) if path else NEWEST
    try:
        if path:
            text = path.read_text()
        else:
            text = (resources.files(__package__) / NEWEST).read_text()
        return msgspec.convert(tomllib.loads(text), Prices)
    except OSError as error:
        raise PartitaError(f"Cannot read the prices in {where}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PartitaError(f"The prices in {where} are not valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise PartitaError(
            f"The prices in {where} do not have the expected form: {error}."
        ) from error
