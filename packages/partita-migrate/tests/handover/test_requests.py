"""Tests the request texts of every pattern, each on a server with the example rows."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import field
from msgspec.structs import replace

from partita.database.item.attribute_values import Item
from partita_migrate.designing.model_stage import model
from partita_migrate.handover.create_stage import create
from partita_migrate.handover.requests import PatternRequests, requests_of
from partita_migrate.handover.requests.partiql_text import statements
from partita_migrate.model.design import AccessCondition, Design, PatternAccess
from partita_migrate.model.items.example_items import ExampleItems
from partita_migrate.model.model_files import read_design
from partita_migrate.report.report_page import report
from partita_migrate.understanding.analysis import read_analysis
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed, sqlite_database
from testkit.packaging.javascript_sdk import installed
from testkit.servers.database_servers import PASSWORD
from testkit.servers.processes import Server

from ..proving import public
from ..test_examples import on_server
from .conftest import MakeDesign

MODEL = """
name = "shop"
kind = "single-table"

[[tables]]
name = "App"
partition_key = { name = "PK", type = "S" }
sort_key = { name = "SK", type = "S" }

[[tables.indexes]]
name = "GSI1"
partition_key = { name = "GSI1PK", type = "S" }
sort_key = { name = "placed_at", type = "S" }

[[tables.entities]]
name = "customer"
source = "customers"
attributes = [
    { name = "PK", type = "S", template = "C#{id}" },
    { name = "SK", type = "S", constant = "root" },
    { name = "id", type = "N", column = "customers.id" },
    { name = "name", type = "S", column = "customers.name" },
]

[[tables.entities]]
name = "customer name"
source = "customers"
is_guard = true
attributes = [
    { name = "PK", type = "S", template = "N#{name}" },
    { name = "SK", type = "S", constant = "taken" },
]

[[tables.entities]]
name = "order"
source = "orders"
attributes = [
    { name = "PK", type = "S", template = "C#{customer_id}" },
    { name = "SK", type = "S", template = "O#{placed_at}#{id:08}" },
    { name = "GSI1PK", type = "S", template = "S#{status}#{shard}", shards = 3 },
    { name = "placed_at", type = "S", column = "orders.placed_at" },
    { name = "id", type = "N", column = "orders.id" },
    { name = "status", type = "S", column = "orders.status" },
    { name = "total", type = "N", column = "orders.total" },
]

[[tables]]
name = "Sessions"
partition_key = { name = "token", type = "S" }
ttl = "expires"

