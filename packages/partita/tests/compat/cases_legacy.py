"""The legacy parameters: Expected, AttributeUpdates, KeyConditions and the filters."""

from __future__ import annotations

from typing import Any

from .notation import (
    BS,
    NS,
    NULL,
    PAIRS,
    SS,
    THINGS,
    TRUE,
    B,
    Case,
    L,
    M,
    N,
    S,
    case,
    delete,
    get,
    given,
    put,
    put_all,
    query,
    scan,
    update,
)

KEY = {"pk": S("a")}
ITEM = {
    **KEY,
    "s": S("hello"),
    "n": N("10"),
    "b": B("AQI="),
    "yes": TRUE,
    "nil": NULL,
    "ss": SS("a", "b"),
    "ns": NS("1", "2"),
    "l": L(S("x"), N("1")),
    "m": M(k=S("v")),
}


def op(operator: str, *values: object) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


EXPECTATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a value that is there", {"s": {"Value": S("hello")}}),
    ("a value that is not there", {"s": {"Value": S("extra")}}),
    ("a value and Exists", {"n": {"Value": N("10.0"), "Exists": True}}),
    ("an attribute that must be absent", {"nope": {"Exists": False}}),
    ("an attribute that is there and must not be", {"s": {"Exists": False}}),
    ("EQ", {"s": op("EQ", S("hello"))}),
    ("EQ with Value", {"s": {"ComparisonOperator": "EQ", "Value": S("hello")}}),
    ("NE", {"s": op("NE", S("hello"))}),
    ("NE of an absent attribute", {"nope": op("NE", S("hello"))}),
    ("LT", {"n": op("LT", N("11"))}),
    ("LE", {"n": op("LE", N("9"))}),
    ("GT", {"n": op("GT", N("9"))}),
    ("GE", {"n": op("GE", N("10"))}),
    ("LT of another type", {"n": op("LT", S("a"))}),
    ("NULL", {"nope": op("NULL")}),
    ("NULL of what is there", {"s": op("NULL")}),
    ("NULL of the value null", {"nil": op("NULL")}),
    ("NOT_NULL", {"s": op("NOT_NULL")}),
    ("NOT_NULL of what is absent", {"nope": op("NOT_NULL")}),
    ("NULL without a list", {"nope": {"ComparisonOperator": "NULL"}}),
    ("CONTAINS in a text", {"s": op("CONTAINS", S("ell"))}),
    ("CONTAINS in a set", {"ss": op("CONTAINS", S("a"))}),
    ("CONTAINS in a list", {"l": op("CONTAINS", N("1"))}),
    ("NOT_CONTAINS", {"ss": op("NOT_CONTAINS", S("z"))}),
    ("NOT_CONTAINS of an absent attribute", {"nope": op("NOT_CONTAINS", S("z"))}),
    ("BEGINS_WITH", {"s": op("BEGINS_WITH", S("he"))}),
    ("BEGINS_WITH of a binary", {"b": op("BEGINS_WITH", B("AQ=="))}),
    ("IN", {"n": op("IN", N("1"), N("10"))}),
    ("IN without a match", {"n": op("IN", N("1"), N("2"))}),
    ("BETWEEN", {"n": op("BETWEEN", N("1"), N("10"))}),
    ("EQ of a set", {"ss": op("EQ", SS("b", "a"))}),
    ("EQ of a list", {"l": op("EQ", L(S("x"), N("1")))}),
    ("EQ of a map", {"m": op("EQ", M(k=S("v")))}),
    ("two that hold", {"s": op("EQ", S("hello")), "n": op("EQ", N("10"))}),
    ("one of two that holds", {"s": op("EQ", S("hello")), "n": op("EQ", N("11"))}),
    ("nothing", {}),
    ("an entry without members", {"s": {}}),
    ("Exists without a value", {"s": {"Exists": True}}),
    ("Exists false with a value", {"s": {"Exists": False, "Value": S("x")}}),
    ("Value and AttributeValueList", {"s": {**op("EQ", S("x")), "Value": S("x")}}),
    ("Exists and ComparisonOperator", {"s": {**op("EQ", S("x")), "Exists": True}}),
    ("an operator without values", {"s": {"ComparisonOperator": "EQ"}}),
    ("values without an operator", {"s": {"AttributeValueList": [S("x")]}}),
    ("EQ of two values", {"s": op("EQ", S("x"), S("y"))}),
    ("EQ of no value", {"s": op("EQ")}),
    ("NULL of a value", {"s": op("NULL", S("x"))}),
    ("IN of nothing", {"s": op("IN")}),
    ("IN of several types", {"s": op("IN", S("x"), N("1"))}),
    ("IN of sets", {"ss": op("IN", SS("a"))}),
    ("BETWEEN of one value", {"n": op("BETWEEN", N("1"))}),
    ("BETWEEN the wrong way round", {"n": op("BETWEEN", N("2"), N("1"))}),
    ("BETWEEN of two types", {"n": op("BETWEEN", N("2"), S("1"))}),
    ("LT of a set", {"ss": op("LT", SS("a"))}),
    ("LT of a boolean", {"yes": op("LT", TRUE)}),
    ("CONTAINS of a set", {"ss": op("CONTAINS", SS("a"))}),
    ("CONTAINS of a map", {"m": op("CONTAINS", M())}),
    ("BEGINS_WITH of a number", {"n": op("BEGINS_WITH", N("1"))}),
    ("an operator that does not exist", {"s": op("LIKE", S("x"))}),
    ("a bad number", {"n": {"Value": N("x")}}),
    ("an empty set", {"ss": {"Value": SS()}}),
    ("a value without a type", {"n": {"Value": {}}}),
)

UPDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("PUT", {"s": {"Action": "PUT", "Value": S("new")}}),
    ("PUT of a new attribute", {"x": {"Action": "PUT", "Value": L(S("new"))}}),
    ("no action is PUT", {"x": {"Value": N("1")}}),
    ("ADD to a number", {"n": {"Action": "ADD", "Value": N("-1")}}),
    ("ADD to nothing", {"x": {"Action": "ADD", "Value": N("5")}}),
    ("ADD to a set", {"ss": {"Action": "ADD", "Value": SS("c", "a")}}),
    ("ADD a set to nothing", {"x": {"Action": "ADD", "Value": NS("1")}}),
    ("ADD to a list", {"l": {"Action": "ADD", "Value": L(S("y"))}}),
    ("ADD a list to nothing", {"x": {"Action": "ADD", "Value": L(S("y"))}}),
    ("DELETE an attribute", {"s": {"Action": "DELETE"}}),
    ("DELETE what is not there", {"x": {"Action": "DELETE"}}),
    ("DELETE from a set", {"ss": {"Action": "DELETE", "Value": SS("a", "z")}}),
    ("DELETE the last of a set", {"ss": {"Action": "DELETE", "Value": SS("a", "b")}}),
    ("DELETE from nothing", {"x": {"Action": "DELETE", "Value": SS("a")}}),
    (
        "several actions",
        {
            "s": {"Action": "DELETE"},
            "n": {"Action": "ADD", "Value": N("1")},
            "x": {"Value": S("y")},
        },
    ),
    ("no actions", {}),
    ("an action without members", {"s": {}}),
    ("PUT without a value", {"s": {"Action": "PUT"}}),
    ("ADD without a value", {"s": {"Action": "ADD"}}),
    ("ADD of a text", {"s": {"Action": "ADD", "Value": S("x")}}),
    ("ADD of a boolean", {"s": {"Action": "ADD", "Value": TRUE}}),
    ("ADD of a map", {"m": {"Action": "ADD", "Value": M()}}),
    ("DELETE of a text", {"s": {"Action": "DELETE", "Value": S("x")}}),
    ("DELETE of a number", {"n": {"Action": "DELETE", "Value": N("1")}}),
    ("DELETE of a list", {"l": {"Action": "DELETE", "Value": L()}}),
    ("ADD of a number to a text", {"s": {"Action": "ADD", "Value": N("1")}}),
    ("ADD of a set to another set", {"ss": {"Action": "ADD", "Value": NS("1")}}),
    ("DELETE of a set from a number", {"n": {"Action": "DELETE", "Value": SS("1")}}),
    ("an action that does not exist", {"s": {"Action": "SET", "Value": S("x")}}),
    ("the key", {"pk": {"Action": "PUT", "Value": S("x")}}),
    ("a bad number", {"n": {"Action": "PUT", "Value": N("x")}}),
    ("an empty set", {"x": {"Action": "PUT", "Value": BS()}}),
    ("a name with dots", {"a.b": {"Value": S("x")}}),
)

