"""What AWS asks for, read from a dated file that people can replace."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct, field

from partita.errors import PartitaError

NEWEST = "us-east-1.2026-11.toml"


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


class PriceSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    figures: list[str]
    source: str
    as_of: str


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
    sources: list[PriceSource] = field(default_factory=list)


def read_prices(path: Path | None = None) -> Prices:
    """From a file of the user's, or the newest that we know."""
    where = str(path) if path else NEWEST
    try:
        if path:
            text = path.read_text()
        else:
            text = (resources.files("partita.migrate.costing") / "prices" / NEWEST).read_text()
        return msgspec.convert(tomllib.loads(text), Prices)
    except OSError as error:
        raise PartitaError(f"Cannot read the prices in {where}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PartitaError(f"The prices in {where} are not valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise PartitaError(f"The prices in {where} are not as they should be: {error}.") from error
