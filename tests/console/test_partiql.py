"""The page of PartiQL statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .person import CONTROL, Person


def test_a_statement_says_how_it_is_answered_and_shows_its_items(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table("pk", "sk")
    for n in range(3):
        item = {"pk": {"S": "a"}, "sk": {"S": str(n)}, "n": {"N": "1" * 38}}
        client.put_item(TableName=name, Item=item)
    person.open("#/partiql")
    person.fills("Statement", f'SELECT * FROM "{name}"')
    person.sees("Scan of the whole table", "#plan")
    person.fills("Statement", f"SELECT * FROM \"{name}\" WHERE pk = 'a' AND sk > ?")
    person.sees("Query of table", "#plan")
    person.fills("Parameters for ?, a list in DynamoDB's JSON", '[{"S": 5}]')
    person.sees("takes a text in quotes")
    person.fills("Parameters for ?, a list in DynamoDB's JSON", '[{"S": "0"}]')
    person.browser.evaluate("document.querySelector('textarea').focus()")
    person.presses("Enter", modifiers=CONTROL)
    person.sees("2 items", "#summary")
    person.sees("0.5 units", "#summary")
    assert all(f"N {'1' * 38}" in row for row in person.cells())
    person.photographs(pictures / "partiql.png")
    person.clicks("History")
    person.sees("AND sk > ?", "[role=dialog]")
    person.presses("Escape")


def test_names_are_completed_from_the_keyboard(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "temperature": {"N": "1"}})
    person.open("#/partiql")
    person.fills("Statement", f'SELECT pk FROM "{name}" WHERE ')
    person.browser.evaluate("document.querySelector('textarea').focus()")
    person.types("tem")
    person.sees("temperature", ".suggestions")
    person.presses("Enter")
    person.types(" = 1")
    assert person.value("Statement").endswith("WHERE temperature = 1")


def test_a_statement_changes_the_database_and_a_wrong_one_says_why(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    person.open("#/partiql")
    person.fills("Statement", f"INSERT INTO \"{name}\" VALUE {{'pk': 'a', 'n': 1}}")
    person.clicks("Run")
    person.sees("The statement returned no items.")
    assert client.scan(TableName=name)["Items"] == [{"pk": {"S": "a"}, "n": {"N": "1"}}]
    person.fills("Statement", "SELEKT")
    person.clicks("Run")
    person.sees("ValidationException")
