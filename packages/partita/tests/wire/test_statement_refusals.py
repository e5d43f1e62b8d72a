"""Well formed PartiQL that the service does not run, and how it says so.

All of it is recorded: issue 12 and dynamodb-conformance (paritysuite), October 2026, where no other
source is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import INVALID, VALIDATION

MALFORMED = "Statement wasn't well formed, can't be processed: "
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
DIGITS = "Attempting to store more than 38 significant digits in a Number"
MULTI_ATTRIBUTE = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
    "multi-attribute RANGE keys."
)
OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
TOO_MANY_READS = "Too many decomposed read operations for a given query."
KEY_TYPE = "Key attribute's data type should match its data type in table's schema: Key "
MANY_DIGITS = "123456789012345678901234567890123456789"

Refused = Callable[..., str]


@pytest.fixture
def refused(client: Any) -> Refused:
    """Returns the error of ExecuteStatement for a statement."""

    def text(statement: str, *parameters: dict[str, Any]) -> str:
        more = {"Parameters": list(parameters)} if parameters else {}
        with pytest.raises(ClientError) as error:
            client.execute_statement(Statement=statement, **more)
        assert error.value.response["Error"]["Code"] == VALIDATION
        said: str = error.value.response["Error"]["Message"]
        return said

    return text


@pytest.fixture
def refused_transaction(client: Any) -> Refused:
    def text(*statements: str) -> str:
        asked = [{"Statement": statement} for statement in statements]
        with pytest.raises(ClientError) as error:
            client.execute_transaction(TransactStatements=asked)
        assert error.value.response["Error"]["Code"] == VALIDATION
        said: str = error.value.response["Error"]["Message"]
        return said

    return text


@pytest.fixture
def batch_errors(client: Any) -> Callable[..., list[Any]]:
    def errors(*statements: str) -> list[Any]:
        asked = [{"Statement": statement} for statement in statements]
        answer = client.batch_execute_statement(Statements=asked)
        return [one.get("Error") for one in answer["Responses"]]

    return errors


@pytest.fixture
def things(client: Any, table: Any) -> str:
    name: str = table()
    item = {"pk": {"S": "a"}, "n": {"N": "1"}, "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1"]}}
    client.put_item(TableName=name, Item=item)
    return f'"{name}"'


def error(message: str) -> dict[str, str]:
    return {"Code": "ValidationError", "Message": message}


def located(message: str, position: int = 0) -> str:
    return f"Validation failed in TransactStatements[{position}]: {message}"


# Literals

LITERALS: dict[str, str] = {
    "1e126": f"{OVERFLOW} under root",
    "-1e126": f"{OVERFLOW} under root",
    "1e-131": f"{UNDERFLOW} under root",
    "1e2147483647": f"{UNDERFLOW} under root",
    MANY_DIGITS: f"{DIGITS} under root",
    f"-0.{MANY_DIGITS}": f"{DIGITS} under root",
    "{'x': 1e126}": f"{OVERFLOW} under root.x",
    "[1, 1e126]": f"{OVERFLOW} under root[1]",
    "[1e-131]": f"{UNDERFLOW} under root[0]",
    "{'x': 1, 'y': {'z': [0, [1, " + MANY_DIGITS + "]]}}": f"{DIGITS} under root.y.z[1][1]",
    "[[], {'a b': [1e-131]}]": f"{UNDERFLOW} under root[1].a b[0]",
    "<<1, 1e126>>": f"{OVERFLOW} under root",
    "{'x': <<1e126>>}": f"{OVERFLOW} under root.x",
    # floci's tests, captured from the service in September 2026
    "[" * 32 + "1" + "]" * 32: "Nesting Levels have exceeded supported limits under root"
    + "[0]" * 32,
    "{'a': " + "[" * 31 + "1" + "]" * 31 + "}": (
        "Nesting Levels have exceeded supported limits under root.a" + "[0]" * 31
    ),
    "{'a': " * 32 + "1" + "}" * 32: (
        "Nesting Levels have exceeded supported limits under root" + ".a" * 32
    ),
    "<<'x', 'x'>>": f"{INVALID}Input collection [x, x] contains duplicates.",
    "<<'x', 'y', 'x'>>": f"{INVALID}Input collection [x, y, x] contains duplicates.",
    "[{'m': <<'x', 'x'>>}]": f"{INVALID}Input collection [x, x] contains duplicates.",
    "<<2, 2.0>>": f"{INVALID}Input collection [2, 2.0] contains duplicates! under root",
    "{'m': <<1, 2, 1>>}": f"{INVALID}Input collection [1, 2, 1] contains duplicates! under root.m",
    "<<>>": "Empty bags are not supported",
    "{'m': [<<>>]}": "Empty bags are not supported",
}
LITERAL_PLACES: dict[str, str] = {
    "a condition": "SELECT * FROM {t} WHERE pk = 'a' AND v = {v}",
    "a list of candidates": "SELECT * FROM {t} WHERE pk = 'a' AND v IN [1, {v}]",
    "an insert": "INSERT INTO {t} VALUE {{'pk': 'new', 'v': {v}}}",
    "an update": "UPDATE {t} SET w = 1, v = {v} WHERE pk = 'a'",
    "the condition of an update": "UPDATE {t} SET w = 1 WHERE pk = 'a' AND v = {v}",
    "a delete": "DELETE FROM {t} WHERE pk = 'a' AND v = {v}",
}


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_that_is_no_value_tells_its_path(
    refused: Refused, things: str, literal: str
) -> None:
    said = {
        place: refused(statement.format(t=things, v=literal))
        for place, statement in LITERAL_PLACES.items()
    }
    assert said == dict.fromkeys(LITERAL_PLACES, LITERALS[literal])


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_that_is_no_value_in_a_batch_and_in_a_transaction(
    batch_errors: Callable[..., list[Any]],
    refused_transaction: Refused,
    things: str,
    literal: str,
) -> None:
    wrong = f"UPDATE {things} SET v = {literal} WHERE pk = 'a'"
    right = f"INSERT INTO {things} VALUE {{'pk': 'b'}}"
    assert batch_errors(wrong, right) == [error(LITERALS[literal]), None]
    insert = f"INSERT INTO {things} VALUE {{'pk': 'c'}}"
    assert refused_transaction(insert, wrong) == located(LITERALS[literal], 1)


def test_the_path_of_a_number_begins_at_its_attribute(refused: Refused, things: str) -> None:
    assert refused(f"INSERT INTO {things} VALUE {{'pk': 1e126}}") == f"{OVERFLOW} under root"
    assert refused(f"SELECT * FROM {things} WHERE pk = 1e126") == f"{OVERFLOW} under root"
    statement = f"UPDATE {things} SET m.x.y = [1e126] WHERE pk = 'a'"
    assert refused(statement) == f"{OVERFLOW} under root[0]"


@pytest.mark.parametrize(
    ("literal", "what"),
    [
        # floci's tests for lists; the rest is DynamoDB Local's
        ("[1, ?]", "Unsupported data type: Parameter under key root[1]"),
        ("{'k': ?}", "Unsupported data type: Parameter under key root.k"),
        ("{'k': [[?]]}", "Unsupported data type: Parameter under key root.k[0][0]"),
    ],
)
def test_a_parameter_inside_of_a_literal_tells_its_path(
    refused: Refused, things: str, literal: str, what: str
) -> None:
    statement = f"UPDATE {things} SET v = {literal} WHERE pk = 'a'"
    said = refused(statement, {"S": "x"})
    assert said == f"{what} at 1:{statement.index('?') + 1}:1"


@pytest.mark.parametrize("zero", ["-0.0", "-0e5", "-.0"])
def test_a_decimal_zero_has_no_sign(refused: Refused, things: str, zero: str) -> None:
    # DynamoDB Local
    statement = f"UPDATE {things} SET n = [{zero}] WHERE pk = 'a'"
    place = f"1:{statement.index(zero) + 2}:{len(zero) - 1}"
    assert refused(statement) == (
        f"Negative zero decimal is not supported under key root[0] at {place}"
    )


@pytest.mark.parametrize(
    "rest",
    [
        "pk = 1e2147483648",
        "pk = 1e-2147483648",
        "pk = 1e99999999999",
        "pk = -1E+99999999999",
        "pk = 1.5e-2147483647",
        "m = {'x': [1e2147483648]}",
        "pk = 'a' /* note",
        "/* note pk = 'a'",
        "pk = 'a' AND n = 1 /*",
        "pk = 'a' # note",
    ],
)
def test_what_the_lexer_cannot_read_is_malformed_without_words(
    refused: Refused,
    refused_transaction: Refused,
    batch_errors: Callable[..., list[Any]],
    things: str,
    rest: str,
) -> None:
    for statement in (f"SELECT * FROM {things} WHERE {rest}", f"DELETE FROM {things} WHERE {rest}"):
        assert refused(statement) == MALFORMED
        assert refused_transaction(statement) == located(MALFORMED)
        assert batch_errors(statement) == [error(MALFORMED)]


def test_a_comment_that_ends_is_blank(client: Any, things: str) -> None:
    statement = f"SELECT/**/n FROM {things} /* a / * b */ WHERE pk = /***/ 'a' -- /* c"
    assert client.execute_statement(Statement=statement)["Items"] == [{"n": {"N": "1"}}]


# Functions


@pytest.mark.parametrize(
    ("statement", "name", "what"),
    [
        ("SELECT * FROM {t} WHERE pk = 'a' AND EXISTS(ss)", "EXISTS", "Unrecognized function: "),
        ("SELECT * FROM {t} WHERE\n  exists (ss)", "exists", "Unrecognized function: "),
        ("SELECT * FROM {t} WHERE set_add(ss, <<'x'>>) = ss", "set_add", "Unrecognized function: "),
        ("DELETE FROM {t} WHERE SET_DELETE(ss, ss)", "SET_DELETE", "Unrecognized function: "),
        ("UPDATE {t} SET n = Foo(n) WHERE pk = 'a'", "Foo", "Unrecognized function: "),
        ("UPDATE {t} SET n = upper(n) WHERE pk = 'a'", "upper", "Unrecognized function: "),
        ("UPDATE {t} SET n = 1\n\nWHERE pk = 'a' AND\n\tbar(n)", "bar", "Unrecognized function: "),
    ],
)
def test_an_unknown_function_is_told_with_its_place(
    refused: Refused,
    refused_transaction: Refused,
    batch_errors: Callable[..., list[Any]],
    things: str,
    statement: str,
    name: str,
    what: str,
) -> None:
    text = statement.format(t=things)
    said = f"{what}{name.lower()} at {place_of(text, name)}"
    assert refused(text) == said
    assert refused_transaction(text) == located(said)
    assert batch_errors(text) == [error(said)]


@pytest.mark.parametrize("name", ["set_add", "SET_DELETE", "Set_Add"])
@pytest.mark.parametrize(
    "assignment",
    ["t = {f}(ss, <<'x'>>)", "ss = {f}(<<'a'>>, <<'b'>>)", "m.x = {f}(m.y, ?)", "ss = {f}(?, ?)"],
)
def test_the_first_argument_of_a_set_function_is_what_it_is_assigned_to(
    refused: Refused, refused_transaction: Refused, things: str, name: str, assignment: str
) -> None:
    text = f"UPDATE {things}\nSET {assignment.format(f=name)} WHERE pk = 'a'"
    said = (
        f"The first argument to {name.upper()} must equal the assignment value at "
        f"{place_of(text, name)}"
    )
    assert refused(text) == said
    assert refused_transaction(text) == located(said)


@pytest.mark.parametrize("name", ["set_add", "set_delete"])
def test_the_other_refusals_of_set_functions(refused: Refused, things: str, name: str) -> None:
    def said(call: str) -> tuple[str, str]:
        text = f"UPDATE {things} SET ss = {name}({call}) WHERE pk = 'a'"
        return refused(text), text

    shown = name.upper()
    for call in ("ss", "ss, <<'x'>>, <<'y'>>", ""):
        message, text = said(call)
        assert message == f"{shown} must have exactly two arguments at {place_of(text, name)}"
    # The place is the first argument's.
    for call in ("ss, 'x'", "ss, ['x']"):
        message, text = said(call)
        column = text.index("(ss") + 2
        assert (
            message
            == f"The second argument to {shown} must be a value with type SET at 1:{column}:2"
        )
    assert said("ss, <<'x', 'x'>>")[0] == f"{INVALID}Input collection [x, x] contains duplicates."
    assert said("ss, <<>>")[0] == "Empty bags are not supported"
    assert said("ss, <<1>>")[0] == "An operand in the update expression has an incorrect data type"


def test_a_set_function_is_no_value(refused: Refused, things: str) -> None:
    text = f"INSERT INTO {things} VALUE {{'pk': 'b', 'ss': set_add(<<'a'>>, <<'b'>>)}}"
    assert refused(text) == (
        f"Unsupported data type: set_add under key root at {place_of(text, 'set_add')}"
    )


def place_of(text: str, name: str) -> str:
    """Line and column of a name's first occurrence, and its length."""
    before = text[: text.index(name)]
    column = len(before) - before.rfind("\n")
    return f"{before.count(chr(10)) + 1}:{column}:{len(name)}"


