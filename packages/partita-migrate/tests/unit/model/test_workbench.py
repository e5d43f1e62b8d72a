"""Tests files that NoSQL Workbench imports, and files that it exported."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from partita.errors import PartitaError
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import single_table
from partita_migrate.model.nosql_workbench import from_workbench, to_workbench
from partita_migrate.workspace.migration_folder import to_json

from ..games import expected, table_4

NOW = datetime(2026, 11, 15, 9, 5, tzinfo=UTC)

EXPORTED = {
    "ModelName": "Sessions",
    "ModelMetadata": {
        "Author": "",
        "DateCreated": "May 11, 2023, 09:18 PM",
        "DateLastModified": "May 11, 2023, 11:19 PM",
        "Description": "",
        "AWSService": "Amazon DynamoDB",
        "Version": "3.0",
    },
    "DataModel": [
        {
            "TableName": "session_store",
            "KeyAttributes": {
                "PartitionKey": {"AttributeName": "PK", "AttributeType": "S"},
                "SortKey": {"AttributeName": "SK", "AttributeType": "S"},
            },
            "NonKeyAttributes": [{"AttributeName": "tries", "AttributeType": "N"}],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "inverse",
                    "KeyAttributes": {
                        "PartitionKey": {"AttributeName": "SK", "AttributeType": "S"},
                        "SortKey": {"AttributeName": "PK", "AttributeType": "S"},
                    },
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["tries"]},
                }
            ],
            "TableData": [{"PK": {"S": "a"}, "SK": {"S": "b"}, "open": {"BOOL": True}}],
            "DataAccess": {"MySql": {}},
            "BillingMode": "PROVISIONED",
        }
    ],
}


def written() -> dict[str, Any]:
    return to_workbench(single_table(expected(), table_4(), ModelSettings()), now=NOW)


def test_the_file_has_what_workbench_writes_itself() -> None:
    model = written()
    assert list(model) == ["ModelName", "ModelMetadata", "DataModel"]
    assert model["ModelMetadata"]["Version"] == "3.0"
    assert model["ModelMetadata"]["DateCreated"] == "Nov 15, 2026, 09:05 AM"
    (table,) = model["DataModel"]
    assert table["KeyAttributes"]["SortKey"] == {"AttributeName": "SK", "AttributeType": "S"}
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["GSI1", "GSI2"]
    assert table["DataAccess"] == {"MySql": {}}
    assert {"AttributeName": "Score", "AttributeType": "N"} in table["NonKeyAttributes"]
    assert [facet["FacetName"] for facet in table["TableFacets"]] == [
        "Games",
        "Players",
        "PlayersGamesItems",
    ]


def test_sample_items_have_their_keys_and_types_and_join() -> None:
    (table,) = written()["DataModel"]
    kinds = {one["AttributeName"]: one["AttributeType"] for one in table["NonKeyAttributes"]}
    for item in table["TableData"]:
        assert {"PK", "SK"} <= item.keys()
        for name, value in item.items():
            assert list(value) == [kinds.get(name, "S")]
    keys = [(item["PK"]["S"], item["SK"]["S"]) for item in table["TableData"]]
    assert len(set(keys)) == len(keys)
    associations = [sort for _, sort in keys if sort != "root"]
    assert set(associations) <= {partition for partition, _ in keys}


def test_what_is_written_reads_back() -> None:
    design = single_table(expected(), table_4(), ModelSettings())
    again = from_workbench(to_json(written()))
    (before,), (after,) = design.tables, again.tables
    assert (after.name, after.keys) == (before.name, before.keys)
    assert [index.keys for index in after.indexes] == [index.keys for index in before.indexes]
    assert [entity.name for entity in after.entities] == [one.name for one in before.entities]
    assert after.entities[0].attributes[0].template == "G#{GameId}"


def test_an_exported_file_is_read() -> None:
    design = from_workbench(msgspec.json.encode(EXPORTED))
    (table,) = design.tables
    assert [key.name for key in table.keys] == ["PK", "SK"]
    (index,) = table.indexes
    assert (index.projection, index.include) == ("INCLUDE", ["tries"])
    (entity,) = table.entities
    assert {one.name: one.type for one in entity.attributes} == {
        "PK": "S",
        "SK": "S",
        "tries": "N",
        "open": "BOOL",
    }


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"DataModel": [{}], "ModelName": "x"}'])
def test_another_file_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(PartitaError, match="not a model of NoSQL Workbench"):
        from_workbench(content)
