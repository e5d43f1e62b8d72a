"""The operation builder: the requests that it sends, and its code, which is run or parsed."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError

from testkit.browser.accessibility import serious_findings
from testkit.browser.person import Person, wait_for
from testkit.packaging.javascript_sdk import installed
from testkit.servers.processes import Server

TAB = "[role=tab]"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "x"}
NAME = "{table}"
"""A placeholder for the table's name in the requests below."""
KEY = {"pk": {"S": "a'b\"c\\"}, "sk": {"N": "1"}}
OTHER = {"pk": {"S": "né 🙂"}, "sk": {"N": "-2.5"}}
EVERYTHING = {
    **OTHER,
    "script": {"S": '</script><script>alert("1")</script>\n\t\u202e${x}`'},
    "digits": {"N": "12345678901234567890123456789012345678"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "empty": {"S": ""},
    "map": {"M": {"l": {"L": [{"N": "1"}, {"M": {}}, {"L": []}]}, "a b": {"S": "x"}}},
    "words": {"SS": ["a", "b,c"]},
    "numbers": {"NS": ["1", "2.5"]},
}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "put": ("PutItem", {"TableName": NAME, "Item": EVERYTHING, "ReturnConsumedCapacity": "TOTAL"}),
    "put if new": (
        "PutItem",
        {
            "TableName": NAME,
            "Item": EVERYTHING,
            "ConditionExpression": "attribute_not_exists(#k)",
            "ExpressionAttributeNames": {"#k": "pk"},
        },
    ),
    "get": (
        "GetItem",
        {
            "TableName": NAME,
            "Key": KEY,
            "ProjectionExpression": "pk, #n, doc.part1",
            "ExpressionAttributeNames": {"#n": "name"},
            "ConsistentRead": True,
        },
    ),
    "update": (
        "UpdateItem",
        {
            "TableName": NAME,
            "Key": KEY,
            "UpdateExpression": "SET #n = :n, doc.part1 = :n, hits = hits + :one REMOVE past "
            "ADD labels :t",
            "ConditionExpression": "attribute_exists(pk) AND (hits IN (:one, :two) OR hits = :n)",
            "ExpressionAttributeNames": {"#n": "name"},
            "ExpressionAttributeValues": {
                ":n": {"S": "new 'name'"},
                ":one": {"N": "1"},
                ":two": {"N": "2"},
                ":t": {"SS": ["x"]},
            },
            "ReturnValues": "ALL_NEW",
        },
    ),
    "delete": (
        "DeleteItem",
        {
            "TableName": NAME,
            "Key": KEY,
            "ConditionExpression": "NOT begins_with(#n, :z)",
            "ExpressionAttributeNames": {"#n": "name"},
            "ExpressionAttributeValues": {":z": {"S": "z"}},
            "ReturnValues": "ALL_OLD",
        },
    ),
    "query": (
        "Query",
        {
            "TableName": NAME,
            "KeyConditionExpression": "pk = :k AND sk BETWEEN :low AND :high",
            "FilterExpression": "attribute_not_exists(absent) AND contains(#n, :n)",
            "ExpressionAttributeNames": {"#n": "name"},
            "ExpressionAttributeValues": {
                ":k": KEY["pk"],
                ":low": {"N": "0"},
                ":high": {"N": "9"},
                ":n": {"S": "ol"},
            },
            "ScanIndexForward": False,
        },
    ),
    "scan": (
        "Scan",
        {"TableName": NAME, "Limit": 10, "Segment": 0, "TotalSegments": 1, "Select": "COUNT"},
    ),
    "batch get": (
        "BatchGetItem",
        {"RequestItems": {NAME: {"Keys": [KEY, OTHER], "ConsistentRead": True}}},
    ),
    "batch write": (
        "BatchWriteItem",
        {
            "RequestItems": {
                NAME: [{"PutRequest": {"Item": EVERYTHING}}, {"DeleteRequest": {"Key": KEY}}]
            }
        },
    ),
    "transact get": (
        "TransactGetItems",
        {"TransactItems": [{"Get": {"TableName": NAME, "Key": KEY}}]},
    ),
    "transact write": (
        "TransactWriteItems",
        {
            "TransactItems": [
                {
                    "Put": {
                        "TableName": NAME,
                        "Item": EVERYTHING,
                        "ConditionExpression": "attribute_not_exists(pk)",
                    }
                },
                {
                    "Update": {
                        "TableName": NAME,
                        "Key": KEY,
                        "UpdateExpression": "SET done = :d",
                        "ExpressionAttributeValues": {":d": {"BOOL": True}},
                    }
                },
                {
                    "ConditionCheck": {
                        "TableName": NAME,
                        "Key": {"pk": {"S": "third"}, "sk": {"N": "3"}},
                        "ConditionExpression": "attribute_exists(pk)",
                    }
                },
            ]
        },
    ),
    "statement": (
        "ExecuteStatement",
        {
            "Statement": f'UPDATE "{NAME}" SET done = ? WHERE pk = ? AND sk = ?',
            "Parameters": [{"BOOL": True}, KEY["pk"], KEY["sk"]],
        },
    ),
    "statements": (
        "BatchExecuteStatement",
        {
            "Statements": [
                {
                    "Statement": f'SELECT * FROM "{NAME}" WHERE pk = ? AND sk = ?',
                    "Parameters": [KEY["pk"], KEY["sk"]],
                }
            ]
        },
    ),
    "transaction": (
        "ExecuteTransaction",
        {
            "TransactStatements": [
                {
                    "Statement": f'DELETE FROM "{NAME}" WHERE pk = ? AND sk = ?',
                    "Parameters": [KEY["pk"], KEY["sk"]],
                }
            ]
        },
    ),
}
STORED = [
    {
        **KEY,
        "name": {"S": "old"},
        "hits": {"N": "1"},
        "past": {"S": "x"},
        "doc": {"M": {"part1": {"S": "y"}}},
    },
    {"pk": {"S": "third"}, "sk": {"N": "3"}},
]
Contents = list[dict[str, Any]]


