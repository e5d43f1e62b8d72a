"""Explains a statement: the keys that it would read or write, from where, and at what cost.

The plan is the same that ExecuteStatement carries out. To estimate the cost of a SELECT, only the
sizes of the items on its first page are read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from partita.database.capacity.capacity_units import read_units, write_units
from partita.database.item.attribute_values import Item
from partita.database.item.key_encoding import KeyRange
from partita.database.operations.charges import key_of
from partita.database.operations.data_plane.item_actions import PutAction
from partita.database.operations.data_plane.result_pages import ReadSource, read_metered
from partita.database.operations.operation_context import ReadContext, Request
from partita.database.operations.partiql.execute_statement import (
    action_of,
    bind_alone,
    bounds,
    planned_read,
)
from partita.database.operations.partiql.language.statement_compiler import (
    DeleteStatement,
    InsertStatement,
    SelectStatement,
)
from partita.database.operations.partiql.language.statement_plan import ReadPlan
from partita.database.operations.partiql.next_tokens import SelectPosition
from partita.database.operations.response_members import encode
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.database.tables.read_path import load
from partita.database.tables.table_statistics import read_statistics
from partita.errors import DynamoDBError
from partita.foundation.service_limits import PAGE_BYTES_MAX

MEASURED_ITEMS_MAX = 5000
RANGES_SHOWN = 25
SCAN, QUERY, KEY, WRITE, REFUSED = "scan", "query", "key", "write", "refused"

Plan = dict[str, Any]


class MeasuredRead(NamedTuple):
    """The size of the first page of a SELECT."""

    items: int
    units: float
    is_whole: bool
    """True when there is no second page."""


def explain(context: ReadContext, request: Request) -> bytes:
    """Returns the plan of a statement, or the error with which it would be refused."""
    try:
        return encode(_plan(context, request))
    except DynamoDBError as error:
        return encode({"Access": REFUSED, "Code": error.wire_code, "Message": error.message})


def _plan(context: ReadContext, request: Request) -> Plan:
    statement, values = bind_alone(context.service, request)
    table = context.service.table(statement.table_name)
    if isinstance(statement, SelectStatement):
        consistent = request.get("ConsistentRead", False)
        source, plan = planned_read(table, statement, values, consistent=consistent)
        return _read(context, source, plan, consistent=consistent)
    action = action_of(statement, table, values, request)
    key = key_of(action)
    stored = load(context.snapshot, table_layout.item_key(table, key))
    size = stored.size if stored else 0
    if isinstance(action, PutAction):
        size = max(size, action.item.size)
    return {
        "Access": WRITE,
        "Statement": _verb(statement),
        "TableName": table.name,
        "Ranges": [_whole(table, key)],
        "WriteUnits": write_units(size),
        "IsLeast": bool(table.indexes) or not isinstance(statement, InsertStatement),
        "ItemExists": stored is not None,
    }


def _verb(statement: object) -> str:
    if isinstance(statement, InsertStatement):
        return "INSERT"
    return "DELETE" if isinstance(statement, DeleteStatement) else "UPDATE"


def _whole(table: Table, key: Item) -> Plan:
    shown: Plan = {"PartitionKey": {table.partition.name: key[table.partition.name]}}
    if table.sort is not None:
        name = table.sort.name
        shown["SortKey"] = {"Name": name, "Comparison": "=", "Operands": [key[name]]}
    return shown


def _read(context: ReadContext, source: ReadSource, plan: ReadPlan, *, consistent: bool) -> Plan:
    index, table = source.index, source.table
    measured = _measured(context, source, plan, consistent=consistent)
    explained: Plan = {
        "Access": _access(source, plan),
        "Statement": "SELECT",
        "TableName": table.name,
        **({"IndexName": index.name} if index else {}),
        "Ranges": [_range(source, keys) for keys in plan.ranges[:RANGES_SHOWN]],
        "RangeCount": len(plan.ranges),
        "IsFiltered": plan.filter is not None,
        "IsForward": plan.is_forward,
        "FirstPage": {
            "Items": measured.items,
            "ReadUnits": measured.units,
            "IsWhole": measured.is_whole,
        },
    }
    if not plan.ranges:
        number = index.number if index else 0
        whole = read_statistics(context.snapshot, table.number, number)
        explained["Whole"] = {
            "Items": whole.item_count,
            "Bytes": whole.size_bytes,
            "ReadUnits": read_units(whole.size_bytes, consistent=consistent),
        }
    return explained


def _access(source: ReadSource, plan: ReadPlan) -> str:
    if not plan.ranges:
        return SCAN
    is_one = source.index is None and len(plan.ranges[0].equal) == len(source.sort)
    return KEY if is_one else QUERY


def _range(source: ReadSource, keys: KeyRange) -> Plan:
    (partition,) = source.partition
    shown: Plan = {"PartitionKey": {partition.name: keys.partition[0]}}
    if keys.equal or keys.comparison:
        shown["SortKey"] = {
            "Name": source.sort[0].name,
            "Comparison": keys.comparison or "=",
            "Operands": list(keys.equal or keys.operands),
        }
    return shown


def _measured(
    context: ReadContext, source: ReadSource, plan: ReadPlan, *, consistent: bool
) -> MeasuredRead:
    """Read the first page as the statement would, without keeping items and without charging."""
    items, size, units = 0, 0, 0.0
    parts = list(bounds(source, plan, SelectPosition()))
    for number, (start, stop) in enumerate(parts, 1):
        request = {
            "Limit": MEASURED_ITEMS_MAX - items,
            "ScanIndexForward": plan.is_forward,
            "ReturnConsumedCapacity": "TOTAL",
        }
        page = read_metered(
            context, request, source, _nothing, start, stop, is_scan=not plan.ranges
        )
        units += sum(read_units(read, consistent=consistent) for _, read in page.visits)
        items, size = items + page.scanned_count, size + page.scanned_bytes
        is_full = items == MEASURED_ITEMS_MAX or size >= PAGE_BYTES_MAX
        if page.last_evaluated is not None or (is_full and number < len(parts)):
            return MeasuredRead(items, units, is_whole=False)
    return MeasuredRead(items, units, is_whole=True)


def _nothing(body: bytes) -> None:
    return None
