"""A statement of a batch that fails half-way leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from partita import testing
from partita.database.tables import write_path


def test_a_member_that_fails_while_it_is_written_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with testing.database() as database:
        client = database.client()
        _create_table(client)
        monkeypatch.setattr(write_path, "ITEM_COLLECTION_BYTES_MAX", 1000)
        statements = [
            {
                "Statement": "INSERT INTO Things VALUE {'pk': 'a', 'sk': ?, 'v': ?}",
                "Parameters": [{"S": str(length)}, {"S": "x" * length}],
            }
            for length in (100, 600, 150)
        ]
        answer = client.batch_execute_statement(Statements=statements)["Responses"]
        codes = [one.get("Error", {}).get("Code") for one in answer]
        assert codes == [None, "ItemCollectionSizeLimitExceeded", None]
        for source in ({}, {"IndexName": "local"}):
            found = client.scan(TableName="Things", **source)["Items"]
            assert [item["sk"]["S"] for item in found] == ["100", "150"]


def _create_table(client: Any) -> None:
    client.create_table(
        TableName="Things",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "v")
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "v", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
