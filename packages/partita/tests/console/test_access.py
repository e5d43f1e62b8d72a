"""Access to the console's API, its limits, and the endpoints that a console can show."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from testkit import ROOT
from testkit.browser.chromium import Browser
from testkit.browser.person import Person
from testkit.servers.processes import ENVIRONMENT, SecureServer, Server
from testkit.servers.users import ADMINISTRATOR, People

LOCAL = ROOT / "scripts" / "dynamodb_local.py"
EXIT_UNAVAILABLE = 3
TYPE = "application/vnd.partita.console+json"


def ask(
    server: Server, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, headers or {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    told = {name.lower(): value for name, value in response.getheaders()}
    is_json = bool(content) and "json" in told.get("content-type", "")
    return response.status, told, json.loads(content) if is_json else content


def token(server: Server) -> str:
    return str(ask(server, "GET", "/console/api/session")[2]["Token"])


def list_tables(server: Server, **headers: str) -> int:
    sent = {
        "content-type": TYPE,
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    return ask(server, "POST", "/console/api/dynamodb/ListTables", {}, sent)[0]


def test_only_the_consoles_own_page_may_ask(server: Server) -> None:
    own = token(server)
    here = f"http://127.0.0.1:{server.port}"
    assert list_tables(server, x_console_token=own) == 200
    assert list_tables(server, x_console_token=own, origin=here) == 200
    assert list_tables(server) == 403
    assert list_tables(server, x_console_token="guess") == 403
    assert list_tables(server, x_console_token=own, origin="http://evil.example") == 403
    assert list_tables(server, x_console_token=own, origin="null") == 403
    assert list_tables(server, x_console_token=own, host="evil.example") == 421
    assert ask(server, "GET", "/console/api/session", headers={"host": "evil.example"})[0] == 421
    assert ask(server, "GET", "/console/api/heat")[0] == 403


def test_operations_of_the_database_are_still_not_open_to_pages_of_its_own_origin(
    server: Server,
) -> None:
    headers = {
        "origin": f"http://127.0.0.1:{server.port}",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "DynamoDB_20120810.ListTables",
    }
    assert ask(server, "POST", "/", {}, headers)[0] == 403


def test_pages_load_and_run_nothing_but_the_consoles_own_files(server: Server) -> None:
    status, headers, content = ask(server, "GET", "/console")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert not re.search(rb"<script(?![^>]* src=)", content)
    for path in ("/console/static/../api.js", "/console/static/nothing.js", "/console/x"):
        assert ask(server, "GET", path)[0] == 404
    tag = ask(server, "GET", "/console/static/app.js")[1]["etag"]
    again = ask(server, "GET", "/console/static/app.js", headers={"if-none-match": tag})
    assert again[0] == 304


@pytest.mark.parametrize(
    ("operation", "request_", "status"),
    [
        ("ListTables", {}, 200),
        ("CreateTable", {"TableName": "x"}, 403),
        ("PutItem", {"TableName": "x"}, 403),
        ("ExecuteStatement", {"Statement": "DELETE FROM x WHERE pk = 'SELECT'"}, 403),
        ("ExecuteStatement", {"Statement": " select * from x"}, 400),
        ("ExecuteStatement", {"Statement": 5}, 403),
        ("ExecuteStatement", [], 403),
        ("ExecuteTransaction", {"TransactStatements": []}, 403),
    ],
)
def test_a_read_only_console_passes_on_what_only_reads(
    read_only: Server, operation: str, request_: Any, status: int
) -> None:
    headers = {"content-type": TYPE, "x-console-token": token(read_only)}
    path = f"/console/api/dynamodb/{operation}"
    assert ask(read_only, "POST", path, request_, headers)[0] == status


def test_a_read_only_page_offers_no_changes(read_only: Server, chromium: Browser) -> None:
    client = read_only.client()
    client.create_table(
        TableName="items",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName="items", Item={"pk": {"S": "a"}})
    person = Person(chromium, read_only.url)
    person.open("#/explore/items")
    person.sees("read-only", ".top")
    person.clicks("a")
    person.sees("Close", "[role=dialog]")
    offered = person.browser.evaluate(
        "[...document.querySelectorAll('button')].map((one) => one.innerText)"
    )
    assert not {"Save", "Delete", "Add item", "Import", "Create table"} & set(offered)


@pytest.fixture(scope="module")
def read_only() -> Iterator[Server]:
    server = Server("serve", "--in-memory", "--port", "0", "--console", "read-only")
    yield server
    server.terminate()


def test_the_console_can_be_switched_off(start: Callable[..., Server]) -> None:
    server = start("serve", "--in-memory", "--port", "0", "--console", "off")
    assert ask(server, "GET", "/console")[0] == 404
    assert list_tables(server) == 404


def test_wrong_requests_are_refused_in_words(server: Server) -> None:
    headers = {"content-type": TYPE, "x-console-token": token(server)}
    for path, status in (("nothing/ListTables", 404), ("dynamodb/List%20Tables", 404)):
        assert ask(server, "POST", f"/console/api/{path}", {}, headers)[0] == status
    status, _, body = ask(server, "POST", "/console/api/dynamodb/Nothing", {}, headers)
    assert (status, body["__type"]) == (400, "UnknownOperationException")
    other = {**headers, "content-type": "text/plain"}
    assert ask(server, "POST", "/console/api/dynamodb/ListTables", {}, other)[0] == 415


def test_partita_console_shows_another_endpoint_and_says_when_it_is_gone(
    chromium: Browser, start: Callable[..., Server]
) -> None:
    database = start("serve", "--in-memory", "--port", "0", "--console", "off")
    client = database.client()
    shown = start("console", "--endpoint", database.url, "--port", "0")
    client.create_table(
        TableName="elsewhere",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    person = Person(chromium, shown.url)
    person.open("#/explore/elsewhere")
    person.clicks("Add item")
    person.fills("Value of pk", "a")
    person.clicks("Add item")
    person.sees("Item added.")
    assert client.scan(TableName="elsewhere")["Items"] == [{"pk": {"S": "a"}}]
    database.kill()
    person.clicks("Scan")
    person.sees("The server does not answer.")
    chromium.complaints.clear()


READABLE = """Promise.all(performance.getEntriesByType("resource").map((one) =>
  fetch(one.name).then((found) => found.text()))).then((texts) => texts.concat([
  document.documentElement.outerHTML, document.cookie, JSON.stringify({...localStorage}),
  JSON.stringify({...sessionStorage})]).join())"""
"""Everything that a page has loaded and stored."""
SHOWN_OF_OTHERS = {
    "tables": "No tables yet",
    "explore": "No tables yet",
    "partiql": "Statement",
    "build": "Run PutItem",
    "model": "Nothing is modeled yet",
    "heat": "ListTables",
    "streams": "No streams",
    "workflows": "No state machines",
    "time": "None yet.",
    "move": "No migration is shown here",
}


def test_a_server_with_auth_and_tls_is_shown_and_the_page_never_has_the_key(
    chromium: Browser, start: Callable[..., Server], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    key = People(folder).add(policies=[ADMINISTRATOR])
    database = SecureServer(
        *("serve", "--auth", "--tls-self-signed", "--port", "0", "--data", folder),
        *("--console", "off"),
    )
    try:
        trusted = str(folder / "tls" / "certificate.pem")
        keys = {"AWS_ACCESS_KEY_ID": key.id, "AWS_SECRET_ACCESS_KEY": key.secret}
        trusts = {"AWS_CA_BUNDLE": trusted, "SSL_CERT_FILE": trusted}
        told = ("console", "--endpoint", f"https://127.0.0.1:{database.port}", "--port", "0")
        shown = start(*told, env={**ENVIRONMENT, **keys, **trusts})
        person = Person(chromium, shown.url)
        for page, text in SHOWN_OF_OTHERS.items():
            person.open(f"#/{page}")
            person.sees(text, "main")
            seen = person.browser.evaluate(READABLE)
            assert "Partita" in seen
            assert key.secret not in seen and key.id not in seen, page
        stranger = start(*told, env={**ENVIRONMENT, **keys})
        Person(chromium, stranger.url).open()
        person.sees("certificate", ".banner")
    finally:
        chromium.open("about:blank")
        database.terminate()
    chromium.complaints.clear()


LOCAL_KEYS = {
    "region_name": "us-east-1",
    "aws_access_key_id": "local",
    "aws_secret_access_key": "kept-in-the-process",
}


@contextmanager
def dynamodb_local() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(LOCAL), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        if process.poll() == EXIT_UNAVAILABLE or not line:
            pytest.skip("needs DynamoDB Local")
        yield line.rsplit(" ", 1)[1].strip()
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.soak
def test_dynamodb_local_is_shown_without_what_it_does_not_have(
    chromium: Browser, start: Callable[..., Server]
) -> None:
    with dynamodb_local() as endpoint:
        keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "kept-in-the-process"}
        shown = start("console", "--endpoint", endpoint, "--port", "0", env={**ENVIRONMENT, **keys})
        person = Person(chromium, shown.url)
        person.open()
        person.sees("No tables yet")
        person.clicks("Create table")
        person.fills("Name", "there")
        person.clicks("Create table")
        person.sees("Table there was created.")
        person.open("#/explore/there")
        person.clicks("Add item")
        person.fills("Value of pk", "a")
        person.clicks("Add item")
        person.sees("Item added.")
        person.sees("1 item")
        person.open("#/heat")
        person.sees("This endpoint has no heat map")
        person.open("#/partiql")
        person.fills("Statement", "SELECT * FROM there WHERE pk = 'a'")
        person.sees("Read by key from table there.", "#plan")
        person.sees("Guessed from the text of the statement", "#plan")
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        local = boto3.client("dynamodb", endpoint_url=endpoint, **LOCAL_KEYS)
        local.update_table(TableName="there", StreamSpecification=stream)
        local.put_item(TableName="there", Item={"pk": {"S": "b"}})
        local.close()
        person.open("#/streams/there")
        person.sees("INSERT", "#records")
        person.sees("This endpoint has no event source mappings.")
        person.open("#/move")
        person.sees("No migration is shown here")
        person.open("#/workflows")
        person.sees("No workflows on this endpoint")
        person.open("#/build/Scan?table=there")
        person.clicks("Run Scan")
        person.sees('"pk"', "#answer")
        person.open("#/time")
        person.sees("No backups on this endpoint")
        person.open("#/model")
        person.clicks("From this server")
        person.sees("there", "[role=dialog]")
        person.clicks("Take it")
        person.sees("2 items in 2 item collections", "#rows")
        session = ask(shown, "GET", "/console/api/session")[2]
        assert "kept-in-the-process" not in json.dumps(session)
