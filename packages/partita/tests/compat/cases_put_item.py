"""PutItem: what it replaces and returns, keys, and the order of its errors."""

from __future__ import annotations

from .notation import (
    INDEXED,
    PAIRS,
    THINGS,
    B,
    Case,
    L,
    M,
    N,
    S,
    case,
    get,
    given,
    put,
    send,
)

KEY = {"pk": S("a")}
ITEM = {**KEY, "v": S("old"), "n": N("1")}
EMPTY_KEY = {"pk": S("")}

CASES: list[Case] = [
    *given(THINGS)(
        case("a put answers with an empty body", put(ITEM)),
        case("a put replaces the whole item", put(ITEM), put({**KEY, "w": S("new")}), get(KEY)),
        case("ALL_OLD of a new item is nothing", put(ITEM, ReturnValues="ALL_OLD")),
        case(
            "ALL_OLD is the item that was replaced",
            put(ITEM),
            put({**KEY, "w": S("new")}, ReturnValues="ALL_OLD"),
        ),
        case("NONE returns nothing", put(ITEM), put(ITEM, ReturnValues="NONE")),
        *(
            case(f"{returned} is not for puts", put(ITEM, ReturnValues=returned))
            for returned in ("UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
        ),
        case("an item without its key is refused", put({"v": S("x")})),
        case("an item without anything is refused", put({})),
        case("a key of a wrong type is refused", put({"pk": N("1")})),
        case("a list is no key", put({"pk": L(S("a"))})),
        case("a boolean is no key", put({"pk": {"BOOL": True}})),
        case("an empty text is no key", put(EMPTY_KEY)),
        case("a key without a type is refused", put({"pk": {}})),
        case("unknown members are ignored", put(ITEM, Colour="red"), get(KEY)),
        case(
            "null members are ignored",
            send(
                "PutItem",
                {"TableName": "Things", "Item": ITEM, "ReturnValues": None, "Expected": None},
            ),
        ),
        case("an absent table is not found", put(ITEM, table="Absent")),
        case(
            "a bad expression is found before the table is looked for",
            put(ITEM, "attribute_exists(", table="Absent"),
        ),
        case(
            "a bad value is found before the table is looked for",
            put({**KEY, "v": {"SS": []}}, table="Absent"),
        ),
        case(
            "an item that is too large is found before the table is looked for",
            put({**KEY, "v": S("x" * 409_600)}, table="Absent"),
        ),
        case("a condition on an absent item", put(ITEM, "attribute_exists(pk)"), get(KEY)),
        case(
            "a failed condition returns the item on request",
            put(ITEM),
            put(KEY, "attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD"),
            put(KEY, "attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure="NONE"),
            put(KEY, "attribute_not_exists(pk)"),
            get(KEY),
        ),
        case(
            "a failed condition on an absent item returns none",
            put(KEY, "attribute_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        ),
        case("an empty condition is refused", put(ITEM, "")),
        case("names without an expression are refused", put(ITEM, names={"#a": "b"})),
        case("values without an expression are refused", put(ITEM, values={":a": S("b")})),
        case(
            "names and values without an expression",
            put(ITEM, names={"#a": "b"}, values={":a": S("b")}),
        ),
        case("no names at all are refused", put(ITEM, "attribute_exists(pk)", names={})),
        case("no values at all are refused", put(ITEM, "attribute_exists(pk)", values={})),
        case("a name that is not used is refused", put(ITEM, "pk = pk2", names={"#u": "x"})),
        case("a value that is not used is refused", put(ITEM, "pk <> v", values={":u": S("x")})),
        case("a name without # is refused", put(ITEM, "u = v", names={"u": "x"})),
        case("a value without : is refused", put(ITEM, "u = v", values={"u": S("x")})),
        case("a name of # alone is refused", put(ITEM, "u = v", names={"#": "x"})),
        case("an undefined name is refused", put(ITEM, "#u = v")),
        case("an undefined value is refused", put(ITEM, "u = :v")),
        case("a bad value of an expression", put(ITEM, "u = :v", values={":v": N("x")})),
        case("an empty value of an expression", put(ITEM, "u = :v", values={":v": {}})),
        case(
            "legacy and expression parameters do not go together",
            put(ITEM, "u = v", Expected={"a": {"Exists": False}}),
        ),
        case("ReturnValues that does not exist", put(ITEM, ReturnValues="SOME")),
        case(
            "ReturnConsumedCapacity that does not exist", put(ITEM, ReturnConsumedCapacity="SOME")
        ),
        case(
            "ReturnItemCollectionMetrics that does not exist",
            put(ITEM, ReturnItemCollectionMetrics="SOME"),
        ),
        case(
            "three members that do not exist",
            put(
                ITEM,
                ReturnValues="INVALID",
                ReturnConsumedCapacity="INVALID",
                ReturnItemCollectionMetrics="INVALID",
            ),
        ),
        case("no table is named", send("PutItem", Item=ITEM)),
        case("no item is given", send("PutItem", TableName="Things")),
        case("nothing is given", send("PutItem")),
        case("a table name that is empty", put(ITEM, table="")),
        case("a table name of two characters", put(ITEM, table="ab")),
        case("a table name that is too long", put(ITEM, table="a" * 256)),
        case("a table name with characters that are not allowed", put(ITEM, table="bad table!@#")),
        case("an item that is a list", put([])),  # type: ignore[arg-type]
        case("an item that is a text", put("x")),  # type: ignore[arg-type]
        case("a table name that is a number", send("PutItem", TableName=1, Item=ITEM)),
        case("a table name that is a map", send("PutItem", TableName={}, Item=ITEM)),
        case("a table name that is a list", send("PutItem", TableName=[], Item=ITEM)),
        case("a table name that is true", send("PutItem", TableName=True, Item=ITEM)),
    ),
    *given(PAIRS)(
        case("an item without its sort key is refused", put(KEY, table="Pairs")),
        case("a sort key of a wrong type is refused", put({**KEY, "sk": N("1")}, table="Pairs")),
        case("an empty text is no sort key", put({**KEY, "sk": S("")}, table="Pairs")),
        case("both keys are missing", put({"v": S("x")}, table="Pairs")),
        case(
            "two items share a partition",
            put({**KEY, "sk": S("1"), "v": S("one")}, table="Pairs"),
            put({**KEY, "sk": S("2"), "v": S("two")}, table="Pairs"),
            get({**KEY, "sk": S("1")}, table="Pairs"),
            get({**KEY, "sk": S("2")}, table="Pairs"),
        ),
    ),
    *given(INDEXED)(
        *(
            case(
                f"an index key is refused: {name}, {what}",
                put({**KEY, "sk": S("1"), name: value}, table="Indexed"),
            )
            for name, what, value in (
                ("city", "a number", N("1")),
                ("city", "a map", M()),
                ("city", "empty", S("")),
                ("city", "too long", S("c" * 2049)),
                ("points", "a text", S("1")),
                ("nick", "a list", L(S("a"))),
                ("nick", "empty", S("")),
                ("nick", "too long", S("n" * 1025)),
            )
        ),
        case(
            "an index key of 2048 bytes is stored",
            put({**KEY, "sk": S("1"), "city": S("c" * 2048)}, table="Indexed"),
        ),
        case(
            "an item without index keys is stored",
            put({**KEY, "sk": S("1"), "b": B("AA==")}, table="Indexed"),
            get({**KEY, "sk": S("1")}, table="Indexed"),
        ),
    ),
]
