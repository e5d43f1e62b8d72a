"""UpdateTimeToLive: enabling, disabling, and errors. test_expiry.py tests the expiry of items."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import BAD_NAMES, VALIDATION, refusal
from .time_to_live import enable, specification, status


def test_it_goes_on_and_off(client: Any, table: Any) -> None:
    name = table()
    assert enable(client, name) == specification()
    assert status(client, name) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    enable(client, name, enabled=False)
    assert status(client, name) == {"TimeToLiveStatus": "DISABLED"}


def test_it_cannot_be_switched_on_twice(client: Any, table: Any) -> None:
    # dynalite
    name = table()
    enable(client, name)
    assert refusal(enable, client=client, name=name) == (
        VALIDATION,
        "TimeToLive is already enabled",
    )


def test_it_cannot_be_switched_off_twice(client: Any, table: Any) -> None:
    # dynalite
    assert refusal(enable, client=client, name=table(), enabled=False) == (
        VALIDATION,
        "TimeToLive is already disabled",
    )


@pytest.mark.parametrize("enabled", [True, False])
def test_another_attribute_is_refused_while_it_is_on(
    client: Any, table: Any, enabled: bool
) -> None:
    # catalogue
    name = table()
    enable(client, name, "one")
    assert refusal(enable, client=client, name=name, attribute="other", enabled=enabled) == (
        VALIDATION,
        "TimeToLive is active on a different AttributeName: current AttributeName is one",
    )
    assert status(client, name)["AttributeName"] == "one"


def test_the_attribute_has_a_name(client: Any, table: Any) -> None:
    # dynalite
    assert refusal(enable, client=client, name=table(), attribute="") == (
        VALIDATION,
        "TimeToLiveSpecification.AttributeName must be non empty",
    )


def test_the_name_of_the_attribute_has_at_most_255_characters(client: Any, table: Any) -> None:
    name = table()
    assert refusal(enable, client=client, name=name, attribute="a" * 256)[0] == VALIDATION
    enable(client, name, "a" * 255)


@pytest.mark.parametrize("missing", ["timeToLiveSpecification.enabled",
                                     "timeToLiveSpecification.attributeName"])  # fmt: skip
def test_both_members_are_required(raw: Any, table: Any, missing: str) -> None:
    # dynalite: two errors
    answer = raw("UpdateTimeToLive", {"TableName": table(), "TimeToLiveSpecification": {}})
    assert answer.status == 400
    assert answer.body["message"].startswith("2 validation errors detected: ")
    assert (
        f"Value null at '{missing}' failed to satisfy constraint: Member must not be null"
        in answer.body["message"]
    )


def test_a_missing_table_is_not_found_by_its_name(client: Any) -> None:
    # dynalite
    assert refusal(enable, client=client, name="no_such_table") == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: no_such_table not found",
    )


@pytest.mark.parametrize("case", BAD_NAMES)
def test_a_name_that_cannot_be_one_is_refused(client: Any, case: str) -> None:
    name, text = BAD_NAMES[case]
    assert refusal(enable, client=client, name=name) == (VALIDATION, text)


def test_a_request_without_a_table_is_refused(raw: Any) -> None:
    answer = raw("UpdateTimeToLive", {"TimeToLiveSpecification": specification()})
    assert answer.status == 400
    assert "TableName" in answer.body["message"] or "tableName" in answer.body["message"]
