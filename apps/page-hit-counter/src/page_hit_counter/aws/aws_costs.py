"""Computes what designs cost on AWS, as in the comparison in chapter 5 of the thesis.

Computing: Lambda is billed by execution, Fargate by the second with a minimum, or for the whole
month. Storage: DynamoDB is billed by requests or by capacity units, which can be reserved; Aurora
by the instance and its I/O. Streams are billed by shards, their analytics by processing units.
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

from page_hit_counter.aws import delivery_costs
from page_hit_counter.delivery.delivery_settings import OPTIONS
from partita.errors import PartitaError
from partita_migrate.costing.prices import price_list
from partita_migrate.costing.prices.price_list import (
    MONTH_HOURS,
    AnalyticsPrices,
    AuroraPrices,
    DeliveryPrices,
    FargatePrices,
    KinesisPrices,
    LambdaPrices,
    PriceSource,
    ReservedPrices,
)

DOCUMENT = "thesis.2020-07.toml"
PRICES = ("document", "today")
"""The prices of 2020, and those of the price list that comes with Partita."""
MILLION = 1_000_000
HOUR_SECONDS = 3_600
MONTH_SECONDS = 30 * 24 * HOUR_SECONDS

CONSUMER_EVERY_SECONDS = 90
CONSUMER_DURATIONS_MS = (100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 120_000)
"""The x axis of figure 5.2."""
API_DURATIONS_MS = (100, 200, 500, 1_000)
API_REQUESTS_MONTH = (1 * MILLION, 5 * MILLION, 10 * MILLION, 50 * MILLION, 100 * MILLION)
"""The x axis of figure 5.3; the service had "millions of calls per month"."""
FARGATE_VCPUS = 0.25
FARGATE_GB = 0.5
READ_UNITS = 250
WRITE_UNITS = 50
STORED_GB = 3
AURORA_IO_SECOND = 50
READS_SECOND = 20
WRITES_SECOND = 1
"""Requests per second in chapter 5.4.2, before caches."""
SHARDS = 2
ANALYTICS_UNITS = 1
CONSUMER_MS = 1_000
API_MS = 100
API_REQUESTS = 5 * MILLION
CLAIMED_SHARE = 0.40
"""The new counter's costs as a share of the old one's, by the thesis's own bills (chapter 7.2)."""
YEAR_MONTHS = 12
UNITS_PER_BLOCK = 100
PRINTED = {"DynamoDB": "55", "Aurora": "85", "reserved Aurora": "25"}
"""Dollars per month as printed in chapter 5.4.2."""
USED = (
    "aurora",
    "analytics",
    "delivery",
    "fargate",
    "kinesis",
    "lambda",
    "reserved",
    "standard.",
)
"""The prefixes of the figures of a price list that are used here."""


class DynamoDBPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    write_unit_hour: float
    read_unit_hour: float
    write_requests_million: float
    read_requests_million: float
    storage_gb_month: float
    month_hours: int = MONTH_HOURS
    reserved: ReservedPrices
    """The prices of capacity that is reserved for one year."""


class CloudPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    date: str
    note: str = ""
    functions: LambdaPrices = msgspec.field(name="lambda")
    fargate: FargatePrices
    dynamodb: DynamoDBPrices
    aurora: AuroraPrices
    kinesis: KinesisPrices
    analytics: AnalyticsPrices
    delivery: DeliveryPrices
    sources: list[PriceSource] = []

    def is_assumed(self, figure: str) -> bool:
        return any(figure in source.figures for source in self.sources if source.is_assumed)