# Types


@pytest.mark.parametrize(
    "name",
    ["INT4", "INT8", "int8", "DOUBLE PRECISION", "CHARACTER VARYING", "Double  Precision", "INT"],
)
def test_a_type_test_is_no_statement(
    refused: Refused, refused_transaction: Refused, name: str
) -> None:
    for test in (f"x IS {name}", f"(x IS {name})", f"a.b IS {name}"):
        assert refused(test) == "Unsupported operation: IsType"
        assert refused_transaction(test) == "Unsupported operation: IsType"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("INT4", "INTEGER4"),
        ("INT8", "INTEGER8"),
        ("DOUBLE PRECISION", "DOUBLE_PRECISION"),
        ("CHARACTER VARYING(5)", "CHARACTER_VARYING"),
    ],
)
def test_a_type_that_no_value_has_is_told_in_a_condition(
    refused: Refused, things: str, name: str, shown: str
) -> None:
    # DynamoDB Local, for those that it knows
    text = f"SELECT * FROM {things} WHERE n IS {name}"
    assert refused(text) == (
        f"Unsupported data type for IS operator: {shown}. Supported data types are [MISSING, NULL, "
        f"BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at {place_of(text, 'IS')}"
    )


def test_what_is_no_type(refused: Refused, client: Any, things: str) -> None:
    for name in ("FOO", '"int4"', "int16", "'INT4'"):
        said = refused(f"SELECT * FROM {things} WHERE n IS {name}")
        assert said == f"{MALFORMED}Expected type name"
    # A type's name is still one of an attribute.
    statement = f"SELECT int4 FROM {things} WHERE int8 IS MISSING"
    assert client.execute_statement(Statement=statement)["Items"] == [{}]


