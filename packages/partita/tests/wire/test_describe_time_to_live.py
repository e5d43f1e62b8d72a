"""DescribeTimeToLive: whether items expire, and by which attribute."""

from __future__ import annotations

from typing import Any

from .refusals import refusal
from .time_to_live import enable, status


def test_it_is_off_by_default(raw: Any, table: Any) -> None:
    answer = raw("DescribeTimeToLive", {"TableName": table()})
    assert answer.body == {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}


def test_it_names_the_attribute(client: Any, table: Any) -> None:
    name = table()
    enable(client, name, "until")
    assert status(client, name) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}


def test_a_missing_table_is_not_found_by_its_name(client: Any) -> None:
    # dynalite
    assert refusal(client.describe_time_to_live, TableName="no_such_table") == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: no_such_table not found",
    )


def test_a_request_without_a_table_is_refused(raw: Any) -> None:
    answer = raw("DescribeTimeToLive", {})
    assert answer.status == 400
    assert "TableName" in answer.body["message"] or "tableName" in answer.body["message"]
