"""What AWS asks for, read from a dated file that people can replace."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct, field

from partita.errors import PartitaError

NEWEST = "us-east-1.2026-11.toml"
COMPARED = ("lambda", "fargate", "aurora", "kinesis", "analytics", "delivery")
"""What DynamoDB is compared with: a list of one's own may leave it out."""
MONTH_HOURS = 730
"""As AWS's calculator has them."""


class ClassPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one table class."""

    write_unit_hour: float
    read_unit_hour: float
    write_requests_million: float
    read_requests_million: float
    storage_gb_month: float


class ReservedPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of 100 units, for a term."""

    write_upfront_100: float
    write_hour_100: float
    read_upfront_100: float
    read_hour_100: float


class Reserved(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    one_year: ReservedPrices
    three_years: ReservedPrices


class BackupPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    point_in_time_gb_month: float
    on_demand_gb_month: float
    restore_gb: float
    import_gb: float
    export_gb: float


class StreamPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    read_requests_100k: float
    kinesis_units_million: float


class LambdaPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a function with 128 MB."""

    execution: float
    execution_ms: int
    """What one `execution` lasts; a started one is paid in full."""
    requests_million: float


class FargatePrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    vcpu_hour: float
    gb_hour: float
    seconds_min: int


class AuroraPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a db.t3.medium."""

    instance_hour: float
    io_million: float
    storage_gb_month: float
    month_hours: int = MONTH_HOURS
    reserved_three_years_hour: float | None = None
    """Of an instance that is reserved for three years, what was paid at the start included."""


class KinesisPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shard_hour: float
    puts_million: float
    """Of units of 25 KB."""


class AnalyticsPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of Kinesis Analytics, or Managed Service for Apache Flink."""

    unit_hour: float
    """A processing unit (KPU): a virtual CPU and 4 GB."""


class DeliveryPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of Data Firehose, S3's requests, SNS and EventBridge Scheduler."""

    stream_gb: float
    puts_thousand: float
    gets_thousand: float
    notifications_million: float
    schedules_million: float


class PriceSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    figures: list[str]
    source: str
    as_of: str
    is_assumed: bool = False
    """Whether nobody has printed them."""


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    region: str
    date: str
    currency: str = "USD"
    standard: ClassPrices
    standard_ia: ClassPrices
    reserved: Reserved
    backup: BackupPrices
    streams: StreamPrices
    dax: dict[str, float] = field(default_factory=dict)
    """A node's price an hour, by its type."""
    functions: LambdaPrices | None = field(name="lambda", default=None)
    fargate: FargatePrices | None = None
    aurora: AuroraPrices | None = None
    kinesis: KinesisPrices | None = None
    analytics: AnalyticsPrices | None = None
    delivery: DeliveryPrices | None = None
    sources: list[PriceSource] = field(default_factory=list)

    @property
    def database_sources(self) -> list[PriceSource]:
        """Of what DynamoDB costs."""
        return [
            one
            for one in self.sources
            if not all(figure.partition(".")[0] in COMPARED for figure in one.figures)
        ]


def read_prices(path: Path | None = None) -> Prices:
    """From a file of the user's, or the newest that we know."""
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
        raise PartitaError(f"The prices in {where} are not as they should be: {error}.") from error
