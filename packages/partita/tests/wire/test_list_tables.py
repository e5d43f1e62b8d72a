"""ListTables: names in order, page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

NAMES = "[a-zA-Z0-9_.-]+"


def refusal(call: Callable[..., Any], **request: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    assert error["Code"] == "ValidationException"
    return str(error["Message"])


@pytest.fixture
def names(table: Any, table_names: Any) -> list[str]:
    """Tables whose names begin alike, in the order in which they are listed."""
    prefix = next(table_names)
    made = [f"{prefix}{suffix}" for suffix in ("_b", "-a", ".c", "A", "B", "a", "b", "0")]
    for name in made:
        table(TableName=name)
    return sorted(made)


def before(names: list[str]) -> str:
    """A name, of no table, that is listed just before the first of these."""
    return names[0][:-1]


def test_names_come_in_byte_order(client: Any, names: list[str]) -> None:
    answer = client.list_tables(ExclusiveStartTableName=before(names))
    assert answer["TableNames"][: len(names)] == names
    everything = client.list_tables()["TableNames"]
    assert everything == sorted(everything)


def test_a_page_of_one_says_where_to_go_on(client: Any, names: list[str]) -> None:
    # recorded
    found, start = [], before(names)
    for _ in names:
        answer = client.list_tables(Limit=1, ExclusiveStartTableName=start)
        (name,) = answer["TableNames"]
        found.append(name)
        start = name
        if name != names[-1]:
            assert answer["LastEvaluatedTableName"] == name
    assert found == names


def test_the_last_page_says_that_it_is_the_last(client: Any, names: list[str]) -> None:
    # dynalite: also when the limit is the exact number of tables
    everything = client.list_tables()["TableNames"]
    answer = client.list_tables(Limit=len(everything))
    assert answer["TableNames"] == everything
    assert "LastEvaluatedTableName" not in answer
    assert "LastEvaluatedTableName" not in client.list_tables()


def test_the_table_to_start_after_need_not_exist(client: Any, names: list[str]) -> None:
    answer = client.list_tables(ExclusiveStartTableName=names[2] + "0")
    assert answer["TableNames"][: len(names) - 3] == names[3:]


def test_the_paginator_walks_over_all_of_them(client: Any, names: list[str]) -> None:
    pages = client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 3})
    found = [name for page in pages for name in page["TableNames"]]
    assert [name for name in found if name in names] == names
    assert found == client.list_tables()["TableNames"]


def test_a_deleted_table_is_not_listed(client: Any, names: list[str]) -> None:
    client.delete_table(TableName=names[0])
    client.get_waiter("table_not_exists").wait(
        TableName=names[0], WaiterConfig={"Delay": 0.02, "MaxAttempts": 500}
    )
    assert names[0] not in client.list_tables()["TableNames"]


def test_after_the_last_table_there_is_nothing(client: Any) -> None:
    assert client.list_tables(ExclusiveStartTableName="z" * 255)["TableNames"] == []


def test_unknown_and_null_parameters_are_ignored(raw: Any) -> None:
    # dynalite
    answer = raw("ListTables", {"Limit": None, "Nonsense": [1], "ExclusiveStartTableName": None})
    assert answer.status == 200
    assert "TableNames" in answer.body


@pytest.mark.parametrize(
    ("limit", "rule"),
    [
        (0, "Member must have value greater than or equal to 1"),
        (101, "Member must have value less than or equal to 100"),
    ],
)
def test_a_page_has_1_to_100_names(client: Any, limit: int, rule: str) -> None:
    # dynalite
    assert refusal(client.list_tables, Limit=limit) == (
        f"1 validation error detected: Value '{limit}' at 'limit' failed to satisfy constraint: "
        f"{rule}"
    )


def test_all_breaches_are_listed(client: Any) -> None:
    # dynalite; the order varies on AWS
    text = refusal(client.list_tables, ExclusiveStartTableName="a;", Limit=500)
    assert text.startswith("3 validation errors detected: ")
    for part in (
        "Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy "
        f"regular expression pattern: {NAMES}",
        "Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have "
        "length greater than or equal to 3",
        "Value '500' at 'limit' failed to satisfy constraint: Member must have value less than or "
        "equal to 100",
    ):
        assert part in text


def test_a_request_without_a_body_is_refused(raw: Any) -> None:
    # dynalite
    answer = raw("ListTables", None)
    assert answer.status == 400
    assert answer.body == {"__type": "com.amazon.coral.service#SerializationException"}
