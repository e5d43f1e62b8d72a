"""Query: key conditions, order, filters, Select, indexes, and paging to the end."""

from __future__ import annotations

from .notation import (
    COUNTED,
    INDEXED,
    PAIRS,
    SS,
    THINGS,
    TRUE,
    Case,
    L,
    M,
    N,
    S,
    Step,
    Value,
    case,
    create,
    definitions,
    given,
    index,
    mentioned,
    put,
    put_all,
    query,
    send,
    to_the_end,
)

A: dict[str, Value] = {":a": S("a")}
KEY = {"pk": S("a")}

LINES = put_all(
    "Pairs",
    *(
        {"pk": S("a"), "sk": S(sk), "v": N(str(number)), "t": S("odd" if number % 2 else "even")}
        for number, sk in enumerate(("1", "10", "2", "A", "B", "a", "aa", "ab", "b", "é", "𝄞"))
    ),
    {"pk": S("b"), "sk": S("1"), "m": M(x=N("1"), l=L(S("p")))},
    {"pk": S("b"), "sk": S("2"), "m": M(x=N("2")), "ss": SS("x", "y")},
    {"pk": S("b"), "sk": S("3")},
)

VALUES: dict[str, Value] = {
    ":a": S("a"),
    ":b": S("b"),
    ":one": S("1"),
    ":two": S("2"),
    ":z": S("z"),
    ":n": N("1"),
    ":true": TRUE,
    ":empty": S(""),
    ":l": L(),
    ":ss": SS("a"),
    ":odd": S("odd"),
    ":five": N("5"),
}

CONDITIONS = (
    "pk = :a", "pk = :b AND sk = :two", "pk = :b AND sk < :two", "pk = :b AND sk <= :two",
    "pk = :b AND sk > :one", "pk = :b AND sk >= :two", "pk = :a AND sk BETWEEN :one AND :b",
    "pk = :a AND begins_with(sk, :a)", "sk = :one AND pk = :a", ":a = pk", "pk = :a AND :two < sk",
    "pk = :a AND :two >= sk", "(pk = :a)", "(pk = :a) AND (sk = :one)", "(pk = :a AND sk = :one)",
    "((pk = :a) AND (sk = :one))", "pk = :z", "pk = :a and sk between :one and :two",
    "pk = :a AND sk BETWEEN :b AND :one", "pk=:a AND sk=:one",
    "pk = :a AND begins_with(sk, :empty)",
)  # fmt: skip

REFUSED = (
    "", "pk", "pk =", "pk = :a AND", "pk = :a sk = :one", "((pk = :a))", "(pk = :a",
    "pk = :a OR pk = :b", "pk = :a OR sk = :one", "NOT pk = :a", "pk <> :a", "pk > :a",
    "pk IN (:a)", "pk BETWEEN :a AND :b", "begins_with(pk, :a)", "sk = :one", "v = :n",
    "pk = :a AND v = :n", "pk = :a AND sk = :one AND v = :n", "pk = :a AND sk > :one AND sk < :two",
    "pk = :a AND pk = :b", "pk = :a AND sk <> :one", "pk = :a AND sk IN (:one)",
    "pk = :a AND NOT sk = :one", "pk = :a AND contains(sk, :one)",
    "pk = :a AND attribute_exists(sk)", "pk = :a AND attribute_not_exists(sk)",
    "pk = :a AND attribute_type(sk, :one)", "pk = :a AND size(sk) = :n",
    "pk = :a AND begins_with(sk)", "pk = :a AND begins_with(:one, sk)",
    "pk = :a AND begins_with(sk, :n)", "pk = :a AND sk = :n", "pk = :n", "pk = :true", "pk = :l",
    "pk = :ss", "pk = :a AND sk < :true", "pk = :a AND sk < :n", "pk = :a AND sk BETWEEN :n AND :n",
    "pk = :a AND sk BETWEEN :true AND :true", "pk = :a AND sk BETWEEN :n AND :one",
    "pk = :a AND :one BETWEEN sk AND sk", "pk = sk", "pk = pk", ":a = :a", "pk = :a AND sk = pk",
    "pk.x = :a", "pk = :a AND sk.x = :one", "pk = :a AND sk[0] = :one", "pk = :empty",
    "pk = :a AND sk = :empty", "#nope = :a", "pk = :nope", "pk = :a AND sk > :nope",
    "size(pk) = :n", "whatever(pk)", "pk == :a", "pk = 'a'", "pk = :a, sk = :one",
    "pk = :a AND dog(sk)", "name = :a", "pk = :a AND :true > sk", "(pk = :a) AND ((sk = :one))",
)  # fmt: skip

