"""The heat page: the current load of the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from testkit.browser.accessibility import audit
from testkit.browser.chromium import Browser
from testkit.browser.person import Person, wait_for
from testkit.servers.processes import Server


def test_heat_shows_operations_units_and_partitions_with_their_hottest_key(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "popular"}})
    for _ in range(200):
        client.get_item(TableName=name, Key={"pk": {"S": "popular"}})
    person.open(f"#/heat?table={name}")
    person.sees("GetItem", "#operations")
    person.sees(name, "#capacity")
    person.sees("popular", ".heatmap")

    def rate() -> float:
        client.put_item(TableName=name, Item={"pk": {"S": "popular"}})
        rows = {row[0]: row[1] for row in person.cells("#operations")}
        return float(rows.get("PutItem", 0))

    wait_for(lambda: rate() > 5, "writes a second")
    person.photographs(pictures / "heat.png")


def test_contributors_are_switched_on_and_ranked(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table("pk", "sk")
    person.open(f"#/heat?table={name}")
    person.clicks("Switch Contributor Insights on")
    person.sees("Nothing was counted yet.")
    for key, times in (("hot", 30), ("cold", 3)):
        for n in range(times):
            client.put_item(TableName=name, Item={"pk": {"S": key}, "sk": {"S": str(n % 2)}})
    person.sees("hot", ".ranking")
    person.sees("cold", ".ranking")
    ranked = person.text(".ranking li:first-child")
    assert "hot" in ranked and "30" in ranked
    person.photographs(pictures / "contributors.png")


def test_single_requests_are_ranked_by_what_they_take_and_cost(
    chromium: Browser, start: Callable[..., Server], pictures: Path
) -> None:
    # Requests of other tests may have been more expensive.
    server = start("serve", "--in-memory", "--port", "0", "--capacity", "observe")
    client, name, person = server.client(), "ranked", Person(chromium, server.url)
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    for n in range(30):
        item = {"pk": {"S": "a"}, "sk": {"S": f"{n:02}"}, "secret": {"S": "x" * 30_000}}
        client.put_item(TableName=name, Item=item)
    scanned = client.scan(
        TableName=name,
        FilterExpression="secret = :none",
        ExpressionAttributeValues={":none": {"S": "nobody"}},
        ReturnConsumedCapacity="TOTAL",
    )
    client.get_item(TableName=name, Key={"pk": {"S": "a"}, "sk": {"S": "07"}})
    person.open("#/heat")

    def found() -> list[list[str]]:
        return [row for row in person.cells("#costliest") if row[1:3] == ["Scan", name]]

    wait_for(found, "the Scan")
    when, _, _, what, _, units, status = found()[0]
    assert when and what == "secret = :none"
    assert float(units) == scanned["ConsumedCapacity"]["CapacityUnits"] > 100
    assert status == "200"
    slowest = [float(row[4]) for row in person.cells("#slowest")]
    assert slowest == sorted(slowest, reverse=True) and slowest[0] > 0
    assert "xxx" not in person.text()
    person.photographs(pictures / "requests.png")
    audit(person, "[aria-label='Slow and expensive']")
    chromium.open("about:blank")


def test_a_partition_splits_before_your_eyes(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    units = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
    name = table(BillingMode="PROVISIONED", ProvisionedThroughput=units)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    person.open(f"#/heat?table={name}")
    person.sees("1 partition", ".resource")
    more = {"ReadCapacityUnits": 9000, "WriteCapacityUnits": 100}
    client.update_table(TableName=name, ProvisionedThroughput=more)
    wait_for(lambda: client.put_item(TableName=name, Item={"pk": {"S": "a"}}))
    person.sees("4 partitions", ".resource")
    person.sees("split into", ".splits")
    assert "split" in person.text(".partition.fresh")
    person.photographs(pictures / "split.png")
