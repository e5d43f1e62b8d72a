"""The rights that requests for items need on tables and indexes, with DynamoDB's condition keys.

`dynamodb:Attributes` has all attributes that a request names: in keys, items, projections,
conditions, filters and updates, in the legacy parameters or in expressions. So a caller cannot
learn anything about the value of an attribute without naming it here.
(Developer guide, "Using IAM policy conditions for fine-grained access control")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from partita.database.item.attribute_values import normalize_value
from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations.data_plane.expression_parameters import (
    ACTION,
    GET,
    PUT_OR_DELETE,
    QUERY,
    SCAN,
    UPDATE,
    UPDATE_ACTION,
    ParameterFamily,
    RequestExpressions,
    compile_expressions,
)
from partita.database.operations.operation_context import DatabaseService, table_name
from partita.database.tables.definition.table_schema import Table
from partita.errors import ValidationException
from partita.server.protocol import json_codec
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    policy_of,
    resource_tags,
)

PREFIX: Final = "dynamodb:"
ATTRIBUTES, LEADING_KEYS = f"{PREFIX}attributes", f"{PREFIX}leadingkeys"
SELECT, RETURN_VALUES = f"{PREFIX}select", f"{PREFIX}returnvalues"
CONSUMED_CAPACITY: Final = f"{PREFIX}returnconsumedcapacity"
ENCLOSING_OPERATION: Final = f"{PREFIX}enclosingoperation"
FULL_TABLE_SCAN: Final = f"{PREFIX}fulltablescan"
PARTITION_KEYS: Final = tuple(
    f"{PREFIX}{place}partitionkeyvalues" for place in ("first", "second", "third", "fourth")
)
ALL, PROJECTED, SPECIFIC = "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES"
NONE, ALL_OLD = "NONE", "ALL_OLD"

Partition = Sequence[KeyAttribute]


def leading_keys(partition: Partition, keys: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Returns the condition keys for the partition keys of some items.

    Numbers and bytes are normalized as when they are stored. Otherwise a caller could evade a
    policy with another spelling, such as `1.0` for `1`.
    """
    values: list[list[str]] = [[] for _ in partition]
    for key in keys:
        for place, (name, _) in enumerate(partition):
            if name in key:
                try:
                    (text,) = normalize_value(key[name]).values()
                except ValidationException:
                    continue
                values[place].append(str(text))
    condition_keys: dict[str, list[str]] = {}
    if values and values[0]:
        condition_keys[LEADING_KEYS] = values[0]
    for name, texts in zip(PARTITION_KEYS, values, strict=False):
        if texts:
            condition_keys[name] = texts
    return condition_keys


def named_attributes(expressions: RequestExpressions) -> set[str]:
    """Returns all attributes that the expressions of a request name."""
    names: set[str] = set()
    for condition in (expressions.condition, expressions.filter):
        if condition is not None:
            names |= condition.attributes
    if expressions.projection is not None:
        names |= {str(path[0]) for path in expressions.projection.paths}
    if expressions.update is not None:
        names |= expressions.update.attributes
        names |= {str(path[0]) for path in expressions.update.operand_paths}
    if expressions.key_condition is not None:
        names |= {test.attribute for test in expressions.key_condition.tests}
    return names


def compiled(request: Request, family: ParameterFamily) -> RequestExpressions | None:
    """Compiles the expressions of a request. Returns None for invalid ones, which the operation
    refuses before it looks at any item."""
    try:
        return compile_expressions(request, family)
    except ValidationException:
        return None


def find_table(service: DatabaseService, name: str) -> Table | None:
    return service.catalog.find(table_name(name))


def table_arn(service: DatabaseService, name: str) -> str:
    return service.table_arn(table_name(name))


def source_arn(service: DatabaseService, name: str, index_name: str | None) -> str:
    arn = table_arn(service, name)
    return f"{arn}/index/{index_name}" if index_name else arn


def tags_of(table: Table | None) -> Keys:
    return resource_tags(table.tags) if table else {}