FILTERS = (
    "v > :five", "t = :odd", "t = :odd AND v > :five", "nope = :n", "attribute_exists(v)",
    "NOT t = :odd", "v IN (:n, :five)", "pk = :a", "sk = :one", "v = :n AND sk = :one",
    "sk.x = :one", "((v = :n))", "v = ", "", "v", "v = :nope", "contains(v, v)",
    "begins_with(t, :n)", "size(t) = :n",
)  # fmt: skip


def people(*rows: tuple[str, str, dict[str, Value]]) -> Step:
    return put_all("Indexed", *({"pk": S(pk), "sk": S(sk), **more} for pk, sk, more in rows))


PEOPLE = people(
    (
        "a",
        "1",
        {"points": N("3"), "nick": S("cy"), "city": S("rome"), "age": N("30"), "extra": S("x")},
    ),
    ("a", "2", {"points": N("1"), "nick": S("al"), "city": S("rome"), "age": N("20")}),
    ("a", "3", {"points": N("2"), "nick": S("bo"), "city": S("oslo")}),
    ("a", "4", {"points": N("10"), "city": S("rome")}),
    ("a", "5", {"nick": S("di"), "city": S("oslo"), "age": N("50")}),
    ("a", "6", {"extra": S("y")}),
    ("b", "1", {"points": N("5"), "nick": S("ed"), "city": S("rome")}),
    ("b", "2", {"points": N("-5"), "nick": S("al"), "city": S("bern"), "age": N("1")}),
)

ROME = {":c": S("rome")}
# Of one city and one nickname each, so that their order in the index is certain.
TOWNS = put_all(
    "Indexed",
    *(
        {
            "pk": S(f"p{number % 3}"),
            "sk": S(f"{number:02}"),
            "city": S("town"),
            "nick": S(f"n{number:02}"),
        }
        for number in range(20)
    ),
)
LARGE = [
    put({"pk": S("big"), "sk": S(f"{number:02}"), "x": S("x" * 250_000)}, table="Pairs")
    for number in range(10)
]