# Indexes whose key has several attributes


@pytest.fixture
def indexed(client: Any, table: Any) -> str:
    """A table with an index of one attribute and two of several, one by HASH, one by RANGE."""
    keys = {
        "single": ("h:HASH", "r:RANGE"),
        "hashes": ("h:HASH", "i:HASH", "r:RANGE"),
        "ranges": ("h:HASH", "r:RANGE", "q:RANGE"),
    }
    name: str = table(
        attributes={"h": "S", "i": "S", "r": "S", "q": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    dict(zip(("AttributeName", "KeyType"), one.split(":"), strict=True))
                    for one in attributes
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, attributes in keys.items()
        ],
    )
    item = {key: {"S": "x"} for key in ("pk", "h", "i", "r", "q")}
    client.put_item(TableName=name, Item=item)
    return f'"{name}"'


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {t} WHERE h = 'x'",
        "SELECT pk FROM {t} WHERE h = 'x' AND i = 'x' ORDER BY r DESC",
        # Ahead of values of a wrong type, of a missing WHERE, and of what is never supported.
        "SELECT * FROM {t} WHERE h = 5",
        "SELECT * FROM {t} WHERE h < TRUE",
        "SELECT * FROM {t} WHERE h = 1e126",
        "SELECT * FROM {t} WHERE h = <<>>",
        "SELECT * FROM {t} WHERE pk = 'x'",
        "SELECT * FROM {t}",
        "SELECT COUNT(*) FROM {t}",
        "SELECT size(h) FROM {t}",
        "SELECT * FROM {t} LIMIT 1",
        "SELECT * FROM {t} ORDER BY h",
        "SELECT * FROM {t} WHERE h = ?",
        "SELECT * FROM {t} WHERE foo(h)",
        "UPDATE {t} SET n = 1 WHERE h = 'x'",
        "DELETE FROM {t} WHERE h = 'x'",
        "INSERT INTO {t} VALUE {{'pk': 'y'}}",
    ],
)
def test_no_statement_runs_on_an_index_with_a_key_of_several_attributes(
    refused: Refused,
    refused_transaction: Refused,
    batch_errors: Callable[..., list[Any]],
    indexed: str,
    statement: str,
) -> None:
    for index in ("hashes", "ranges"):
        text = statement.format(t=f'{indexed}."{index}"')
        assert refused(text) == MULTI_ATTRIBUTE
        assert refused_transaction(text) == located(MULTI_ATTRIBUTE)
        assert batch_errors(text) == [error(MULTI_ATTRIBUTE)]