def filled_in(request: Any, table: str) -> Any:
    return json.loads(json.dumps(request).replace(NAME, table))


@pytest.fixture
def store(client: Any, table: Callable[..., str]) -> Callable[[], str]:
    """A table with the same two items every time."""

    def create() -> str:
        name = table(
            "pk",
            "sk",
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
        )
        for item in STORED:
            client.put_item(TableName=name, Item=item)
        return name

    return create


def contents(client: Any, table: str) -> Contents:
    def ordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: sorted(one) if name in ("SS", "NS", "BS") else ordered(one)
                for name, one in value.items()
            }
        return [ordered(one) for one in value] if isinstance(value, list) else value

    items = client.scan(TableName=table, ConsistentRead=True)["Items"]
    return sorted((ordered(item) for item in items), key=lambda item: str(item["pk"]))


def expected(client: Any, store: Callable[[], str], operation: str, request: Any) -> Contents:
    """Returns the contents of the table after the request itself."""
    table = store()
    method = "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_")
    getattr(client, method)(**filled_in(request, table))
    return contents(client, table)


def code(person: Person, language: str, operation: str, request: Any) -> str:
    """Returns the code on the page for a request in its address."""
    place = f"#/build/{operation}?request={quote(json.dumps(request))}"
    person.browser.evaluate(f"location.hash = {json.dumps(place)}")
    person.clicks(language, TAB)
    labelled = json.dumps(f"[aria-label={json.dumps('As ' + language)}]")
    script = f"document.querySelector({labelled})?.textContent"
    wanted = json.dumps(request["TableName"])[1:-1] if "TableName" in request else ""
    return str(
        wait_for(
            lambda: (text := person.browser.evaluate(script)) and wanted in text and text,
            f"{language} of {operation}",
        )
    )


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def at_builder(person: Person) -> Person:
    person.open("#/build/PutItem")
    person.sees("Run PutItem")
    return person


def written(
    person: Person, client: Any, store: Callable[[], str], language: str
) -> Iterator[tuple[str, str, str, Contents]]:
    for name, (operation, request) in REQUESTS.items():
        after = expected(client, store, operation, request)
        table = store()
        yield name, table, code(person, language, operation, filled_in(request, table)), after


@pytest.mark.parametrize("language", ["boto3", "boto3 resource"])
def test_python_does_what_the_request_does(
    at_builder: Person, client: Any, store: Callable[[], str], environment: None, language: str
) -> None:
    for name, table, text, after in written(at_builder, client, store, language):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(text, name, "exec"), {})
        assert "ResponseMetadata" in said.getvalue()
        assert contents(client, table) == after, name