def read_prices(name: str | Path) -> CloudPrices:
    """Reads prices: `name` is one of PRICES, or a file in the format of the thesis's prices or of a
    whole price list."""
    if name == "today":
        return _of_list(price_list.read_prices(), "today")
    try:
        if name in PRICES:
            text = (resources.files(price_list.__package__) / DOCUMENT).read_text()
        else:
            text = Path(name).read_text()
        content = tomllib.loads(text)
        if "standard" in content:
            return _of_list(price_list.read_prices(Path(name)), str(name))
        return msgspec.convert(content, CloudPrices)
    except OSError as error:
        raise PartitaError(f"Cannot read the prices in {name}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise PartitaError(f"The prices in {name} are not valid: {error}.") from error


def _of_list(listed: price_list.Prices, name: str) -> CloudPrices:
    if not (
        listed.functions
        and listed.fargate
        and listed.aurora
        and listed.kinesis
        and listed.analytics
        and listed.delivery
    ):
        raise PartitaError(
            f"The prices in {name} need the sections lambda, fargate, aurora, kinesis, analytics "
            "and delivery."
        )
    units = listed.standard
    return CloudPrices(
        name=name,
        date=listed.date,
        note=f"{listed.region}; Lambda with 128 MB, DynamoDB provisioned, Aurora on a db.t3.medium",
        functions=listed.functions,
        fargate=listed.fargate,
        dynamodb=DynamoDBPrices(
            write_unit_hour=units.write_unit_hour,
            read_unit_hour=units.read_unit_hour,
            write_requests_million=units.write_requests_million,
            read_requests_million=units.read_requests_million,
            storage_gb_month=units.storage_gb_month,
            reserved=listed.reserved.one_year,
        ),
        aurora=listed.aurora,
        kinesis=listed.kinesis,
        analytics=listed.analytics,
        delivery=listed.delivery,
        sources=[
            source
            for source in listed.sources
            if any(figure.startswith(USED) for figure in source.figures)
        ],
    )


# Computing


def lambda_month(prices: LambdaPrices, calls: float, duration_ms: float) -> float:
    paid = ceil(duration_ms / prices.execution_ms) * prices.execution
    return calls * (paid + prices.requests_million / MILLION)


def fargate_hour(prices: FargatePrices) -> float:
    """Returns the price of the smallest task for an hour."""
    return FARGATE_VCPUS * prices.vcpu_hour + FARGATE_GB * prices.gb_hour


def fargate_month(prices: FargatePrices, calls: float, duration_ms: float) -> float:
    seconds = max(prices.seconds_min, duration_ms / 1_000)
    return calls * seconds / HOUR_SECONDS * fargate_hour(prices)


def fargate_all_month(prices: FargatePrices) -> float:
    return MONTH_SECONDS / HOUR_SECONDS * fargate_hour(prices)


def fargate_all_month_as_printed() -> float:
    """Returns the price that the thesis prints for a task that always runs, 260.85 dollars.

    The thesis takes prices per hour for prices per minute, and uses other prices than those that it
    lists before. By its own list the month costs 8.89 dollars, and Lambda is cheaper only for an
    API with little traffic.
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


def dynamodb_on_demand_month(
    prices: DynamoDBPrices,
    reads_second: float = READS_SECOND,
    writes_second: float = WRITES_SECOND,
    stored_gb: float = STORED_GB,
) -> float:
    seconds = prices.month_hours * HOUR_SECONDS
    reads = reads_second * seconds / MILLION * prices.read_requests_million
    writes = writes_second * seconds / MILLION * prices.write_requests_million
    return reads + writes + stored_gb * prices.storage_gb_month


def dynamodb_reserved_month(
    prices: DynamoDBPrices,
    read_units: float = READ_UNITS,
    write_units: float = WRITE_UNITS,
    stored_gb: float = STORED_GB,
) -> float:
    """Returns the price with capacity that is reserved for a year in blocks of 100 units. Units
    that do not fill a block are provisioned, unless a block costs less."""
    reserved, hours = prices.reserved, prices.month_hours

    def month(units: float, upfront: float, block_hour: float, unit_hour: float) -> float:
        block = upfront / YEAR_MONTHS + block_hour * hours
        blocks, rest = divmod(units, UNITS_PER_BLOCK)
        return blocks * block + min(block, rest * unit_hour * hours)

    return (
        month(read_units, reserved.read_upfront_100, reserved.read_hour_100, prices.read_unit_hour)
        + month(
            write_units, reserved.write_upfront_100, reserved.write_hour_100, prices.write_unit_hour
        )
        + stored_gb * prices.storage_gb_month
    )


def aurora_reserved_month(prices: AuroraPrices) -> float | None:
    """Returns the price of the instance alone. The thesis's 25 dollars must be that, because its 50
    I/O per second alone cost 26."""
    hour = prices.reserved_three_years_hour
    return None if hour is None else hour * prices.month_hours


# Streams


def kinesis_month(prices: KinesisPrices, shards: float, puts_second: float) -> float:
    puts = puts_second * MONTH_SECONDS / MILLION
    return shards * prices.shard_hour * MONTH_HOURS + puts * prices.puts_million


def analytics_month(prices: AnalyticsPrices, units: float = ANALYTICS_UNITS) -> float:
    return units * prices.unit_hour * MONTH_HOURS


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


class CostComparison(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def consumer_calls_month() -> float:
    return MONTH_SECONDS / CONSUMER_EVERY_SECONDS


def compare(prices: CloudPrices) -> Iterator[CostComparison]:
    yield _consumer(prices)
    yield _api(prices)
    yield _storage(prices)
    yield _old_and_new(prices)
    yield _deliveries(prices)


def _consumer(prices: CloudPrices) -> CostComparison:
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
    return CostComparison(title, ("a run takes", "Lambda", "Fargate"), rows)


def _api(prices: CloudPrices) -> CostComparison:
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
    return CostComparison(title, (*columns, "Fargate"), rows)


def _storage(prices: CloudPrices) -> CostComparison:
    reserved = aurora_reserved_month(prices.aurora)
    rows = [
        (
            f"DynamoDB, {READ_UNITS} RCU and {WRITE_UNITS} WCU, {STORED_GB} GB",
            _dollars(dynamodb_month(prices.dynamodb)),
            PRINTED["DynamoDB"],
        ),
        (
            "DynamoDB, the same reserved for a year",
            _dollars(dynamodb_reserved_month(prices.dynamodb)),
            "",
        ),
        (
            f"DynamoDB on demand, {READS_SECOND} reads and {WRITES_SECOND} write a second",
            _dollars(dynamodb_on_demand_month(prices.dynamodb)),
            "",
        ),
        (
            f"Aurora, db.t3.medium, {AURORA_IO_SECOND} I/O a second, {STORED_GB} GB",
            _dollars(aurora_month(prices.aurora)),
            PRINTED["Aurora"],
        ),
    ]
    if reserved is not None:
        rest = aurora_month(prices.aurora) - prices.aurora.instance_hour * prices.aurora.month_hours
        is_assumed = prices.is_assumed("aurora.reserved_three_years_hour")
        whose = f"Aurora's instance alone, for three years{'*' if is_assumed else ''}"
        rows += [
            (whose, _dollars(reserved), PRINTED["reserved Aurora"]),
            ("Aurora, the same with I/O and storage", _dollars(reserved + rest), ""),
        ]
    title = "Chapter 5.4.2: storage, a month"
    if reserved is not None and is_assumed:
        title += " (* from a price that is assumed: see above)"
    return CostComparison(title, ("", "dollars", "in the thesis"), rows)


def _old_and_new(prices: CloudPrices) -> CostComparison:
    """Compares the old counter (a server and a database that always run) with the new one (streams
    and their analytics, functions, DynamoDB)."""
    consumer = lambda_month(prices.functions, consumer_calls_month(), CONSUMER_MS)
    api = lambda_month(prices.functions, API_REQUESTS, API_MS)
    parts = [
        ("counter and API as a task that always runs", fargate_all_month(prices.fargate), None),
        ("database: Aurora, db.t3.medium", aurora_month(prices.aurora), None),
        (f"Kinesis, {SHARDS} shards", None, kinesis_month(prices.kinesis, SHARDS, WRITES_SECOND)),
        (f"stream analytics, {ANALYTICS_UNITS} unit", None, analytics_month(prices.analytics)),
        ("consumer: Lambda, every 90 s for a second", None, consumer),
        ("API: Lambda, 5 million requests of 100 ms", None, api),
        ("storage: DynamoDB, provisioned", None, dynamodb_month(prices.dynamodb)),
    ]
    old = sum(before for _, before, _ in parts if before is not None)
    new = sum(after for _, _, after in parts if after is not None)
    rows = [
        (
            title,
            "" if before is None else _dollars(before),
            "" if after is None else _dollars(after),
        )
        for title, before, after in parts
    ]
    rows += [
        ("together", _dollars(old), _dollars(new)),
        ("share of the old, by these prices", "", f"{new / old:.0%}"),
        ("share of the old, by the thesis's own bills (7.2)", "", f"{CLAIMED_SHARE:.0%}"),
    ]
    title = "Old and new, a month (the thesis's 40 % is its claim: its bills are not public)"
    return CostComparison(title, ("", "old", "new"), rows)


def _deliveries(prices: CloudPrices) -> CostComparison:
    rows = [
        (
            f"{letter}: {delivery_costs.DESCRIPTIONS[route]}",
            f"{delivery_costs.mean_delay_seconds(route):g}",
            f"{delivery_costs.longest_delay_seconds(route):g}",
            _dollars(delivery_costs.dollars_month(prices.functions, prices.delivery, route)),
        )
        for letter, route in OPTIONS.items()
    ]
    title = (
        f"Figure 5.1: ways to deliver {delivery_costs.VISITS_SECOND} visits a second, a month; "
        "delays in seconds"
    )
    return CostComparison(title, ("option", "mean delay", "longest", "dollars"), rows)


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.4f}"