def test_what_comes_before_the_index(refused: Refused, indexed: str) -> None:
    source = f'{indexed}."hashes"'
    parameter = {"N": "1e99999999999"}
    assert refused(f"SELECT * FROM {source} WHERE h = ?", parameter) == (
        "The parameter cannot be converted to a numeric value: 1e99999999999"
    )
    assert refused(f"SELECT * FROM {source} WHERE") == f"{MALFORMED}Unexpected term"
    assert refused(f"SELECT * FROM {source} WHERE h = 1e99999999999") == MALFORMED


def test_in_a_batch_only_the_member_that_reads_the_index_fails(client: Any, indexed: str) -> None:
    single, several, alone = client.batch_execute_statement(
        Statements=[
            {"Statement": f"SELECT * FROM {indexed}.single WHERE h = 'x' AND r = 'x'"},
            {"Statement": f"SELECT * FROM {indexed}.ranges WHERE h = 'x' AND r = 'x'"},
            {"Statement": f"SELECT pk FROM {indexed} WHERE pk = 'x'"},
        ]
    )["Responses"]
    assert single["Error"] == error(
        "Select statements within BatchExecuteStatement must specify the primary key in the where "
        "clause."
    )
    assert several == {"Error": error(MULTI_ATTRIBUTE)}
    assert alone["Item"] == {"pk": {"S": "x"}}