def returned(request: Request, default: str = NONE) -> str:
    """Returns what a write returns of the old or new item, for `dynamodb:ReturnValues`.

    Returning the item after a failed condition counts too, because it is as good as a read.
    """
    shown: str = request.get("ReturnValues", default)
    if request.get("ReturnValuesOnConditionCheckFailure") == ALL_OLD and shown != "ALL_NEW":
        return ALL_OLD
    return shown


def _single(
    action: str,
    family: ParameterFamily,
    request: Request,
    table: Table | None,
    items: Sequence[Mapping[str, Any]],
    whole: Request,
    enclosing: str = "",
) -> Keys:
    """Returns the condition keys of a request that names its items by their keys."""
    keys: dict[str, Sequence[str]] = {**tags_of(table)}
    if table is not None:
        keys |= leading_keys((table.partition,), items)
    names = {name for item in items for name in item}
    expressions = compiled(request, family)
    if expressions is not None:
        names |= named_attributes(expressions)
    if names:
        keys[ATTRIBUTES] = tuple(sorted(names))
    if family is GET:
        is_specific = "ProjectionExpression" in request or "AttributesToGet" in request
        keys[SELECT] = (SPECIFIC if is_specific else ALL,)
    elif action != "BatchWriteItem":
        keys[RETURN_VALUES] = (returned(request),)
    keys[CONSUMED_CAPACITY] = (whole.get("ReturnConsumedCapacity", NONE),)
    if enclosing:
        keys[ENCLOSING_OPERATION] = (enclosing,)
    return keys


def _item_right(action: str, family: ParameterFamily, member: str = "Key") -> Rights:
    """Makes the rights of an operation for one item, which it names by its key or contains."""
    full_name = PREFIX + action

    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        name = request["TableName"]
        table = find_table(service, name)
        keys = partial(_single, action, family, request, table, (request[member],), request)
        return (RequestedRight(full_name, table_arn(service, name), keys, policy_of(table)),)

    return rights


