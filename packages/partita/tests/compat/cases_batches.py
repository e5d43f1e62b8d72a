"""BatchGetItem and BatchWriteItem: several tables, limits, duplicates, and what comes back."""

from __future__ import annotations

from typing import Any

from .notation import (
    COUNTED,
    INDEXED,
    NS,
    PAIRS,
    SS,
    THINGS,
    B,
    Case,
    N,
    S,
    batch_get,
    batch_write,
    case,
    get,
    given,
    nested,
    put,
    put_all,
    scan,
    send,
)


def key(text: str) -> dict[str, Any]:
    return {"pk": S(text)}


def pair(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": S(pk), "sk": S(sk)}


def putting(item: object) -> dict[str, Any]:
    return {"PutRequest": {"Item": item}}


def deleting(one: object) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": one}}


ITEMS = (
    put_all("Things", *({**key(f"k{n}"), "v": N(str(n)), "s": S("x" * n)} for n in range(5))),
    put_all("Pairs", *({**pair("a", str(n)), "v": N(str(n))} for n in range(3))),
)

KEYS = [key("k0"), key("k1"), key("nope")]

CASES: list[Case] = [
    *given(THINGS, PAIRS, *ITEMS)(
        case(
            "get: items that are there, and one that is not", batch_get({"Things": {"Keys": KEYS}})
        ),
        case(
            "get: items of two tables",
            batch_get({"Things": {"Keys": KEYS}, "Pairs": {"Keys": [pair("a", "1")]}}),
        ),
        case("get: a table without a match", batch_get({"Things": {"Keys": [key("nope")]}})),
        case(
            "get: a consistent read", batch_get({"Things": {"Keys": KEYS, "ConsistentRead": True}})
        ),
        case(
            "get: a projection", batch_get({"Things": {"Keys": KEYS, "ProjectionExpression": "v"}})
        ),
        case(
            "get: a projection with names",
            batch_get(
                {
                    "Things": {
                        "Keys": KEYS,
                        "ProjectionExpression": "#v",
                        "ExpressionAttributeNames": {"#v": "v"},
                    }
                }
            ),
        ),
        case(
            "get: a projection of what is not there",
            batch_get({"Things": {"Keys": KEYS, "ProjectionExpression": "nope"}}),
        ),
        case(
            "get: a projection of one path twice",
            batch_get({"Things": {"Keys": KEYS, "ProjectionExpression": "v, v"}}),
        ),
        case(
            "get: a bad projection",
            batch_get({"Things": {"Keys": KEYS, "ProjectionExpression": "v,"}}),
        ),
        case(
            "get: an unused name",
            batch_get(
                {
                    "Things": {
                        "Keys": KEYS,
                        "ProjectionExpression": "v",
                        "ExpressionAttributeNames": {"#u": "u"},
                    }
                }
            ),
        ),
        case(
            "get: names without a projection",
            batch_get({"Things": {"Keys": KEYS, "ExpressionAttributeNames": {"#u": "u"}}}),
        ),
        case(
            "get: AttributesToGet", batch_get({"Things": {"Keys": KEYS, "AttributesToGet": ["v"]}})
        ),
        case(
            "get: AttributesToGet, one name twice",
            batch_get({"Things": {"Keys": KEYS, "AttributesToGet": ["v", "v"]}}),
        ),
        case(
            "get: AttributesToGet with a projection",
            batch_get(
                {"Things": {"Keys": KEYS, "AttributesToGet": ["v"], "ProjectionExpression": "v"}}
            ),
        ),
        case(
            "get: AttributesToGet of one table with the projection of another",
            batch_get(
                {
                    "Things": {"Keys": KEYS, "AttributesToGet": ["v"]},
                    "Pairs": {"Keys": [pair("a", "1")], "ProjectionExpression": "v"},
                }
            ),
        ),
        case("get: a key twice", batch_get({"Things": {"Keys": [key("k0"), key("k0")]}})),
        case("get: 100 keys", batch_get({"Things": {"Keys": [key(f"k{n}") for n in range(100)]}})),
        case("get: 101 keys", batch_get({"Things": {"Keys": [key(f"k{n}") for n in range(101)]}})),
        case(
            "get: 101 keys in two tables",
            batch_get(
                {
                    "Things": {"Keys": [key(f"k{n}") for n in range(60)]},
                    "Pairs": {"Keys": [pair("a", str(n)) for n in range(41)]},
                }
            ),
        ),
        case("get: no tables", batch_get({})),
        case("get: no request items", send("BatchGetItem")),
        case("get: no keys", batch_get({"Things": {"Keys": []}})),
        case("get: keys that are not given", batch_get({"Things": {}})),
        case("get: an absent table", batch_get({"Absent": {"Keys": KEYS}})),
        case(
            "get: an absent table among others",
            batch_get({"Things": {"Keys": KEYS}, "Absent": {"Keys": KEYS}}),
        ),
        case(
            "get: a key twice in an absent table",
            batch_get({"Absent": {"Keys": [key("a"), key("a")]}}),
        ),
        case("get: a table name that is bad", batch_get({"bad!name": {"Keys": [key("a")]}})),
        case("get: a key of a wrong type", batch_get({"Things": {"Keys": [{"pk": N("1")}]}})),
        case("get: a key with a bad number", batch_get({"Things": {"Keys": [{"pk": N("x")}]}})),
        case("get: a key that is empty", batch_get({"Things": {"Keys": [key("")]}})),
        case("get: a key without its sort key", batch_get({"Pairs": {"Keys": [key("a")]}})),
        case(
            "get: a key with one attribute too many",
            batch_get({"Things": {"Keys": [pair("a", "b")]}}),
        ),
        case(
            "get: a key with a text twice in a set",
            batch_get({"Things": {"Keys": [{"pk": SS("a", "a")}]}}),
        ),
        case(
            "get: ReturnConsumedCapacity that does not exist",
            batch_get({"Things": {"Keys": KEYS}}, ReturnConsumedCapacity="SOME"),
        ),
        case(
            "get: capacity in total",
            batch_get({"Things": {"Keys": KEYS}}, ReturnConsumedCapacity="TOTAL"),
        ),
        case(
            "get: capacity of a consistent read",
            batch_get(
                {"Things": {"Keys": KEYS, "ConsistentRead": True}}, ReturnConsumedCapacity="INDEXES"
            ),
        ),
        case("get: request items that are a list", send("BatchGetItem", RequestItems=[])),
        case("get: keys that are a map", batch_get({"Things": {"Keys": {}}})),
        case("get: a table that is a list", batch_get({"Things": []})),
    ),
    *given(THINGS, PAIRS, *ITEMS)(
        case(
            "write: puts are stored",
            batch_write({"Things": [putting({**key("new"), "v": S("x")}), putting(key("k0"))]}),
            scan(table="Things"),
        ),
        case(
            "write: deletes are done",
            batch_write({"Things": [deleting(key("k0")), deleting(key("nope"))]}),
            scan(table="Things"),
        ),
        case(
            "write: puts and deletes in two tables",
            batch_write(
                {
                    "Things": [putting(key("x")), deleting(key("k1"))],
                    "Pairs": [deleting(pair("a", "1")), putting(pair("z", "1"))],
                }
            ),
            scan(table="Things"),
            scan(table="Pairs"),
        ),
        case(
            "write: 25 requests",
            batch_write({"Things": [putting(key(f"n{n}")) for n in range(25)]}),
            scan(table="Things", Select="COUNT"),
        ),
        case(
            "write: 26 requests",
            batch_write({"Things": [putting(key(f"n{n}")) for n in range(26)]}),
        ),
        case(
            "write: 26 requests in two tables",
            batch_write(
                {
                    "Things": [putting(key(f"n{n}")) for n in range(13)],
                    "Pairs": [putting(pair("n", str(n))) for n in range(13)],
                }
            ),
        ),
        case("write: no tables", batch_write({})),
        case("write: no request items", send("BatchWriteItem")),
        case("write: no requests", batch_write({"Things": []})),
        case("write: a request that is empty", batch_write({"Things": [{}]})),
        case(
            "write: a request of both kinds",
            batch_write({"Things": [{**putting(key("x")), **deleting(key("y"))}]}),
        ),
        case("write: a put without an item", batch_write({"Things": [{"PutRequest": {}}]})),
        case("write: a delete without a key", batch_write({"Things": [{"DeleteRequest": {}}]})),
        case(
            "write: a key put twice",
            batch_write({"Things": [putting(key("x")), putting({**key("x"), "v": S("1")})]}),
            get(key("x")),
        ),
        case(
            "write: a key put and deleted",
            batch_write({"Things": [putting(key("x")), deleting(key("x"))]}),
        ),
        case("write: an absent table", batch_write({"Absent": [putting(key("x"))]})),
        case(
            "write: an absent table among others writes nothing",
            batch_write({"Things": [putting(key("x"))], "Absent": [putting(key("x"))]}),
            get(key("x")),
        ),
        case(
            "write: a key twice in an absent table",
            batch_write({"Absent": [putting(key("x")), putting(key("x"))]}),
        ),
        case("write: a table name that is bad", batch_write({"bad!name": [putting(key("x"))]})),
        case("write: an item without its key", batch_write({"Things": [putting({"v": S("x")})]})),
        case(
            "write: an item with a key of a wrong type",
            batch_write({"Things": [putting({"pk": N("1")})]}),
        ),
        case("write: an item with an empty key", batch_write({"Things": [putting(key(""))]})),
        case(
            "write: a delete of a wrong type", batch_write({"Things": [deleting({"pk": N("1")})]})
        ),
        case("write: a delete of an empty key", batch_write({"Things": [deleting(key(""))]})),
        case(
            "write: a delete with one attribute too many",
            batch_write({"Things": [deleting(pair("a", "b"))]}),
        ),
        case(
            "write: an item with a bad number",
            batch_write({"Things": [putting({**key("x"), "v": N("x")})]}),
        ),
        case(
            "write: an item with an empty number",
            batch_write({"Things": [putting({**key("x"), "v": N("")})]}),
        ),
        case(
            "write: an item with an empty set",
            batch_write({"Things": [putting({**key("x"), "v": SS()})]}),
        ),
        case(
            "write: an item with a text twice in a set",
            batch_write({"Things": [putting({**key("x"), "v": SS("b", "a", "b")})]}),
        ),
        case(
            "write: an item with a number twice in a set",
            batch_write({"Things": [putting({**key("x"), "v": NS("1", "1")})]}),
        ),
        case(
            "write: an item with a value without a type",
            batch_write({"Things": [putting({**key("x"), "v": {}})]}),
        ),
        case(
            "write: an item with a value nested too deep",
            batch_write({"Things": [putting({**key("x"), "v": nested(32)})]}),
        ),
        case(
            "write: an item that is too large writes nothing",
            batch_write(
                {"Things": [putting(key("x")), putting({**key("y"), "v": S("x" * 409_600)})]}
            ),
            get(key("x")),
        ),
        case(
            "write: a bad item after a good one writes nothing",
            batch_write({"Things": [putting(key("x")), putting({"v": S("x")})]}),
            get(key("x")),
        ),
        case(
            "write: capacity in total",
            batch_write(
                {
                    "Things": [
                        putting(key("x")),
                        putting({**key("y"), "v": S("x" * 2000)}),
                        deleting(key("nope")),
                    ]
                },
                ReturnConsumedCapacity="TOTAL",
            ),
        ),
        case(
            "write: capacity by table",
            batch_write({"Things": [putting(key("x"))]}, ReturnConsumedCapacity="INDEXES"),
        ),
        case(
            "write: members that do not exist",
            batch_write(
                {"Things": [putting(key("x"))]},
                ReturnConsumedCapacity="SOME",
                ReturnItemCollectionMetrics="SOME",
            ),
        ),
        case(
            "write: ReturnItemCollectionMetrics of a table without local indexes",
            batch_write({"Things": [putting(key("x"))]}, ReturnItemCollectionMetrics="SIZE"),
        ),
        case("write: a table that is a map", batch_write({"Things": {}})),
        case("write: a request that is a text", batch_write({"Things": ["x"]})),
    ),
    *given(INDEXED, put({**pair("a", "1"), "city": S("rome")}, table="Indexed"))(
        case(
            "write: items enter and leave indexes",
            batch_write(
                {
                    "Indexed": [
                        putting({**pair("a", "2"), "city": S("oslo"), "nick": S("al")}),
                        deleting(pair("a", "1")),
                    ]
                },
                ReturnConsumedCapacity="INDEXES",
            ),
            scan(table="Indexed", IndexName="byCity"),
            scan(table="Indexed", IndexName="byNickKeys"),
        ),
        case(
            "write: an index key of a wrong type",
            batch_write({"Indexed": [putting({**pair("a", "2"), "city": N("1")})]}),
        ),
        case(
            "write: an index key that is empty",
            batch_write({"Indexed": [putting({**pair("a", "2"), "city": S("")})]}),
        ),
        case(
            "write: an index key that is a binary",
            batch_write({"Indexed": [putting({**pair("a", "2"), "nick": B("AA==")})]}),
        ),
        case(
            "write: ReturnItemCollectionMetrics",
            batch_write(
                {
                    "Indexed": [
                        putting(pair("a", "2")),
                        putting(pair("b", "2")),
                        putting(pair("b", "3")),
                    ]
                },
                ReturnItemCollectionMetrics="SIZE",
            ),
        ),
    ),
    *given(INDEXED, put({**pair("a", "1"), "city": S("rome")}, table="Indexed"))(
        *(
            case(
                f"get: a path into a key, {path}",
                batch_get({"Indexed": {"Keys": [pair("a", "1")], "ProjectionExpression": path}}),
                batch_get(
                    {
                        "Indexed": {
                            "Keys": [pair("a", "1")],
                            "ProjectionExpression": path.replace("city", "#c").replace("pk", "#c"),
                            "ExpressionAttributeNames": {"#c": "city" if "city" in path else "pk"},
                        }
                    }
                ),
            )
            for path in ("pk.a", "city[0]", "extra, pk[1].b")
        ),
    ),
    *given(COUNTED, put({**key("a"), "sk": N("1")}, table="Counted"))(
        case(
            "get: one number in two forms",
            batch_get({"Counted": {"Keys": [{**key("a"), "sk": N(t)} for t in ("1", "1.0")]}}),
        ),
        case(
            "get: one number in one form twice",
            batch_get({"Counted": {"Keys": [{**key("a"), "sk": N(t)} for t in ("1.0", "1.0")]}}),
        ),
    ),
]
