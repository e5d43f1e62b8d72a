"""ConsumedCapacity of reads and writes, table and indexes, and ItemCollectionMetrics."""

from __future__ import annotations

from typing import Any

from .notation import (
    INDEXED,
    THINGS,
    B,
    Case,
    M,
    N,
    S,
    case,
    create,
    delete,
    get,
    given,
    index,
    put,
    query,
    scan,
    update,
)

KEY = {"pk": S("a")}
PAIR = {"pk": S("a"), "sk": S("1")}
TOTAL: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
INDEXES: dict[str, Any] = {"ReturnConsumedCapacity": "INDEXES"}
BOTH = {**PAIR, "city": S("rome"), "points": N("1"), "extra": S("x")}


def sized(size_bytes: int) -> dict[str, object]:
    """An item of that many bytes: the names, the key and a text."""
    return {**KEY, "v": S("x" * (size_bytes - len("pkav")))}


CASES: list[Case] = [
    *given(THINGS)(
        *(
            case(
                f"writing and reading {size} bytes",
                put(sized(size), **TOTAL),
                get(KEY, **TOTAL),
                get(KEY, ConsistentRead=True, **INDEXES),
                delete(KEY, **TOTAL),
            )
            for size in (100, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 10_000, 400_000)
        ),
        case(
            "a smaller item over a larger one",
            put(sized(3000)),
            put(sized(10), **TOTAL),
            put(sized(10), **TOTAL),
        ),
        case("a larger item over a smaller one", put(sized(10)), put(sized(3000), **TOTAL)),
        case(
            "an update counts the larger of before and after",
            put(sized(3000)),
            update(KEY, "SET v = :v", values={":v": S("x")}, **TOTAL),
            update(KEY, "SET v = :v", values={":v": S("x" * 5000)}, **TOTAL),
        ),
        case("a delete of nothing", delete(KEY, **TOTAL), delete(KEY, **INDEXES)),
        case(
            "a projection does not make a read cheaper", put(sized(9000)), get(KEY, "pk", **TOTAL)
        ),
        case("NONE is no capacity", put(sized(10), ReturnConsumedCapacity="NONE")),
        case("a failed condition has no capacity", put(KEY, "attribute_exists(pk)", **TOTAL)),
        case("no local indexes, no collections", put(KEY, ReturnItemCollectionMetrics="SIZE")),
        *(
            case(
                f"{what} at the edge of a unit",
                *(put({**KEY, "v": value, "x": S("x" * size)}, **TOTAL) for size in sizes),
            )
            for what, value, sizes in (
                ("a number", N("123456"), (1014, 1015)),
                ("a negative number", N("-42"), (1015, 1016)),
                ("a fraction", N("3.14159"), (1013, 1014)),
                ("a number of 38 digits", N("12345678901234567890123456789012345678"), (998, 999)),
                ("zero", N("0"), (1017, 1018)),
                ("a binary", B("AAAA"), (1015, 1016)),
                ("a boolean", {"BOOL": True}, (1017, 1018)),
                ("null", {"NULL": True}, (1017, 1018)),
                ("an empty list", {"L": []}, (1015, 1016)),
                ("a list", {"L": [S("ab"), N("0")]}, (1010, 1011)),
                ("a map", M(ab=S("cd")), (1010, 1011)),
                ("a set", {"SS": ["ab", "cd"]}, (1014, 1015)),
            )
        ),
    ),
    *given(INDEXED)(
        case(
            "a put that is in no index",
            put(PAIR, table="Indexed", **INDEXES),
            put(PAIR, table="Indexed", **TOTAL),
        ),
        case("a put that is in indexes", put(BOTH, table="Indexed", **INDEXES)),
        case("a put that is in indexes, in total", put(BOTH, table="Indexed", **TOTAL)),
        case(
            "the same put again", put(BOTH, table="Indexed"), put(BOTH, table="Indexed", **INDEXES)
        ),
        case(
            "an update that no index sees",
            put(BOTH, table="Indexed"),
            update(PAIR, "SET x = :x", table="Indexed", values={":x": S("x")}, **INDEXES),
        ),
        case(
            "an update of an index key",
            put(BOTH, table="Indexed"),
            update(PAIR, "SET city = :x", table="Indexed", values={":x": S("oslo")}, **INDEXES),
        ),
        case(
            "an update that leaves an index",
            put(BOTH, table="Indexed"),
            update(PAIR, "REMOVE city", table="Indexed", **INDEXES),
        ),
        case(
            "a delete from indexes",
            put(BOTH, table="Indexed"),
            delete(PAIR, table="Indexed", **INDEXES),
        ),
        case("a delete of nothing with indexes", delete(PAIR, table="Indexed", **INDEXES)),
        case(
            "a read never touches an index",
            put(BOTH, table="Indexed"),
            get(PAIR, table="Indexed", **INDEXES),
        ),
        *(
            case(f"ItemCollectionMetrics of {step.operation}", step)
            for step in (
                put(BOTH, table="Indexed", ReturnItemCollectionMetrics="SIZE"),
                update(PAIR, "SET x = pk", table="Indexed", ReturnItemCollectionMetrics="SIZE"),
                delete(PAIR, table="Indexed", ReturnItemCollectionMetrics="SIZE"),
            )
        ),
        case(
            "ItemCollectionMetrics of an item that is deleted",
            put(PAIR, table="Indexed"),
            delete(PAIR, table="Indexed", ReturnItemCollectionMetrics="SIZE"),
        ),
        case(
            "ItemCollectionMetrics NONE",
            put(BOTH, table="Indexed", ReturnItemCollectionMetrics="NONE"),
        ),
        case(
            "reads of indexes",
            put(BOTH, table="Indexed"),
            query(
                "pk = :a",
                {":a": S("a")},
                table="Indexed",
                IndexName="byPoints",
                ConsistentRead=True,
                **INDEXES,
            ),
            query("city = :c", {":c": S("rome")}, table="Indexed", IndexName="byCity", **TOTAL),
            query("city = :c", {":c": S("nope")}, table="Indexed", IndexName="byCity", **INDEXES),
            scan(table="Indexed", IndexName="byCity", **INDEXES),
        ),
    ),
    *given(create("Wide", "pk:S", across=(index("byG", "g:S", projection=["p"]),)))(
        case(
            "an index counts the size of what it holds",
            put(
                {**KEY, "g": S("g"), "p": S("x" * 1500), "q": S("x" * 5000)},
                table="Wide",
                **INDEXES,
            ),
            update(KEY, "SET q = :q", table="Wide", values={":q": S("new")}, **INDEXES),
            update(KEY, "SET p = :p", table="Wide", values={":p": S("x" * 2500)}, **INDEXES),
            update(KEY, "SET g = :g", table="Wide", values={":g": S("h")}, **INDEXES),
            query("g = :g", {":g": S("h")}, table="Wide", IndexName="byG", **INDEXES),
            delete(KEY, table="Wide", **INDEXES),
        ),
    ),
]