def batch_get_item(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    needs = []
    for name, part in request["RequestItems"].items():
        table = find_table(service, name)
        keys = partial(_single, "BatchGetItem", GET, part, table, part["Keys"], request)
        arn = table_arn(service, name)
        needs.append(RequestedRight(f"{PREFIX}BatchGetItem", arn, keys, policy_of(table)))
    return needs


def batch_write_item(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    needs = []
    for name, writes in request["RequestItems"].items():
        items = [
            write[kind][member]
            for write in writes
            for kind, member in (("PutRequest", "Item"), ("DeleteRequest", "Key"))
            if write.get(kind)
        ]
        table = find_table(service, name)
        keys = partial(_single, "BatchWriteItem", PUT_OR_DELETE, {}, table, items, request)
        arn = table_arn(service, name)
        needs.append(RequestedRight(f"{PREFIX}BatchWriteItem", arn, keys, policy_of(table)))
    return needs


READ_ACTIONS: Final[dict[str, tuple[str, ParameterFamily, str]]] = {"Get": ("GetItem", GET, "Key")}
WRITE_ACTIONS: Final[dict[str, tuple[str, ParameterFamily, str]]] = {
    "Put": ("PutItem", ACTION, "Item"),
    "Update": ("UpdateItem", UPDATE_ACTION, "Key"),
    "Delete": ("DeleteItem", ACTION, "Key"),
    "ConditionCheck": ("ConditionCheckItem", ACTION, "Key"),
}


def _transaction_right(
    enclosing: str, actions: Mapping[str, tuple[str, ParameterFamily, str]]
) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        needs = []
        for item in request["TransactItems"]:
            for kind, (action, family, member) in actions.items():
                part = item.get(kind)
                if part is None:
                    continue
                name = part["TableName"]
                table = find_table(service, name)
                items = (part[member],)
                keys = partial(_single, action, family, part, table, items, request, enclosing)
                arn = table_arn(service, name)
                needs.append(RequestedRight(PREFIX + action, arn, keys, policy_of(table)))
        return needs

    return rights


# Query and Scan


def _read_keys(family: ParameterFamily, request: Request, table: Table | None) -> Keys:
    keys: dict[str, Sequence[str]] = {**tags_of(table)}
    expressions = compiled(request, family)
    names = named_attributes(expressions) if expressions else set()
    if family is QUERY and table is not None and expressions is not None:
        keys |= _queried(table, request.get("IndexName"), expressions)
    names |= set(request.get("ExclusiveStartKey", ()))
    if table is not None:
        names |= key_names(table, request.get("IndexName"))
    if names:
        keys[ATTRIBUTES] = tuple(sorted(names))
    keys[SELECT] = (selected(request),)
    keys[CONSUMED_CAPACITY] = (request.get("ReturnConsumedCapacity", NONE),)
    return keys


def selected(request: Request) -> str:
    """Returns the Select of a request, or its default."""
    if "Select" in request:
        return str(request["Select"])
    if "ProjectionExpression" in request or "AttributesToGet" in request:
        return SPECIFIC
    return PROJECTED if "IndexName" in request else ALL


def _queried(table: Table, index_name: str | None, expressions: RequestExpressions) -> Keys:
    partition, sort = partition_and_sort(table, index_name)
    assert expressions.key_condition is not None
    try:
        keys = expressions.key_condition.resolve(partition, sort, expressions.values)
    except ValidationException:
        return {}
    names = [name for name, _ in partition]
    return leading_keys(partition, [dict(zip(names, keys.partition, strict=False))])


def key_names(table: Table, index_name: str | None) -> set[str]:
    """Returns the attributes in the LastEvaluatedKey of a page: the keys of the table and the
    index.

    (Developer guide: "you must specify the names of all of the primary key and index key attributes
    for the table and any secondary indexes")
    """
    partition, sort = partition_and_sort(table, index_name)
    return {name for name, _ in (*table.key_attributes, *partition, *sort)}


def partition_and_sort(table: Table, index_name: str | None) -> tuple[Partition, Partition]:
    index = table.index(index_name) if index_name else None
    if index is not None:
        return index.partition, index.sort
    return (table.partition,), table.sort_attributes


def _read_right(action: str, family: ParameterFamily) -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        name = request["TableName"]
        table = find_table(service, name)
        keys = partial(_read_keys, family, request, table)
        arn = source_arn(service, name, request.get("IndexName"))
        return (RequestedRight(PREFIX + action, arn, keys, policy_of(table)),)

    return rights


RIGHTS: Final[dict[str, Callable[[DatabaseService, Request], Sequence[RequestedRight]]]] = {
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "DeleteItem": _item_right("DeleteItem", PUT_OR_DELETE),
    "GetItem": _item_right("GetItem", GET),
    "PutItem": _item_right("PutItem", PUT_OR_DELETE, "Item"),
    "Query": _read_right("Query", QUERY),
    "Scan": _read_right("Scan", SCAN),
    "TransactGetItems": _transaction_right("TransactGetItems", READ_ACTIONS),
    "TransactWriteItems": _transaction_right("TransactWriteItems", WRITE_ACTIONS),
    "UpdateItem": _item_right("UpdateItem", UPDATE),
}

# Reads that are answered without decoding the request

# Not a class statement: mypyc would compile it to a slower class.
_Named: Final = msgspec.defstruct(
    "Named", [("TableName", str), ("IndexName", str | None, None)], gc=False
)
_decode_named: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(_Named).decode


class LazyConditionKeys:
    """The resource and condition keys of a GetItem or Query in its plainest form.

    At first only the names of table and index are decoded. The whole body is decoded if a policy
    uses one of its condition keys.
    """

    __slots__ = ("_action", "_body", "_service", "policy", "resource")

    def __init__(self, service: DatabaseService, action: str, body: bytes) -> None:
        named = _decode_named(body)
        name = table_name(named.TableName)
        table = service.catalog.find(name)
        self.resource = service.table_arn(name)
        if named.IndexName and action == "Query":
            self.resource += f"/index/{named.IndexName}"
        self.policy = policy_of(table)
        self._service = service
        self._action = action
        self._body = body

    def keys(self) -> Keys:
        (need,) = RIGHTS[self._action](self._service, json_codec.decode(self._body))
        return need.keys()
