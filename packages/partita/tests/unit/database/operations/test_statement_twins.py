"""Any PartiQL write equals its twin of the API: same outcome, same capacity, same tables after it.

INSERT is PutItem of an item that must not exist, UPDATE is UpdateItem of one that must, DELETE is
DeleteItem. Both are given to two tables with indexes, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import testing

API, PARTIQL = "api_twin", "partiql_twin"
NAMES = ("a", "b", "g", "l", "ss", "two words", "select")

Value = dict[str, Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with testing.database() as database:
        client = database.client()
        for name in (API, PARTIQL):
            client.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": key, "AttributeType": kind}
                    for key, kind in (("pk", "S"), ("sk", "N"), ("g", "S"))
                ],
                GlobalSecondaryIndexes=[
                    {
                        "IndexName": "byG",
                        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
                LocalSecondaryIndexes=[
                    {
                        "IndexName": "localG",
                        "KeySchema": [
                            {"AttributeName": "pk", "KeyType": "HASH"},
                            {"AttributeName": "g", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
            )
        yield client


# Values, and how they are written as literals.

scalars: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(["", "x", "it's", "é", "x" * 1500]).map(lambda text: {"S": text}),
    st.sampled_from(["0", "-1.5", "3", "1e20"]).map(lambda text: {"N": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
)
values: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        scalars,
        st.sampled_from([["x"], ["y", "x"]]).map(lambda members: {"SS": members}),
        st.sampled_from([["1"], ["2", "1.50"]]).map(lambda members: {"NS": members}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda members: {"L": members}),
        st.dictionaries(st.sampled_from(["x", "it's"]), inner, max_size=2).map(
            lambda members: {"M": members}
        ),
    ),
    max_leaves=4,
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(value: Value) -> str:
    ((kind, content),) = value.items()
    if kind == "S":
        return quoted(content)
    if kind == "N":
        return str(content)
    if kind == "BOOL":
        return "TRUE" if content else "false"
    if kind == "NULL":
        return "NULL"
    if kind == "L":
        return f"[{', '.join(map(literal, content))}]"
    if kind == "M":
        return "{" + ", ".join(f"{quoted(k)}: {literal(v)}" for k, v in content.items()) + "}"
    members = content if kind == "NS" else map(quoted, content)
    return f"<<{', '.join(members)}>>"


# Writes, each in two forms.


class Twins(NamedTuple):
    """A call of the API, and a statement."""

    operation: str
    request: dict[str, Any]
    statement: str


class Both:
    """Gathers an expression and a statement with the same names and values."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def name(self, name: str) -> tuple[str, str]:
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder, f'"{name}"'

    def value(self, value: Value) -> tuple[str, str]:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder, literal(value)

    def condition(self) -> tuple[str, str]:
        kind = self.draw(st.sampled_from(["=", "<>", "missing", "there", "in", "size"]))
        name, written = self.name(self.draw(st.sampled_from(NAMES)))
        if kind == "missing":
            return f"attribute_not_exists({name})", f"{written} IS MISSING"
        if kind == "there":
            return f"attribute_exists({name})", f"{written} IS NOT MISSING"
        if kind == "size":
            one, shown = self.value({"N": "1"})
            return f"size({name}) >= {one}", f"size({written}) >= {shown}"
        one, shown = self.value(self.draw(values))
        if kind == "in":
            other, also = self.value({"N": "3"})
            return f"{name} IN ({one}, {other})", f"{written} IN [{shown}, {also}]"
        return f"{name} {kind} {one}", f"{written} {kind} {shown}"

    def action(self, attribute: str) -> tuple[str, str, str]:
        """Returns the section of an action and its content, in both forms."""
        name, written = self.name(attribute)
        kind = self.draw(st.sampled_from(["set", "sum", "append", "default", "add", "remove"]))
        if kind == "remove":
            return "REMOVE", name, f"REMOVE {written}"
        if kind == "sum":
            one, shown = self.value({"N": "3"})
            return "SET", f"{name} = {name} + {one}", f"SET {written} = {written} + {shown}"
        if kind == "append":
            one, shown = self.value({"L": [{"N": "1"}]})
            return (
                "SET",
                f"{name} = list_append({name}, {one})",
                f"SET {written} = list_append({written}, {shown})",
            )
        if kind == "add":
            one, shown = self.value({"SS": ["q"]})
            section, function = self.draw(
                st.sampled_from([("ADD", "set_add"), ("DELETE", "set_delete")])
            )
            return section, f"{name} {one}", f"SET {written} = {function}({written}, {shown})"
        one, shown = self.value(self.draw(values))
        if kind == "default":
            return (
                "SET",
                f"{name} = if_not_exists({name}, {one})",
                f"SET {written} = if_not_exists({written}, {shown})",
            )
        return "SET", f"{name} = {one}", f"SET {written} = {shown}"

    def request(self, key: Value, condition: str | None, **more: Any) -> dict[str, Any]:
        placeholders = {
            "ExpressionAttributeNames": self.names,
            "ExpressionAttributeValues": self.values,
            "ConditionExpression": condition,
        }
        return {"Key": key, **{k: v for k, v in placeholders.items() if v}, **more}


