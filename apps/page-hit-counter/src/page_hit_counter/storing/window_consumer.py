"""The consumer stores the counts of closed windows.

It speaks the protocol in which Kinesis Analytics calls a Lambda function as its destination:
records with an id and data in base64, each answered with Ok or DeliveryFailed. A record that could
not be stored is sent again. A malformed record is set aside in a table and acknowledged, because
sending it again would not help.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from heapq import nlargest
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from page_hit_counter.monitoring.service_figures import ServiceFigures
from page_hit_counter.pagehits_settings import BRAND, PageHitSettings
from page_hit_counter.processing.page_visits import ASSET_ID_MAX, RESOURCE_TYPE_CHARACTERS_MAX
from page_hit_counter.service.concurrency import run_all
from page_hit_counter.storing.closed_windows import WindowKey
from page_hit_counter.storing.page_hits_table import put_row
from page_hit_counter.storing.window_rows import WindowRow
from partita.client import Client, ClientError
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

OK, DELIVERY_FAILED = "Ok", "DeliveryFailed"
PUTS_AT_A_TIME = 16
SET_ASIDE_SECONDS = 14 * 86_400
HITS_MAX = 2**31 - 1
"""Hits may have more than the eight digits of a range key, because lists sort rows by hits."""
SET_ASIDE_CHARACTERS_MAX = 300_000


class HitCount(msgspec.Struct, rename="camel"):
    """The data of a record: a row of the counter's destination stream."""

    brand: Annotated[str, Meta(pattern=BRAND)]
    period: str
    asset_id: Annotated[int, Meta(ge=1, le=ASSET_ID_MAX)]
    section_id: Annotated[int, Meta(ge=0, lt=2**31)]
    paid_type: Annotated[str, Meta(min_length=1, max_length=20)]
    resource_type: Annotated[str, Meta(min_length=1, max_length=RESOURCE_TYPE_CHARACTERS_MAX)]
    hit_count: Annotated[int, Meta(ge=1, le=HITS_MAX)]
    timestamp: str
    """The start of the window, in UTC."""


class DeliveredRecord(NamedTuple):
    record_id: str
    key: WindowKey
    row: WindowRow


class StoredRecord(NamedTuple):
    record_id: str
    result: str
    units: float


_decode = msgspec.json.Decoder(HitCount).decode
_encode = msgspec.json.Encoder().encode


async def deliver(
    client: Client,
    settings: PageHitSettings,
    event: dict[str, Any],
    *,
    has_whole_windows: bool = True,
    clock: Clock = system_clock,
    figures: ServiceFigures | None = None,
) -> dict[str, Any]:
    """Stores the records of an event. Returns the result of each record.

    Low counts are dropped only when the event has whole windows; in a part of a window it is not
    known which counts are low."""
    began = perf_counter()
    deliveries: list[DeliveredRecord] = []
    results: dict[str, str] = {}
    for record in event["records"]:
        try:
            deliveries.append(_read(settings, record))
        except (ValueError, TypeError) as error:
            results[record["recordId"]] = await set_aside(
                client, settings, record, str(error), clock()
            )
    # Rows that are dropped as too low are acknowledged too.
    results.update((delivery.record_id, OK) for delivery in deliveries)
    kept = deliveries
    if has_whole_windows:
        kept = without_low_counts(deliveries, settings.kept_assets)
    stored = await run_all((_store(client, settings, each) for each in kept), PUTS_AT_A_TIME)
    results.update((record.record_id, record.result) for record in stored)
    if figures is not None:
        figures.add("consumerRuns")
        figures.add("consumerMs", 1_000 * (perf_counter() - began))
        figures.add("writeUnits", sum(record.units for record in stored))
        figures.add("consumerFailures", sum(record.result != OK for record in stored))
    names = [record["recordId"] for record in event["records"]]
    return {"records": [{"recordId": name, "result": results[name]} for name in names]}


def records_of(key: WindowKey, rows: list[WindowRow]) -> list[dict[str, Any]]:
    """Returns the rows of a closed window as records for `deliver`."""
    timestamp = datetime.fromtimestamp(key.start, UTC).strftime("%Y-%m-%d %H:%M:%S")
    records = []
    for number, row in enumerate(rows):
        data = HitCount(
            key.brand,
            key.period.code,
            row.asset_id,
            row.section_id,
            row.paid_type,
            row.resource_type,
            row.hits,
            timestamp,
        )
        name = f"{key.name}#{key.start}#{number}"
        records.append({"recordId": name, "data": b64encode(_encode(data)).decode()})
    return records


def without_low_counts(
    deliveries: list[DeliveredRecord], kept_assets: int
) -> list[DeliveredRecord]:
    """Returns, for each window, the rows of its most popular assets: `kept_assets` of them, and
    more when several have as many hits as the last."""
    totals: dict[WindowKey, dict[int, int]] = {}
    for _, key, row in deliveries:
        assets = totals.setdefault(key, {})
        assets[row.asset_id] = assets.get(row.asset_id, 0) + row.hits
    lowest = {key: min(nlargest(kept_assets, assets.values())) for key, assets in totals.items()}
    return [
        delivery
        for delivery in deliveries
        if totals[delivery.key][delivery.row.asset_id] >= lowest[delivery.key]
    ]


def _read(settings: PageHitSettings, record: dict[str, Any]) -> DeliveredRecord:
    """Reads a record. Raises `ValueError` when it is malformed, `TypeError` when its data is not
    text."""
    hits = _decode(b64decode(record.get("data", ""), validate=True))
    period = next((each for each in settings.periods if each.code == hits.period), None)
    if period is None:
        raise ValueError(f"Unknown period {hits.period!r}.")
    moment = datetime.fromisoformat(hits.timestamp)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    start = int(moment.timestamp())
    if period.start(start) != start:
        raise ValueError(f"No window of {period.name} starts at {hits.timestamp}.")
    row = WindowRow(
        hits.asset_id, hits.section_id, hits.paid_type, hits.resource_type, hits.hit_count
    )
    return DeliveredRecord(record["recordId"], WindowKey(hits.brand, period, start), row)


async def _store(
    client: Client, settings: PageHitSettings, delivery: DeliveredRecord
) -> StoredRecord:
    try:
        units = await put_row(client, settings, delivery.key, delivery.row)
    except ClientError as error:
        logger.warning("A count of %s was not stored: %s", delivery.key.name, error)
        return StoredRecord(delivery.record_id, DELIVERY_FAILED, 0.0)
    return StoredRecord(delivery.record_id, OK, units)


async def set_aside(
    client: Client, settings: PageHitSettings, record: dict[str, Any], reason: str, now: float
) -> str:
    """Keeps a malformed record in a table for people to look at. Returns OK or DELIVERY_FAILED."""
    item = {
        "recordId": {"S": record["recordId"]},
        "data": {"S": str(record.get("data", ""))[:SET_ASIDE_CHARACTERS_MAX]},
        "reason": {"S": reason},
        "expirationTime": {"N": str(int(now) + SET_ASIDE_SECONDS)},
    }
    try:
        await client.call(
            "dynamodb", "PutItem", {"TableName": settings.malformed_table, "Item": item}
        )
    except ClientError as error:
        logger.warning("A malformed record was not set aside: %s", error)
        return DELIVERY_FAILED
    return OK
