"""TransactWriteItems and TransactGetItems: all or nothing, cancellation reasons, tokens."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from .notation import (
    INDEXED,
    PAIRS,
    SS,
    THINGS,
    Case,
    L,
    N,
    S,
    case,
    get,
    given,
    nested,
    put,
    put_all,
    scan,
    send,
    transact_get,
    transact_write,
)


def key(text: str) -> dict[str, Any]:
    return {"pk": S(text)}


def of(
    kind: str,
    table: str,
    members: dict[str, Any],
    condition: str | None,
    values: object,
    more: dict[str, Any],
) -> dict[str, Any]:
    body = {
        "TableName": table,
        **members,
        "ConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **more,
    }
    return {kind: {name: value for name, value in body.items() if value is not None}}


def Put(
    item: object,
    condition: str | None = None,
    values: object = None,
    table: str = "Things",
    **more: Any,
) -> dict[str, Any]:
    return of("Put", table, {"Item": item}, condition, values, more)


def Delete(
    one: object,
    condition: str | None = None,
    values: object = None,
    table: str = "Things",
    **more: Any,
) -> dict[str, Any]:
    return of("Delete", table, {"Key": one}, condition, values, more)


def Check(
    one: object, condition: str | None, values: object = None, table: str = "Things", **more: Any
) -> dict[str, Any]:
    return of("ConditionCheck", table, {"Key": one}, condition, values, more)


def Update(
    one: object,
    expression: str | None,
    condition: str | None = None,
    values: object = None,
    table: str = "Things",
    **more: Any,
) -> dict[str, Any]:
    return of(
        "Update", table, {"Key": one, "UpdateExpression": expression}, condition, values, more
    )


def Get(
    one: object, projection: str | None = None, table: str = "Things", **more: Any
) -> dict[str, Any]:
    body = {"TableName": table, "Key": one, "ProjectionExpression": projection, **more}
    return {name: value for name, value in body.items() if value is not None}


# New in every run: a server remembers a token for ten minutes.
ONCE, FAILED = str(uuid4()), str(uuid4())

ONE = {":one": N("1")}
FAILS = "attribute_not_exists(pk)"
OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
READ = (get(key("a")), get(key("b")), get(key("c")), get(key("new")))

CASES: list[Case] = [
    *given(
        THINGS,
        PAIRS,
        put_all(
            "Things",
            {**key("a"), "n": N("1"), "l": L(N("1"))},
            {**key("b"), "n": N("2")},
            {**key("c"), "n": N("3")},
        ),
        put({**key("a"), "sk": S("1")}, table="Pairs"),
    )(
        case(
            "all four actions are done",
            transact_write(
                Put({**key("new"), "v": S("x")}),
                Update(key("a"), "ADD n :one", values=ONE),
                Delete(key("b")),
                Check(key("c"), "attribute_exists(pk)"),
            ),
            *READ,
        ),
        case(
            "two tables",
            transact_write(Put(key("new")), Delete({**key("a"), "sk": S("1")}, table="Pairs")),
            get(key("new")),
            scan(table="Pairs"),
        ),
        case(
            "one action fails and nothing is done",
            transact_write(
                Put(key("new")), Update(key("a"), "ADD n :one", FAILS, ONE), Delete(key("b"))
            ),
            *READ,
        ),
        case(
            "all failures are told",
            transact_write(
                Put(key("a"), FAILS),
                Delete(key("b"), FAILS),
                Check(key("c"), FAILS),
                Update(key("new"), "SET x = :one", "attribute_exists(pk)", ONE),
            ),
        ),
        case(
            "failures return the items on request",
            transact_write(
                Put(key("a"), FAILS, **OLD),
                Delete(key("b"), FAILS, **OLD),
                Check(key("c"), FAILS, **OLD),
                Check(key("new"), "attribute_exists(pk)", **OLD),
            ),
        ),
        case(
            "a failure of an update returns the item on request",
            transact_write(Update(key("a"), "ADD n :one", FAILS, ONE, **OLD)),
        ),
        case(
            "an update of an absent item",
            transact_write(Update(key("new"), "SET x = :one", values=ONE)),
            get(key("new")),
        ),
        case(
            "an update that does not fit the item",
            transact_write(Put(key("new")), Update(key("a"), "SET x = nope")),
            get(key("new")),
        ),
        case(
            "an update of a wrong type", transact_write(Update(key("a"), "ADD l :one", values=ONE))
        ),
        case(
            "an update along a path that is not there",
            transact_write(Update(key("a"), "SET x.y = :one", values=ONE)),
        ),
        case(
            "an update that makes the item too large",
            transact_write(Update(key("a"), "SET x = :v", values={":v": S("x" * 409_600)})),
        ),
        case("an update of the key", transact_write(Update(key("a"), "SET pk = :one", values=ONE))),
        case("a check without a condition", transact_write(Check(key("a"), None))),
        case("an update without an expression", transact_write(Update(key("a"), None))),
        case("no actions", transact_write()),
        case("no transact items", send("TransactWriteItems")),
        case("an action that is empty", transact_write({})),
        case("an action of two kinds", transact_write({**Put(key("x")), **Delete(key("y"))})),
        case(
            "100 actions",
            transact_write(*(Put(key(f"n{n}")) for n in range(100))),
            scan(table="Things", Select="COUNT"),
        ),
        case("101 actions", transact_write(*(Put(key(f"n{n}")) for n in range(101)))),
        case("two actions for one item", transact_write(Put(key("a")), Delete(key("a")))),
        case(
            "a check and a put of one item",
            transact_write(Check(key("a"), "attribute_exists(pk)"), Put(key("a"))),
        ),
        case(
            "two actions for one item of an absent table",
            transact_write(Put(key("a"), table="Absent"), Delete(key("a"), table="Absent")),
        ),
        case("an absent table", transact_write(Put(key("a"), table="Absent"))),
        case(
            "an absent table among others",
            transact_write(Put(key("new")), Put(key("a"), table="Absent")),
            get(key("new")),
        ),
        case("a table name that is bad", transact_write(Put(key("a"), table="bad!name"))),
        case("a put without its key", transact_write(Put({"v": S("x")}))),
        case("a put with a key of a wrong type", transact_write(Put({"pk": N("1")}))),
        case("a put with a key of a list", transact_write(Put({"pk": L()}))),
        case("a put with an empty key", transact_write(Put(key("")))),
        case(
            "an update with a key of a wrong type",
            transact_write(Update({"pk": N("1")}, "SET x = :one", values=ONE)),
        ),
        case("a delete with a key of a wrong type", transact_write(Delete({"pk": N("1")}))),
        case(
            "a check with a key of a wrong type",
            transact_write(Check({"pk": N("1")}, "attribute_exists(pk)")),
        ),
        case(
            "a key of a wrong type after a good action",
            transact_write(Put(key("new")), Delete({"pk": N("1")})),
            get(key("new")),
        ),
        case("a delete with an empty key", transact_write(Delete(key("")))),
        case(
            "an update with an empty key",
            transact_write(Update(key(""), "SET x = :one", values=ONE)),
        ),
        case(
            "a key with one attribute too many", transact_write(Delete({**key("a"), "sk": S("1")}))
        ),
        case("a key without its sort key", transact_write(Delete(key("a"), table="Pairs"))),
        case("a bad number", transact_write(Put({**key("x"), "v": N("x")}))),
        case(
            "a bad number in an expression",
            transact_write(Update(key("a"), "SET x = :v", values={":v": N("x")})),
        ),
        case("an empty set", transact_write(Put({**key("x"), "v": SS()}))),
        case("a text twice in a set", transact_write(Put({**key("x"), "v": SS("b", "a", "b")}))),
        case("a value without a type", transact_write(Put({**key("x"), "v": {}}))),
        case("a value nested too deep", transact_write(Put({**key("x"), "v": nested(32)}))),
        case("an item that is too large", transact_write(Put({**key("x"), "v": S("x" * 409_600)}))),
        case("an empty condition", transact_write(Put(key("x"), ""))),
        case("a bad condition", transact_write(Put(key("x"), "attribute_not_exists("))),
        case("a bad update", transact_write(Update(key("x"), "SET x"))),
        case("an unused value", transact_write(Put(key("x"), "attribute_exists(pk)", ONE))),
        case(
            "an unused name",
            transact_write(
                Put(key("x"), "attribute_exists(pk)", ExpressionAttributeNames={"#u": "u"})
            ),
        ),
        case("values without an expression", transact_write(Put(key("x"), None, ONE))),
        case(
            "names without an expression",
            transact_write(Delete(key("x"), ExpressionAttributeNames={"#u": "u"})),
        ),
        case("an undefined value", transact_write(Update(key("x"), "SET x = :u"))),
        case(
            "a bad expression before an absent table",
            transact_write(Put(key("x"), "(", table="Absent")),
        ),
        case(
            "a condition of 4109 bytes",
            transact_write(Put(key("x"), "attribute_exists(pk)".ljust(4109))),
        ),
        case("an update of 4109 bytes", transact_write(Update(key("x"), "REMOVE x".ljust(4109)))),
        case(
            "members that do not exist",
            transact_write(
                Put(key("x")), ReturnConsumedCapacity="SOME", ReturnItemCollectionMetrics="SOME"
            ),
        ),
        case(
            "ReturnValuesOnConditionCheckFailure that does not exist",
            transact_write(Put(key("x"), ReturnValuesOnConditionCheckFailure="SOME")),
        ),
        case(
            "a token of 37 characters", transact_write(Put(key("x")), ClientRequestToken="t" * 37)
        ),
        case("an empty token", transact_write(Put(key("x")), ClientRequestToken="")),
        case(
            "a token makes a request happen once",
            transact_write(Update(key("a"), "ADD n :one", values=ONE), ClientRequestToken=ONCE),
            transact_write(Update(key("a"), "ADD n :one", values=ONE), ClientRequestToken=ONCE),
            get(key("a")),
            transact_write(
                Update(key("a"), "ADD n :two", values={":two": N("2")}), ClientRequestToken=ONCE
            ),
        ),
        case(
            "a failed request does not use up its token",
            transact_write(Put(key("a"), FAILS), ClientRequestToken=FAILED),
            transact_write(Put(key("new"), FAILS), ClientRequestToken=FAILED),
        ),
        case(
            "capacity of two puts",
            transact_write(
                Put(key("x")), Put({**key("y"), "v": S("x" * 1500)}), ReturnConsumedCapacity="TOTAL"
            ),
        ),
        case(
            "capacity of a check",
            transact_write(
                Check(key("a"), "attribute_exists(pk)"), ReturnConsumedCapacity="INDEXES"
            ),
        ),
        case(
            "capacity of a delete and an update",
            transact_write(
                Delete(key("a")),
                Update(key("b"), "ADD n :one", values=ONE),
                ReturnConsumedCapacity="INDEXES",
            ),
        ),
        case(
            "capacity of a failure",
            transact_write(Put(key("a"), FAILS), ReturnConsumedCapacity="TOTAL"),
        ),
        case("transact items that are a map", send("TransactWriteItems", TransactItems={})),
        case("an action that is a text", transact_write("x")),  # type: ignore[arg-type]
        case("an action of an unknown kind", transact_write({"Get": Get(key("a"))})),
        case("a put without a table", transact_write({"Put": {"Item": key("a")}})),
        case("a put without an item", transact_write({"Put": {"TableName": "Things"}})),
    ),
    *given(
        THINGS,
        PAIRS,
        put_all("Things", {**key("a"), "n": N("1"), "l": L(N("1"))}, {**key("b"), "n": N("2")}),
        put({**key("a"), "sk": S("1")}, table="Pairs"),
    )(
        case(
            "get: items in the order of the request",
            transact_get(
                Get(key("b")),
                Get(key("nope")),
                Get(key("a")),
                Get({**key("a"), "sk": S("1")}, table="Pairs"),
            ),
        ),
        case("get: a projection", transact_get(Get(key("a"), "n"), Get(key("b"), "l"))),
        case("get: a projection that finds nothing", transact_get(Get(key("b"), "nope"))),
        case(
            "get: a projection with names",
            transact_get(Get(key("a"), "#n", ExpressionAttributeNames={"#n": "n"})),
        ),
        case(
            "get: an unused name",
            transact_get(Get(key("a"), "n", ExpressionAttributeNames={"#u": "n"})),
        ),
        case(
            "get: names without a projection",
            transact_get(Get(key("a"), ExpressionAttributeNames={"#u": "n"})),
        ),
        case("get: a bad projection", transact_get(Get(key("a"), "!!!"))),
        case("get: an empty projection", transact_get(Get(key("a"), ""))),
        case("get: a path into a key", transact_get(Get(key("a"), "n, pk.a"))),
        case(
            "get: a path into a key before a key of a wrong type",
            transact_get(Get(key("b"), "pk[0]"), Get({"pk": N("1")})),
        ),
        case("get: one item twice", transact_get(Get(key("a")), Get(key("a")))),
        case("get: no items", transact_get()),
        case("get: no transact items", send("TransactGetItems")),
        case("get: 101 items", transact_get(*(Get(key(f"n{n}")) for n in range(101)))),
        case("get: 100 items", transact_get(*(Get(key(f"n{n}")) for n in range(100)))),
        case("get: an absent table", transact_get(Get(key("a"), table="Absent"))),
        case(
            "get: one item of an absent table twice",
            transact_get(Get(key("a"), table="Absent"), Get(key("a"), table="Absent")),
        ),
        case(
            "get: a table name that is bad",
            transact_get(Get(key("a")), Get(key("a"), table="bad!name")),
        ),
        case("get: a key without attributes", transact_get(Get({}))),
        case("get: a key of a wrong type", transact_get(Get({"pk": N("1")}))),
        case("get: a key that is empty", transact_get(Get(key("")))),
        case("get: a key with a bad number", transact_get(Get({"pk": N("x")}))),
        case(
            "get: a key of a wrong type after a good one",
            transact_get(Get(key("a")), Get({"pk": N("1")})),
        ),
        case("get: a get that is empty", send("TransactGetItems", TransactItems=[{}])),
        case(
            "get: ReturnConsumedCapacity that does not exist",
            transact_get(Get(key("a")), ReturnConsumedCapacity="SOME"),
        ),
        case(
            "get: capacity in total",
            transact_get(Get(key("a")), Get(key("nope")), ReturnConsumedCapacity="TOTAL"),
        ),
        case(
            "get: capacity by table",
            transact_get(
                Get(key("a")),
                Get({**key("a"), "sk": S("1")}, table="Pairs"),
                ReturnConsumedCapacity="INDEXES",
            ),
        ),
    ),
    *given(
        INDEXED, put({**key("a"), "sk": S("1"), "city": S("rome"), "n": N("1")}, table="Indexed")
    )(
        case(
            "a put with an index key of a wrong type",
            transact_write(Put({**key("a"), "sk": S("2"), "city": N("1")}, table="Indexed")),
        ),
        case(
            "a put with an index key of a list",
            transact_write(Put({**key("a"), "sk": S("2"), "nick": L()}, table="Indexed")),
        ),
        case(
            "a put with an empty index key",
            transact_write(Put({**key("a"), "sk": S("2"), "city": S("")}, table="Indexed")),
        ),
        case(
            "an update of an index key to a wrong type",
            transact_write(
                Update({**key("a"), "sk": S("1")}, "SET city = :one", values=ONE, table="Indexed")
            ),
        ),
        case(
            "an update of an index key to nothing",
            transact_write(
                Update(
                    {**key("a"), "sk": S("1")},
                    "SET city = :e",
                    values={":e": S("")},
                    table="Indexed",
                )
            ),
        ),
        case(
            "an update of an index key from another attribute",
            transact_write(Update({**key("a"), "sk": S("1")}, "SET city = n", table="Indexed")),
        ),
        case(
            "items move in the indexes",
            transact_write(
                Update(
                    {**key("a"), "sk": S("1")},
                    "SET city = :c",
                    values={":c": S("oslo")},
                    table="Indexed",
                ),
                Put({**key("b"), "sk": S("1"), "nick": S("bo")}, table="Indexed"),
                ReturnConsumedCapacity="INDEXES",
            ),
            scan(table="Indexed", IndexName="byCity"),
            scan(table="Indexed", IndexName="byNickKeys"),
        ),
        case(
            "ReturnItemCollectionMetrics",
            transact_write(
                Put({**key("b"), "sk": S("1")}, table="Indexed"), ReturnItemCollectionMetrics="SIZE"
            ),
        ),
    ),
]
