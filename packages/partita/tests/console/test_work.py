"""Long work: it shows its progress, and after a cancellation it says what was done."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testkit.browser.person import Person, wait_for

WRITES = "*/api/dynamodb/BatchWriteItem"
SCANS = "*/api/dynamodb/Scan"
LOOKS = "*/api/dynamodb/DescribeTable"
ITEMS = 60
LARGE = 390 * 1024
"""The size of items of which three fill a page."""


def keys(client: Any, table: str) -> set[str]:
    pages = client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="pk")
    return {item["pk"]["S"] for page in pages for item in page["Items"]}


def exists(client: Any, table: str) -> bool:
    try:
        client.describe_table(TableName=table)
    except client.exceptions.ResourceNotFoundException:
        return False
    return True


def fill(client: Any, table: str, number: int = ITEMS) -> None:
    for n in range(number):
        client.put_item(TableName=table, Item={"pk": {"S": f"k{n:02}"}})


def fill_pages(client: Any, table: str) -> None:
    for n in range(5):
        item = {"pk": {"S": f"k{n}"}, "text": {"S": "x" * LARGE}}
        client.put_item(TableName=table, Item=item)


def holds(person: Person) -> None:
    """Waits until a request is held."""
    wait_for(lambda: person.browser.evaluate("1") and person.browser.held, "a request")


def chooses_file(person: Person, file: Path) -> None:
    node = person.browser.call(
        "Runtime.evaluate", expression="document.querySelector('input[type=file]')"
    )["result"]["objectId"]
    person.browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=node)


@pytest.fixture
def recovering(client: Any, table: Callable[..., str]) -> str:
    """A table with point-in-time recovery."""
    name = table()
    client.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )

    def has_a_whole_second() -> bool:
        told = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = told["PointInTimeRecoveryDescription"]
        if "LatestRestorableDateTime" not in recovery:
            return False
        earliest, latest = (recovery[f"{one}RestorableDateTime"] for one in ("Earliest", "Latest"))
        return bool(math.ceil(earliest.timestamp()) <= latest.timestamp())

    wait_for(has_a_whole_second, "recovery")
    return name


def test_a_deletion_that_is_cancelled_says_what_was_deleted_and_takes_it_back(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    fill(client, name)
    person.open(f"#/explore/{name}?limit=100")
    person.sees("60 items")
    person.clicks("Choose all", "input")
    person.clicks("Delete 60 items")
    person.fills("Type 60 to confirm", "60")
    with person.browser.holding(WRITES):
        person.clicks("Delete 60 items")
        holds(person)
        person.sees("0 of 60 deleted", "[role=dialog]")
        person.browser.let_go()
        holds(person)
        person.sees("25 of 60 deleted, 25 WCU", "[role=dialog]")
        assert len(keys(client, name)) == 35
        person.clicks("Cancel")
        person.browser.let_go()
        person.sees("Cancelled: 50 of 60 items deleted. 50 WCU")
    person.sees("10 items", "#summary")
    assert len(keys(client, name)) == 10
    person.clicks("Undo")
    person.sees("50 items restored.")
    assert len(keys(client, name)) == ITEMS


def test_a_deletion_of_all_that_is_found_stops_between_two_pages(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    fill_pages(client, name)
    person.open(f"#/explore/{name}?limit=10")
    person.sees("items", "#summary")
    (found,) = [int(word) for word in person.text("#summary").split()[:1]]
    assert found < 5
    person.clicks("Choose all", "input")
    person.clicks(f"Delete {found} items")
    person.chooses("Which", "all")
    person.fills(f"Type {name} to confirm", name)
    with person.browser.holding(SCANS):
        person.clicks("Delete all that match")
        holds(person)
        person.browser.let_go()
        holds(person)
        person.sees(f"{found} of about 5 deleted", "[role=dialog]")
        person.clicks("Cancel")
        person.sees(f"Cancelled: {found} items deleted.")
    assert len(keys(client, name)) == 5 - found


def test_an_import_that_is_cancelled_says_what_was_written(
    person: Person, client: Any, table: Callable[..., str], tmp_path: Path
) -> None:
    name = table()
    file = tmp_path / "items.json"
    lines = [json.dumps({"Item": {"pk": {"S": f"k{n:02}"}}}) for n in range(ITEMS)]
    file.write_text("\n".join([*lines, lines[0]]))
    person.open(f"#/explore/{name}")
    person.sees("The table is empty.")
    person.clicks("Import")
    chooses_file(person, file)
    person.sees("60 items found.")
    with person.browser.holding(WRITES):
        person.clicks("Import")
        holds(person)
        person.browser.let_go()
        holds(person)
        person.sees("25 of 60 written", "[role=dialog]")
        person.clicks("Cancel")
        person.browser.let_go()
        person.sees("Cancelled: 50 of 60 items imported. 50 WCU")
    assert keys(client, name) == {f"k{n:02}" for n in range(50)}


def test_a_file_that_cannot_be_imported_says_where(
    person: Person, client: Any, table: Callable[..., str], tmp_path: Path
) -> None:
    person.open(f"#/explore/{table()}")
    person.clicks("Import")
    for name, text, why in (
        ("a.json", '{"pk": {"S": "a"}}\n{"pk": ', "Line 2: this is not JSON"),
        ("b.json", '{"pk": {"S": "a"}}\n\n{"n": {"N": "1"}}', "Item 2 has no pk"),
        ("c.json", '[{"pk": {"S": "a"}, "n": {"N": "one"}}]', "Item 1: n: one is not a number"),
        ("d.csv", 'pk,n\na,"{""N"":""x""}"\n', "Row 2: n: x is not a number"),
    ):
        (tmp_path / name).write_text(text)
        chooses_file(person, tmp_path / name)
        person.sees(why, "[role=dialog]")
        assert not person.can("Import")


def test_an_export_that_is_cancelled_leaves_no_file(
    person: Person, client: Any, table: Callable[..., str], tmp_path: Path
) -> None:
    name = table()
    fill_pages(client, name)
    person.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    person.open(f"#/explore/{name}")
    person.sees("items", "#summary")
    person.clicks("Export")
    person.chooses("Items", "all")
    with person.browser.holding(SCANS):
        person.clicks("Export")
        holds(person)
        person.browser.let_go()
        holds(person)
        person.sees("of about 5 read", "[role=dialog]")
        person.clicks("Cancel")
        person.sees("Cancelled: nothing was exported.")
    assert list(tmp_path.iterdir()) == []
    person.clicks("Export")
    person.chooses("Items", "all")
    person.clicks("Export")
    person.sees("5 items exported.")
    file = tmp_path / f"{name}.json"
    wait_for(lambda: file.exists() and len(file.read_text().splitlines()) == 5, "the file")


def test_a_restore_that_is_cancelled_leaves_no_table(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    fill(client, name, 3)
    arn = client.create_backup(TableName=name, BackupName="kept")["BackupDetails"]["BackupArn"]

    def status() -> str:
        told = client.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]
        return str(told["BackupStatus"])

    wait_for(lambda: status() == "AVAILABLE", "the backup")
    person.open(f"#/time/{name}")
    person.clicks("Restore kept")
    with person.browser.holding(LOOKS):
        person.clicks("Restore")
        holds(person)
        person.sees(f"Restoring {name}-restored", "[role=dialog]")
        person.sees("items restored", "[role=dialog]")
        assert exists(client, f"{name}-restored")
        person.clicks("Cancel")
        person.sees(f"Cancelled. {name}-restored will be deleted as soon as it is restored")
    person.sees(f"{name}-restored was deleted.")
    wait_for(lambda: not exists(client, f"{name}-restored"), "it is gone")
    person.clicks("Restore kept")
    person.clicks("Restore")
    person.sees(f"{name}-restored is restored.")
    assert keys(client, f"{name}-restored") == {"k00", "k01", "k02"}


def test_a_comparison_that_is_cancelled_shows_what_it_has_found(
    person: Person, client: Any, table: Callable[..., str], recovering: str
) -> None:
    fill_pages(client, recovering)
    copy = f"{recovering}-as-it-was"
    client.create_table(
        TableName=copy,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for n in range(5):
        item = {"pk": {"S": f"k{n}"}, "text": {"S": "x" * LARGE}, "was": {"S": "1"}}
        client.put_item(TableName=copy, Item=item)
    before = keys(client, recovering)
    person.open(f"#/time/{recovering}")
    person.clicks("Restore and compare with now")
    with person.browser.holding(SCANS):
        person.clicks(f"Compare with the existing {copy}")
        for _ in range(2):
            holds(person)
            person.browser.let_go()
        holds(person)
        person.sees("of about 5 items compared")
        person.clicks("Cancel")
        person.sees("Comparing was cancelled.", "#differences")
    part = len(person.cells("#differences"))
    assert 0 < part < 5
    person.sees(f"{part} items differ in what was compared", "#differences")
    person.clicks("Compare again")
    person.sees("5 items differ", "#differences")
    assert person.cells("#differences") == [["was", "S 1", "\u2013"]] * 5
    assert keys(client, recovering) == before


def test_a_model_whose_commit_is_cancelled_has_the_tables_it_had_come_to(
    person: Person, client: Any, numbered: Callable[[], str]
) -> None:
    first, second = numbered(), numbered()
    key = {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}}
    rows = [{"pk": {"S": f"k{n:02}"}} for n in range(ITEMS)]
    model = {
        "ModelName": "Long",
        "ModelMetadata": {},
        "DataModel": [
            {"TableName": name, "KeyAttributes": key, "TableData": rows} for name in (first, second)
        ],
    }
    person.open("#/model")
    person.browser.evaluate(f"localStorage.setItem('model', {json.dumps(json.dumps(model))})")
    person.open("#/model")
    person.clicks("Commit to this server")
    with person.browser.holding(WRITES):
        person.clicks("Create 2 tables")
        holds(person)
        person.browser.let_go()
        holds(person)
        person.sees("25 of 60 written", "[role=dialog]")
        person.clicks("Cancel")
        person.browser.let_go()
        person.sees(f"Cancelled after {first}: what was created stays.")
    assert len(keys(client, first)) == 50
    assert not exists(client, second)
    person.browser.evaluate("localStorage.clear()")
