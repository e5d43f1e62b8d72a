"""Parameters of PartiQL statements are checked first and in order, with the service's older texts.

What is refused is recorded: issue 12 and dynamodb-conformance (paritysuite), October 2026, where no
other source is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import INVALID, VALIDATION

NOT_NUMERIC = "The parameter cannot be converted to a numeric value"
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
DUPLICATES = f"{INVALID}Input collection [a, a] contains duplicates."
MALFORMED = "Statement wasn't well formed, can't be processed: "

Value = dict[str, Any]
Refused = Callable[..., str]


def nested(levels: int, leaf: Value | None = None) -> Value:
    value = leaf or {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


NUMBERS: dict[str, str] = {
    # An exponent, or the scale that follows from it, beyond 32 bits.
    "1e99999999999": f"{NOT_NUMERIC}: 1e99999999999",
    "-1e99999999999": f"{NOT_NUMERIC}: -1e99999999999",
    "1e-99999999999": f"{NOT_NUMERIC}: 1e-99999999999",
    "1e2147483648": f"{NOT_NUMERIC}: 1e2147483648",
    "1e-2147483648": f"{NOT_NUMERIC}: 1e-2147483648",
    "1.5e-2147483647": f"{NOT_NUMERIC}: 1.5e-2147483647",
    "0e2147483648": f"{NOT_NUMERIC}: 0e2147483648",
    # The magnitude runs over at 32 bits.
    "1e2147483647": UNDERFLOW,
    "-1E+2147483647": UNDERFLOW,
    "12e2147483646": UNDERFLOW,
    "1e2147483646": OVERFLOW,
    "1e-2147483647": UNDERFLOW,
    "": NOT_NUMERIC,
    "abc": f"{NOT_NUMERIC}: abc",
    "1e126": OVERFLOW,
    "1e-131": UNDERFLOW,
    "1" * 39: "Attempting to store more than 38 significant digits in a Number",
}
STATEMENTS: dict[str, str] = {
    "a condition": "SELECT * FROM {t} WHERE pk = 'a' AND n = ?",
    "a key": "SELECT * FROM {t} WHERE pk = ?",
    "an insert": "INSERT INTO {t} VALUE {{'pk': 'new', 'sk': 's', 'n': ?}}",
    "an inserted key": "INSERT INTO {t} VALUE {{'pk': ?, 'sk': 's'}}",
    "an update": "UPDATE {t} SET n = ? WHERE pk = 'a' AND sk = 's'",
    "the key of an update": "UPDATE {t} SET n = 1 WHERE pk = ? AND sk = 's'",
    "a delete": "DELETE FROM {t} WHERE pk = 'a' AND sk = 's' AND n = ?",
    "nothing": "SELECT * FROM {t} WHERE pk = 'a'",
}
VALUES: dict[str, tuple[Value, str]] = {
    "in a list": ({"L": [{"N": "1"}, {"N": "1e2147483648"}]}, f"{NOT_NUMERIC}: 1e2147483648"),
    "in a map": ({"M": {"x": {"N": "1e-99999999999"}}}, f"{NOT_NUMERIC}: 1e-99999999999"),
    "in a set": ({"NS": ["1", "1e99999999999"]}, f"{NOT_NUMERIC}: 1e99999999999"),
    "deep inside": (nested(30, {"L": [{"N": ""}]}), NOT_NUMERIC),
    "running over deep inside": (nested(31, {"N": "1e2147483647"}), UNDERFLOW),
    "33 levels deep": (nested(33), TOO_DEEP),
    "100 levels deep": (nested(100), TOO_DEEP),
    "below what is too deep": (nested(40, {"N": "abc"}), TOO_DEEP),
    "before what is too deep": (
        {"M": {"bad": {"N": "abc"}, "deep": nested(40)}},
        f"{NOT_NUMERIC}: abc",
    ),
    "behind what is too deep": ({"M": {"deep": nested(40), "bad": {"N": "abc"}}}, TOO_DEEP),
    # floci's tests, captured from the service in September 2026
    "a repeated member": ({"SS": ["a", "a"]}, DUPLICATES),
    "an empty set": ({"SS": []}, f"{INVALID}An string set  may not be empty"),
    "a null that is none": (
        {"NULL": False},
        f"{INVALID}Null attribute value types must have the value of true",
    ),
}


@pytest.fixture
def pairs(client: Any, table: Any) -> str:
    name: str = table(sk="S")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "s"}})
    return f'"{name}"'


@pytest.fixture
def refused(client: Any) -> Refused:
    """Returns the error of ExecuteStatement for a statement and its parameters."""

    def text(statement: str, *parameters: Value) -> str:
        with pytest.raises(ClientError) as error:
            client.execute_statement(Statement=statement, Parameters=list(parameters))
        assert error.value.response["Error"]["Code"] == VALIDATION
        said: str = error.value.response["Error"]["Message"]
        return said

    return text


@pytest.fixture
def refused_transaction(client: Any) -> Refused:
    def text(*statements: dict[str, Any]) -> str:
        with pytest.raises(ClientError) as error:
            client.execute_transaction(TransactStatements=list(statements))
        assert error.value.response["Error"]["Code"] == VALIDATION
        said: str = error.value.response["Error"]["Message"]
        return said

    return text


def asked(statement: str, *parameters: Value) -> dict[str, Any]:
    return {"Statement": statement, "Parameters": list(parameters)}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_is_none(refused: Refused, pairs: str, number: str) -> None:
    assert everywhere(refused, pairs, {"N": number}) == dict.fromkeys(STATEMENTS, NUMBERS[number])


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_is_none(refused: Refused, pairs: str, case: str) -> None:
    value, said = VALUES[case]
    assert everywhere(refused, pairs, value) == dict.fromkeys(STATEMENTS, said)


def everywhere(refused: Refused, table: str, value: Value) -> dict[str, str]:
    """The error of a parameter depends on its position."""
    return {
        place: refused(statement.format(t=table), value) for place, statement in STATEMENTS.items()
    }


def test_numbers_up_to_the_bounds_are_values(client: Any, pairs: str) -> None:
    statement = f"UPDATE {pairs} SET n = ?, m = ? WHERE pk = 'a' AND sk = 's' RETURNING ALL NEW *"
    answer = client.execute_statement(
        Statement=statement, Parameters=[{"N": "9.9E+125"}, nested(31, {"N": "1e-130"})]
    )
    assert answer["Items"][0]["n"] == {"N": "99" + "0" * 124}


@pytest.mark.parametrize("levels", [33, 40, 100])
def test_the_first_wrong_parameter_is_told(refused: Refused, pairs: str, levels: int) -> None:
    both = f"SELECT * FROM {pairs} WHERE pk = 'a' AND x = ? AND y = ?"
    wrong = {"N": "abc"}
    assert refused(both, nested(levels), wrong) == TOO_DEEP
    assert refused(both, wrong, nested(levels)) == f"{NOT_NUMERIC}: abc"
    assert refused(both, nested(levels), {"N": "1e126"}) == TOO_DEEP


@pytest.mark.parametrize(
    "statement",
    [
        # floci's tests: parameters are read before the statement is
        "UPDATE {t} SET WHERE",
        "SELECT * FROM {t} WHERE",
        "SELECT * FROM {t} WHERE n = <<>> AND x = ?",
        "SELECT COUNT(*) FROM {t}",
        "SELECT * FROM {t} WHERE n < TRUE AND x = ?",
        "SELECT * FROM {t} WHERE x = ? AND y = ?",
        "SELECT * FROM no_such_table WHERE x = ?",
        "DROP TABLE {t}",
        "EXISTS(SELECT * FROM {t} WHERE pk = ?)",
    ],
)
def test_parameters_come_before_everything_else(
    refused: Refused, pairs: str, statement: str
) -> None:
    text = statement.format(t=pairs)
    assert refused(text, {"N": "1e2147483648"}) == f"{NOT_NUMERIC}: 1e2147483648"
    assert refused(text, {"SS": ["a", "a"]}) == DUPLICATES
    assert refused(text, nested(40)) == TOO_DEEP


# Batches


@pytest.mark.parametrize("case", VALUES)
def test_a_wrong_parameter_of_a_batch_is_the_error_of_its_member(
    client: Any, pairs: str, case: str
) -> None:
    value, said = VALUES[case]
    read = f"SELECT * FROM {pairs} WHERE pk = ? AND sk = 's'"
    wrong, found, surplus = client.batch_execute_statement(
        Statements=[
            asked(read, value),
            asked(read, {"S": "a"}),
            asked(f"SELECT * FROM {pairs} WHERE pk = 'b' AND sk = 's'", value),
        ]
    )["Responses"]
    error = {"Error": {"Code": "ValidationError", "Message": said}}
    assert (wrong, surplus) == (error, error)
    assert found["Item"] == {"pk": {"S": "a"}, "sk": {"S": "s"}}


def test_a_wrong_parameter_of_a_batch_leaves_the_other_writes_alone(
    client: Any, pairs: str
) -> None:
    wrong, done = client.batch_execute_statement(
        Statements=[
            asked(f"UPDATE {pairs} SET n = ? WHERE pk = 'a' AND sk = 's'", {"N": "1e2147483647"}),
            asked(f"INSERT INTO {pairs} VALUE {{'pk': ?, 'sk': 's'}}", {"S": "b"}),
        ]
    )["Responses"]
    assert wrong == {"Error": {"Code": "ValidationError", "Message": UNDERFLOW}}
    assert "Error" not in done
    items = client.scan(TableName=pairs.strip('"'))["Items"]
    assert sorted(item["pk"]["S"] for item in items) == ["a", "b"]
    assert all("n" not in item for item in items)


def test_in_a_batch_parameters_come_before_the_syntax_too(client: Any, pairs: str) -> None:
    (wrong,) = client.batch_execute_statement(
        Statements=[asked(f"SELECT * FROM {pairs} WHERE", {"N": ""})]
    )["Responses"]
    assert wrong == {"Error": {"Code": "ValidationError", "Message": NOT_NUMERIC}}


# Transactions


@pytest.mark.parametrize("number", NUMBERS)
def test_a_transaction_tells_a_wrong_number_without_its_statement(
    refused_transaction: Refused, pairs: str, number: str
) -> None:
    update = f"UPDATE {pairs} SET n = ? WHERE pk = 'a' AND sk = 's'"
    insert = f"INSERT INTO {pairs} VALUE {{'pk': ?, 'sk': 's'}}"
    read = f"SELECT * FROM {pairs} WHERE pk = ? AND sk = 's'"
    said = NUMBERS[number]
    assert refused_transaction(asked(update, {"N": number})) == said
    assert refused_transaction(asked(insert, {"S": "b"}), asked(update, {"N": number})) == said
    assert refused_transaction(asked(read, {"N": number})) == said


@pytest.mark.parametrize("case", VALUES)
def test_a_transaction_tells_a_wrong_value_without_its_statement(
    client: Any, refused_transaction: Refused, pairs: str, case: str
) -> None:
    value, said = VALUES[case]
    update = f"UPDATE {pairs} SET x = ? SET y = ? WHERE pk = 'a' AND sk = 's'"
    assert refused_transaction(asked(update, value, {"N": "abc"})) == said
    (item,) = client.scan(TableName=pairs.strip('"'))["Items"]
    assert item.keys() == {"pk", "sk"}


def test_in_a_transaction_parameters_come_before_all_statements(
    refused_transaction: Refused, pairs: str
) -> None:
    wrong = asked(f"UPDATE {pairs} SET n = ? WHERE pk = 'a' AND sk = 's'", {"N": ""})
    for other in ("SELECT", f"SELECT * FROM {pairs}", "DROP TABLE x", "SELECT * FROM nowhere"):
        assert refused_transaction({"Statement": other}, wrong) == NOT_NUMERIC


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM {t} WHERE", "Unexpected term"),
        ("SELECT * FORM {t}", "Expected FROM after SELECT list"),
        ("SELECT * FROM {t} WHERE pk = 1e2147483648", ""),
        ("UPDATE {t} SET n = 1 /* WHERE pk = 'a'", ""),
        ("DELETE FROM {t} WHERE pk = 'a' garbage", "Unexpected token after expression"),
        ("SLECT * FROM {t}", "Expected data manipulation"),
    ],
)
def test_syntax_errors_of_a_transaction_tell_their_statement(
    refused_transaction: Refused, pairs: str, statement: str, said: str
) -> None:
    wrong = {"Statement": statement.format(t=pairs)}
    right = {"Statement": f"INSERT INTO {pairs} VALUE {{'pk': 'b', 'sk': 's'}}"}
    where = "Validation failed in TransactStatements[{}]: " + MALFORMED + said
    assert refused_transaction(wrong) == where.format(0)
    assert refused_transaction(right, wrong) == where.format(1)
    assert refused_transaction(right, right, wrong, wrong) == where.format(2)
