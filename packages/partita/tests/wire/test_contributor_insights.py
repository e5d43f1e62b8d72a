"""UpdateContributorInsights, DescribeContributorInsights, ListContributorInsights, GET /insights.

Texts and orders: recorded in October 2026.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

MODE = "ACCESSED_AND_THROTTLED_KEYS"
GSI = {
    "IndexName": "by-g",
    "KeySchema": [
        {"AttributeName": "g", "KeyType": "HASH"},
        {"AttributeName": "h", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "ALL"},
}
LSI = {
    "IndexName": "by-l",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "g", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "ALL"},
}


@pytest.fixture
def indexed(table: Any) -> str:
    name: str = table(
        sk="S",
        attributes={"g": "S", "h": "S"},
        GlobalSecondaryIndexes=[GSI],
        LocalSecondaryIndexes=[LSI],
    )
    return name


def body(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def update(client: Any, name: str, action: str, **more: Any) -> dict[str, Any]:
    return body(
        client.update_contributor_insights(TableName=name, ContributorInsightsAction=action, **more)
    )


def describe(client: Any, name: str, **more: Any) -> dict[str, Any]:
    return body(client.describe_contributor_insights(TableName=name, **more))


def summaries(client: Any, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.list_contributor_insights(**request)[
        "ContributorInsightsSummaries"
    ]
    return found


def test_a_table_never_had_any(client: Any, table: Any) -> None:
    name = table()
    disabled = {"TableName": name, "ContributorInsightsStatus": "DISABLED"}
    assert describe(client, name) == disabled
    assert update(client, name, "DISABLE") == disabled
    assert summaries(client, TableName=name) == []


def test_enabled_then_disabled(client: Any, table: Any) -> None:
    name = table()
    assert update(client, name, "ENABLE") == {
        "TableName": name,
        "ContributorInsightsStatus": "ENABLING",
        "ContributorInsightsMode": MODE,
    }
    described = describe(client, name)
    assert described["ContributorInsightsStatus"] == "ENABLED"
    assert described["ContributorInsightsMode"] == MODE
    assert "LastUpdateDateTime" in described
    kinds = [
        re.fullmatch(rf"DynamoDBContributorInsights-(\w+)-{name}-\d{{13}}", rule)
        for rule in described["ContributorInsightsRuleList"]
    ]
    assert [kind and kind.group(1) for kind in kinds] == ["PKC", "PKT"]
    assert update(client, name, "ENABLE")["ContributorInsightsStatus"] == "ENABLED"
    assert describe(client, name) == described
    assert update(client, name, "DISABLE")["ContributorInsightsStatus"] == "DISABLING"
    after = describe(client, name)
    assert after["ContributorInsightsStatus"] == "DISABLED"
    assert after["ContributorInsightsMode"] == MODE
    assert "ContributorInsightsRuleList" not in after
    assert summaries(client, TableName=name) == []


def test_a_sort_key_has_rules_of_its_own_and_a_mode_has_fewer(client: Any, indexed: str) -> None:
    update(client, indexed, "ENABLE")
    rules = describe(client, indexed)["ContributorInsightsRuleList"]
    assert [rule.split("-")[1] for rule in rules] == ["PKC", "SKC", "PKT", "SKT"]
    answer = update(client, indexed, "ENABLE", ContributorInsightsMode="THROTTLED_KEYS")
    assert answer["ContributorInsightsStatus"] == "ENABLING"
    # The rules that stay keep their names.
    assert describe(client, indexed)["ContributorInsightsRuleList"] == rules[2:]


def test_an_index_has_insights_of_its_own(client: Any, indexed: str) -> None:
    answer = update(client, indexed, "ENABLE", IndexName="by-g")
    assert (answer["TableName"], answer["IndexName"]) == (indexed, "by-g")
    rules = describe(client, indexed, IndexName="by-g")["ContributorInsightsRuleList"]
    assert rules[0].startswith(f"DynamoDBContributorInsights-PKC-{indexed}-by-g-")
    assert describe(client, indexed)["ContributorInsightsStatus"] == "DISABLED"


def test_they_are_listed_a_table_before_its_indexes(client: Any, indexed: str) -> None:
    update(client, indexed, "ENABLE", IndexName="by-g")
    update(client, indexed, "ENABLE")
    of_table = {
        "TableName": indexed,
        "ContributorInsightsStatus": "ENABLED",
        "ContributorInsightsMode": MODE,
    }
    of_index = {"TableName": indexed, "IndexName": "by-g", **of_table}
    assert summaries(client, TableName=indexed) == [of_table, of_index]
    assert of_index in summaries(client)
    first = body(client.list_contributor_insights(TableName=indexed, MaxResults=1))
    assert first["ContributorInsightsSummaries"] == [of_table]
    last = body(
        client.list_contributor_insights(
            TableName=indexed, MaxResults=1, NextToken=first["NextToken"]
        )
    )
    assert last == {"ContributorInsightsSummaries": [of_index]}


def refusal(raw: Any, operation: str, **request: Any) -> tuple[int, str, str]:
    answer = raw(operation, request)
    return answer.status, answer.body["__type"].partition("#")[2], answer.body.get("message", "")


@pytest.mark.parametrize(
    "operation",
    ["DescribeContributorInsights", "UpdateContributorInsights", "ListContributorInsights"],
)
def test_a_table_that_is_not_there(raw: Any, operation: str) -> None:
    more = {"ContributorInsightsAction": "ENABLE"} if operation.startswith("Update") else {}
    assert refusal(raw, operation, TableName="nope", **more) == (
        400,
        "ResourceNotFoundException",
        "Requested resource not found: Table: nope not found",
    )


@pytest.mark.parametrize("name", ["nope", "by-l"])
def test_an_index_that_is_not_there_or_local(raw: Any, indexed: str, name: str) -> None:
    expected = (
        400,
        "ResourceNotFoundException",
        f"Requested resource not found: Index: {name} not found for table: {indexed}",
    )
    asked = {"TableName": indexed, "IndexName": name}
    assert refusal(raw, "DescribeContributorInsights", **asked) == expected
    asked["ContributorInsightsAction"] = "ENABLE"
    assert refusal(raw, "UpdateContributorInsights", **asked) == expected


def test_what_the_model_does_not_allow(raw: Any, table: Any) -> None:
    name = table()
    status, code, text = refusal(
        raw, "UpdateContributorInsights", TableName=name, ContributorInsightsAction="TOGGLE"
    )
    assert (status, code) == (400, "ValidationException")
    assert "Member must satisfy enum value set: [DISABLE, ENABLE]" in text
    status, code, text = refusal(raw, "ListContributorInsights", MaxResults=101)
    assert (status, code) == (400, "ValidationException")
    status, code, text = refusal(raw, "ListContributorInsights", NextToken="?")
    assert (status, code) == (400, "ValidationException")


def test_what_was_counted_is_at_a_page_without_a_signature(
    raw: Any, client: Any, indexed: str
) -> None:
    update(client, indexed, "ENABLE")
    update(client, indexed, "ENABLE", IndexName="by-g")
    for pk, sk in (("a", "1"), ("a", "2"), ("b", "1"), ("a", "1")):
        item = {"pk": {"S": pk}, "sk": {"S": sk}, "g": {"S": "x"}, "h": {"S": sk}}
        client.put_item(TableName=indexed, Item=item)
    client.get_item(TableName=indexed, Key={"pk": {"S": "a"}, "sk": {"S": "1"}})
    headers = {"Authorization": None, "X-Amz-Date": None, "X-Amz-Target": None}
    path = f"/insights?table={indexed}"
    answer = raw("", None, headers=headers, method="GET", path=path)
    assert answer.status == 200
    of_table, of_index = answer.body["Resources"]
    shown = {
        rule["RuleName"].split("-")[1]: [
            (one["Keys"], one["Value"]) for one in rule["Contributors"]
        ]
        for rule in of_table["Rules"]
    }
    # A new item costs its table two units, one of them for the local index.
    assert shown == {
        "PKC": [(["a"], 5.5), (["b"], 2.0)],
        "SKC": [(["a", "1"], 3.5), (["a", "2"], 2.0), (["b", "1"], 2.0)],
        "PKT": [],
        "SKT": [],
    }
    assert all(rule["ErrorMax"] == 0 for rule in of_table["Rules"])
    assert of_index["IndexName"] == "by-g"
    assert of_index["Rules"][0]["Contributors"] == [{"Keys": ["x"], "Value": 3.0}]


def test_the_page_of_a_table_that_is_not_there(raw: Any) -> None:
    answer = raw("", None, method="GET", path="/insights?table=nope")
    assert answer.status == 400
    assert answer.body["message"] == "Requested resource not found: Table: nope not found"
    assert raw("", None, method="GET", path="/insights").status == 400
