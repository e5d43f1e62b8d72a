"""What designs cost on AWS, as compared in chapter 5.4 of the thesis behind this service.

Computing: Lambda is billed by execution, Fargate by the second with a minimum, or for all of the
month. Storage: DynamoDB is billed by provisioned units, Aurora by the instance and its I/O.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from partita.errors import PartitaError
from partita.prices import price_list
from partita.prices.price_list import MONTH_HOURS, AuroraPrices, FargatePrices, LambdaPrices

DOCUMENT = "document.2020.toml"
PRICES = ("document", "today")
"""Of 2020, and of the price list that comes with Partita."""
MILLION = 1_000_000
HOUR_SECONDS = 3_600
MONTH_SECONDS = 30 * 24 * HOUR_SECONDS

CONSUMER_EVERY_SECONDS = 90
CONSUMER_DURATIONS_MS = (100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 120_000)
"""The X axis of figure 5.2."""
API_DURATIONS_MS = (100, 200, 500, 1_000)
API_REQUESTS_MONTH = (1 * MILLION, 5 * MILLION, 10 * MILLION, 50 * MILLION, 100 * MILLION)
"""Figure 5.3: the service had "millions of calls per month"."""
FARGATE_VCPUS = 0.25
FARGATE_GB = 0.5
READ_UNITS = 250
WRITE_UNITS = 50
STORED_GB = 3
AURORA_IO_SECOND = 50


class DynamoDBPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    write_unit_hour: float
    read_unit_hour: float
    storage_gb_month: float
    month_hours: int = MONTH_HOURS


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    date: str
    note: str = ""
    functions: LambdaPrices = msgspec.field(name="lambda")
    fargate: FargatePrices
    dynamodb: DynamoDBPrices
    aurora: AuroraPrices


def read_prices(name: str | Path) -> Prices:
    """One of PRICES, or a file."""
    if name == "today":
        return _todays_prices()
    try:
        if name in PRICES:
            text = (resources.files(__package__) / "prices" / DOCUMENT).read_text()
        else:
            text = Path(name).read_text()
        return msgspec.convert(tomllib.loads(text), Prices)
    except OSError as error:
        raise PartitaError(f"Cannot read the prices in {name}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise PartitaError(f"The prices in {name} are not valid: {error}.") from error


def _todays_prices() -> Prices:
    listed = price_list.read_prices()
    assert listed.functions and listed.fargate and listed.aurora
    units = listed.standard
    return Prices(
        name="today",
        date=listed.date,
        note=f"{listed.region}; Lambda with 128 MB, DynamoDB provisioned, Aurora on a db.t3.medium",
        functions=listed.functions,
        fargate=listed.fargate,
        dynamodb=DynamoDBPrices(
            write_unit_hour=units.write_unit_hour,
            read_unit_hour=units.read_unit_hour,
            storage_gb_month=units.storage_gb_month,
        ),
        aurora=listed.aurora,
    )


# Computing


def lambda_month(prices: LambdaPrices, calls: float, duration_ms: float) -> float:
    paid = ceil(duration_ms / prices.execution_ms) * prices.execution
    return calls * (paid + prices.requests_million / MILLION)


def fargate_hour(prices: FargatePrices) -> float:
    """For the smallest task."""
    return FARGATE_VCPUS * prices.vcpu_hour + FARGATE_GB * prices.gb_hour


def fargate_month(prices: FargatePrices, calls: float, duration_ms: float) -> float:
    seconds = max(prices.seconds_min, duration_ms / 1_000)
    return calls * seconds / HOUR_SECONDS * fargate_hour(prices)


def fargate_all_month(prices: FargatePrices) -> float:
    return MONTH_SECONDS / HOUR_SECONDS * fargate_hour(prices)


def fargate_all_month_as_printed() -> float:
    """What the thesis gives for a task that always runs, 260.85 dollars.

    It uses prices per hour as prices per minute, and other prices than those it lists before. By
    its own list the month costs 8.89, and Lambda is cheaper only for an API with little traffic.
    """
    minutes = MONTH_SECONDS / 60
    return 0.01980394 * FARGATE_VCPUS * minutes + 0.00217462 * FARGATE_GB * minutes


# Storage


def dynamodb_month(
    prices: DynamoDBPrices,
    read_units: float = READ_UNITS,
    write_units: float = WRITE_UNITS,
    stored_gb: float = STORED_GB,
) -> float:
    units_hour = read_units * prices.read_unit_hour + write_units * prices.write_unit_hour
    return units_hour * prices.month_hours + stored_gb * prices.storage_gb_month


def aurora_month(
    prices: AuroraPrices, io_second: float = AURORA_IO_SECOND, stored_gb: float = STORED_GB
) -> float:
    io_month = io_second * prices.month_hours * HOUR_SECONDS
    return (
        prices.instance_hour * prices.month_hours
        + io_month / MILLION * prices.io_million
        + stored_gb * prices.storage_gb_month
    )


# What `partita pagehits cost` shows


class Comparison(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def consumer_calls_month() -> float:
    return MONTH_SECONDS / CONSUMER_EVERY_SECONDS


def compare(prices: Prices) -> Iterator[Comparison]:
    yield _consumer(prices)
    yield _api(prices)
    yield _storage(prices)


def _consumer(prices: Prices) -> Comparison:
    calls = consumer_calls_month()
    rows = [
        (
            f"{duration:,} ms",
            _dollars(lambda_month(prices.functions, calls, duration)),
            _dollars(fargate_month(prices.fargate, calls, duration)),
        )
        for duration in CONSUMER_DURATIONS_MS
    ]
    title = f"Figure 5.2: the consumer, {calls:,.0f} runs a month"
    return Comparison(title, ("a run takes", "Lambda", "Fargate"), rows)


def _api(prices: Prices) -> Comparison:
    rows = [
        (
            f"{requests / MILLION:,.0f} million",
            *(
                _dollars(lambda_month(prices.functions, requests, duration))
                for duration in API_DURATIONS_MS
            ),
            _dollars(fargate_all_month(prices.fargate)),
        )
        for requests in API_REQUESTS_MONTH
    ]
    columns = ("requests", *(f"Lambda, {duration:,} ms" for duration in API_DURATIONS_MS))
    title = "Figure 5.3: the API, a month"
    if prices.name == "document":
        title += f" (Fargate in the document: {fargate_all_month_as_printed():.2f})"
    return Comparison(title, (*columns, "Fargate"), rows)


def _storage(prices: Prices) -> Comparison:
    reserved = prices.aurora.reserved_three_years_month
    rows = [
        (
            f"DynamoDB, {READ_UNITS} RCU and {WRITE_UNITS} WCU, {STORED_GB} GB",
            _dollars(dynamodb_month(prices.dynamodb)),
        ),
        (
            f"Aurora, db.t3.medium, {AURORA_IO_SECOND} I/O a second, {STORED_GB} GB",
            _dollars(aurora_month(prices.aurora)),
        ),
    ]
    if reserved is not None:
        rows.append(("Aurora, the instance reserved for three years", _dollars(reserved)))
    return Comparison("Chapter 5.4.2: storage, a month", ("", "dollars"), rows)


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.4f}"
