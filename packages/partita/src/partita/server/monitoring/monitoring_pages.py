"""Pages about the database for people and programs: metrics, partitions, contributors, plans.

Each page is a function of a read context and of the query string.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

from partita.database.capacity.capacity_accounts import CapacityAccount
from partita.database.capacity.hot_key_counter import HotKeyCounter
from partita.database.capacity.insights_rules import InsightsRules, Key
from partita.database.capacity.partition_sizing import HASHES
from partita.database.capacity.partition_splits import HOT_LOAD, Partition
from partita.database.item.key_encoding import PARTITION_HASH_BYTES
from partita.database.operations.charges import accounts_of
from partita.database.operations.control_plane.contributor_insights import rule_names
from partita.database.operations.operation_context import ReadContext, ReadHandler, Request
from partita.database.operations.partiql.explain import explain
from partita.database.operations.response_members import encode
from partita.database.storage.engine import prefix_end
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Index, Table
from partita.database.tables.stored_item import unpack_sizes
from partita.database.tables.table_statistics import read_statistics
from partita.errors import ValidationException
from partita.foundation import prometheus_text
from partita.foundation.prometheus_text import MetricFamily, PrometheusSample
from partita.foundation.service_limits import MB
from partita.server.protocol import json_codec
from partita.server.protocol.request_validation import Validator, compile_validators

CONTRIBUTORS_SHOWN = 10
HOT_KEYS_SHOWN = 3
MEASURED_ITEMS_MAX = 20_000
MEASURED_BYTES_MAX = 16 * MB
"""The sizes of partitions are measured up to this many items and bytes of a table. For larger ones,
they are estimated as shares of the whole."""

Page = dict[str, Any]


def metrics(context: ReadContext, query: Request) -> bytes:
    """Returns consumed and throttled units of all tables and indexes, for Prometheus."""
    return prometheus_text.text(_metric_families(context)).encode()


def partitions(context: ReadContext, query: Request) -> bytes:
    """Returns the partitions of a table and its global indexes: size, load and hottest keys."""
    table = _table(context, query)
    ledger = context.service.ledger
    shown = [
        {
            "TableName": table.name,
            **({"IndexName": account.index_name} if account.index_name else {}),
            "Partitions": _partitions(context, table, account),
        }
        for account in accounts_of(context.service, table)
    ]
    return encode({"Capacity": ledger.mode, "Resources": shown})


def insights(context: ReadContext, query: Request) -> bytes:
    """Returns the counts of the Contributor Insights rules of a table and its global indexes."""
    table = _table(context, query)
    accounts = accounts_of(context.service, table)
    shown = []
    for owner in table.capacity_owners:
        index_name = owner.name if isinstance(owner, Index) else None
        account = accounts.find(index_name)
        if account and account.insights and owner.insights:
            names = rule_names(table, owner, owner.insights)
            shown.append(
                {
                    "TableName": table.name,
                    **({"IndexName": index_name} if index_name else {}),
                    "Since": round(owner.insights.since, 3),
                    "Rules": _rules(names, account.insights),
                }
            )
    return encode({"Resources": shown})


def plan(context: ReadContext, query: Request) -> bytes:
    """Returns the plan of a PartiQL statement and its cost."""
    statement, parameters = query.get("statement"), query.get("parameters")
    if not statement:
        raise ValidationException("Give a statement: ?statement=SELECT ...")
    request: Request = {"Statement": statement}
    if parameters:
        whole = b'{"Parameters":%b}' % parameters.encode()
        request["Parameters"] = json_codec.decode(whole)["Parameters"]
    _validate_statement()(request)
    return explain(context, request)


@cache
def _validate_statement() -> Validator:
    return compile_validators(("ExecuteStatement",))["ExecuteStatement"]


def moves(context: ReadContext, query: Request) -> bytes:
    """Returns nothing. The console requests this page to check that its user has the right to see
    migrations, or to steer them."""
    return encode({})


PAGES: Final[dict[str, ReadHandler]] = {
    "/metrics": metrics,
    "/moves": moves,
    "/moves/steer": moves,
}
"""Pages about the server that shows them: they are read from memory."""
TABLE_PAGES: Final[dict[str, ReadHandler]] = {
    "/explain": plan,
    "/insights": insights,
    "/partitions": partitions,
}
"""Pages about tables, which read stored data."""


def _table(context: ReadContext, query: Request) -> Table:
    name = query.get("table")
    if not name:
        raise ValidationException("Name a table: ?table=NAME")
    return context.service.catalog.described(name)


def _metric_families(context: ReadContext) -> Iterator[MetricFamily]:
    ledger = context.service.ledger
    yield MetricFamily(
        "partita_capacity_mode",
        "gauge",
        "Whether throughput is limited: off, observe or enforce.",
        [PrometheusSample(1, {"mode": ledger.mode})],
    )
    if not ledger.is_on:
        return
    now, accounts = ledger.clock(), list(ledger.accounts())
    sides = [
        ({**_labels(account), "kind": kind}, side)
        for account in accounts
        for kind, side in (("read", account.read), ("write", account.write))
    ]
    yield MetricFamily(
        "partita_consumed_units_total",
        "counter",
        "Capacity units consumed.",
        [PrometheusSample(side.consumed, labels) for labels, side in sides],
    )
    yield MetricFamily(
        "partita_throttled_units_total",
        "counter",
        "Capacity units of throttled requests.",
        [PrometheusSample(side.throttled_units, labels) for labels, side in sides],
    )
    yield MetricFamily(
        "partita_throttled_requests_total",
        "counter",
        "Throttled requests, by the limit they met.",
        [
            PrometheusSample(count, {**labels, "limit": limit})
            for labels, side in sides
            for limit, count in sorted(side.throttled.items())
        ],
    )
    yield MetricFamily(
        "partita_entitled_units",
        "gauge",
        "Units a second: provisioned, or served on demand.",
        [PrometheusSample(round(side.entitled(now), 1), labels) for labels, side in sides],
    )
    yield MetricFamily(
        "partita_partitions",
        "gauge",
        "Partitions of a table or an index.",
        [PrometheusSample(len(account.partitions), _labels(account)) for account in accounts],
    )
    yield MetricFamily(
        "partita_hot_partition_load",
        "gauge",
        "Load of hot partitions, as a share of their limits.",
        [
            PrometheusSample(round(load, 3), {**_labels(account), "partition": str(number)})
            for account in accounts
            for number, partition in enumerate(account.partitions)
            if (load := partition.load(now)) >= HOT_LOAD
        ],
    )


def _labels(account: CapacityAccount) -> dict[str, str]:
    return {"table": account.table_name, "index": account.index_name or ""}


def _partitions(context: ReadContext, table: Table, account: CapacityAccount) -> list[Page]:
    index = table.index(account.index_name) if account.index_name else None
    number = index.number if index else 0
    prefix = (
        table_layout.entries_prefix(table.number, number)
        if index
        else table_layout.items_prefix(table.number)
    )
    statistics = read_statistics(context.snapshot, table.number, number)
    is_measured = (
        statistics.item_count <= MEASURED_ITEMS_MAX and statistics.size_bytes <= MEASURED_BYTES_MAX
    )
    now = context.service.ledger.clock()
    shown = []
    for partition in account.partitions:
        if is_measured:
            size = _measured_bytes(context, prefix, partition)
        else:
            size = statistics.size_bytes * (partition.stop - partition.start) // HASHES
        hottest = partition.hottest(HOT_KEYS_SHOWN)
        total = partition.demanded_share
        shown.append(
            {
                "FirstHash": f"{partition.start:016x}",
                "LastHash": f"{partition.stop - 1:016x}",
                "SizeBytes": size,
                "SizeIsMeasured": is_measured,
                "Load": round(partition.load(now), 4),
                "HottestKeys": [
                    {"Key": contributor.key[1], "Share": round(contributor.value / total, 4)}
                    for contributor in hottest
                ],
            }
        )
    return shown


def _measured_bytes(context: ReadContext, prefix: bytes, partition: Partition) -> int:
    start = prefix + partition.start.to_bytes(PARTITION_HASH_BYTES, "big")
    stop = prefix_end(prefix)
    if partition.stop < HASHES:
        stop = prefix + partition.stop.to_bytes(PARTITION_HASH_BYTES, "big")
    pairs = islice(context.snapshot.range(start, stop), MEASURED_ITEMS_MAX)
    return sum(unpack_sizes(value)[0] for _, value in pairs)


def _rules(names: list[str], insights: InsightsRules) -> list[Page]:
    return [
        {
            "RuleName": name,
            "Counts": "throttled requests" if kind.endswith("T") else "capacity units",
            **_contributors(rule),
        }
        for name, (kind, rule) in zip(names, insights.rules().items(), strict=True)
    ]


def _contributors(rule: HotKeyCounter[Key]) -> Page:
    """Returns the top contributors. A value may be too small, by at most `ErrorMax`."""
    return {
        "Total": rule.total,
        "ErrorMax": rule.error,
        "Contributors": [
            {"Keys": list(contributor.key), "Value": contributor.value}
            for contributor in rule.top(CONTRIBUTORS_SHOWN)
        ],
    }
