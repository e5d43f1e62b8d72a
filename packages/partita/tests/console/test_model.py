"""The modeler: models of NoSQL Workbench are opened, drawn, edited, exported and created."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testkit.browser.accessibility import serious_findings
from testkit.browser.person import Person, wait_for

Model = dict[str, Any]


def named(name: str, kind: str = "S") -> dict[str, str]:
    return {"AttributeName": name, "AttributeType": kind}


@pytest.fixture
def model() -> Model:
    """Returns a model in the file format of NoSQL Workbench."""
    number = datetime.now(UTC).strftime("%H%M%S%f")
    rows = [
        {"pk": "CUSTOMER#1", "sk": "PROFILE", "name": "<b>Ann</b>", "city": "Graz"},
        {"pk": "CUSTOMER#1", "sk": "ORDER#2", "total": "9", "state": "open"},
        {"pk": "CUSTOMER#1", "sk": "ORDER#1", "total": "5", "state": "paid"},
        {"pk": "CUSTOMER#2", "sk": "PROFILE", "name": "Bob", "city": "Graz"},
    ]
    return {
        "ModelName": "Shop",
        "ModelMetadata": {
            "Author": "somebody",
            "Description": "One table for customers and orders",
            "Version": "3.0",
        },
        "Later": {"kept": True},
        "DataModel": [
            {
                "TableName": f"Shop{number}",
                "KeyAttributes": {"PartitionKey": named("pk"), "SortKey": named("sk")},
                "NonKeyAttributes": [named("name"), named("city"), named("total"), named("state")],
                "TableFacets": [
                    {
                        "FacetName": "Order",
                        "KeyAttributeAlias": {
                            "PartitionKeyAlias": "CUSTOMER#{id}",
                            "SortKeyAlias": "ORDER#{number}",
                        },
                        "TableData": [],
                        "NonKeyAttributes": ["total", "state"],
                    }
                ],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-state",
                        "KeyAttributes": {"PartitionKey": named("state"), "SortKey": named("sk")},
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
                "TableData": [{name: {"S": value} for name, value in row.items()} for row in rows],
                "DataAccess": {"MySql": {}},
                "BillingMode": "PROVISIONED",
                "ProvisionedCapacitySettings": {
                    "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
                },
            }
        ],
    }


@pytest.fixture
def person(person: Person) -> Iterator[Person]:
    """A person at the modeler, without the model of the previous test."""
    person.open("#/tables")
    person.browser.evaluate("localStorage.clear()")
    person.open("#/model")
    person.sees("Nothing is modeled yet")
    yield person
    person.browser.evaluate("localStorage.clear()")


def opens(person: Person, model: Model) -> None:
    content = base64.b64encode(json.dumps(model).encode()).decode()
    person.browser.evaluate(
        f"""(() => {{
            const bytes = Uint8Array.from(atob({json.dumps(content)}), (c) => c.charCodeAt(0));
            const given = new DataTransfer();
            given.items.add(new File([bytes], "model.json"));
            const input = document.querySelector("[aria-label='Model file']");
            input.files = given.files;
            input.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()"""
    )


def exported(person: Person) -> Any:
    """Returns what a click on Export saves."""
    person.browser.evaluate(
        """window.saved = new Promise((done) => {
            const before = URL.createObjectURL;
            URL.createObjectURL = (blob) => {
                URL.createObjectURL = before;
                blob.text().then(done);
                return before.call(URL, blob);
            };
        }); 0"""
    )
    person.clicks("Export")
    return json.loads(person.browser.evaluate("window.saved"))


def test_a_model_is_drawn_as_item_collections_indexes_and_facets(
    person: Person, model: Model, pictures: Path
) -> None:
    opens(person, model)
    person.sees("4 items in 2 item collections", "#rows")
    cells = person.cells("#aggregate")
    assert [row[:2] for row in cells] == [
        ["CUSTOMER#1", "ORDER#1"],
        ["ORDER#2", "total\n9"],
        ["PROFILE", "name\n<b>Ann</b>"],
        ["CUSTOMER#2", "PROFILE"],
    ]
    person.sees("One table for customers and orders")
    assert exported(person) == model
    assert serious_findings(person.browser) == []
    person.photographs(pictures / "modeler.png")
    person.clicks("Index by-state")
    wait_for(lambda: person.cells("#aggregate")[0][0] == "open", "the index")
    assert person.cells("#aggregate") == [
        ["open", "ORDER#2", "pk\nCUSTOMER#1"],
        ["paid", "ORDER#1", "pk\nCUSTOMER#1"],
    ]
    person.clicks("Facet Order")
    person.sees("2 items in 1 item collection", "#rows")
    person.sees("ORDER#{number}")


def test_a_model_is_changed_exported_and_committed(
    person: Person, client: Any, model: Model, pictures: Path
) -> None:
    table = model["DataModel"][0]["TableName"]
    opens(person, model)
    person.sees(table)
    person.clicks("Edit")
    person.clicks("Add index")
    person.fills("Name of index 2", "by-city")
    person.fills("Partition key of index 2", "city")
    assert serious_findings(person.browser) == []
    person.photographs(pictures / "modeler-edit.png")
    saved = exported(person)
    assert saved["Later"] == {"kept": True}
    assert [one["IndexName"] for one in saved["DataModel"][0]["GlobalSecondaryIndexes"]] == [
        "by-state",
        "by-city",
    ]
    workbench = pytest.importorskip("partita_migrate.model.nosql_workbench")
    assert [one.name for one in workbench.from_workbench(json.dumps(saved).encode()).tables] == [
        table
    ]
    person.clicks("Commit to this server")
    person.clicks("Create 1 table")
    person.sees("Shop is on this server.")
    found = client.describe_table(TableName=table)["Table"]
    assert {one["IndexName"] for one in found["GlobalSecondaryIndexes"]} == {"by-state", "by-city"}
    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
    assert client.scan(TableName=table)["Count"] == 4
    answered = client.query(
        TableName=table,
        IndexName="by-city",
        KeyConditionExpression="city = :c",
        ExpressionAttributeValues={":c": {"S": "Graz"}},
    )
    assert answered["Count"] == 2
    person.clicks("Commit to this server")
    person.clicks("Create 1 table")
    person.sees("ResourceInUseException")


def test_tables_of_this_server_are_drawn_with_their_rows_and_a_change_is_undone(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table("pk", "sk")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "1"}, "n": {"N": "5"}})
    person.clicks("From this server")
    person.sees(name, "[role=dialog]")
    person.chooses("Table", name)
    person.clicks("Take it")
    person.sees("1 item in 1 item collection", "#rows")
    person.clicks("Edit")
    person.fills("Sort key of the table", "n")
    assert exported(person)["DataModel"][0]["KeyAttributes"]["SortKey"]["AttributeName"] == "n"
    person.clicks("Undo")
    assert exported(person)["DataModel"][0]["KeyAttributes"]["SortKey"]["AttributeName"] == "sk"


def test_what_is_no_model_says_why(person: Person, model: Model) -> None:
    opens(person, {"DataModel": [{"TableName": "x", "KeyAttributes": {}}]})
    person.sees("x has no partition key.")
    model["DataModel"][0]["TableData"][0]["pk"] = {"S": 5}
    opens(person, model)
    person.sees("S takes a string in quotes.")


def test_rows_that_workbench_keeps_with_facets_are_drawn_kept_and_committed(
    person: Person, client: Any, model: Model
) -> None:
    (table,) = model["DataModel"]
    rows = table.pop("TableData")
    table["TableFacets"] = [
        {
            "FacetName": name,
            "KeyAttributeAlias": {"PartitionKeyAlias": "pk", "SortKeyAlias": "sk"},
            "TableData": [row for row in rows if row["sk"]["S"].startswith(start)],
            "NonKeyAttributes": attributes,
            "DataAccess": {"MySql": {}},
        }
        for name, start, attributes in (
            ("profile", "PROFILE", ["name", "city"]),
            ("anything", "ORDER", ["name", "city", "total", "state"]),
        )
    ]
    opens(person, model)
    person.sees("4 items in 2 item collections", "#rows")
    person.clicks("Facet anything")
    person.sees("2 items in 1 item collection", "#rows")
    assert "Bob" not in person.text("#aggregate")
    assert exported(person)["DataModel"] == model["DataModel"]
    person.clicks("Commit to this server")
    person.clicks("Create 1 table")
    person.sees("Shop is on this server.")
    assert client.scan(TableName=table["TableName"])["Count"] == 4
