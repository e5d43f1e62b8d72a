"""The notation of the cases: values, requests, tables and cases as plain data.

A case is a statement with the requests that show it. Each request is sent to both servers, and
their answers must be the same. `given(...)` are the requests that come before; they must succeed
and are not compared.

    given(THINGS, put(pk=S("a"), n=N("1")))(
        case("a number is added to", update(S("a"), "ADD n :one", values={":one": N("1")})),
    )
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

Value = dict[str, Any]
Body = dict[str, Any]
Named = TypeVar("Named")


def S(text: str) -> Value:
    return {"S": text}


def N(text: str) -> Value:
    return {"N": text}


def B(base64: str) -> Value:
    return {"B": base64}


def SS(*texts: str) -> Value:
    return {"SS": list(texts)}


def NS(*texts: str) -> Value:
    return {"NS": list(texts)}


def BS(*base64: str) -> Value:
    return {"BS": list(base64)}


def L(*values: Value) -> Value:
    return {"L": list(values)}


def M(**members: Value) -> Value:
    return {"M": members}


# In a request: what the ARNs of the server that is asked begin with. In an answer: the same.
ARNS = "{arns}"

# In a request: the last stream of a table, its first shard, or an iterator at the start of that.
PLACEHOLDER = re.compile(r"\{(stream|shard|iterator) (\w+)\}")
# No operation of the service: all records of a table's last stream, whatever its shards.
ALL_RECORDS = "AllRecords"

TRUE: Value = {"BOOL": True}
FALSE: Value = {"BOOL": False}
NULL: Value = {"NULL": True}


def nested(levels: int) -> Value:
    """A text in that many lists."""
    value = S("deep")
    for _ in range(levels):
        value = L(value)
    return value


@dataclass(frozen=True)
class Step:
    """A request; if `body` is text, it is sent unchanged.

    `unordered` are the lists of the answer that have no order, as paths ("Responses.Things");
    with `to_the_end` the pages of the answer are followed, and all of them are compared.
    """

    operation: str
    body: Body | str
    unordered: tuple[str, ...] = ()
    to_the_end: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple[Step, ...]
    setup: tuple[Step, ...] = ()


def case(name: str, *steps: Step) -> Case:
    return Case(name, steps)


def given(*setup: Step) -> Callable[..., list[Case]]:
    """`given(THINGS, ...)(case(...), case(...))`: the cases, each on tables of its own."""

    def with_setup(*cases: Case) -> list[Case]:
        return [replace(one, setup=setup + one.setup) for one in cases]

    return with_setup


def send(operation: str, body: Body | str | None = None, **members: Any) -> Step:
    """Any request; of the members, those that are None are left out."""
    if isinstance(body, str):
        return Step(operation, body)
    sent = {**(body or {}), **members}
    return Step(operation, {name: value for name, value in sent.items() if value is not None})


def mentioned(text: str, known: Mapping[str, Named]) -> dict[str, Named] | None:
    """Returns the names or values that an expression uses, because unused ones would be refused."""
    words = "".join(c if c.isalnum() or c in ":#_" else " " for c in text).split()
    return {word: known[word] for word in known if word in words} or None


def to_the_end(step: Step) -> Step:
    return replace(step, to_the_end=True)


def unordered(step: Step, *paths: str) -> Step:
    return replace(step, unordered=step.unordered + paths)


# Tables: attributes are written "name:type".

THROUGHPUT = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


def key_schema(*attributes: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": attribute.split(":")[0], "KeyType": kind}
        for attribute, kind in zip(attributes, kinds, strict=False)
    ]


def definitions(*attributes: str) -> list[dict[str, str]]:
    """Returns each attribute once, in the order of first use."""
    pairs = dict(attribute.split(":") for attribute in attributes)
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in pairs.items()]


@dataclass(frozen=True)
class Index:
    name: str
    key: tuple[str, ...]
    projection: str | Sequence[str] = "ALL"
    more: Mapping[str, Any] | None = None

    def written(self) -> Body:
        if isinstance(self.projection, str):
            projection: Body = {"ProjectionType": self.projection}
        else:
            projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(self.projection)}
        return {
            "IndexName": self.name,
            "KeySchema": key_schema(*self.key),
            "Projection": projection,
            **(self.more or {}),
        }


def index(name: str, *key: str, projection: str | Sequence[str] = "ALL", **more: Any) -> Index:
    return Index(name, key, projection, more)


def create(
    name: str,
    *key: str,
    local: Sequence[Index] = (),
    across: Sequence[Index] = (),
    **more: Any,
) -> Step:
    """CreateTable with local and global (`across`) indexes, on demand unless told otherwise."""
    used = [*key, *(one for index in (*local, *across) for one in index.key)]
    body: Body = {
        "TableName": name,
        "KeySchema": key_schema(*key),
        "AttributeDefinitions": definitions(*used),
    }
    if local:
        body["LocalSecondaryIndexes"] = [index.written() for index in local]
    if across:
        body["GlobalSecondaryIndexes"] = [index.written() for index in across]
    if "ProvisionedThroughput" not in more:
        more = {"BillingMode": "PAY_PER_REQUEST", **more}
    return send("CreateTable", body, **more)


THINGS = create("Things", "pk:S")
PAIRS = create("Pairs", "pk:S", "sk:S")
COUNTED = create("Counted", "pk:S", "sk:N")
INDEXED = create(
    "Indexed",
    "pk:S",
    "sk:S",
    local=(
        index("byPoints", "pk:S", "points:N"),
        index("byNick", "pk:S", "nick:S", projection=["points"]),
    ),
    across=(
        index("byCity", "city:S"),
        index("byCityNick", "city:S", "nick:S", projection=["age"]),
        index("byNickKeys", "nick:S", projection="KEYS_ONLY"),
    ),
)


# Requests to items: `table` is Things unless another one is named.


def _of_item(
    operation: str,
    table: str,
    members: Body,
    names: Mapping[str, str] | None,
    values: Mapping[str, Value] | None,
    more: Mapping[str, Any],
) -> Step:
    body: Body = {"TableName": table, **members}
    if names is not None:
        body["ExpressionAttributeNames"] = dict(names)
    if values is not None:
        body["ExpressionAttributeValues"] = dict(values)
    return send(operation, body, **more)


def put(
    item: Mapping[str, Any],
    condition: str | None = None,
    *,
    table: str = "Things",
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Value] | None = None,
    **more: Any,
) -> Step:
    members = {"Item": item, "ConditionExpression": condition}
    return _of_item("PutItem", table, members, names, values, more)


def get(
    key: Mapping[str, Any],
    projection: str | None = None,
    *,
    table: str = "Things",
    names: Mapping[str, str] | None = None,
    **more: Any,
) -> Step:
    members = {"Key": key, "ProjectionExpression": projection}
    return _of_item("GetItem", table, members, names, None, more)


def update(
    key: Mapping[str, Any],
    expression: str | None = None,
    condition: str | None = None,
    *,
    table: str = "Things",
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Value] | None = None,
    **more: Any,
) -> Step:
    members = {"Key": key, "UpdateExpression": expression, "ConditionExpression": condition}
    return _of_item("UpdateItem", table, members, names, values, more)


def delete(
    key: Mapping[str, Any],
    condition: str | None = None,
    *,
    table: str = "Things",
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Value] | None = None,
    **more: Any,
) -> Step:
    members = {"Key": key, "ConditionExpression": condition}
    return _of_item("DeleteItem", table, members, names, values, more)


def query(
    condition: str | None = None,
    values: Mapping[str, Value] | None = None,
    filter: str | None = None,
    *,
    table: str = "Pairs",
    names: Mapping[str, str] | None = None,
    **more: Any,
) -> Step:
    members = {"KeyConditionExpression": condition, "FilterExpression": filter}
    return _of_item("Query", table, members, names, values, more)


def scan(
    filter: str | None = None,
    values: Mapping[str, Value] | None = None,
    *,
    table: str = "Pairs",
    names: Mapping[str, str] | None = None,
    **more: Any,
) -> Step:
    """Scan: partitions have no order that two servers share, so neither have the items."""
    members = {"FilterExpression": filter}
    return unordered(_of_item("Scan", table, members, names, values, more), "Items")


def batch_get(requests: Mapping[str, Any], **more: Any) -> Step:
    step = send("BatchGetItem", {"RequestItems": dict(requests)}, **more)
    return unordered(step, *(f"Responses.{table}" for table in requests))


def batch_write(requests: Mapping[str, Any], **more: Any) -> Step:
    return send("BatchWriteItem", {"RequestItems": dict(requests)}, **more)


def put_all(table: str, *items: Mapping[str, Any]) -> Step:
    return batch_write({table: [{"PutRequest": {"Item": item}} for item in items]})


def transact_write(*actions: Mapping[str, Any], **more: Any) -> Step:
    return send("TransactWriteItems", {"TransactItems": list(actions)}, **more)


def transact_get(*gets: Mapping[str, Any], **more: Any) -> Step:
    items = [{"Get": one} for one in gets]
    return send("TransactGetItems", {"TransactItems": items}, **more)


def describe(table: str) -> Step:
    return send("DescribeTable", TableName=table)
