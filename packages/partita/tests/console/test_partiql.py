"""The PartiQL page."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from testkit.browser.accessibility import audit
from testkit.browser.person import CONTROL, Person
from testkit.servers.processes import Server


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
    person.sees("2 read units for 3 items", "#plan")
    person.sees("The server's own plan.", "#plan")
    person.fills("Statement", f"SELECT * FROM \"{name}\" WHERE pk = 'a' AND sk > ?")
    person.sees("It would be refused: Number of parameters", "#plan")
    person.fills("Parameters for ?, a list in DynamoDB's JSON", '[{"S": 5}]')
    person.sees("takes a string in quotes")
    person.fills("Parameters for ?, a list in DynamoDB's JSON", '[{"S": "0"}]')
    person.sees("Query of table", "#plan")
    person.sees("pk = a AND sk > 0", "#plan")
    person.sees("0.5 read units for 2 items", "#plan")
    person.browser.evaluate("document.querySelector('textarea').focus()")
    person.presses("Enter", modifiers=CONTROL)
    person.sees("2 items", "#summary")
    person.sees("0.5 units", "#summary")
    assert all(f"N {'1' * 38}" in row for row in person.cells())
    person.photographs(pictures / "partiql.png")
    audit(person)
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


INDEXED: dict[str, Any] = {
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("pk", "S"), ("sk", "S"), ("n", "N"))
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-n",
            "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


@pytest.fixture(scope="module")
def measured(client: Any) -> str:
    """Collections of different sizes, with an index across them."""
    name = "measured"
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in keys],
        BillingMode="PAY_PER_REQUEST",
        **INDEXED,
    )
    for n in range(40):
        item = {
            "pk": {"S": "abc"[n % 3]},
            "sk": {"S": f"{n:02}"},
            "n": {"N": str(n % 5)},
            "text": {"S": "x" * 3000},
        }
        client.put_item(TableName=name, Item=item)
    return name


@pytest.mark.parametrize(
    ("where", "access"),
    [
        ("", "scan"),
        ("WHERE sk = '01'", "scan"),
        ("WHERE pk = 'a' OR sk = '01'", "scan"),
        ("WHERE pk = 'a'", "query"),
        ("WHERE pk = 'a' AND text = 'y'", "query"),
        ("WHERE pk = 'a' OR pk = 'b'", "query"),
        ("WHERE pk IN ['a', 'b', 'nobody']", "query"),
        ("WHERE pk = 'a' AND sk BETWEEN '03' AND '12'", "query"),
        ("WHERE pk = 'a' AND begins_with(sk, '1')", "query"),
        ("WHERE pk = 'a' AND sk = '03'", "key"),
    ],
)
def test_a_statement_costs_what_its_plan_says(
    server: Server, client: Any, measured: str, where: str, access: str
) -> None:
    text = f'SELECT * FROM "{measured}" {where}'.strip()
    plan = explained(server, text)
    answer = client.execute_statement(Statement=text, ReturnConsumedCapacity="TOTAL")
    assert plan["Access"] == access
    assert plan["FirstPage"]["ReadUnits"] == answer["ConsumedCapacity"]["CapacityUnits"]
    assert plan["FirstPage"]["IsWhole"] is ("NextToken" not in answer)


def test_the_plan_names_index_keys_order_and_what_a_write_costs(
    server: Server, client: Any, measured: str
) -> None:
    plan = explained(server, f'SELECT * FROM "{measured}"."by-n" WHERE n = ?', [{"N": "3"}])
    assert (plan["Access"], plan["IndexName"]) == ("query", "by-n")
    assert plan["Ranges"] == [{"PartitionKey": {"n": {"N": "3"}}}]
    assert plan["FirstPage"]["Items"] == 8
    last = f"SELECT * FROM \"{measured}\" WHERE pk = 'a' AND sk > '3' ORDER BY sk DESC"
    plan = explained(server, last)
    assert plan["IsForward"] is False
    comparison = {"Name": "sk", "Comparison": ">", "Operands": [{"S": "3"}]}
    assert plan["Ranges"][0]["SortKey"] == comparison
    plan = explained(server, f"DELETE FROM \"{measured}\" WHERE pk = 'a' AND sk = '03'")
    assert (plan["Access"], plan["WriteUnits"], plan["ItemExists"]) == ("write", 3, True)
    assert client.get_item(TableName=measured, Key={"pk": {"S": "a"}, "sk": {"S": "03"}})["Item"]


@pytest.mark.parametrize(
    ("text", "parameters", "said"),
    [
        ("SELECT", [], "Statement wasn't well formed"),
        ('SELECT * FROM "nowhere"', [], "Requested resource not found"),
        ('SELECT * FROM "measured" WHERE pk = ?', [], "Number of parameters"),
        ("DELETE FROM \"measured\" WHERE pk = 'a'", [], "mandatory equality"),
        ('SELECT * FROM "measured"."none"', [], "does not have the specified index"),
    ],
)
def test_the_plan_of_a_statement_that_would_be_refused_is_the_refusal(
    server: Server, client: Any, measured: str, text: str, parameters: list[Any], said: str
) -> None:
    plan = explained(server, text, parameters)
    assert plan["Access"] == "refused"
    assert said in plan["Message"]
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.execute_statement(
            Statement=text, **({"Parameters": parameters} if parameters else {})
        )
    assert plan["Message"] == refused.value.response["Error"]["Message"]


@pytest.mark.parametrize("parameters", ["[", "7", '[{"S": 5}]', "[[]]", '[{"B": "?"}]'])
def test_parameters_that_are_none_are_refused_and_nothing_breaks(
    server: Server, measured: str, parameters: str
) -> None:
    text = 'SELECT * FROM "measured" WHERE pk = ?'
    assert asked(server, statement=text, parameters=parameters)[0] == 400
    assert explained(server, 'SELECT * FROM "measured"')["Access"] == "scan"


def explained(server: Server, text: str, parameters: list[Any] | None = None) -> dict[str, Any]:
    given = {"parameters": json.dumps(parameters)} if parameters else {}
    status, content = asked(server, statement=text, **given)
    assert status == 200
    plan: dict[str, Any] = json.loads(content)
    return plan


def asked(server: Server, **query: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", f"/explain?{urlencode(query)}")
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_statement_that_was_run_has_an_address_with_its_parameters(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    person.open("#/partiql")
    person.fills("Statement", f'SELECT * FROM "{name}" WHERE pk = ?')
    person.fills("Parameters for ?, a list in DynamoDB's JSON", '[{"S": "a"}]')
    person.clicks("Run")
    person.sees("1 item", "#summary")
    person.open(person.browser.evaluate("location.hash"))
    assert person.value("Parameters for ?, a list in DynamoDB's JSON") == '[{"S": "a"}]'
    person.clicks("Run")
    person.sees("1 item", "#summary")
