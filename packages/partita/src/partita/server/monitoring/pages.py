"""What people and programs look at: metrics, partitions, contributors. Pages, not operations.

Each is a function of a read context and of the query behind the page's path.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

from partita.database.capacity.accounts import Account
from partita.database.capacity.contributors import Contributors
from partita.database.capacity.insights import Insights, Key
from partita.database.capacity.partitions import HOT_LOAD, Partition
from partita.database.capacity.sizing import HASHES
from partita.database.item.keys import PARTITION_HASH_BYTES
from partita.database.operations.answers import encode
from partita.database.operations.charges import accounts_of
from partita.database.operations.context import ReadContext, ReadHandler, Request
from partita.database.operations.control_plane.contributor_insights import rule_names
from partita.database.operations.partiql.plans import explain
from partita.database.storage.engine import prefix_end
from partita.database.tables import layout
from partita.database.tables.schema import Index, Table
from partita.database.tables.statistics import read_statistics
from partita.database.tables.stored import unpack_sizes
from partita.errors import ValidationException
from partita.limits import MB
from partita.server.protocol import codec
from partita.server.protocol.validation import Validator, compile_validators

CONTRIBUTORS_SHOWN = 10
HOT_KEYS_SHOWN = 3
MEASURED_ITEMS_MAX = 20_000
MEASURED_BYTES_MAX = 16 * MB
"""Sizes of partitions are added up to so many items and bytes; of more, they are shares of the
whole."""

Page = dict[str, Any]


def metrics(context: ReadContext, query: Request) -> bytes:
    """Consumed and throttled units of all tables and indexes, for Prometheus."""
    return "".join(f"{line}\n" for line in _metric_lines(context)).encode()


def partitions(context: ReadContext, query: Request) -> bytes:
    """The partitions of a table and its global indexes, each with size, load and hottest keys."""
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
    """What the Contributor Insights rules of a table and its global indexes have counted."""
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
    """How a statement would be answered, and what it would cost."""
    statement, parameters = query.get("statement"), query.get("parameters")
    if not statement:
        raise ValidationException("Give a statement: ?statement=SELECT ...")
    request: Request = {"Statement": statement}
    if parameters:
        whole = b'{"Parameters":%b}' % parameters.encode()
        request["Parameters"] = codec.decode(whole)["Parameters"]
    _validate_statement()(request)
    return explain(context, request)


@cache
def _validate_statement() -> Validator:
    return compile_validators(("ExecuteStatement",))["ExecuteStatement"]


def moves(context: ReadContext, query: Request) -> bytes:
    """Nothing of the database's own: whoever is answered may look at the moves of the console, or
    steer them."""
    return encode({})


PAGES: dict[str, ReadHandler] = {
    "/explain": plan,
    "/insights": insights,
    "/metrics": metrics,
    "/moves": moves,
    "/moves/steer": moves,
    "/partitions": partitions,
}
OF_TABLES: Final = frozenset({insights, partitions, plan})
"""Those that show what is stored; the others are about the server that shows them."""


def _table(context: ReadContext, query: Request) -> Table:
    name = query.get("table")
    if not name:
        raise ValidationException("Name a table: ?table=NAME")
    return context.service.catalog.described(name)


def _metric_lines(context: ReadContext) -> Iterator[str]:
    ledger = context.service.ledger
    yield "# HELP partita_capacity_mode Whether throughput is limited: off, observe or enforce."
    yield "# TYPE partita_capacity_mode gauge"
    yield f'partita_capacity_mode{{mode="{ledger.mode}"}} 1'
    if not ledger.is_on:
        return
    now, accounts = ledger.clock(), list(ledger.accounts())
    sides = [
        (f'{_labels(account)},kind="{kind}"', side)
        for account in accounts
        for kind, side in (("read", account.read), ("write", account.write))
    ]
    yield "# HELP partita_consumed_units_total Capacity units consumed."
    yield "# TYPE partita_consumed_units_total counter"
    for labels, side in sides:
        yield f"partita_consumed_units_total{{{labels}}} {_exact(side.consumed)}"
    yield "# HELP partita_throttled_units_total Capacity units of throttled requests."
    yield "# TYPE partita_throttled_units_total counter"
    for labels, side in sides:
        yield f"partita_throttled_units_total{{{labels}}} {_exact(side.throttled_units)}"
    yield "# HELP partita_throttled_requests_total Throttled requests, by the limit they met."
    yield "# TYPE partita_throttled_requests_total counter"
    for labels, side in sides:
        for limit, count in sorted(side.throttled.items()):
            yield f'partita_throttled_requests_total{{{labels},limit="{limit}"}} {count}'
    yield "# HELP partita_entitled_units Units a second: provisioned, or served on demand."
    yield "# TYPE partita_entitled_units gauge"
    for labels, side in sides:
        yield f"partita_entitled_units{{{labels}}} {_exact(side.entitled(now))}"
    yield "# HELP partita_partitions Partitions of a table or an index."
    yield "# TYPE partita_partitions gauge"
    for account in accounts:
        yield f"partita_partitions{{{_labels(account)}}} {len(account.partitions)}"
    yield "# HELP partita_hot_partition_load Load of hot partitions, as a share of their limits."
    yield "# TYPE partita_hot_partition_load gauge"
    for account in accounts:
        for number, partition in enumerate(account.partitions):
            if (load := partition.load(now)) >= HOT_LOAD:
                labels = f'{_labels(account)},partition="{number}"'
                yield f"partita_hot_partition_load{{{labels}}} {load:.3f}"


def _exact(units: float) -> str:
    """Units come in halves. `g` would round what a counter has after its first million."""
    return f"{units:.1f}".removesuffix(".0")


def _labels(account: Account) -> str:
    return f'table="{account.table_name}",index="{account.index_name or ""}"'


def _partitions(context: ReadContext, table: Table, account: Account) -> list[Page]:
    index = table.index(account.index_name) if account.index_name else None
    number = index.number if index else 0
    prefix = (
        layout.entries_prefix(table.number, number) if index else layout.items_prefix(table.number)
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
                    {"Key": one.key[1], "Share": round(one.value / total, 4)} for one in hottest
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


def _rules(names: list[str], insights: Insights) -> list[Page]:
    return [
        {
            "RuleName": name,
            "Counts": "throttled requests" if kind.endswith("T") else "capacity units",
            **_contributors(rule),
        }
        for name, (kind, rule) in zip(names, insights.rules().items(), strict=True)
    ]


def _contributors(rule: Contributors[Key]) -> Page:
    """A contributor's value is right or too small, by the error at most."""
    return {
        "Total": rule.total,
        "ErrorMax": rule.error,
        "Contributors": [
            {"Keys": list(one.key), "Value": one.value} for one in rule.top(CONTRIBUTORS_SHOWN)
        ],
    }