def test_the_rest_of_such_a_table_is_open_to_statements(client: Any, indexed: str) -> None:
    def items(statement: str) -> Any:
        return client.execute_statement(Statement=statement)["Items"]

    assert items(f"SELECT pk FROM {indexed} WHERE pk = 'x'") == [{"pk": {"S": "x"}}]
    assert items(f"SELECT pk FROM {indexed}.single WHERE h = 'x'") == [{"pk": {"S": "x"}}]
    assert items(f"INSERT INTO {indexed} VALUE {{'pk': 'y'}}") == []
    assert items(f"UPDATE {indexed} SET n = 1 WHERE pk = 'y'") == []
    assert items(f"DELETE FROM {indexed} WHERE pk = 'y' RETURNING ALL OLD *") == [
        {"pk": {"S": "y"}, "n": {"N": "1"}}
    ]


# Reads that overlap


@pytest.fixture
def pairs(client: Any, table: Any) -> str:
    """Three items under the key a, one under b."""
    name: str = table(sk="S")
    for pk, sk in ("a1", "a2", "a3", "b1"):
        item = {"pk": {"S": pk}, "sk": {"S": sk}, "x": {"S": sk}}
        client.put_item(TableName=name, Item=item)
    return f'"{name}"'


@pytest.mark.parametrize(
    "where",
    [
        "pk = 'a' AND x = '1' OR pk = 'a' AND sk = '2'",
        "pk = 'a' AND x <> '1' OR pk = 'a' AND sk = '2'",
        "pk = 'a' AND sk = '2' OR x = '1' AND 'a' = pk",
        "pk = 'a' AND NOT x = '1' OR pk = 'a' AND sk = '2'",
        "pk = 'a' OR pk = 'a' AND sk = '2'",
        "pk = 'b' OR (pk = 'a' AND x = '1') OR (pk = 'a' AND begins_with(sk, '2'))",
        "(pk = 'a' AND (x = '1' OR sk > '1')) OR pk = 'b'",
        # floci's tests, captured from the service in September 2026
        "pk IN ['a', 'a']",
        "pk = 'a' OR pk = 'a'",
        "pk = 'a' AND (sk > '0' OR sk < '5')",
        "pk = 'a' AND (sk = '1' OR x = '2')",
        "(pk = 'a' AND x = '1') OR (pk = 'a' AND x = '2')",
        # What follows from it.
        "pk = 'a' AND sk IN ['1', '2', '1']",
        "pk = 'a' AND sk <= '2' OR pk = 'a' AND sk >= '2'",
        "pk = 'a' AND sk BETWEEN '1' AND '3' OR pk = 'a' AND sk = '2'",
        "pk = 'a' AND begins_with(sk, '') OR pk = 'a' AND sk = '2'",
        "pk IN ['a', 'b'] OR pk = 'b' AND sk = '1'",
    ],
)
def test_reads_of_one_partition_that_overlap_are_refused(
    refused: Refused,
    refused_transaction: Refused,
    batch_errors: Callable[..., list[Any]],
    pairs: str,
    where: str,
) -> None:
    statement = f"SELECT * FROM {pairs} WHERE {where}"
    assert refused(statement) == OVERLAPPING
    assert refused_transaction(statement) == located(OVERLAPPING)
    assert batch_errors(statement) == [error(OVERLAPPING)]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        # Branches that negate the sort key, or compare it with <>.
        ("pk = 'a' AND NOT sk = '1' OR pk = 'a' AND sk = '2'", "23"),
        ("pk = 'a' AND sk <> '1' OR pk = 'a' AND sk = '2'", "23"),
        ("pk = 'a' AND '1' <> sk OR pk = 'a' AND sk = '2'", "23"),
        ("pk = 'a' AND NOT begins_with(sk, 'x') OR pk = 'a' AND sk = '2'", "123"),
        ("pk = 'a' AND NOT sk IN ['1', '3'] OR pk = 'a' AND sk = '2'", "2"),
        ("pk = 'a' AND sk NOT IN ['1', '3'] OR pk = 'a' AND sk = '2'", "2"),
        ("pk = 'a' AND NOT sk > '5' OR pk = 'a' AND sk = '2'", "123"),
        ("pk = 'a' AND NOT (sk = '1') OR pk = 'a' AND sk = '2'", "23"),
        ("pk = 'a' AND NOT (sk = '1' AND x = '1') OR pk = 'a' AND sk = '2'", "23"),
        ("pk = 'a' AND NOT size(sk) > 5 OR pk = 'a' AND sk = '2'", "123"),
        ("pk = 'a' OR pk = 'a' AND NOT sk = '1'", "123"),
        ("pk = 'a' AND (sk <> '1' OR sk = '1')", "123"),
        # floci's tests
        ("pk = 'a' AND (sk = '1' OR sk = '2')", "12"),
        ("pk = 'a' AND sk IN ['1', '2']", "12"),
        ("pk = 'a' AND (sk < '1' OR sk > '1' OR sk = '1')", "123"),
        ("pk = 'a' AND sk = '1' AND sk > '0'", "1"),
        ("pk = 'a' OR sk = '1'", "1123"),
        # What follows from it: other partitions, ranges that only touch, filters, scans.
        ("pk = 'a' AND sk < '2' OR pk = 'a' AND sk >= '2'", "123"),
        ("pk = 'a' AND sk = '1' AND sk = '2' OR pk = 'a' AND sk > '0'", "123"),
        ("pk = 'a' AND (x = '1' OR x = '2')", "12"),
        ("pk = 'a' AND x = '1' OR pk = 'b'", "11"),
        ("(pk = 'a' OR pk = 'b') AND sk = '1'", "11"),
        ("pk = 'a' AND (pk = 'b' OR x = '1')", "1"),
        ("NOT (pk = 'a' OR pk = 'a')", "1"),
        ("(pk = 'a' OR pk = 'a') OR x = '1'", "1123"),
    ],
)
def test_reads_that_do_not_overlap_run(client: Any, pairs: str, where: str, found: str) -> None:
    answer = client.execute_statement(Statement=f"SELECT sk FROM {pairs} WHERE {where}")
    assert sorted(item["sk"]["S"] for item in answer["Items"]) == [*found]


