"""The time page: backups, and tables as they were in the past."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.browser.accessibility import serious_findings
from testkit.browser.person import Person


def has_backups(client: Any) -> bool:
    try:
        client.list_backups()
    except ClientError as error:
        return bool(error.response["Error"]["Code"] != "UnknownOperationException")
    return True


def test_where_there_are_no_backups_the_page_says_so_and_hides_nothing_else(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    if has_backups(client):
        pytest.skip("this server has backups")
    name = table()
    person.open("#/time")
    person.sees("No backups on this endpoint")
    person.open(f"#/tables/{name}")
    person.sees("Point-in-time recovery")


def test_a_table_is_backed_up_compared_with_what_it_was_and_put_back(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    if not has_backups(client):
        pytest.skip("this server has no backups yet")
    name = table()
    person.open(f"#/time/{name}")
    person.clicks("Switch on")
    person.sees("on", "#recovery")
    for key in ("kept", "changed", "deleted"):
        client.put_item(TableName=name, Item={"pk": {"S": key}, "n": {"N": "1"}})
    time.sleep(2.1)
    client.put_item(TableName=name, Item={"pk": {"S": "changed"}, "n": {"S": "1"}})
    client.delete_item(TableName=name, Key={"pk": {"S": "deleted"}})
    moment = person.browser.evaluate(
        "(() => { const d = new Date(Date.now() - 1000);"
        "return new Date(d - d.getTimezoneOffset() * 60000).toISOString().slice(0, 19); })()"
    )
    person.browser.evaluate(
        "(() => { const input = document.querySelector('[type=datetime-local]');"
        f"input.value = '{moment}';"
        "input.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    person.clicks("Restore and compare with now")
    person.sees("2 items differ", "#differences")
    assert sorted(person.cells("#differences")) == [["n", "N 1"], ["n", "N 1 number", "S 1 string"]]
    assert serious_findings(person.browser) == []
    person.photographs(pictures / "time.png")
    person.clicks("Put back")
    person.sees("1 item differs", "#differences")
    person.clicks("Put back")
    person.sees("Nothing differs", "#differences")
    found = {item["pk"]["S"]: item["n"]["N"] for item in client.scan(TableName=name)["Items"]}
    assert found == {"kept": "1", "changed": "1", "deleted": "1"}
    person.clicks("Create backup")
    person.clicks("Create backup")
    person.sees("AVAILABLE", "#backups")