def test_javascript_does_what_the_request_does(
    at_builder: Person, client: Any, store: Callable[[], str], environment: None
) -> None:
    folder = installed()
    afters = {}
    with contextlib.ExitStack() as files:
        scripts = []
        for at, (name, table, text, after) in enumerate(
            written(at_builder, client, store, "JavaScript v3")
        ):
            path = folder / f"builder-{at}.mjs"
            path.write_text(text)
            files.callback(path.unlink)
            scripts.append(path)
            afters[name] = (table, after)
        runner = "for (const one of process.argv.slice(1)) await import(one);"
        command = ["node", "--input-type=module", "-e", runner, "--", *map(str, scripts)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for name, (table, after) in afters.items():
        assert contents(client, table) == after, name


def test_the_cli_does_what_the_request_does(
    at_builder: Person, client: Any, store: Callable[[], str], environment: None
) -> None:
    clidriver = pytest.importorskip("awscli.clidriver")
    driver = clidriver.create_clidriver()
    for name, table, text, after in written(at_builder, client, store, "AWS CLI"):
        # A shell joins continued lines; shlex does not.
        words = shlex.split(text.replace(" \\\n", " "))
        assert words[0] == "aws"
        with contextlib.redirect_stdout(io.StringIO()):
            assert driver.main(words[1:]) == 0, text
        assert contents(client, table) == after, name


def test_statements_do_what_the_request_does(
    at_builder: Person, client: Any, store: Callable[[], str]
) -> None:
    for name, (operation, request) in REQUESTS.items():
        if "tatement" in name or name in ("transaction", "scan"):
            continue
        after = expected(client, store, operation, request)
        table = store()
        text = code(at_builder, "PartiQL", operation, filled_in(request, table))
        statements = text.strip().split("\n\n")
        if operation.startswith("Transact"):
            told = [{"Statement": one} for one in statements]
            client.execute_transaction(TransactStatements=told)
        elif operation.startswith("Batch"):
            told = [{"Statement": one} for one in statements]
            answered = client.batch_execute_statement(Statements=told)
            assert not [one for one in answered["Responses"] if "Error" in one], name
        else:
            (statement,) = statements
            client.execute_statement(Statement=statement)
        assert contents(client, table) == after, name


def test_a_statement_is_the_query_it_stands_for(
    at_builder: Person, client: Any, store: Callable[[], str]
) -> None:
    table = store()
    client.put_item(TableName=table, Item={**KEY, "sk": {"N": "2"}, "name": {"S": "gold"}})
    operation, request = REQUESTS["query"]
    asked = filled_in(request, table)
    text = code(at_builder, "PartiQL", operation, asked)
    wait_for(lambda: "ORDER BY" in at_builder.text("#code"), "the sort key")
    text = at_builder.text("#code")
    items = client.execute_statement(Statement=text.strip())["Items"]
    assert items == client.query(**asked)["Items"]
    assert [item["sk"]["N"] for item in items] == ["2", "1"]


@pytest.mark.parametrize(("language", "grammar"), [("Java v2", "java"), ("Go", "go")])
def test_java_and_go_are_well_formed(
    at_builder: Person, client: Any, store: Callable[[], str], language: str, grammar: str
) -> None:
    tree_sitter = pytest.importorskip("tree_sitter")
    module = pytest.importorskip(f"tree_sitter_{grammar}")
    parser = tree_sitter.Parser(tree_sitter.Language(module.language()))
    binary = {
        "TableName": NAME,
        "Item": {**KEY, "b": {"B": "AAH/"}, "bs": {"BS": ["AA==", "/w=="]}},
    }
    table = store()
    for operation, request in (*REQUESTS.values(), ("PutItem", binary)):
        text = code(at_builder, language, operation, filled_in(request, table))
        root = parser.parse(text.encode()).root_node
        assert not root.has_error, f"{operation}:\n{text}"
    assert parser.parse(text.replace(")", "", 1).encode()).root_node.has_error


def test_binaries_arrive_as_they_are(
    at_builder: Person, client: Any, store: Callable[[], str], environment: None
) -> None:
    item = {
        **KEY,
        "b": {"B": "AAH/"},
        "bs": {"BS": ["AA==", "/w=="]},
        "deep": {"M": {"b": {"B": "/w=="}}},
    }
    for language in ("boto3", "boto3 resource"):
        table = store()
        text = code(at_builder, language, "PutItem", {"TableName": table, "Item": item})
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, language, "exec"), {})
        found = client.get_item(TableName=table, Key=KEY)["Item"]
        assert found["b"] == {"B": b"\0\1\xff"}
        assert sorted(found["bs"]["BS"]) == [b"\0", b"\xff"]
        assert found["deep"] == {"M": {"b": {"B": b"\xff"}}}
    code(at_builder, "PartiQL", "PutItem", {"TableName": table, "Item": item})
    at_builder.sees('Parameters: [{"B":"AAH/"}', "#code-note")