def test_reads_overlap_without_a_sort_key_too(refused: Refused, things: str) -> None:
    # floci's tests
    select = f"SELECT * FROM {things} WHERE "
    assert refused(f"{select}(pk = 'a' AND n = 1) OR (pk = 'a' AND n = 2)") == OVERLAPPING
    assert refused(f"{select}pk IN ['a', 'b', 'a']") == OVERLAPPING


def test_reads_of_an_index_overlap_on_its_own_key(
    client: Any, refused: Refused, indexed: str
) -> None:
    select = f"SELECT pk FROM {indexed}.single WHERE "
    assert refused(f"{select}h = 'x' AND q = 'x' OR h = 'x' AND r = 'y'") == OVERLAPPING
    for where in ("h = 'x' AND r = 'x' OR h = 'x' AND r = 'y'", "pk = 'x' OR pk = 'x'"):
        assert len(client.execute_statement(Statement=select + where)["Items"]) == 1


def test_writes_name_one_item_and_so_never_overlap(refused: Refused, pairs: str) -> None:
    where = "pk = 'a' AND x = '1' OR pk = 'a' AND sk = '2'"
    no_key = "Where clause does not contain a mandatory equality on all key attributes"
    assert refused(f"UPDATE {pairs} SET n = 1 WHERE {where}") == no_key
    assert refused(f"DELETE FROM {pairs} WHERE {where}") == no_key


