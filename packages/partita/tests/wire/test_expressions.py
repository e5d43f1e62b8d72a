"""The expression languages over the wire: conditions, filters, projections, updates.

A condition is tried as the ConditionCheck of a transaction, which changes nothing, and as the
filter of a Scan: both must agree. How errors are found and worded is asked of a table that does
not exist, since all of it comes before the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import ENVELOPE, VALIDATION, refusal

KEY = {"pk": {"S": "item"}}


ITEM: dict[str, Any] = {
    **KEY,
    "s": {"S": "apple"},
    "same": {"S": "apple"},
    "wide": {"S": "é𝄞"},
    "n": {"N": "5"},
    "five": {"N": "5.0"},
    "b": {"B": b"\x01\x02\xff"},
    "t": {"BOOL": True},
    "nil": {"NULL": True},
    "ss": {"SS": ["x", "y", ""]},
    "ns": {"NS": ["1", "2", "3"]},
    "bs": {"BS": [b"\x01", b"\x02"]},
    "l": {"L": [{"S": "zero"}, {"N": "1"}, {"L": [{"S": "deep"}]}, {"M": {"k": {"S": "v"}}}]},
    "m": {"M": {"x": {"N": "1"}, "deep": {"M": {"y": {"S": "why"}}}, "seq": {"L": [{"N": "7"}]}}},
    "blank": {"S": ""},
}


@pytest.fixture(scope="module")
def notes(client: Any, module_table: Any) -> str:
    """A table with the string key pk and the item ITEM."""
    name: str = module_table()
    client.put_item(TableName=name, Item=ITEM)
    return name


VALUES: dict[str, dict[str, Any]] = {
    ":apple": {"S": "apple"},
    ":app": {"S": "app"},
    ":pear": {"S": "pear"},
    ":none": {"S": ""},
    ":n1": {"N": "1"},
    ":n3": {"N": "3"},
    ":n5": {"N": "5"},
    ":n6": {"N": "6.00"},
    ":s5": {"S": "5"},
    ":b": {"B": b"\x01\x02\xff"},
    ":b1": {"B": b"\x01"},
    ":b2": {"B": b"\x02"},
    ":true": {"BOOL": True},
    ":false": {"BOOL": False},
    ":null": {"NULL": True},
    ":x": {"S": "x"},
    ":ss": {"SS": ["y", "", "x"]},
    ":ss2": {"SS": ["x"]},
    ":ns": {"NS": ["3.0", "2", "1"]},
    ":list": {"L": [{"S": "deep"}]},
    ":map": {"M": {"k": {"S": "v"}}},
    ":S": {"S": "S"},
    ":N": {"S": "N"},
    ":M": {"S": "M"},
    ":NULL": {"S": "NULL"},
    ":BOOL": {"S": "BOOL"},
    ":SS": {"S": "SS"},
    ":L": {"S": "L"},
    ":v": {"S": "v"},
    ":zero": {"N": "0"},
}


def used(expression: str) -> dict[str, Any]:
    """The values and names that the expression refers to."""
    values = {
        name: value
        for name, value in VALUES.items()
        if any(token == name for token in _references(expression, ":"))
    }
    names = {name: name[1:] for name in _references(expression, "#")}
    return {
        **({"ExpressionAttributeValues": values} if values else {}),
        **({"ExpressionAttributeNames": names} if names else {}),
    }


def _references(expression: str, sign: str) -> set[str]:
    found = set()
    for part in expression.split(sign)[1:]:
        end = next(
            (at for at, char in enumerate(part) if not (char.isalnum() or char == "_")), None
        )
        found.add(sign + part[:end])
    return found


# --- conditions ---

TRUE = [
    # comparisons
    "s = :apple",
    "s = same",
    "n = :n5",
    "n = five",
    "s <> :pear",
    "n <> :s5",
    "n < :n6",
    "n <= :n5",
    "n > :n1",
    "n >= five",
    "s < :pear",
    "s > :app",
    "b = :b",
    "b > :b1",
    "b < :b2",
    "t = :true",
    "nil = :null",
    "ss = :ss",
    "ns = :ns",
    "ss <> :ss2",
    "l[2] = :list",
    "l[3] = :map",
    "blank = :none",
    "blank < :app",
    ":apple = s",
    ":n5 >= :n1",
    # a missing attribute equals nothing and differs from everything (recorded)
    "absent <> :apple",
    "absent <> gone",
    "NOT absent = :apple",
    "NOT absent < :n5",
    "NOT absent IN (:apple)",
    # ranges and lists
    "n BETWEEN :n1 AND :n6",
    "n between :n5 and :n5",
    "s BETWEEN :app AND :pear",
    "b BETWEEN :b1 AND :b2",
    ":n3 BETWEEN :n1 AND n",
    "n IN (:n1, :n5)",
    "s IN (:pear, same)",
    "n in (:s5, five)",
    # functions
    "attribute_exists(s)",
    "attribute_exists(m.deep.y)",
    "attribute_exists(l[2][0])",
    "attribute_exists(l[3].k)",
    "attribute_not_exists(absent)",
    "attribute_not_exists(m.absent)",
    "attribute_not_exists(l[9])",
    "attribute_not_exists(s.x)",
    "attribute_not_exists(m[0])",
    "attribute_type(s, :S)",
    "attribute_type(n, :N)",
    "attribute_type(m, :M)",
    "attribute_type(nil, :NULL)",
    "attribute_type(t, :BOOL)",
    "attribute_type(ss, :SS)",
    "attribute_type(l[2], :L)",
    "NOT attribute_type(absent, :S)",
    "begins_with(s, :app)",
    "begins_with(b, :b1)",
    "begins_with(s, :none)",
    "NOT begins_with(n, :app)",
    "contains(s, :app)",
    "contains(s, :none)",
    "contains(ss, :x)",
    "contains(ss, :none)",
    "contains(ns, :n3)",
    "contains(bs, :b1)",
    "contains(b, :b2)",
    "contains(l, :list)",
    "contains(l, :n1)",
    "NOT contains(ss, :app)",
    "NOT contains(m, :x)",
    "NOT contains(n, :n5)",
    # size: UTF-16 units of a string, bytes of a binary, members of the others (recorded)
    "size(s) = :n5",
    "size(wide) = :n3",
    "size(b) = :n3",
    "size(ss) = :n3",
    "size(ns) >= :n3",
    "size(m) = :n3",
    "size(l) < :n5",
    "size(blank) = :zero",
    "size(:app) = :n3",
    "size(s) = size(same)",
    "size(s) BETWEEN :n1 AND :n5",
    "size(s) IN (:n1, :n5)",
    "NOT size(absent) = :zero",
    "NOT size(n) = :n1",
    # paths
    "m.x = :n1",
    "m.seq[0] > :n6",
    "#m.#deep.#y <> :x",
    "l[0] <> l[1]",
    # logic: NOT binds before AND, AND before OR
    "s = :apple AND n = :n5",
    "s = :pear OR n = :n5",
    "NOT s = :pear",
    "NOT (s = :pear OR n = :n1)",
    "s = :apple OR n = :n1 AND t = :false",
    "(s = :pear AND n = :n1) OR t = :true",
    "NOT s = :pear AND n = :n5",
    "NOT NOT s = :apple",
    "(s = :apple) AND ((n = :n1) OR (t = :true))",
    "(s = :apple) AND (NOT (n = :n1))",
    "(s)between(:app)and(:pear)",
    "s=:apple and not n=:n1 or t=:false",
]
FALSE = [
    "s = :pear",
    "n = :s5",
    "n < :n5",
    "n > :n6",
    "absent = :apple",
    "absent < :n5",
    "absent >= :n5",
    "absent = gone",
    "s < :n5",
    "s > :n5",
    "n < :pear",
    "n > :pear",
    "t = :false",
    "ss = :ss2",
    "m.absent = :n1",
    "l[9] = :n1",
    "s.x = :n1",
    "absent BETWEEN :n1 AND :n6",
    "s BETWEEN :n1 AND :n6",
    "n IN (:n1, :s5)",
    "attribute_exists(absent)",
    "attribute_exists(l[9])",
    "attribute_not_exists(s)",
    "attribute_type(s, :N)",
    "attribute_type(absent, :NULL)",
    "begins_with(s, :pear)",
    "begins_with(absent, :app)",
    "contains(s, :pear)",
    "contains(ns, :n6)",
    "contains(absent, :x)",
    "size(s) = :n6",
    "size(absent) = :zero",
    "s = :apple AND n = :n1",
    "s = :pear OR n = :n1",
    "NOT s = :apple",
    "(s = :apple OR n = :n1) AND t = :false",
    # a stored value of a type that has no order is just not in the range
    "l < :n5",
    "m > :n5",
    "t < :n5",
    "ss <= :x",
    "nil >= :n1",
]


@pytest.mark.parametrize(
    ("condition", "holds"), [*((text, True) for text in TRUE), *((text, False) for text in FALSE)]
)
def test_a_condition_holds_or_not(client: Any, notes: str, condition: str, holds: bool) -> None:
    check = {
        "TableName": notes,
        "Key": KEY,
        "ConditionExpression": condition,
        **used(condition),
    }
    try:
        client.transact_write_items(TransactItems=[{"ConditionCheck": check}])
        passed = True
    except client.exceptions.TransactionCanceledException:
        passed = False
    found = client.scan(TableName=notes, FilterExpression=condition, **used(condition))
    assert (passed, found["Count"] == 1) == (holds, holds)


def test_a_condition_on_a_missing_item_sees_no_attributes(client: Any, notes: str) -> None:
    for condition, holds in (
        ("attribute_not_exists(pk)", True),
        ("s <> :apple", True),
        ("s = :apple", False),
        ("s < :apple OR attribute_not_exists(s)", True),
        ("attribute_exists(pk)", False),
    ):
        check = {
            "TableName": notes,
            "Key": {"pk": {"S": "missing"}},
            "ConditionExpression": condition,
            **used(condition),
        }
        try:
            client.transact_write_items(TransactItems=[{"ConditionCheck": check}])
            assert holds, condition
        except client.exceptions.TransactionCanceledException:
            assert not holds, condition


# --- wrong conditions ---

S, N = {"S": "a"}, {"N": "1"}


def distinct(operator: str, operand: str) -> str:
    return (
        "The first operand must be distinct from the remaining operands for this operator or "
        f"function; operator: {operator}, first operand: [{operand}]"
    )


def operand_type(function: str, kind: str) -> str:
    return (
        "Incorrect operand type for operator or function; operator or function: "
        f"{function}, operand type: {kind}"
    )


def count(function: str, number: int) -> str:
    return (
        "Incorrect number of operands for operator or function; operator or function: "
        f"{function}, number of operands: {number}"
    )


def needs_path(function: str) -> str:
    return f"Operator or function requires a document path; operator or function: {function}"


def misused(function: str) -> str:
    return f"The function is not allowed to be used this way in an expression; function: {function}"


UNDEFINED_NAME = (
    "An expression attribute name used in the document path is not defined; attribute name: {}"
)
UNDEFINED_VALUE = (
    "An expression attribute value used in expression is not defined; attribute value: {}"
)
REDUNDANT = "The expression has redundant parentheses;"
WRONG_CONDITIONS: dict[str, str] = {
    # recorded
    "": "The expression can not be empty;",
    "((a = :s))": REDUNDANT,
    "((attribute_not_exists(pk)))": REDUNDANT,
    "contains(a, a)": distinct("contains", "a"),
    "begins_with(a, :n)": operand_type("begins_with", "N"),
    "a = :undefined": UNDEFINED_VALUE.format(":undefined"),
    "#undefined = :s": UNDEFINED_NAME.format("#undefined"),
    "foo": 'Syntax error; token: "<EOF>", near: "foo"',
    "attribute_not_exists(": 'Syntax error; token: "<EOF>", near: "("',
    # dynalite
    "a > ((views))": REDUNDANT,
    "((a=:s AND a=:s))": REDUNDANT,
    "(((a < b)))": REDUNDANT,
    "whatever(a)": "Invalid function name; function: whatever",
    "attRIbute_exIsts(a)": "Invalid function name; function: attRIbute_exIsts",
    "attribute_exists(a) = b": misused("attribute_exists"),
    "size(a)": misused("size"),
    "size(contains(a, b)) = :n": misused("contains"),
    "abort = :s": "Attribute name is a reserved keyword; reserved keyword: abort",
    "a.abORt = :s": "Attribute name is a reserved keyword; reserved keyword: abORt",
    "begins_with(a)": count("begins_with", 1),
    "begins_with(a, b, c)": count("begins_with", 3),
    "attribute_exists(a, b)": count("attribute_exists", 2),
    "attribute_type(a)": count("attribute_type", 1),
    "contains(a)": count("contains", 1),
    "size(a, b) = :n": count("size", 2),
    "a = a": distinct("=", "a"),
    "a <> a": distinct("<>", "a"),
    "a.b < a.b": distinct("<", "a, b"),
    "a[1] IN (b, a[1])": distinct("IN", "a, [1]"),
    "attribute_exists(:s)": needs_path("attribute_exists"),
    "attribute_not_exists(:s)": needs_path("attribute_not_exists"),
    "size(:n) = :n": operand_type("size", "N"),
    "attribute_type(a, :n)": operand_type("attribute_type", "N"),
    # Alternator's tests on AWS
    "a < :list": operand_type("<", "L"),
    ":map >= a": operand_type(">=", "M"),
    "a BETWEEN :n AND :s": "The BETWEEN operator requires same data type for lower and upper "
    "bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: "
    "AttributeValue: {S:a}",
    "a BETWEEN :n2 AND :n": "The BETWEEN operator requires upper bound to be greater than or equal "
    "to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: "
    "AttributeValue: {N:1}",
    # which comes first (dynalite)
    "((a = :s)) AND whatever(a)": REDUNDANT,
    "whatever(a) AND size(a)": "Invalid function name; function: whatever",
    "size(a) AND abort = :s": misused("size"),
    "abort = #undefined": "Attribute name is a reserved keyword; reserved keyword: abort",
    "#undefined = :undefined": UNDEFINED_NAME.format("#undefined"),
    ":undefined = #undefined": UNDEFINED_VALUE.format(":undefined"),
    "begins_with(#undefined)": UNDEFINED_NAME.format("#undefined"),
    "a = a AND b = :undefined": distinct("=", "a"),
    "b = :undefined AND a = a": UNDEFINED_VALUE.format(":undefined"),
}
TYPED: dict[str, dict[str, Any]] = {
    ":s": S,
    ":n": N,
    ":n2": {"N": "2"},
    ":list": {"L": []},
    ":map": {"M": {}},
}


def typed(expression: str) -> dict[str, Any]:
    values = {name: TYPED[name] for name in _references(expression, ":") if name in TYPED}
    return {"ExpressionAttributeValues": values} if values else {}


@pytest.mark.parametrize(("condition", "text"), WRONG_CONDITIONS.items())
def test_a_wrong_condition_is_refused(client: Any, condition: str, text: str) -> None:
    assert refusal(
        client.delete_item,
        TableName="no_such_table",
        Key=KEY,
        ConditionExpression=condition,
        **typed(condition),
    ) == (VALIDATION, f"{ENVELOPE}Invalid ConditionExpression: {text}")


@pytest.mark.parametrize(("condition", "text"), WRONG_CONDITIONS.items())
def test_a_wrong_filter_is_refused_without_a_prefix(client: Any, condition: str, text: str) -> None:
    assert refusal(
        client.scan, TableName="no_such_table", FilterExpression=condition, **typed(condition)
    ) == (VALIDATION, f"Invalid FilterExpression: {text}")


def test_attribute_type_knows_the_names_of_the_types(client: Any) -> None:
    # dynalite; the order of the types varies
    code, text = refusal(
        client.scan,
        TableName="no_such_table",
        FilterExpression="attribute_type(a, :v)",
        ExpressionAttributeValues={":v": {"S": "1"}},
    )
    start = "Invalid FilterExpression: Invalid attribute type name found; type: 1, valid types: "
    assert code == VALIDATION
    assert text.startswith(start)
    types = text.removeprefix(start).strip("{}").split(",")
    assert sorted(types) == ["B", "BOOL", "BS", "L", "M", "N", "NS", "NULL", "S", "SS"]


NO_CONDITIONS = [
    # dynalite
    "a > 4",
    "a in b",
    "a in (b,c,)",
    "a[b] = :s",
    "a > :s.stuff",
    "b[:n] > a",
    "ü > a",
    "size(a).b > a",
    "attribute_exists(Pictures-RearView)",
    "a = ",
    "= a",
    "a == :s",
    "a != :s",
    "a = :s AND",
    "AND a = :s",
    "a = :s b = :s",
    "a = :s; b = :s",
    "NOT",
    "a BETWEEN :s",
    "a BETWEEN :s OR :s",
    "a IN ()",
    "(a = :s",
    "a = :s)",
    "()",
    "a = 'x'",
    'a = "x"',
    "a + b = :s",
    "_a = :s",
    "1a = :s",
    "a..b = :s",
    "a[0 = :s",
    "a[-1] = :s",
    "a[1.5] = :s",
    "a.[0] = :s",
    "# = :s",
    "a = :",
    "a LIKE :s",
    "a = :s\x00",
    "SET a = :s",
]


@pytest.mark.parametrize("condition", NO_CONDITIONS)
def test_what_is_no_condition_is_a_syntax_error(client: Any, condition: str) -> None:
    code, text = refusal(
        client.scan, TableName="no_such_table", FilterExpression=condition, **typed(condition)
    )
    assert code == VALIDATION
    assert text.startswith("Invalid FilterExpression: Syntax error; token: ")


@pytest.mark.parametrize(
    "condition", ["#4g = :_", "#_ = :_", "a = :_ AND #_ = :_", "a.b[0].c = :_", "ab_1 = :_"]
)
def test_references_may_start_with_any_letter_digit_or_underscore(
    client: Any, notes: str, condition: str
) -> None:
    # dynalite
    names = dict.fromkeys(_references(condition, "#"), "x")
    client.scan(
        TableName=notes,
        FilterExpression=condition,
        ExpressionAttributeValues={":_": S},
        **({"ExpressionAttributeNames": names} if names else {}),
    )


@pytest.mark.parametrize("word", ["status", "Name", "COUNT", "data", "year", "size", "ttl", "zone"])
def test_reserved_words_need_a_name(client: Any, word: str) -> None:
    text = f"Attribute name is a reserved keyword; reserved keyword: {word}"
    for call, more, kind, prefix in (
        (client.scan, {"FilterExpression": f"{word} = a"}, "Filter", ""),
        (client.scan, {"ProjectionExpression": word}, "Projection", ""),
        (
            client.put_item,
            {"Item": KEY, "ConditionExpression": f"{word} = a"},
            "Condition",
            ENVELOPE,
        ),
        (
            client.update_item,
            {"Key": KEY, "UpdateExpression": f"SET {word} = a"},
            "Update",
            ENVELOPE,
        ),
        (client.query, {"KeyConditionExpression": f"{word} = a"}, "KeyCondition", ""),
    ):
        assert refusal(call, TableName="no_such_table", **more) == (
            VALIDATION,
            f"{prefix}Invalid {kind}Expression: {text}",
        )


# --- names and values ---

PLACEHOLDERS: dict[str, tuple[dict[str, Any], str]] = {
    # dynalite
    "no names": ({"ExpressionAttributeNames": {}}, "ExpressionAttributeNames must not be empty"),
    "no values": ({"ExpressionAttributeValues": {}}, "ExpressionAttributeValues must not be empty"),
    **{
        f"the name {name!r}": (
            {"ExpressionAttributeNames": {name: "a"}},
            f'ExpressionAttributeNames contains invalid key: Syntax error; key: "{name}"',
        )
        for name in ("a", "#", "#a-b", "#a.b", "##a", ":a", "#é")
    },
    **{
        f"the value {name!r}": (
            {"ExpressionAttributeValues": {name: S}},
            f'ExpressionAttributeValues contains invalid key: Syntax error; key: "{name}"',
        )
        for name in ("a", ":", ":a-b", "::a", "#a")
    },
    # DynamoDB Local
    "an empty name": (
        {"ExpressionAttributeNames": {"": "a"}},
        "ExpressionAttributeNames contains invalid key: "
        "The expression attribute map contains an empty key;",
    ),
    "an empty value": (
        {"ExpressionAttributeValues": {"": S}},
        "ExpressionAttributeValues contains invalid key: "
        "The expression attribute map contains an empty key;",
    ),
    "an unused name": (
        {"ExpressionAttributeNames": {"#unused": "a"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
    "an unused value": (
        {"ExpressionAttributeValues": {":unused": S}},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
    ),
    "names before values": (
        {"ExpressionAttributeNames": {"a": "a"}, "ExpressionAttributeValues": {"b": S}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "the keys of all values before the values": (
        {"ExpressionAttributeValues": {":a": {}, "b": S}},
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"',
    ),
    "a wrong value": (
        {"ExpressionAttributeValues": {":a": {}}},
        "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must "
        "contain exactly one of the supported datatypes for key :a",
    ),
    "unused names before unused values": (
        {"ExpressionAttributeNames": {"#a": "a"}, "ExpressionAttributeValues": {":a": S}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
    ),
}


@pytest.mark.parametrize("case", PLACEHOLDERS)
def test_names_and_values_are_checked_before_the_table_is_looked_up(client: Any, case: str) -> None:
    more, text = PLACEHOLDERS[case]
    assert refusal(
        client.scan, TableName="no_such_table", FilterExpression="attribute_exists(z)", **more
    ) == (VALIDATION, text)


@pytest.mark.parametrize("parameter", ["Names", "Values"])
def test_several_unused_ones_are_named_in_alphabetical_order(client: Any, parameter: str) -> None:
    # recorded
    mark, content = ("#", "a") if parameter == "Names" else (":", S)
    given = {mark + name: content for name in ("zoo", "b10", "B", "b", "b9", "_a")}
    in_order = ", ".join(mark + name for name in ("B", "_a", "b", "b10", "b9", "zoo"))
    assert refusal(
        client.scan,
        TableName="no_such_table",
        FilterExpression="attribute_exists(z)",
        **{f"ExpressionAttribute{parameter}": given},
    ) == (
        VALIDATION,
        f"Value provided in ExpressionAttribute{parameter} unused in expressions: "
        f"keys: {{{in_order}}}",
    )


def test_a_name_may_stand_for_any_attribute(client: Any, notes: str) -> None:
    key = {"pk": {"S": "odd names"}}
    odd = "a.b[0] #:€"
    client.update_item(
        TableName=notes,
        Key=key,
        UpdateExpression="SET #odd = :m, #odd2 = :m",
        ExpressionAttributeNames={"#odd": odd, "#odd2": "a"},
        ExpressionAttributeValues={":m": {"M": {odd: {"S": "in"}}}},
    )
    answer = client.get_item(
        TableName=notes,
        Key=key,
        ProjectionExpression="#odd.#odd",
        ExpressionAttributeNames={"#odd": odd},
    )
    assert answer["Item"] == {odd: {"M": {odd: {"S": "in"}}}}


# --- wrong updates ---


def overlap(one: str, two: str) -> str:
    return (
        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
        f"path one: [{one}], path two: [{two}]"
    )


def conflict(one: str, two: str) -> str:
    return (
        "Two document paths conflict with each other; must remove or rewrite one of these paths; "
        f"path one: [{one}], path two: [{two}]"
    )


def once(section: str) -> str:
    return f'The "{section}" section can only be used once in an update expression;'


def add_type(operator: str, kind: str) -> str:
    # The set of types is named on AWS since about 2021, and by DynamoDB Local.
    return (
        f"Incorrect operand type for operator or function; operator: {operator}, "
        f"operand type: {kind}, typeSet: ALLOWED_FOR_{operator}_OPERAND"
    )


WRONG_UPDATES: dict[str, str] = {
    # recorded
    "": "The expression can not be empty;",
    "INVALID SYNTAX": 'Syntax error; token: "INVALID", near: "INVALID SYNTAX"',
    "INVALID SYNTAX HERE": 'Syntax error; token: "INVALID", near: "INVALID SYNTAX"',
    "SET a = VALUE 1": 'Syntax error; token: "1", near: "VALUE 1"',
    "SET _123 = :s": 'Syntax error; token: "_", near: "SET _123"',
    "SET a = :undefined": UNDEFINED_VALUE.format(":undefined"),
    "SET a = :s, a = :n": overlap("a", "a"),
    "SET a = list_append(list_append(a, :list), :list)": misused("list_append"),
    # dynalite
    "set c = :s set abOrt = true ": "Attribute name is a reserved keyword; reserved keyword: abOrt",
    "set #undefined = if_not_exist(:s) set c = d": "Invalid function name; function: if_not_exist",
    "SET a = LIST_APPEND(a, b)": "Invalid function name; function: LIST_APPEND",
    "set a = #undefined set c = :d": once("SET"),
    "remove a remove b": once("REMOVE"),
    "add a :n add b :n": once("ADD"),
    "delete a :ss delete b :ss": once("DELETE"),
    "SET #undefined = if_not_exists(:undefined)": UNDEFINED_NAME.format("#undefined"),
    "SET a = if_not_exists(:undefined)": UNDEFINED_VALUE.format(":undefined"),
    "set d[1] = a, d.b = a, c[1].a = a, c = if_not_exists(a)": overlap("c, [1], a", "c"),
    "set c[3].d = a, c[3] = a": overlap("c, [3], d", "c, [3]"),
    "remove a.c set a[1] = b": conflict("a, c", "a, [1]"),
    "set a = :s remove a.b": overlap("a", "a, b"),
    "add a :s": add_type("ADD", "STRING"),
    "add a :list": add_type("ADD", "LIST"),
    "add a :map": add_type("ADD", "MAP"),
    "add a :null": add_type("ADD", "NULL"),
    "add a :bool": add_type("ADD", "BOOLEAN"),
    "add a :binary": add_type("ADD", "BINARY"),
    "delete a :n": add_type("DELETE", "NUMBER"),
    "delete a :s": add_type("DELETE", "STRING"),
    "set a = if_not_exists(c)": count("if_not_exists", 1),
    "set a = list_append(a)": count("list_append", 1),
    "set a = list_append(a, b, c)": count("list_append", 3),
    "set a = if_not_exists(:s, c)": needs_path("if_not_exists"),
    "set a = list_append(:s, a)": operand_type("list_append", "S"),
    "set a = list_append(a, :n)": operand_type("list_append", "N"),
    "set a = :s + a": operand_type("+", "S"),
    "set a = a - :list": operand_type("-", "L"),
    "set a = :ss - :s": operand_type("-", "SS"),
}
TYPED |= {
    ":ss": {"SS": ["x"]},
    ":null": {"NULL": True},
    ":bool": {"BOOL": True},
    ":binary": {"B": b"x"},
}


@pytest.mark.parametrize(("update", "text"), WRONG_UPDATES.items())
def test_a_wrong_update_is_refused(client: Any, update: str, text: str) -> None:
    assert refusal(
        client.update_item,
        TableName="no_such_table",
        Key=KEY,
        UpdateExpression=update,
        **typed(update),
    ) == (VALIDATION, f"{ENVELOPE}Invalid UpdateExpression: {text}")


def test_a_name_is_shown_as_what_it_stands_for(client: Any) -> None:
    # dynalite: even if that looks like an index
    assert refusal(
        client.update_item,
        TableName="no_such_table",
        Key=KEY,
        UpdateExpression="set #c[3].#d = a, #c[3] = a",
        ExpressionAttributeNames={"#c": "c", "#d": "[3]"},
    ) == (
        VALIDATION,
        f"{ENVELOPE}Invalid UpdateExpression: {overlap('c, [3], [3]', 'c, [3]')}",
    )


NO_UPDATES = [
    # dynalite
    "whatever",
    "set a",
    "add a",
    "delete a",
    "set a=set",
    "remove a = b",
    "add a = b",
    "delete a b",
    "add abort b",
    "set :s = b",
    "remove :s",
    "set a = b / c",
    "set a = b * c",
    'set a[1] = "eight"',
    "set a[1] = 1",
    "SET a = if_not_exists(a, 100)",
    "set (a = (b + c))",
    "set a = (b.c).d + e",
    "set a = b + c + d",
    "set a = if_not_exists(a, b + c)",
    "set a = b,",
    "set ,a = b",
    "set a = b c = d",
    "remove a,",
    "set 123a = b",
    "set hi-there = b",
    "set hi$there = b",
    'set "x" = b',
    "set !x = b",
    "set a = b AND c = d",
]


@pytest.mark.parametrize("update", NO_UPDATES)
def test_what_is_no_update_is_a_syntax_error(client: Any, update: str) -> None:
    code, text = refusal(
        client.update_item,
        TableName="no_such_table",
        Key=KEY,
        UpdateExpression=update,
        **typed(update),
    )
    assert code == VALIDATION
    assert text.startswith(f"{ENVELOPE}Invalid UpdateExpression: Syntax error; token: ")


# --- a key condition's syntax error ---


def test_a_syntax_error_shows_the_token_and_what_is_before_it(client: Any) -> None:
    # recorded
    assert refusal(
        client.query,
        TableName="no_such_table",
        KeyConditionExpression="pk = :hashId a",
        ExpressionAttributeValues={":hashId": S},
    ) == (
        VALIDATION,
        'Invalid KeyConditionExpression: Syntax error; token: "a", near: ":hashId a"',
    )


# --- the parentheses of a filter (recorded) ---


@pytest.mark.parametrize(
    "expression",
    [
        "(s = :apple) OR (n = :n1)",
        "(s = :apple OR n = :n1)",
        "(s = :apple OR (n = :n1))",
        "(s = :apple) AND (begins_with(s, :app))",
        "((s = :apple) OR (n = :n1))",
        "(n = :n5) AND ((s = :pear) OR (s = :apple))",
    ],
)
def test_single_parentheses_are_allowed(client: Any, notes: str, expression: str) -> None:
    found = client.query(
        TableName=notes,
        KeyConditionExpression="(pk = :pk)",
        FilterExpression=expression,
        ExpressionAttributeValues={
            ":pk": KEY["pk"],
            **used(expression)["ExpressionAttributeValues"],
        },
    )
    assert found["Count"] == 1