KEY_CONDITIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("EQ", {"pk": op("EQ", S("a"))}),
    ("EQ and EQ", {"pk": op("EQ", S("a")), "sk": op("EQ", S("2"))}),
    ("LT", {"pk": op("EQ", S("a")), "sk": op("LT", S("2"))}),
    ("LE", {"pk": op("EQ", S("a")), "sk": op("LE", S("2"))}),
    ("GT", {"pk": op("EQ", S("a")), "sk": op("GT", S("2"))}),
    ("GE", {"pk": op("EQ", S("a")), "sk": op("GE", S("2"))}),
    ("BETWEEN", {"pk": op("EQ", S("a")), "sk": op("BETWEEN", S("1"), S("2"))}),
    ("BEGINS_WITH", {"pk": op("EQ", S("a")), "sk": op("BEGINS_WITH", S("1"))}),
    ("nothing", {}),
    ("the sort key alone", {"sk": op("EQ", S("1"))}),
    ("another attribute", {"v": op("EQ", S("1"))}),
    ("the key and another attribute", {"pk": op("EQ", S("a")), "v": op("EQ", S("1"))}),
    ("three attributes", {name: op("EQ", S("a")) for name in ("pk", "sk", "v")}),
    ("GT of the partition key", {"pk": op("GT", S("a"))}),
    ("IN", {"pk": op("IN", S("a"))}),
    ("NE", {"pk": op("EQ", S("a")), "sk": op("NE", S("1"))}),
    ("NULL", {"pk": op("EQ", S("a")), "sk": op("NULL")}),
    ("CONTAINS", {"pk": op("EQ", S("a")), "sk": op("CONTAINS", S("1"))}),
    ("a wrong type", {"pk": op("EQ", N("1"))}),
    ("a wrong type of the sort key", {"pk": op("EQ", S("a")), "sk": op("EQ", N("1"))}),
    ("EQ of two values", {"pk": op("EQ", S("a"), S("b"))}),
    ("BETWEEN of one value", {"pk": op("EQ", S("a")), "sk": op("BETWEEN", S("1"))}),
    ("no values", {"pk": {"ComparisonOperator": "EQ"}}),
    ("no operator", {"pk": {"AttributeValueList": [S("a")]}}),
    ("an empty text", {"pk": op("EQ", S(""))}),
    ("a set", {"pk": op("EQ", SS("a"))}),
)

FILTERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("EQ", {"v": op("EQ", N("2"))}),
    ("NE", {"v": op("NE", N("2"))}),
    ("GT", {"v": op("GT", N("1"))}),
    ("BETWEEN", {"v": op("BETWEEN", N("2"), N("3"))}),
    ("IN", {"v": op("IN", N("1"), N("3"))}),
    ("NULL", {"w": op("NULL")}),
    ("NOT_NULL", {"w": op("NOT_NULL")}),
    ("CONTAINS", {"w": op("CONTAINS", S("x"))}),
    ("NOT_CONTAINS", {"w": op("NOT_CONTAINS", S("x"))}),
    ("BEGINS_WITH", {"w": op("BEGINS_WITH", S("x"))}),
    ("two", {"v": op("GT", N("1")), "w": op("NOT_NULL")}),
    ("nothing", {}),
    ("no operator", {"v": {"AttributeValueList": [N("1")]}}),
    ("no values", {"v": {"ComparisonOperator": "EQ"}}),
    ("a bad number", {"v": op("EQ", N("x"))}),
    ("LT of a set", {"v": op("LT", SS("x"))}),
    ("an operator that does not exist", {"v": op("LIKE", S("x"))}),
)

PAGE = put_all(
    "Pairs",
    {**KEY, "sk": S("1"), "v": N("1"), "w": S("xyz")},
    {**KEY, "sk": S("12"), "v": N("2"), "w": SS("x", "y")},
    {**KEY, "sk": S("2"), "v": N("3")},
    {**KEY, "sk": S("3"), "v": N("1"), "w": S("zyx")},
    {"pk": S("b"), "sk": S("1"), "v": N("2")},
)
EQ_A = {"pk": op("EQ", S("a"))}
TWO = {"s": op("EQ", S("hello")), "n": op("EQ", N("11"))}