keys = st.builds(
    lambda pk, sk: {"pk": {"S": pk}, "sk": {"N": sk}},
    st.sampled_from(["one", "two"]),
    st.sampled_from(["0", "1"]),
)


def located(key: dict[str, Value]) -> str:
    return f"pk = {literal(key['pk'])} AND {literal(key['sk'])} = sk"


@st.composite
def inserts(draw: st.DrawFn) -> Twins:
    item = {**draw(st.dictionaries(st.sampled_from(NAMES), values, max_size=3)), **draw(keys)}
    request = {"Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    return Twins("put_item", request, f"INSERT INTO {{table}} VALUE {literal({'M': item})}")


@st.composite
def updates(draw: st.DrawFn) -> Twins:
    both, key = Both(draw), draw(keys)
    attributes = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    actions = [both.action(attribute) for attribute in attributes]
    sections: dict[str, list[str]] = {}
    for section, expression, _ in actions:
        sections.setdefault(section, []).append(expression)
    update = " ".join(f"{name} {', '.join(parts)}" for name, parts in sections.items())
    condition, where = "attribute_exists(pk)", located(key)
    if draw(st.booleans()):
        tested, written = both.condition()
        condition, where = f"{condition} AND {tested}", f"{where} AND {written}"
    statement = f"UPDATE {{table}} {' '.join(written for _, _, written in actions)} WHERE {where}"
    return Twins("update_item", both.request(key, condition, UpdateExpression=update), statement)


@st.composite
def deletes(draw: st.DrawFn) -> Twins:
    both, key = Both(draw), draw(keys)
    condition, where = None, located(key)
    if draw(st.booleans()):
        tested, written = both.condition()
        condition, where = f"attribute_not_exists(pk) OR {tested}", f"{where} AND {written}"
    return Twins(
        "delete_item", both.request(key, condition), f"DELETE FROM {{table}} WHERE {where}"
    )


def outcome(call: Any, **request: Any) -> tuple[str, Any]:
    """The outcome of a write, and the capacity that it consumed."""
    try:
        answer = call(ReturnConsumedCapacity="INDEXES", **request)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return code.replace("DuplicateItem", "ConditionalCheckFailed"), None
    capacity = answer["ConsumedCapacity"]
    del capacity["TableName"]
    return "done", capacity


def contents(client: Any, table: str) -> list[Any]:
    found = client.scan(TableName=table)["Items"]
    indexed = client.scan(TableName=table, IndexName="byG")["Items"]
    order = sorted(found, key=lambda item: (item["pk"]["S"], item["sk"]["N"]))
    return [order, sorted(indexed, key=lambda item: (item["pk"]["S"], item["sk"]["N"]))]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(inserts(), updates(), deletes()), min_size=1, max_size=10))
def test_a_statement_does_what_its_twin_does(client: Any, writes: list[Twins]) -> None:
    for twins in writes:
        call = getattr(client, twins.operation)
        expected = outcome(call, TableName=API, **twins.request)
        statement = twins.statement.replace("{table}", PARTIQL)
        assert outcome(client.execute_statement, Statement=statement) == expected, statement
    assert contents(client, PARTIQL) == contents(client, API)