[[tables.entities]]
name = "session"
source = "sessions"
attributes = [
    { name = "token", type = "S", column = "sessions.token" },
    { name = "customer_id", type = "N", column = "sessions.customer_id" },
    { name = "expires", type = "N", expires = "sessions.last_seen", after_seconds = 3600 },
]
"""


def access(pattern: str, request: str, entity: str, *key: str, more: str = "") -> str:
    conditions = ", ".join(f"{{ {one} }}" for one in key)
    table = "Sessions" if entity == "session" else "App"
    return (
        f'\n[[access]]\npattern = "{pattern}"\nrequest = "{request}"\ntable = "{table}"\n'
        f'entity = "{entity}"\nkey = [{conditions}]\n{more}\n'
    )


CUSTOMER = 'attribute = "PK", value = "C#{customer_id}"'
WHOLE_ORDER = (CUSTOMER, 'attribute = "SK", value = "O#{placed_at}#{id:08}"')
WHOLE_CUSTOMER = ('attribute = "PK", value = "C#{id}"', 'attribute = "SK", value = "root"')
ACCESS = "".join(
    (
        access("customer by id", "GetItem", "customer", *WHOLE_CUSTOMER),
        access(
            "orders, newest first", "Query", "order", CUSTOMER,
            'attribute = "SK", comparison = "begins_with", value = "O#"',
            more="is_descending = true\nlimit = 2",
        ),
        access(
            "orders between", "Query", "order", CUSTOMER,
            'attribute = "SK", comparison = "between",'
            ' value = "O#{placed_at.from} and O#{placed_at.to}$"',
        ),
        access(
            "by status", "Query", "order",
            'attribute = "GSI1PK", value = "S#{status}#{shard}"',
            more='index = "GSI1"\nfilter = [{ attribute = "total", comparison = ">=",'
            ' value = "{total}" }]',
        ),
        access("session by token", "GetItem", "session", 'attribute = "token", value = "{token}"'),
        access("new customer", "TransactWriteItems", "customer", *WHOLE_CUSTOMER),
        access("rename a customer", "TransactWriteItems", "customer", *WHOLE_CUSTOMER),
        access("new order", "PutItem", "order", *WHOLE_ORDER),
        access("change the status", "UpdateItem", "order", *WHOLE_ORDER),
        access("cancel an order", "DeleteItem", "order", *WHOLE_ORDER),
        access("old sessions", "TTL", "session"),
    )
)  # fmt: skip
READS = (
    "customer by id",
    "orders, newest first",
    "orders between",
    "by status",
    "session by token",
)
PATTERNS = """
[[pattern]]
name = "customer by id"
table = "customers"
by = "id"
rate = 1
consistent = true
[[pattern]]
name = "orders, newest first"
table = "orders"
by = "customer_id"
order = "-placed_at"
limit = 2
rate = 1
[[pattern]]
name = "orders between"
table = "orders"
by = "customer_id"
range = "placed_at"
rate = 1
[[pattern]]
name = "by status"
table = "orders"
by = "status"
rate = 1
[[pattern]]
name = "session by token"
table = "sessions"
by = "token"
rate = 1
[[pattern]]
name = "new customer"
table = "customers"
operation = "insert"
rate = 1
[[pattern]]
name = "rename a customer"
table = "customers"
operation = "update"
by = "id"
columns = ["name"]
rate = 1
[[pattern]]
name = "new order"
table = "orders"
operation = "insert"
rate = 1
[[pattern]]
name = "change the status"
table = "orders"
operation = "update"
by = "id"
columns = ["status"]
rate = 1
[[pattern]]
name = "cancel an order"
table = "orders"
operation = "delete"
by = "id"
rate = 1
[[pattern]]
name = "old sessions"
table = "sessions"
operation = "delete"
range = "last_seen"
rate = 1
"""

Run = Callable[[PatternRequests], list[Item]]
"""Carries out the text of a pattern, and gives the items that it printed."""


def folder_of(design: MakeDesign) -> Folder:
    folder = design(MODEL + ACCESS, "\n[create]\ncapacity = 'on-demand'\n")
    (folder.path / "patterns.toml").write_text(PATTERNS)
    return folder


def written(folder: Folder, name: str = "model.toml") -> dict[str, PatternRequests]:
    found = requests_of(
        read_design(folder, name),
        read_patterns(folder, read_inventory(folder)).patterns,
        read_analysis(folder).examples,
    )
    return {one.pattern: one for one in found}


def load(client: Any, folder: Folder, design: Design) -> None:
    """Writes the items that the example rows become."""
    items = ExampleItems(read_analysis(folder).examples)
    for table, entity in design.entities():
        for item in items.of(entity):
            client.put_item(TableName=table.name, Item=item)


@pytest.fixture
def loaded(server: Server, dynamodb: Any, design: MakeDesign) -> Folder:
    folder = folder_of(design)
    create(folder, server.url)
    load(dynamodb, folder, read_design(folder))
    return folder


def run_python(text: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "pattern_request.py", "exec"), {})
    return printed.getvalue()


@pytest.fixture(params=["boto3", "PartiQL"])
def run(request: pytest.FixtureRequest, server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Each language in turn."""
    client = server.client()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def in_python(one: PatternRequests) -> list[Item]:
        printed = run_python(one.texts["boto3"])
        found = ast.literal_eval(printed) if printed else []
        return list(found) if isinstance(found, list) else [found] if found else []

    def in_partiql(one: PatternRequests) -> list[Item]:
        texts = [text.strip() for text in one.texts["PartiQL"].split(";\n")]
        texts = [text for text in texts if text]
        if one.request == "TransactWriteItems":
            client.execute_transaction(TransactStatements=[{"Statement": text} for text in texts])
            return []
        found: list[Item] = []
        for text in texts:
            limit = re.search("-- Limit: ([0-9]+)", text)
            options = {"Limit": int(limit[1])} if limit else {}
            found += client.execute_statement(Statement=text, **options)["Items"]
        return found

    return in_python if request.param == "boto3" else in_partiql


