"""`partita export`, `import`, `diff`, `scan` and `query`: tables in files, and their past."""

from __future__ import annotations

import base64
import csv
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

from .test_kill import ON, restorable, until

ITEMS: list[dict[str, Any]] = [
    {"pk": {"S": "plain"}, "sk": {"N": "1"}, "t": {"S": "x"}, "n": {"N": "12"}},
    {"pk": {"S": 'quo"ted\r\n, "'}, "sk": {"N": "-1.5"}, "t": {"S": ""}, "n": {"N": "1E+30"}},
    {"pk": {"S": "é\u2028😀"}, "sk": {"N": "2"}, "t": {"S": '"q"'}, "a:N": {"S": "s"}},
    {
        "pk": {"S": "all"},
        "sk": {"N": "3"},
        "t": {"NULL": True},
        "b": {"B": b"\x00\xff"},
        "flag": {"BOOL": False},
        "l": {"L": [{"NULL": True}, {"S": ""}, {"M": {"x": {"N": "1"}}}]},
        "m": {"M": {"a b": {"SS": ["x", "y"]}}},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2.5"]},
        "bs": {"BS": [b"a", b"b"]},
        "big": {"N": "12345678901234567890123456789012345678"},
        "price": {"N": "0.1"},
    },
    {"pk": {"S": "none"}, "sk": {"N": "4"}},
]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory")
        client = server.client()
        create(client, "source")
        for item in ITEMS:
            client.put_item(TableName="source", Item=item)
        yield server


@pytest.fixture
def client(server: Any) -> Any:
    return server.client()