CASES: list[Case] = [
    *given(THINGS, put(ITEM))(
        *(
            case(f"Expected: {what}", put(ITEM, Expected=expected))
            for what, expected in EXPECTATIONS
        ),
        case(
            "Expected of a delete",
            delete(KEY, Expected={"s": {"Value": S("no")}}),
            delete(KEY, Expected={"s": op("EQ", S("hello"))}),
            get(KEY),
        ),
        case(
            "Expected of an update",
            update(KEY, Expected=TWO, AttributeUpdates={"x": {"Value": S("y")}}),
            get(KEY),
        ),
        case("ConditionalOperator OR", put(ITEM, Expected=TWO, ConditionalOperator="OR")),
        case("ConditionalOperator AND", put(ITEM, Expected=TWO, ConditionalOperator="AND")),
        case(
            "ConditionalOperator with one expectation",
            put(ITEM, Expected={"s": op("NOT_NULL")}, ConditionalOperator="OR"),
        ),
        case("ConditionalOperator without Expected", put(ITEM, ConditionalOperator="OR")),
        case(
            "ConditionalOperator with an empty Expected",
            put(ITEM, Expected={}, ConditionalOperator="OR"),
        ),
        case(
            "ConditionalOperator that does not exist",
            put(ITEM, Expected=TWO, ConditionalOperator="XOR"),
        ),
        case(
            "ConditionalOperator with an expression",
            put(ITEM, "attribute_exists(pk)", ConditionalOperator="OR"),
        ),
        case("Expected with names", put(ITEM, Expected={"s": op("NOT_NULL")}, names={"#s": "s"})),
        case(
            "Expected with values", put(ITEM, Expected={"s": op("NOT_NULL")}, values={":s": S("s")})
        ),
        *(
            case(
                f"AttributeUpdates: {what}",
                update(KEY, AttributeUpdates=changes, ReturnValues="ALL_NEW"),
            )
            for what, changes in UPDATES
        ),
        *(
            case(
                f"AttributeUpdates: {what}, returned {returned}",
                update(KEY, AttributeUpdates=dict(UPDATES)[what], ReturnValues=returned),
            )
            for what in ("ADD to a set", "DELETE the last of a set", "several actions")
            for returned in ("UPDATED_OLD", "UPDATED_NEW")
        ),
        *(
            case(
                f"AttributeUpdates of an absent item: {what}",
                update({"pk": S("new")}, AttributeUpdates=dict(UPDATES)[what]),
                get({"pk": S("new")}),
            )
            for what in (
                "PUT",
                "ADD to nothing",
                "DELETE what is not there",
                "DELETE from a set",
                "no actions",
            )
        ),
    ),
    *given(PAIRS, PAGE)(
        *(
            case(f"KeyConditions: {what}", query(KeyConditions=conditions))
            for what, conditions in KEY_CONDITIONS
        ),
        *(
            case(f"QueryFilter: {what}", query(KeyConditions=EQ_A, QueryFilter=conditions))
            for what, conditions in FILTERS
        ),
        *(case(f"ScanFilter: {what}", scan(ScanFilter=conditions)) for what, conditions in FILTERS),
        case(
            "QueryFilter with ConditionalOperator",
            query(
                KeyConditions=EQ_A,
                QueryFilter={"v": op("EQ", N("3")), "w": op("NOT_NULL")},
                ConditionalOperator="OR",
            ),
        ),
        case(
            "ScanFilter with ConditionalOperator",
            scan(ScanFilter={"v": op("EQ", N("3")), "w": op("NOT_NULL")}, ConditionalOperator="OR"),
        ),
        case(
            "ScanFilter with ConditionalOperator for one",
            scan(ScanFilter={"v": op("EQ", N("3"))}, ConditionalOperator="OR"),
        ),
        case(
            "QueryFilter on a key", query(KeyConditions=EQ_A, QueryFilter={"sk": op("EQ", S("1"))})
        ),
        case(
            "QueryFilter with an expression",
            query("pk = :a", {":a": S("a")}, QueryFilter={"v": op("EQ", N("1"))}),
        ),
        case(
            "KeyConditions with an expression", query("pk = :a", {":a": S("a")}, KeyConditions=EQ_A)
        ),
        case(
            "KeyConditions with a filter expression",
            query(None, {":v": N("1")}, "v = :v", KeyConditions=EQ_A),
        ),
        case(
            "KeyConditions with a projection expression",
            query(KeyConditions=EQ_A, ProjectionExpression="v"),
        ),
        case(
            "ScanFilter with an expression",
            scan("v = :v", {":v": N("1")}, ScanFilter={"v": op("EQ", N("1"))}),
        ),
        case(
            "AttributesToGet of a query", query(KeyConditions=EQ_A, AttributesToGet=["v", "nope"])
        ),
        case("AttributesToGet of a scan", scan(AttributesToGet=["sk"])),
        case("AttributesToGet of a scan, one name twice", scan(AttributesToGet=["sk", "sk"])),
        case(
            "AttributesToGet with a projection expression",
            scan(AttributesToGet=["sk"], ProjectionExpression="sk"),
        ),
        case(
            "AttributesToGet with Select",
            query(KeyConditions=EQ_A, AttributesToGet=["v"], Select="SPECIFIC_ATTRIBUTES"),
        ),
        case(
            "AttributesToGet with Select COUNT",
            query(KeyConditions=EQ_A, AttributesToGet=["v"], Select="COUNT"),
        ),
    ),
]