@pytest.mark.parametrize("pattern", READS)
def test_reads_find_the_example(loaded: Folder, dynamodb: Any, run: Run, pattern: str) -> None:
    one = written(loaded)[pattern]
    found = run(one)
    assert found
    partition = one.requests[0].key[0]
    if len(one.requests) == 1:
        assert all(item[partition.attribute] == partition.values[0] for item in found)
    if pattern == "orders, newest first":
        times = [item["placed_at"]["S"] for item in found]
        assert len(found) == 2 and times == sorted(times, reverse=True)
        items = dynamodb.query(**one.requests[0].input)["Items"]
        assert found == items[:2]
    if pattern == "orders between":
        assert len(found) == dynamodb.query(**one.requests[0].input)["Count"] >= 2


def test_a_sharded_key_is_asked_for_in_every_shard(loaded: Folder, run: Run) -> None:
    one = written(loaded)["by status"]
    keys = [request.key[0].values[0]["S"] for request in one.requests]
    assert [key.rpartition("#")[2] for key in keys] == ["0", "1", "2"]
    assert len({key.rpartition("#")[0] for key in keys}) == 1
    assert {item["status"]["S"] for item in run(one)} == {keys[0].split("#")[1]}


def held(client: Any, one: PatternRequests, part: int = 0) -> Item | None:
    """Returns the item that a pattern writes."""
    request = one.requests[0].parts[part] if one.requests[0].parts else one.requests[0]
    key = {test.attribute: test.values[0] for test in request.key}
    found: Item | None = client.get_item(TableName=request.table, Key=key).get("Item")
    return found


def forget(client: Any, one: PatternRequests) -> None:
    for request in one.requests[0].parts or one.requests:
        key = {test.attribute: test.values[0] for test in request.key}
        client.delete_item(TableName=request.table, Key=key)


@pytest.mark.parametrize("pattern", ["new order", "new customer"])
def test_inserts_put_the_item_once(loaded: Folder, dynamodb: Any, run: Run, pattern: str) -> None:
    one = written(loaded)[pattern]
    before = held(dynamodb, one)
    assert before is not None
    # A row with the same key is refused, as SQL refuses it, and nothing is written.
    with pytest.raises(dynamodb.exceptions.ClientError):
        run(one)
    forget(dynamodb, one)
    run(one)
    assert held(dynamodb, one) == before
    if pattern == "new customer":
        guard = held(dynamodb, one, 1)
        assert guard is not None and guard["SK"] == {"S": "taken"}


def test_an_update_changes_the_column_and_the_key_that_is_made_of_it(
    loaded: Folder, dynamodb: Any, run: Run
) -> None:
    one = written(loaded)["change the status"]
    before = held(dynamodb, one)
    run(one)
    after = held(dynamodb, one)
    assert before is not None and after is not None
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"status", "GSI1PK"}
    assert after["GSI1PK"]["S"].split("#")[1] == after["status"]["S"]
    # Of a row that is not there, an update changes nothing.
    forget(dynamodb, one)
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        run(one)
    assert held(dynamodb, one) is None


def test_a_unique_value_that_changes_is_free_again(loaded: Folder, dynamodb: Any, run: Run) -> None:
    one = written(loaded)["rename a customer"]
    assert held(dynamodb, one, 1) is not None
    assert held(dynamodb, one, 2) is None
    run(one)
    assert held(dynamodb, one, 1) is None
    assert held(dynamodb, one, 2) is not None


def test_a_delete_deletes(loaded: Folder, dynamodb: Any, run: Run) -> None:
    one = written(loaded)["cancel an order"]
    assert held(dynamodb, one) is not None
    run(one)
    assert held(dynamodb, one) is None