def test_what_has_no_statement_says_why(at_builder: Person, store: Callable[[], str]) -> None:
    request = {
        "TableName": store(),
        "Key": KEY,
        "UpdateExpression": "SET n = if_not_exists(n, :zero)",
        "ExpressionAttributeValues": {":zero": {"N": "0"}},
    }
    place = f"#/build/UpdateItem?request={quote(json.dumps(request))}"
    at_builder.browser.evaluate(f"location.hash = {json.dumps(place)}")
    at_builder.clicks("PartiQL", TAB)
    at_builder.sees("PartiQL has no if_not_exists.", "#no-code")


def test_an_operation_is_filled_in_run_and_answered(
    person: Person, client: Any, store: Callable[[], str], pictures: Path
) -> None:
    table = store()
    person.open(f"#/build/UpdateItem?table={table}", width=1440)
    person.fills("Value of pk", KEY["pk"]["S"])
    person.fills("Value of sk", "one")
    person.sees("one is not a number.", "#problems")
    assert not person.can("Run UpdateItem")
    person.fills("Value of sk", "1")
    person.fills("Update expression (optional)", "SET #n = :n")
    person.sees("#n has no name yet.", "#problems")
    person.fills("#n", "name")
    person.fills("Value of :n", "by hand")
    person.clicks("boto3", TAB)
    person.clicks("Run UpdateItem")
    person.sees("Done", "#summary")
    assert serious_findings(person.browser) == []
    person.photographs(pictures / "builder.png")
    found = client.get_item(TableName=table, Key=KEY)["Item"]
    assert found["name"] == {"S": "by hand"}


def test_a_transaction_is_filled_in_and_says_which_action_stopped_it(
    person: Person, client: Any, store: Callable[[], str], pictures: Path
) -> None:
    table = store()
    person.open("#/build/TransactWriteItems", width=1440)
    person.fills("Table name of action 1", table)
    person.sees("Put")
    person.fills("Value of pk", "new")
    person.fills("Value of sk", "1")
    person.clicks("Add action")
    person.chooses("Kind of action 2", "ConditionCheck")
    person.fills("Table name of action 2", table)
    rows = "document.querySelectorAll('[aria-label=\"Value of pk\"]')"
    wait_for(lambda: person.browser.evaluate(f"{rows}.length") == 2, "the key of action 2")
    for name, value in (("pk", "third"), ("sk", "3")):
        script = f"document.querySelectorAll('[aria-label=\"Value of {name}\"]')[1].focus()"
        person.browser.evaluate(script)
        person.types(value)
    person.fills("Condition expression of action 2", "attribute_not_exists(pk)")
    person.clicks("Run TransactWriteItems")
    person.sees("TransactionCanceledException")
    person.sees("ConditionalCheckFailed", "#reasons")
    assert (
        client.get_item(TableName=table, Key={"pk": {"S": "new"}, "sk": {"N": "1"}}).get("Item")
        is None
    )
    person.fills("Condition expression of action 2", "attribute_exists(pk)")
    person.clicks("Run TransactWriteItems")
    person.sees("Done", "#summary")
    person.photographs(pictures / "builder-transaction.png")
    assert client.get_item(TableName=table, Key={"pk": {"S": "new"}, "sk": {"N": "1"}})["Item"]


def test_every_call_of_the_explorer_opens_in_the_builder(
    person: Person, store: Callable[[], str]
) -> None:
    table = store()
    person.open(f"#/explore/{table}?pk=third")
    person.clicks("API call: Query")
    person.clicks("Open in the builder")
    person.sees("Run Query")
    assert person.value("Key condition expression") == "#pk = :pk"
    assert person.value("Value of :pk") == "third"
    person.clicks("Run Query")
    person.sees("1 items", "#summary")


def test_code_is_copied(at_builder: Person, server: Server, store: Callable[[], str]) -> None:
    at_builder.browser.call(
        "Browser.grantPermissions",
        permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        origin=server.url,
    )
    text = code(at_builder, "AWS CLI", "Scan", {"TableName": store()})
    at_builder.clicks("Copy")
    at_builder.sees("Copied.")
    assert at_builder.browser.evaluate("navigator.clipboard.readText()") == text


def test_a_refusal_is_told(at_builder: Person, client: Any) -> None:
    with pytest.raises(ClientError):
        client.get_item(TableName="nowhere", Key={"pk": {"S": "a"}})
    place = "#/build/GetItem?request=" + quote(
        json.dumps({"TableName": "nowhere", "Key": {"pk": {"S": "a"}}})
    )
    at_builder.browser.evaluate(f"location.hash = {json.dumps(place)}")
    at_builder.clicks("Run GetItem")
    at_builder.sees("ResourceNotFoundException")
