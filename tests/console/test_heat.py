"""The page of heat: what is asked of the server just now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .person import Person, wait_for


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
    person.sees("Most units:")
    person.photographs(pictures / "contributors.png")