@pytest.mark.parametrize(
    "where",
    [
        # floci's tests
        "pk IN [{51}]",
        "pk = 'a' AND sk IN [{51}]",
        "pk IN [{26}] AND sk IN ['1', '2']",
        # What follows from it.
        "pk = 'a' AND sk = '1' OR pk IN [{50}]",
        " AND ".join("(pk = 'a' OR pk = 'b')" for _ in range(70)),
    ],
)
def test_a_statement_makes_at_most_50_reads(refused: Refused, pairs: str, where: str) -> None:
    assert refused(f"SELECT * FROM {pairs} WHERE {filled(where)}") == TOO_MANY_READS


@pytest.mark.parametrize(
    "where",
    [
        "pk IN [{50}] AND x IN [{100}]",
        "pk IN [{51}] OR x = '1'",
        "pk IN [{25}] AND sk IN ['1', '2']",
        "NOT pk IN [{51}]",
        "sk IN [{51}]",
        " AND ".join("(pk = 'a' OR x = 'b')" for _ in range(70)),
    ],
)
def test_statements_that_make_no_more_reads_run(client: Any, pairs: str, where: str) -> None:
    client.execute_statement(Statement=f"SELECT * FROM {pairs} WHERE {filled(where)}")


def filled(where: str) -> str:
    """`{3}` stands for three values."""
    for count in (25, 26, 50, 51, 100):
        values = ", ".join(f"'v{number}'" for number in range(count))
        where = where.replace(f"{{{count}}}", values)
    return where


@pytest.mark.parametrize(
    ("where", "attribute"),
    [
        # floci's tests
        ("pk = 1 OR pk = 'a'", "pk"),
        ("pk = 'a' AND sk IN ['1', 2]", "sk"),
        # What follows from it.
        ("pk = 'a' AND sk = '1' OR pk = 'b' AND sk < 1", "sk"),
        ("pk IN ['a', [1]]", "pk"),
    ],
)
def test_keys_of_a_wrong_type_among_alternatives(
    refused: Refused, pairs: str, where: str, attribute: str
) -> None:
    assert refused(f"SELECT * FROM {pairs} WHERE {where}") == KEY_TYPE + attribute