def create(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def items_of(client: Any, name: str) -> list[Any]:
    pages = client.get_paginator("scan").paginate(TableName=name)
    return sorted((item for page in pages for item in page["Items"]), key=str)


def run(server: Any, *arguments: object, code: int = 0, **more: Any) -> Any:
    done = processes.run(*map(str, arguments), "--endpoint", server.url, **more)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("name", ["items.jsonl", "items.csv.gz", "items.parquet"])
def test_a_file_has_everything_and_gives_it_back(
    server: Any, client: Any, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    told = run(server, "export", "source", path).stderr
    assert "5 items exported" in told
    table = f"from-{name}"
    told = run(server, "import", table, path, "--key", "pk:S,sk:N").stderr
    assert "5 items imported" in told
    assert items_of(client, table) == items_of(client, "source")


def test_parquet_and_csv_are_what_others_read(server: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run(server, "export", "source", tmp_path / "items.parquet")
    rows = parquet.read_table(tmp_path / "items.parquet").to_pylist()
    found = {row["pk"]: row for row in rows}
    assert found["plain"]["sk"] == 1
    assert found["all"]["flag"] is False
    assert found["all"]["b"] == b"\x00\xff"
    assert found["all"]["ss"] == ["a", "b"]
    assert Decimal(found["all"]["big"]) == Decimal("12345678901234567890123456789012345678")
    run(server, "export", "source", tmp_path / "items.csv")
    with (tmp_path / "items.csv").open(newline="", encoding="utf-8") as file:
        headers, *lines = csv.reader(file)
    assert headers[:2] == ["pk", "sk:N"]
    assert len(lines) == len(ITEMS)
    cells = {line[0]: dict(zip(headers, line, strict=True)) for line in lines}
    assert base64.b64decode(cells["all"]["b:B"]) == b"\x00\xff"


def test_records_that_are_no_items_are_told_and_left_out(
    server: Any, client: Any, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("pk,sk,age:N,name\na,1,30,Ann\nb,2,many,Bob\nc,3\nd,4,,\n,5,1,no key\n")
    done = run(server, "import", "people", path, "--key", "pk:S,sk:N", code=1)
    assert items_of(client, "people") == [
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "age": {"N": "30"}, "name": {"S": "Ann"}},
        {"pk": {"S": "d"}, "sk": {"N": "4"}},
    ]
    for number in (3, 4, 6):
        assert f"Record {number} is left out" in done.stderr
    lines = '{"pk": "a", "sk": 1, "tags": ["x", null]}\n{"pk": "a", "sk": 1, "tags": 2.50}\n'
    run(server, "import", "people", "-", "--plain", input=lines)
    assert client.get_item(TableName="people", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})[
        "Item"
    ] == {"pk": {"S": "a"}, "sk": {"N": "1"}, "tags": {"N": "2.5"}}
    shown = run(server, "scan", "people", "--plain", "--filter", "attribute_exists(tags)").stdout
    assert json.loads(shown) == {"pk": "a", "sk": 1, "tags": 2.5}


def test_somebody_deleted_the_wrong_rows(server: Any, client: Any, tmp_path: Path) -> None:
    create(client, "orders")
    client.update_continuous_backups(TableName="orders", PointInTimeRecoverySpecification=ON)
    until(lambda: restorable(client, "orders"))
    for number in range(40):
        put(client, number, status={"S": "open"})
    time.sleep(0.01)
    good = time.time()
    time.sleep(0.01)
    for number in range(10, 30):
        client.delete_item(TableName="orders", Key=key(number))
    put(client, 5, status={"S": "closed"})
    put(client, 99, status={"S": "open"})
    bad = time.time()
    put(client, 10, status={"S": "entered again"})
    moments = ("--at", good, "--and", bad)
    told = run(server, "diff", "orders", *moments, code=1).stdout
    assert told.splitlines()[-1] == "1 added, 1 changed, 20 deleted."
    assert '    status: "open" -> "closed"' in told
    changes = run(server, "diff", "orders", *moments, "--json", code=1).stdout.splitlines()
    assert len(changes) == 22
    assert run(server, "diff", "orders", "--at", good, "--and", good).stdout == (
        "0 added, 0 changed, 0 deleted.\n"
    )
    then = run(server, "scan", "orders", "--at", good).stdout.splitlines()
    assert len(then) == 40
    asked = ("--key", "pk = :p", "--values", json.dumps({":p": {"S": "o12"}}))
    assert run(server, "query", "orders", *asked).stdout == ""
    found = run(server, "query", "orders", *asked, "--at", good).stdout
    assert json.loads(found)["Item"]["status"] == {"S": "open"}
    lost = tmp_path / "lost.jsonl"
    only = ("--only", "deleted", "--items")
    lost.write_text(run(server, "diff", "orders", *moments, *only, code=1).stdout)
    told = run(server, "import", "orders", lost, "--only-missing").stderr
    assert "19 items imported" in told
    assert "1 existed" in told
    found = {item["pk"]["S"]: item["status"]["S"] for item in items_of(client, "orders")}
    assert found["o10"] == "entered again"
    assert len(found) == 41
    assert client.list_tables()["TableNames"].count("orders") == 1
    assert not [name for name in client.list_tables()["TableNames"] if ".at." in name]


def key(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"o{number}"}, "sk": {"N": "1"}}


def put(client: Any, number: int, **attributes: Any) -> None:
    client.put_item(TableName="orders", Item={**key(number), **attributes})


def test_moments_that_were_not_kept_are_refused_in_a_sentence(server: Any, client: Any) -> None:
    told = run(server, "scan", "source", "--at", "5m", code=1).stderr
    assert "Table source has no past states because point-in-time recovery is off" in told
    create(client, "young")
    client.update_continuous_backups(TableName="young", PointInTimeRecoverySpecification=ON)
    until(lambda: restorable(client, "young"))
    told = run(server, "scan", "young", "--at", "20h", code=1).stderr
    assert "choose a time from" in told
    told = run(server, "scan", "source", "--at", "yesterday", code=1).stderr
    assert "is not a time" in told
    told = run(server, "export", "missing", "x.csv", code=1).stderr
    assert "ResourceNotFoundException" in told
