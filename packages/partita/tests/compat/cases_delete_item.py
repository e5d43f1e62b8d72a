"""DeleteItem: what is removed and returned, and the order of its errors."""

from __future__ import annotations

from .notation import (
    PAIRS,
    SS,
    THINGS,
    Case,
    N,
    S,
    case,
    delete,
    get,
    given,
    put,
    scan,
    send,
)

KEY = {"pk": S("a")}
ITEM = {**KEY, "v": S("old"), "n": N("1")}

CASES: list[Case] = [
    *given(THINGS, put(ITEM))(
        case("an item is deleted", delete(KEY), get(KEY), scan(table="Things")),
        case("an absent item is deleted without a word", delete({"pk": S("nope")})),
        case("ALL_OLD is the item that was deleted", delete(KEY, ReturnValues="ALL_OLD")),
        case(
            "ALL_OLD of an absent item is nothing", delete({"pk": S("b")}, ReturnValues="ALL_OLD")
        ),
        case("NONE returns nothing", delete(KEY, ReturnValues="NONE")),
        *(
            case(f"{returned} is not for deletes", delete(KEY, ReturnValues=returned))
            for returned in ("UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
        ),
        case("a condition that holds", delete(KEY, "n = :one", values={":one": N("1")}), get(KEY)),
        case(
            "a condition that fails keeps the item",
            delete(KEY, "n = :two", values={":two": N("2")}),
            delete(
                KEY,
                "n = :two",
                values={":two": N("2")},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            get(KEY),
        ),
        case("a condition on an absent item", delete({"pk": S("b")}, "attribute_exists(pk)")),
        case(
            "a condition that an absent item meets",
            delete({"pk": S("b")}, "attribute_not_exists(pk)"),
        ),
        case("an empty condition", delete(KEY, "")),
        case("a condition that is none", delete(KEY, "whatever")),
        case("redundant parentheses", delete(KEY, "((attribute_exists(pk)))")),
        case("names without an expression", delete(KEY, names={"#a": "a"})),
        case("values without an expression", delete(KEY, values={":a": S("a")})),
        case("no names at all", delete(KEY, "pk = pk", names={})),
        case("no values at all", delete(KEY, "attribute_exists(pk)", values={})),
        case(
            "a value that is not used", delete(KEY, "attribute_exists(pk)", values={":u": S("x")})
        ),
        case("a name that is not used", delete(KEY, "attribute_exists(pk)", names={"#u": "x"})),
        case("an undefined value", delete(KEY, "n = :v")),
        case("a bad number in the key", delete({"pk": N("x")})),
        case("a key with a text twice in a set", delete({"pk": SS("a", "a")})),
        case("a key of a wrong type", delete({"pk": N("1")})),
        case("a key that is empty", delete({"pk": S("")})),
        case("a key without attributes", delete({})),
        case("a key with one attribute too many", delete({**KEY, "x": S("1")})),
        case("a key without a type", delete({"pk": {}})),
        case("an absent table", delete(KEY, table="Absent")),
        case("an expression before an absent table", delete(KEY, "pk =", table="Absent")),
        case("nothing is given", send("DeleteItem")),
        case("no key is given", send("DeleteItem", TableName="Things")),
        case("a table name that is empty", delete(KEY, table="")),
        case("a table name that is empty and no key", delete({}, table="")),
        case("ReturnValues that does not exist", delete(KEY, ReturnValues="SOME")),
        case(
            "two members that do not exist",
            delete(KEY, ReturnValues="INVALID", ReturnConsumedCapacity="INVALID"),
        ),
        case(
            "legacy and expression parameters do not go together",
            delete(KEY, "n = n", Expected={"a": {"Exists": False}}),
        ),
    ),
    *given(PAIRS, put({**KEY, "sk": S("1")}, table="Pairs"))(
        case("a key without its sort key", delete(KEY, table="Pairs")),
        case(
            "a key of two attributes",
            delete({**KEY, "sk": S("1")}, table="Pairs", ReturnValues="ALL_OLD"),
        ),
    ),
]