@pytest.mark.soak
def test_the_same_in_javascript(loaded: Folder, server: Server, dynamodb: Any) -> None:
    """All in one process; node has 0.3 s to start."""
    place = installed()
    found = written(loaded)
    forget(dynamodb, found["new order"])
    order = [*READS, "new order", "change the status", "rename a customer", "cancel an order"]
    scripts = []
    try:
        for number, name in enumerate(order):
            scripts.append(place / f"request-{os.getpid()}-{number}.mjs")
            scripts[-1].write_text(found[name].texts["JavaScript"])
        imports = "".join(f'await import("./{one.name}");\n' for one in scripts)
        scripts.append(place / f"request-{os.getpid()}.mjs")
        scripts[-1].write_text(
            "console.log = (value) => process.stdout.write(JSON.stringify(value) + '\\n');\n"
            + imports
        )
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            ["node", scripts[-1]],
            env={**own, "AWS_ENDPOINT_URL_DYNAMODB": server.url, "AWS_ACCESS_KEY_ID": "test",
                 "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    finally:
        for script in scripts:
            script.unlink()
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(printed) == len(READS) and all(printed)
    assert [one["SK"]["S"] for one in printed[1]] == sorted(
        (one["SK"]["S"] for one in printed[1]), reverse=True
    )
    assert len(printed[1]) == 2
    assert held(dynamodb, found["cancel an order"]) is None
    assert held(dynamodb, found["rename a customer"], 1) is None


def test_bytes_and_odd_names_are_written_as_each_language_has_them(design: MakeDesign) -> None:
    folder = folder_of(design)
    examples = {
        "sessions": [
            {"token": {"S": 'it\'s "so"\n`'}, "customer_id": {"B": "AP8="}, "expires": {"N": "1"}}
        ]
    }
    patterns = read_patterns(folder, read_inventory(folder)).patterns
    found = requests_of(read_design(folder), patterns, examples)
    (one,) = (one for one in found if one.pattern == "session by token")
    assert r'"it\'s'.replace("\\", "") in one.texts["boto3"]
    (statement,) = statements(one.requests)
    assert "'it''s \"so\"\n`'" in statement.text
    put = one.requests[0]
    assert put.input["Key"] == {"token": {"S": 'it\'s "so"\n`'}}


def test_expired_items_need_no_request(design: MakeDesign) -> None:
    one = written(folder_of(design))["old sessions"]
    assert (one.requests, one.texts) == ([], {})
    assert "TTL deletes expired items" in one.why


def test_the_report_writes_them_down(design: MakeDesign) -> None:
    folder = folder_of(design)
    assert report(folder).requests == "requests.md"
    page = (folder.path / "requests.md").read_text()
    html = (folder.path / "report.html").read_text()
    for pattern in written(folder):
        assert f"## {pattern}\n" in page
        assert f"<summary>{pattern} " in html
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 10
    for block in blocks:
        compile(block, "requests.md", "exec")


class Finished(PatternAccess, frozen=True, kw_only=True):
    """A request that leaves some work to the application."""

    sorts: list[str] = field(default_factory=list)
    skips: int = 0
    first: int | None = None


@pytest.mark.parametrize(
    ("comparison", "value", "found"),
    [
        ("in", "status1 or status2", ["status1", "status2"]),
        ("in", "{status}", ["status1"]),
        ("not in", "status1 or status3 or status4", ["status2"]),
        ("<>", "status1", ["status2"]),
        ("exists", "", ["status1", "status2"]),
        ("not_exists", "", []),
    ],
)
def test_every_comparison_of_a_filter(
    loaded: Folder, run: Run, comparison: Any, value: str, found: list[str]
) -> None:
    patterns = read_patterns(loaded, read_inventory(loaded)).patterns
    asked = Finished(
        pattern="orders between", request="Query", table="App", entity="order",
        key=[AccessCondition(attribute="PK", value="C#{customer_id}"),
             AccessCondition(attribute="SK", comparison="begins_with", value="O#")],
        filter=[AccessCondition(attribute="status", comparison=comparison, value=value)],
    )  # fmt: skip
    changed = replace(read_design(loaded), access=[asked])
    (one,) = requests_of(changed, patterns, read_analysis(loaded).examples)
    assert sorted({item["status"]["S"] for item in run(one)}) == found


def test_what_is_left_to_the_application_is_said(design: MakeDesign) -> None:
    """Where it sorts, all rows have to be read before the first can be taken."""
    folder = folder_of(design)
    patterns = read_patterns(folder, read_inventory(folder)).patterns
    key = [AccessCondition(attribute="PK", value="C#{customer_id}")]
    given = {"request": "Query", "table": "App", "entity": "order", "key": key}
    by_key = Finished(pattern="orders, newest first", **given, skips=4, first=2)  # type: ignore[arg-type]
    sorted_ = replace(by_key, sorts=["total desc"])
    changed = replace(read_design(folder), access=[by_key, sorted_])
    paged, whole = requests_of(changed, patterns, read_analysis(folder).examples)
    assert '"MaxItems": 6' in paged.texts["boto3"]
    assert "# The application then skips 4, takes the first 2." in paged.texts["boto3"]
    for text in whole.texts.values():
        assert "PK has the form C#{customer_id}" in text
        assert "The application then sorts them by total desc, skips 4, takes the first 2." in text
    assert "MaxItems" not in whole.texts["boto3"] and "break" not in whole.texts["JavaScript"]


# Proposed designs: whatever they hold, their requests run.


@pytest.mark.parametrize("kind", ["denormalized", "single-table"])
def test_requests_of_proposals_run(
    server: Server, dynamodb: Any, design: MakeDesign, run: Run, kind: str
) -> None:
    folder = design(settings="\n[create]\ncapacity = 'on-demand'\n")
    model(folder)
    name = f"model.{kind}.toml"
    create(folder, server.url, name=name)
    found = written(folder, name)
    assert found
    load(dynamodb, folder, read_design(folder, name))
    for one in found.values():
        if one.request in ("GetItem", "Query"):
            assert run(one), one.pattern
        elif one.request == "PutItem":
            forget(dynamodb, one)
            run(one)
            assert held(dynamodb, one) == one.requests[0].item


@pytest.mark.parametrize("kind", ["denormalized", "single-table"])
def test_requests_of_lists_and_sparse_indexes_run(
    server: Server, dynamodb: Any, run: Run, kind: str, tmp_path: Path
) -> None:
    airline = public.SCHEMAS["airline"]
    names = ("airports", "latest bookings", "not yet gone", "take off")
    chosen = {name: airline.patterns[name] for name in names}
    url = sqlite_database(tmp_path / "airline.db", airline.script("sqlite"))
    folder = designed(tmp_path / "folder", url, chosen)
    name = f"model.{kind}.toml"
    create(folder, server.url, name=name)
    load(dynamodb, folder, read_design(folder, name))
    found = written(folder, name)
    for one in found.values():
        run(one)
    assert found["airports"].request == ("Scan" if kind == "denormalized" else "Query")
    departed = found["take off"].requests[0]
    assert ("REMOVE" in departed.input["UpdateExpression"]) == (kind == "single-table")
    if kind == "single-table":
        (sparse,) = departed.removed
        item = held(dynamodb, found["take off"])
        assert item is not None and "left_at" in item and sparse not in item


@pytest.mark.soak
@pytest.mark.parametrize(("example", "kind"), [("metrics", "mariadb"), ("pagehits", "postgresql")])
@pytest.mark.parametrize("layout", ["denormalized", "single-table"])
def test_requests_of_the_examples_run(
    example: str, kind: str, layout: str, server: Server, dynamodb: Any, run: Run,
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = on_server(request.getfixturevalue(kind), example, tmp_path / example)
    model(folder)
    name = f"model.{layout}.toml"
    create(folder, server.url, name=name)
    load(dynamodb, folder, read_design(folder, name))
    for one in written(folder, name).values():
        if one.request in ("GetItem", "Query"):
            assert run(one), one.pattern
        elif one.requests:
            parts = one.requests[0].parts or one.requests
            if parts[0].operation == "PutItem":
                forget(dynamodb, one)
            run(one)