MANY = create(
    "Many",
    "pk:S",
    AttributeDefinitions=definitions("pk:S", "a:S", "b:N", "c:S", "d:N"),
    GlobalSecondaryIndexes=[
        {
            "IndexName": "byAll",
            "KeySchema": [
                {"AttributeName": name, "KeyType": kind}
                for name, kind in (("a", "HASH"), ("b", "HASH"), ("c", "RANGE"), ("d", "RANGE"))
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
)
MANY_ITEMS = [
    put({"pk": S(f"{c}{d}"), "a": S("a"), "b": N("1"), "c": S(c), "d": N(d)}, table="Many")
    for c, d in (("x", "10"), ("x", "9"), ("y", "1"), ("w", "5"), ("x", "-1"))
]
MANY_VALUES = {":a": S("a"), ":b": N("1"), ":c": S("x"), ":d": N("0"), ":x": S("x")}

CASES: list[Case] = [
    *given(PAIRS, LINES)(
        *(
            case(f"key condition {text}", query(text, mentioned(text, VALUES)))
            for text in CONDITIONS
        ),
        *(
            case(f"key condition {text!r}", query(text, mentioned(text, VALUES)))
            for text in REFUSED
        ),
        *(
            case(
                f"filter {text!r}", query("pk = :a", {**A, **(mentioned(text, VALUES) or {})}, text)
            )
            for text in FILTERS
        ),
        case("descending", query("pk = :a", A, ScanIndexForward=False)),
        case(
            "descending with a range",
            query("pk = :a AND sk > :one", {**A, ":one": S("1")}, ScanIndexForward=False, Limit=2),
        ),
        case("a consistent read", query("pk = :a", A, ConsistentRead=True)),
        *(
            case(f"pages of {limit}", to_the_end(query("pk = :a", A, Limit=limit)))
            for limit in (1, 2, 3, 5, 10, 11, 12)
        ),
        *(
            case(
                f"pages of {limit}, descending",
                to_the_end(query("pk = :a", A, Limit=limit, ScanIndexForward=False)),
            )
            for limit in (1, 4, 11)
        ),
        case(
            "pages with a filter",
            to_the_end(query("pk = :a", {**A, ":t": S("odd")}, "t = :t", Limit=3)),
        ),
        case(
            "pages with a filter that nothing meets",
            to_the_end(query("pk = :a", {**A, ":t": S("no")}, "t = :t", Limit=4)),
        ),
        case(
            "pages with a range",
            to_the_end(
                query(
                    "pk = :a AND sk BETWEEN :l AND :h", {**A, ":l": S("10"), ":h": S("ab")}, Limit=2
                )
            ),
        ),
        case("pages with COUNT", to_the_end(query("pk = :a", A, Limit=4, Select="COUNT"))),
        case(
            "one item by its whole key, and a limit of one",
            query("pk = :a AND sk = :s", {**A, ":s": S("B")}, Limit=1),
        ),
        case("Limit 0", query("pk = :a", A, Limit=0)),
        case("Limit -1", query("pk = :a", A, Limit=-1)),
        case("Limit as a text", query("pk = :a", A, Limit="1")),
        case("Select COUNT", query("pk = :a", A, Select="COUNT")),
        case(
            "Select COUNT with a filter",
            query("pk = :a", {**A, ":t": S("odd")}, "t = :t", Select="COUNT"),
        ),
        case("Select ALL_ATTRIBUTES", query("pk = :b", {":b": S("b")}, Select="ALL_ATTRIBUTES")),
        case(
            "Select SPECIFIC_ATTRIBUTES",
            query(
                "pk = :b", {":b": S("b")}, Select="SPECIFIC_ATTRIBUTES", ProjectionExpression="sk"
            ),
        ),
        case(
            "Select SPECIFIC_ATTRIBUTES without a projection",
            query("pk = :a", A, Select="SPECIFIC_ATTRIBUTES"),
        ),
        case(
            "Select ALL_ATTRIBUTES with a projection",
            query("pk = :a", A, Select="ALL_ATTRIBUTES", ProjectionExpression="v"),
        ),
        case(
            "Select COUNT with a projection",
            query("pk = :a", A, Select="COUNT", ProjectionExpression="v"),
        ),
        case(
            "Select ALL_PROJECTED_ATTRIBUTES without an index",
            query("pk = :a", A, Select="ALL_PROJECTED_ATTRIBUTES"),
        ),
        case(
            "Select ALL_PROJECTED_ATTRIBUTES with a projection",
            query("pk = :a", A, Select="ALL_PROJECTED_ATTRIBUTES", ProjectionExpression="v"),
        ),
        case("Select that does not exist", query("pk = :a", A, Select="SOME")),
        case(
            "Select and ReturnConsumedCapacity that do not exist",
            query("pk = :a", A, Select="SOME", ReturnConsumedCapacity="SOME"),
        ),
        case("a projection", query("pk = :b", {":b": S("b")}, ProjectionExpression="sk, m.x")),
        case(
            "a projection of what is not there",
            query("pk = :b", {":b": S("b")}, ProjectionExpression="nope"),
        ),
        case(
            "a projection of one path twice",
            query("pk = :b", {":b": S("b")}, ProjectionExpression="v, v"),
        ),
        case(
            "a bad projection and a bad filter",
            query("pk = :a", A, "v =", ProjectionExpression="v,"),
        ),
        case("a bad filter and a bad key condition", query("pk =", A, "v =")),
        case("no key condition", query()),
        case("no key condition and values", query(None, A)),
        case("an unused name", query("pk = :a", A, names={"#u": "x"})),
        case("an unused value", query("pk = :a", {**A, ":u": S("x")})),
        case(
            "names for all",
            query(
                "#p = :a AND #s = :s",
                {**A, ":s": S("1")},
                "#v = :v0",
                names={"#p": "pk", "#s": "sk", "#v": "v"},
            ),
        ),
        case("a name of a key", query("#p = :a", A, names={"#p": "pk"})),
        case("an absent table", query("pk = :a", A, table="Absent")),
        case(
            "a bad condition before an absent table",
            query("pk = :a AND sk < :t", {**A, ":t": TRUE}, table="Absent"),
        ),
        case("an absent index", query("pk = :a", A, IndexName="nope")),
        case("an index name that is too short", query("pk = :a", A, IndexName="ab")),
        case("nothing is given", send("Query")),
        case(
            "a table name that is bad and a Select that does not exist",
            query("pk = :a", A, table="abc!", Select="INVALID"),
        ),
        case("a start", query("pk = :a", A, ExclusiveStartKey={**KEY, "sk": S("B")})),
        case(
            "a start that is not there",
            query("pk = :a", A, ExclusiveStartKey={**KEY, "sk": S("AA")}),
        ),
        case(
            "a start at the end",
            query("pk = :a", A, ExclusiveStartKey={**KEY, "sk": S("\uffff\uffff")}),
        ),
        case(
            "a start in another partition",
            query("pk = :a", A, ExclusiveStartKey={"pk": S("b"), "sk": S("1")}),
        ),
        case(
            "a start outside the range",
            query(
                "pk = :a AND sk > :s", {**A, ":s": S("B")}, ExclusiveStartKey={**KEY, "sk": S("A")}
            ),
        ),
        case(
            "a start inside the range",
            query(
                "pk = :a AND sk > :s", {**A, ":s": S("B")}, ExclusiveStartKey={**KEY, "sk": S("a")}
            ),
        ),
        case(
            "a start for a query of one item",
            query(
                "pk = :a AND sk = :s", {**A, ":s": S("B")}, ExclusiveStartKey={**KEY, "sk": S("B")}
            ),
        ),
        case("a start without the sort key", query("pk = :a", A, ExclusiveStartKey=KEY)),
        case(
            "a start with one attribute too many",
            query("pk = :a", A, ExclusiveStartKey={**KEY, "sk": S("1"), "v": N("1")}),
        ),
        case("a start of other names", query("pk = :a", A, ExclusiveStartKey={"bad": S("x")})),
        case(
            "a start of a wrong type", query("pk = :a", A, ExclusiveStartKey={**KEY, "sk": N("1")})
        ),
        case(
            "a start of a wrong type of partition key",
            query("pk = :a", A, ExclusiveStartKey={"pk": N("1"), "sk": S("1")}),
        ),
        case(
            "a start with a bad number",
            query("pk = :a", A, ExclusiveStartKey={"pk": N("x"), "sk": S("1")}),
        ),
        case(
            "a start without a type",
            query("pk = :a", A, ExclusiveStartKey={"pk": {}, "sk": S("1")}),
        ),
        case("a start that is empty", query("pk = :a", A, ExclusiveStartKey={})),
        case(
            "capacity of a query",
            query("pk = :a", A, ReturnConsumedCapacity="TOTAL"),
            query("pk = :a", A, ReturnConsumedCapacity="INDEXES", ConsistentRead=True),
        ),
        case(
            "capacity of a query that finds nothing",
            query("pk = :z", {":z": S("z")}, ReturnConsumedCapacity="TOTAL"),
        ),
    ),
    *given(PAIRS, *LARGE)(
        case(
            "a page is 1 MB",
            to_the_end(
                query(
                    "pk = :p",
                    {":p": S("big")},
                    ProjectionExpression="sk",
                    ReturnConsumedCapacity="TOTAL",
                )
            ),
        ),
        case(
            "a page is 1 MB, descending",
            to_the_end(
                query(
                    "pk = :p", {":p": S("big")}, ProjectionExpression="sk", ScanIndexForward=False
                )
            ),
        ),
        case(
            "a page is 1 MB before the filter",
            to_the_end(
                query("pk = :p", {":p": S("big")}, "attribute_not_exists(x)", Select="COUNT")
            ),
        ),
    ),
    *given(THINGS, put({**KEY, "v": S("x")}))(
        case(
            "a table without a sort key",
            query("pk = :a", A, table="Things"),
            query("pk = :a AND v = :a", A, table="Things"),
        ),
        case(
            "a table without a sort key, one item per page",
            to_the_end(query("pk = :a", A, table="Things", Limit=1)),
        ),
        case(
            "a table without a sort key, and a start",
            *(
                query("pk = :a", A, table="Things", ExclusiveStartKey={"pk": S(start)})
                for start in ("a", "other")
            ),
        ),
    ),
    *given(
        COUNTED,
        put_all(
            "Counted", *({**KEY, "sk": N(text)} for text in ("-5", "-1", "0", "1.5", "2", "10"))
        ),
    )(
        *(
            case(
                f"numbers: {text}",
                query(
                    text,
                    {**A, **(mentioned(text, {":n": N("1"), ":m": N("-1.0"), ":s": S("1")}) or {})},
                    table="Counted",
                ),
            )
            for text in (
                "pk = :a AND sk > :n",
                "pk = :a AND sk BETWEEN :m AND :n",
                "pk = :a AND sk <= :m",
                "pk = :a AND begins_with(sk, :n)",
                "pk = :a AND sk = :s",
                "pk = :a AND begins_with(sk, :s)",
            )
        ),
        case("numbers: pages", to_the_end(query("pk = :a", A, table="Counted", Limit=2))),
    ),
    *given(INDEXED, PEOPLE)(
        case("a local index", query("pk = :a", A, table="Indexed", IndexName="byPoints")),
        case(
            "a local index, descending",
            query("pk = :a", A, table="Indexed", IndexName="byPoints", ScanIndexForward=False),
        ),
        case(
            "a local index with a range",
            query(
                "pk = :a AND #r > :r",
                {**A, ":r": N("1")},
                table="Indexed",
                IndexName="byPoints",
                names={"#r": "points"},
            ),
        ),
        case(
            "a local index, consistent",
            query("pk = :a", A, table="Indexed", IndexName="byPoints", ConsistentRead=True),
        ),
        case(
            "a local index that includes some",
            query("pk = :a", A, table="Indexed", IndexName="byNick"),
        ),
        case(
            "a local index that fetches the rest",
            query("pk = :a", A, table="Indexed", IndexName="byNick", Select="ALL_ATTRIBUTES"),
        ),
        case(
            "a local index and a projection it does not hold",
            query(
                "pk = :a", A, table="Indexed", IndexName="byNick", ProjectionExpression="sk, extra"
            ),
        ),
        case(
            "a local index and a filter it does not hold",
            query(
                "pk = :a", {**A, ":x": S("x")}, "extra = :x", table="Indexed", IndexName="byNick"
            ),
        ),
        case(
            "a local index, ALL_PROJECTED_ATTRIBUTES",
            query(
                "pk = :a", A, table="Indexed", IndexName="byNick", Select="ALL_PROJECTED_ATTRIBUTES"
            ),
        ),
        case(
            "a local index and the sort key of the table",
            query(
                "pk = :a AND sk = :s", {**A, ":s": S("1")}, table="Indexed", IndexName="byPoints"
            ),
        ),
        case(
            "a local index in pages",
            to_the_end(query("pk = :a", A, table="Indexed", IndexName="byPoints", Limit=2)),
        ),
        case(
            "a local index and a start without its key",
            query(
                "pk = :a",
                A,
                table="Indexed",
                IndexName="byPoints",
                ExclusiveStartKey={**KEY, "sk": S("1")},
            ),
        ),
        case(
            "a global index with a sort key",
            query("city = :c", ROME, table="Indexed", IndexName="byCityNick"),
        ),
        case(
            "a global index with a sort key, descending",
            query(
                "city = :c", ROME, table="Indexed", IndexName="byCityNick", ScanIndexForward=False
            ),
        ),
        case(
            "a global index with a range",
            query(
                "city = :c AND nick BETWEEN :a AND :d",
                {**ROME, ":a": S("al"), ":d": S("cz")},
                table="Indexed",
                IndexName="byCityNick",
            ),
        ),
        case(
            "a global index by its whole key",
            query(
                "city = :c AND nick = :n",
                {":c": S("bern"), ":n": S("al")},
                table="Indexed",
                IndexName="byCityNick",
            ),
        ),
        case(
            "a global index of keys only",
            query("nick = :n", {":n": S("cy")}, table="Indexed", IndexName="byNickKeys"),
        ),
        case(
            "a global index that has all",
            query("city = :c", {":c": S("bern")}, table="Indexed", IndexName="byCity"),
        ),
        case(
            "a global index, consistent",
            query("city = :c", ROME, table="Indexed", IndexName="byCity", ConsistentRead=True),
        ),
        case(
            "a global index, ALL_ATTRIBUTES",
            query(
                "city = :c",
                {":c": S("bern")},
                table="Indexed",
                IndexName="byCity",
                Select="ALL_ATTRIBUTES",
            ),
        ),
        case(
            "a global index that lacks some, ALL_ATTRIBUTES",
            query(
                "city = :c", ROME, table="Indexed", IndexName="byCityNick", Select="ALL_ATTRIBUTES"
            ),
        ),
        case(
            "a global index and a projection it does not hold",
            query(
                "city = :c",
                ROME,
                table="Indexed",
                IndexName="byCityNick",
                ProjectionExpression="extra",
            ),
        ),
        case(
            "a global index and a filter it does not hold",
            query(
                "city = :c",
                {**ROME, ":x": S("x")},
                "extra = :x",
                table="Indexed",
                IndexName="byCityNick",
            ),
        ),
        case(
            "a global index and a filter on its key",
            query(
                "city = :c",
                {**ROME, ":x": S("x")},
                "nick = :x",
                table="Indexed",
                IndexName="byCityNick",
            ),
        ),
        case(
            "a global index and a filter on the key of the table",
            query(
                "city = :c",
                {**ROME, ":x": S("a")},
                "pk = :x",
                table="Indexed",
                IndexName="byCityNick",
            ),
        ),
        case(
            "a global index without its key",
            query("pk = :a", A, table="Indexed", IndexName="byCity"),
        ),
        case(
            "a global index and two conditions for one attribute",
            query(
                "city = :c AND nick = :n",
                {**ROME, ":n": S("al")},
                table="Indexed",
                IndexName="byCity",
            ),
        ),
        case(
            "a global index and a start without its key",
            query(
                "city = :c",
                ROME,
                table="Indexed",
                IndexName="byCityNick",
                ExclusiveStartKey={**KEY, "sk": S("1")},
            ),
        ),
        case(
            "a global index and a start of another city",
            query(
                "city = :c",
                ROME,
                table="Indexed",
                IndexName="byCityNick",
                ExclusiveStartKey={**KEY, "sk": S("3"), "city": S("oslo"), "nick": S("bo")},
            ),
        ),
        case(
            "capacity of an index",
            query(
                "city = :c",
                ROME,
                table="Indexed",
                IndexName="byCityNick",
                ReturnConsumedCapacity="INDEXES",
            ),
            query(
                "pk = :a",
                A,
                table="Indexed",
                IndexName="byPoints",
                ReturnConsumedCapacity="INDEXES",
            ),
        ),
        case(
            "capacity of an index that fetches the rest",
            query(
                "pk = :a",
                A,
                table="Indexed",
                IndexName="byNick",
                Select="ALL_ATTRIBUTES",
                ReturnConsumedCapacity="INDEXES",
            ),
        ),
    ),
    *given(INDEXED, TOWNS)(
        *(
            case(
                f"a global index in pages of {limit}",
                to_the_end(
                    query(
                        "city = :c",
                        {":c": S("town")},
                        table="Indexed",
                        IndexName="byCityNick",
                        Limit=limit,
                    )
                ),
            )
            for limit in (1, 3, 7, 20)
        ),
        case(
            "a global index in pages, descending",
            to_the_end(
                query(
                    "city = :c",
                    {":c": S("town")},
                    table="Indexed",
                    IndexName="byCityNick",
                    Limit=6,
                    ScanIndexForward=False,
                )
            ),
        ),
        case(
            "a global index in pages with a filter",
            to_the_end(
                query(
                    "city = :c",
                    {":c": S("town"), ":p": S("p1")},
                    "pk = :p",
                    table="Indexed",
                    IndexName="byCityNick",
                    Limit=6,
                )
            ),
        ),
    ),
    *given(create("Wide", "pk:S", across=(index("byH", "h:S", "r:N", projection="KEYS_ONLY"),)))(
        case(
            "many items share one index key",
            put_all(
                "Wide",
                *(
                    {"pk": S(f"k{number}"), "h": S("h"), "r": N(str(number // 8))}
                    for number in range(24)
                ),
            ),
            to_the_end(query("h = :h", {":h": S("h")}, table="Wide", IndexName="byH", Limit=5)),
            query("h = :h", {":h": S("h")}, table="Wide", IndexName="byH"),
        ),
    ),
    *given(MANY, *MANY_ITEMS)(
        *(
            case(
                f"a key of several attributes: {text}",
                query(text, mentioned(text, MANY_VALUES), table="Many", IndexName="byAll"),
            )
            for text in (
                "a = :a AND b = :b",
                "b = :b AND a = :a",
                "a = :a AND b = :b AND c = :c",
                "a = :a AND b = :b AND c > :c",
                "a = :a AND b = :b AND c = :c AND d > :d",
                "a = :a AND b = :b AND c = :c AND d = :d",
                "a = :a",
                "a = :a AND b > :b",
                "a = :a AND b = :b AND d = :d",
                "a = :a AND b = :b AND c > :c AND d = :d",
                "a = :a AND c = :c",
                "a = :a AND b = :b AND x = :x",
            )
        ),
        case(
            "a key of several attributes, descending",
            query(
                "a = :a AND b = :b",
                mentioned(":a :b", MANY_VALUES),
                table="Many",
                IndexName="byAll",
                ScanIndexForward=False,
            ),
        ),
        case(
            "a key of several attributes in pages",
            to_the_end(
                query(
                    "a = :a AND b = :b",
                    mentioned(":a :b", MANY_VALUES),
                    table="Many",
                    IndexName="byAll",
                    Limit=2,
                )
            ),
        ),
    ),
]
