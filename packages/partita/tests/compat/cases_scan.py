"""Scan: filters, projections, Select, indexes, segments, and paging to the end."""

from __future__ import annotations

from typing import Any

from .cases_query import PEOPLE, TOWNS
from .notation import (
    INDEXED,
    PAIRS,
    THINGS,
    Case,
    N,
    S,
    case,
    given,
    put,
    put_all,
    scan,
    send,
    to_the_end,
)

LINES = put_all(
    "Pairs",
    *(
        {
            "pk": S(f"p{number % 5}"),
            "sk": S(f"{number:02}"),
            "v": N(str(number)),
            "t": S("ab"[number % 2]),
        }
        for number in range(20)
    ),
)
ODD = {":t": S("b")}
START = {"pk": S("p1"), "sk": S("01")}

SHOWN: dict[str, dict[str, Any]] = {
    "what it holds": {},
    "everything": {"Select": "ALL_ATTRIBUTES"},
    "count": {"Select": "COUNT"},
    "a projection": {"ProjectionExpression": "nick, age"},
    "a projection of keys": {"ProjectionExpression": "sk"},
}

CASES: list[Case] = [
    *given(PAIRS, LINES)(
        case("all items", scan()),
        case("a consistent read", scan(ConsistentRead=True)),
        case("a filter", scan("t = :t AND v > :v", {**ODD, ":v": N("9")})),
        case("a filter on a key", scan("pk = :p", {":p": S("p1")})),
        case("a filter that nothing meets", scan("attribute_exists(nope)")),
        case("a projection", scan(ProjectionExpression="sk")),
        case("a projection and a filter", scan("t = :t", ODD, ProjectionExpression="pk, v")),
        case("a projection of what is not there", scan(ProjectionExpression="nope")),
        case(
            "a projection with an undefined name",
            scan("attribute_exists(nope)", ProjectionExpression="#u"),
        ),
        case("a projection of one path twice", scan(ProjectionExpression="v, v")),
        *(
            case(f"pages of {limit}", to_the_end(scan(Limit=limit)))
            for limit in (1, 3, 7, 10, 19, 21)
        ),
        case("pages with a filter", to_the_end(scan("t = :t", ODD, Limit=6))),
        case("Limit 0", scan(Limit=0)),
        case("Limit -1", scan(Limit=-1)),
        case("Limit as a text", scan(Limit="1")),
        case("Select COUNT", scan(Select="COUNT")),
        case("Select COUNT with a filter", scan("t = :t", ODD, Select="COUNT")),
        case("Select ALL_ATTRIBUTES", scan(Select="ALL_ATTRIBUTES")),
        case(
            "Select SPECIFIC_ATTRIBUTES",
            scan(Select="SPECIFIC_ATTRIBUTES", ProjectionExpression="v"),
        ),
        case("Select SPECIFIC_ATTRIBUTES without a projection", scan(Select="SPECIFIC_ATTRIBUTES")),
        case(
            "Select ALL_ATTRIBUTES with a projection",
            scan(Select="ALL_ATTRIBUTES", ProjectionExpression="v"),
        ),
        case("Select COUNT with a projection", scan(Select="COUNT", ProjectionExpression="v")),
        case(
            "Select ALL_PROJECTED_ATTRIBUTES without an index",
            scan(Select="ALL_PROJECTED_ATTRIBUTES"),
        ),
        case(
            "Select ALL_PROJECTED_ATTRIBUTES with a projection",
            scan(Select="ALL_PROJECTED_ATTRIBUTES", ProjectionExpression="v"),
        ),
        case("Select that does not exist", scan(Select="SOME")),
        case("an empty filter", scan("")),
        case("values without a filter", scan(None, ODD)),
        case("values with a projection alone", scan(None, ODD, ProjectionExpression="v")),
        case("names without an expression", scan(names={"#u": "u"})),
        case("an unused value", scan("t = :t", {**ODD, ":u": N("1")})),
        case("an unused name", scan("t = :t", ODD, names={"#u": "u"})),
        case("an undefined value", scan("t = :u")),
        case("a filter of 4097 bytes", scan("t = :t".ljust(4097), ODD)),
        case("an absent table", scan(table="Absent")),
        case("an absent index", scan(IndexName="nope")),
        case("nothing is given", send("Scan")),
        case("a table name that is empty", scan(table="")),
        case("a table name that is bad", scan(table="a;b")),
        case(
            "a start in the same table",
            send(
                "Scan",
                TableName="Pairs",
                ExclusiveStartKey=START,
                Select="COUNT",
                Limit=1,
                ProjectionExpression=None,
            ),
        ),
        case("a start of other names", scan(ExclusiveStartKey={"bad": S("x")})),
        case("a start without the sort key", scan(ExclusiveStartKey={"pk": S("p1")})),
        case("a start of a wrong type", scan(ExclusiveStartKey={"pk": N("1"), "sk": S("1")})),
        case("a start with a bad number", scan(ExclusiveStartKey={"pk": N("x"), "sk": S("1")})),
        case("a start without a type", scan(ExclusiveStartKey={"pk": {}, "sk": S("1")})),
        case("a start with one attribute too many", scan(ExclusiveStartKey={**START, "v": N("1")})),
        case("one segment of one", scan(Segment=0, TotalSegments=1)),
        case("a segment without a total", scan(Segment=0)),
        case("a total without a segment", scan(TotalSegments=2)),
        case("a segment that is not less than the total", scan(Segment=5, TotalSegments=5)),
        case("a negative segment", scan(Segment=-1, TotalSegments=5)),
        case("no segments", scan(Segment=0, TotalSegments=0)),
        case("too many segments", scan(Segment=0, TotalSegments=1_000_001)),
        case(
            "capacity of a scan",
            scan(ReturnConsumedCapacity="TOTAL"),
            scan(ReturnConsumedCapacity="INDEXES", ConsistentRead=True),
        ),
        case(
            "capacity of a scan is that before the filter",
            scan("attribute_exists(nope)", ReturnConsumedCapacity="TOTAL"),
        ),
    ),
    *given(THINGS)(
        case(
            "an empty table",
            scan(table="Things"),
            scan(table="Things", ReturnConsumedCapacity="INDEXES"),
        ),
        case("an empty table, counted", scan(table="Things", Select="COUNT")),
    ),
    *given(
        PAIRS,
        *(
            put({"pk": S(f"p{number}"), "sk": S("1"), "x": S("x" * 300_000)}, table="Pairs")
            for number in range(8)
        ),
    )(
        case("a page is 1 MB", to_the_end(scan(ProjectionExpression="pk"))),
    ),
    *given(INDEXED, PEOPLE)(
        *(
            case(
                f"the index {name}",
                scan(table="Indexed", IndexName=name),
                to_the_end(scan(table="Indexed", IndexName=name, Limit=2)),
            )
            for name in ("byPoints", "byNick", "byCity", "byCityNick", "byNickKeys")
        ),
        case(
            "a local index, consistent",
            scan(table="Indexed", IndexName="byPoints", ConsistentRead=True),
        ),
        case(
            "a global index, consistent",
            scan(table="Indexed", IndexName="byCity", ConsistentRead=True),
        ),
        case(
            "a local index that fetches the rest",
            scan(table="Indexed", IndexName="byNick", Select="ALL_ATTRIBUTES"),
        ),
        case(
            "a global index that lacks some, ALL_ATTRIBUTES",
            scan(table="Indexed", IndexName="byCityNick", Select="ALL_ATTRIBUTES"),
        ),
        case(
            "a global index, ALL_ATTRIBUTES",
            scan(table="Indexed", IndexName="byCity", Select="ALL_ATTRIBUTES"),
        ),
        case(
            "a global index, ALL_PROJECTED_ATTRIBUTES",
            scan(table="Indexed", IndexName="byCityNick", Select="ALL_PROJECTED_ATTRIBUTES"),
        ),
        case(
            "a global index and a projection it does not hold",
            scan(table="Indexed", IndexName="byNickKeys", ProjectionExpression="age"),
        ),
        case(
            "a global index and a filter it does not hold",
            scan("age = :a", {":a": N("30")}, table="Indexed", IndexName="byNickKeys"),
        ),
        *(
            case(
                f"a local index and a filter it does not hold, {name}",
                scan("age = :a", {":a": N("30")}, table="Indexed", IndexName="byNick", **more),
            )
            for name, more in SHOWN.items()
        ),
        case(
            "a local index and a filter it does not hold, in pages",
            to_the_end(
                scan("age > :a", {":a": N("10")}, table="Indexed", IndexName="byNick", Limit=2)
            ),
        ),
        case(
            "a filter on an index key",
            scan("city = :c", {":c": S("rome")}, table="Indexed", IndexName="byCity"),
        ),
        case(
            "a start without the index key",
            scan(
                table="Indexed", IndexName="byCity", ExclusiveStartKey={"pk": S("a"), "sk": S("1")}
            ),
        ),
        case(
            "a start of a wrong type of index key",
            scan(
                table="Indexed",
                IndexName="byCity",
                ExclusiveStartKey={"pk": S("a"), "sk": S("1"), "city": N("1")},
            ),
        ),
        case(
            "capacity of a scan of an index",
            scan(table="Indexed", IndexName="byCityNick", ReturnConsumedCapacity="INDEXES"),
            scan(table="Indexed", IndexName="byPoints", ReturnConsumedCapacity="INDEXES"),
        ),
        case("the table without items of the index", scan(table="Indexed", Select="COUNT")),
    ),
    *given(INDEXED, TOWNS)(
        case(
            "an index in pages where many share one key",
            to_the_end(scan(table="Indexed", IndexName="byCity", Limit=7)),
        ),
    ),
]