# Filters on what an index does not have


@pytest.fixture
def sparse(client: Any, table: Any) -> str:
    """Two partitions of an index that projects one attribute of two."""
    name: str = table(
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "byG",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["p"]},
            }
        ],
    )
    for g in ("y", "z"):
        item = {"pk": {"S": g}, "g": {"S": g}, "p": {"S": "1"}, "q": {"S": "1"}}
        client.put_item(TableName=name, Item=item)
    return f'"{name}".byG'


@pytest.mark.parametrize(
    ("where", "missing"),
    [
        # dynamodb-conformance (nubo-db), recorded from the service in 2026
        ("g = 'y' AND q = '1'", "[q]"),
        ("g = 'y' AND NOT q = '1'", "[q]"),
        ("g IN ['y', 'z'] AND q = '1'", "[q]"),
        # floci's tests: of several branches the last one is named
        ("g = 'y' AND NOT (q = '1' OR p = '1')", "[q]"),
        ("(g = 'y' OR g = 'z') AND q = '1'", "[q]"),
        ("(g = 'y' AND q = '1') OR (g = 'z' AND r = '1')", "[r]"),
        ("(g = 'z' AND q = '1') OR (g = 'y' AND r = '1')", "[q]"),
    ],
)
def test_an_index_is_not_read_if_no_branch_could_be_filtered(
    refused: Refused, sparse: str, where: str, missing: str
) -> None:
    assert refused(f"SELECT pk FROM {sparse} WHERE {where}") == (
        f"{INVALID}Secondary index byG does not project one or more filter attributes: {missing}"
    )


@pytest.mark.parametrize(
    ("where", "found"),
    [
        # dynamodb-conformance (nubo-db)
        ("(g = 'y' AND q = '1') OR g = 'z'", ["z"]),
        ("q = '1'", []),
        # floci's tests
        ("(g = 'y' AND p = '1') OR (g = 'z' AND q = '1')", ["y"]),
        ("g = 'y' AND (g = 'z' OR q = '1')", []),
        ("(g = 'y' AND q = '1') OR q = '1'", []),
        ("g > 'a' AND q = '1'", []),
    ],
)
def test_an_index_that_is_read_shows_only_what_it_has(
    client: Any, sparse: str, where: str, found: list[str]
) -> None:
    answer = client.execute_statement(Statement=f"SELECT pk FROM {sparse} WHERE {where}")
    assert [item["pk"]["S"] for item in answer["Items"]] == found


# Single reads


@pytest.mark.parametrize(
    "where",
    [
        # floci's tests
        "pk IN ['a'] AND sk IN ['1']",
        "(pk IN ['a']) AND pk = 'a' AND sk = '1'",
        "(sk = '1') AND pk = 'a' AND pk = 'a'",
    ],
)
def test_an_in_of_one_value_names_an_item(client: Any, pairs: str, where: str) -> None:
    asked = [{"Statement": f"SELECT sk FROM {pairs} WHERE {where}"}]
    item = {"sk": {"S": "1"}}
    assert client.execute_transaction(TransactStatements=asked)["Responses"] == [{"Item": item}]
    (answer,) = client.batch_execute_statement(Statements=asked)["Responses"]
    assert answer["Item"] == item


@pytest.mark.parametrize(
    "where",
    [
        # floci's tests
        "pk = 'a' AND sk = '1' AND pk = 'b'",
        "pk IN ['b'] AND pk = 'a' AND sk = '1'",
        "pk = 'a' AND sk = '1' AND x = '1'",
        "pk = 'a'",
        # What follows from it.
        "pk IN ['a', 'b'] AND sk = '1'",
    ],
)
def test_a_single_read_names_its_item_and_nothing_else(
    refused_transaction: Refused,
    batch_errors: Callable[..., list[Any]],
    pairs: str,
    where: str,
) -> None:
    statement = f"SELECT sk FROM {pairs} WHERE {where}"
    said = "Select statements within {} must specify the primary key in the where clause."
    assert refused_transaction(statement) == located(said.format("ExecuteTransaction"))
    assert batch_errors(statement) == [error(said.format("BatchExecuteStatement"))]
