"""`partita serve`: how it starts, what it stores, how it stops, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from testkit.servers import processes

TABLE = "table"
FORMAT_KEY = b"\x00format"
NOBODY = 65534


def create_table(client: Any, name: str = TABLE, **more: Any) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            *more.pop("definitions", []),
        ],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )
    client.get_waiter("table_exists").wait(
        TableName=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 500}
    )


def put(client: Any, key: str, **attributes: Any) -> None:
    client.put_item(TableName=TABLE, Item={"pk": {"S": key}, **attributes})


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_it_says_in_one_line_where_it_is_ready(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    assert server.ready_line == f"Partita is ready on {server.url} (in memory)\n"
    assert server.client().list_tables()["TableNames"] == []
    assert server.terminate() == (0, "")


def test_port_0_takes_a_free_port(serve: Any) -> None:
    one = serve("serve", "--port", "0", "--in-memory")
    other = serve("serve", "--port", "0", "--in-memory")
    assert 0 < one.port != other.port > 0
    create_table(one.client())
    assert other.client().list_tables()["TableNames"] == []


def test_it_takes_the_port_it_is_given(serve: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert serve("serve", "--port", str(port), "--in-memory").port == port


def test_it_listens_on_the_host_it_is_given(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory", "--host", "0.0.0.0", "--no-auth")
    assert server.url == f"http://127.0.0.1:{server.port}"
    assert server.client().list_tables()["TableNames"] == []


def test_it_listens_on_a_name(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory", "--host", "localhost")
    assert server.url == f"http://localhost:{server.port}"
    assert server.client().list_tables()["TableNames"] == []


def test_it_listens_on_ipv6(serve: Any) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    server = serve("serve", "--port", "0", "--in-memory", "--host", "::1")
    assert server.url == f"http://[::1]:{server.port}"
    with urllib.request.urlopen(f"{server.url}/health") as health:
        assert health.status == 200


def test_health_and_metrics_need_no_signature(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    with urllib.request.urlopen(f"{server.url}/health") as health:
        assert (health.status, json.load(health)) == (200, {"status": "ok"})
    with urllib.request.urlopen(f"{server.url}/metrics") as metrics:
        assert metrics.status == 200
        assert b"# TYPE partita_" in metrics.read()


def test_the_data_folder_is_created(serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "data"
    server = serve("serve", "--port", "0", "--data", folder)
    assert folder.is_dir()
    assert f"(data in {folder})" in server.ready_line


def test_in_memory_leaves_no_folder(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--in-memory", cwd=tmp_path)
    create_table(server.client())
    assert server.terminate()[0] == 0
    assert list(tmp_path.iterdir()) == []


# Data that survives a restart.


def test_tables_and_items_survive_a_restart(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client, DeletionProtectionEnabled=True)
    create_table(client, "deleted")
    client.delete_table(TableName="deleted")
    for number in range(50):
        put(client, str(number), n={"N": str(number)}, b={"B": b"\x00\xff"})
    before = client.describe_table(TableName=TABLE)["Table"]
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    assert client.list_tables()["TableNames"] == [TABLE]
    assert client.describe_table(TableName=TABLE)["Table"] == before
    items = client.scan(TableName=TABLE)["Items"]
    assert sorted(int(item["n"]["N"]) for item in items) == list(range(50))
    assert all(item["b"] == {"B": b"\x00\xff"} for item in items)


def test_indexes_survive_a_restart(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(
        client,
        definitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    put(client, "before", g={"S": "x"})
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    put(client, "after", g={"S": "x"}, other={"S": "not projected"})
    items = client.scan(TableName=TABLE, IndexName="by_g")["Items"]
    assert sorted(items, key=lambda item: item["pk"]["S"]) == [
        {"pk": {"S": "after"}, "g": {"S": "x"}},
        {"pk": {"S": "before"}, "g": {"S": "x"}},
    ]
    (index,) = client.describe_table(TableName=TABLE)["Table"]["GlobalSecondaryIndexes"]
    assert index["ItemCount"] == 2


def test_time_to_live_survives_a_restart(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client)
    specification = {"Enabled": True, "AttributeName": "ttl"}
    client.update_time_to_live(TableName=TABLE, TimeToLiveSpecification=specification)
    put(client, "soon", ttl={"N": str(int(time.time()) + 2)})
    put(client, "later", ttl={"N": str(int(time.time()) + 1000)})
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    described = client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    assert eventually(lambda: client.scan(TableName=TABLE)["Count"] == 1)
    assert client.scan(TableName=TABLE)["Items"][0]["pk"] == {"S": "later"}


def test_tags_survive_a_restart(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client, Tags=[{"Key": "team", "Value": "blue"}])
    arn = client.describe_table(TableName=TABLE)["Table"]["TableArn"]
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    tags = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    assert tags == [{"Key": "team", "Value": "blue"}]


def test_client_tokens_survive_a_restart(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client)

    def add(client: Any, amount: str) -> None:
        update = {
            "TableName": TABLE,
            "Key": {"pk": {"S": "counter"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": amount}},
        }
        client.transact_write_items(TransactItems=[{"Update": update}], ClientRequestToken="token")

    add(client, "1")
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    add(client, "1")
    item = client.get_item(TableName=TABLE, Key={"pk": {"S": "counter"}})["Item"]
    assert item["n"] == {"N": "1"}
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        add(client, "2")


def test_a_deleted_table_does_not_come_back_with_its_name(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client)
    put(client, "old")
    client.delete_table(TableName=TABLE)
    create_table(client)
    server.terminate()
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    assert client.scan(TableName=TABLE)["Items"] == []
    assert client.describe_table(TableName=TABLE)["Table"]["ItemCount"] == 0


# Stopping.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_promptly_with_exit_code_0(serve: Any, number: signal.Signals) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    client = server.client()
    create_table(client)  # leaves a connection open
    started = time.monotonic()
    server.process.send_signal(number)
    assert server.ended() == (0, "")
    # `docker stop` kills after ten seconds.
    assert time.monotonic() - started < 8


def test_requests_in_flight_are_answered_before_the_end(serve: Any, tmp_path: Path) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    client = server.client()
    create_table(client)
    acknowledged: list[str] = []
    half_answered: list[BaseException] = []

    def write(worker: int) -> None:
        number = 0
        while True:
            key = f"{worker}-{number}"
            try:
                put(client, key, v={"S": "x" * 500})
            except BotoCoreError as refused:
                half_answered.append(refused)
                return
            acknowledged.append(key)
            number += 1

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, worker) for worker in range(8)]
        assert eventually(lambda: len(acknowledged) > 200)
        code, errors = server.terminate()
        for writer in writers:
            writer.result(timeout=120)
    assert (code, errors) == (0, "")
    # Nobody is cut off in the middle of an answer; later requests find nobody listening.
    kinds = {type(refused).__name__ for refused in half_answered}
    assert kinds <= {"EndpointConnectionError", "ConnectionClosedError"}
    client = serve("serve", "--port", "0", "--data", tmp_path).client()
    pages = client.get_paginator("scan").paginate(TableName=TABLE)
    found = {item["pk"]["S"] for page in pages for item in page["Items"]}
    assert found >= set(acknowledged)
    assert len(found) - len(acknowledged) <= 8


def test_a_request_half_sent_does_not_hold_up_the_end(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        started = time.monotonic()
        assert server.terminate()[0] == 0
        assert time.monotonic() - started < 8


# Whose pages may use the server, and what it is called: told like all options.


def status(server: processes.Server, **headers: str) -> int:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/health", headers=headers)
    answered = connection.getresponse().status
    connection.close()
    return answered


@pytest.mark.parametrize(
    "written",
    [
        'allow_origin = ["http://a.example", "http://b.example"]\nallow_host = ["db.test"]',
        'allow_origin = "http://a.example"\nallow_host = "db.test"',
    ],
    ids=["lists", "single names"],
)
def test_origins_and_hosts_stand_in_the_settings(serve: Any, tmp_path: Path, written: str) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(f"[serve]\nport = 0\nin_memory = true\n{written}\n")
    server = serve("serve", "--config", path)
    assert status(server, Origin="http://a.example") == 200
    assert status(server, Origin="http://c.example") == 403
    assert status(server, Host="db.test") == 200
    assert status(server, Host="other.test") == 421


def test_origins_and_hosts_stand_in_the_environment(serve: Any) -> None:
    names = {
        "PARTITA_SERVE_ALLOW_ORIGIN": "http://a.example http://b.example",
        "PARTITA_SERVE_ALLOW_HOST": "db.test other.test",
    }
    server = serve("serve", "--port", "0", "--in-memory", env={**processes.ENVIRONMENT, **names})
    assert status(server, Origin="http://b.example") == 200
    assert status(server, Origin="http://c.example") == 403
    assert status(server, Host="other.test") == 200
    assert status(server, Host="a.test") == 421


# What is refused: one sentence, exit code 1, no traceback.


def assert_one_sentence(completed: Any) -> str:
    assert completed.returncode == 1
    assert completed.stdout == ""
    assert "Traceback" not in completed.stderr
    assert completed.stderr.startswith("partita: ")
    assert completed.stderr.count("\n") == 1
    return str(completed.stderr)


def test_a_second_server_on_the_same_folder_is_refused(
    serve: Any, run: Any, tmp_path: Path
) -> None:
    server = serve("serve", "--port", "0", "--data", tmp_path)
    said = assert_one_sentence(run("serve", "--port", "0", "--data", tmp_path))
    assert f"The data folder {tmp_path} is in use by another Partita" in said
    assert server.client().list_tables()["TableNames"] == []


def test_a_port_in_use_is_refused(serve: Any, run: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    said = assert_one_sentence(run("serve", "--port", str(server.port), "--in-memory"))
    assert f"Cannot listen on 127.0.0.1:{server.port}" in said
    assert "in use" in said.lower()


def test_a_refused_port_leaves_no_folder_in_memory(run: Any, serve: Any) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("no /dev/shm here")
    server = serve("serve", "--port", "0", "--in-memory")

    def leaves_nothing() -> bool:
        before = set(memory.glob("partita-*"))
        run("serve", "--port", str(server.port), "--in-memory")
        return set(memory.glob("partita-*")) <= before

    # Somebody else may start a server meanwhile.
    assert any(leaves_nothing() for _ in range(3))


def test_a_host_that_is_not_ours_is_refused(run: Any) -> None:
    there = ("--host", "192.0.2.1", "--no-auth")
    said = assert_one_sentence(run("serve", "--port", "0", "--in-memory", *there))
    assert "Cannot listen on 192.0.2.1:0" in said


def test_a_host_that_does_not_exist_is_refused(run: Any) -> None:
    there = ("--host", "no-such-host.invalid", "--no-auth")
    said = assert_one_sentence(run("serve", "--port", "0", "--in-memory", *there))
    assert "no-such-host.invalid" in said


def test_a_path_under_a_file_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    folder = tmp_path / "file" / "data"
    said = assert_one_sentence(run("serve", "--port", "0", "--data", folder))
    assert f"Cannot write to the data folder {folder}" in said


def test_a_file_instead_of_a_folder_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert_one_sentence(run("serve", "--port", "0", "--data", tmp_path / "file"))


# Root may write everywhere, so it becomes nobody, after the imports that nobody may not read.
AS_NOBODY = (
    "import importlib.metadata, os, sys, partita.assembly.server_run, partita.cli;"
    f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY});"
    "partita.cli.main()"
)


def test_a_folder_that_cannot_be_written_is_refused(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o555)
    command: dict[str, Any] = {}
    if os.geteuid() == 0:
        command = {"command": (sys.executable, "-c", AS_NOBODY)}
        for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            parent.chmod(0o755)
    completed = run("serve", "--port", "0", "--data", folder, **command)
    said = assert_one_sentence(completed)
    assert f"Cannot write to the data folder {folder} (Permission denied)" in said


def test_a_data_file_that_cannot_be_written_is_refused(
    serve: Any, run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    serve("serve", "--port", "0", "--data", folder).terminate()
    for name in folder.iterdir():
        name.chmod(0o444)
    folder.chmod(0o555)
    command: dict[str, Any] = {}
    if os.geteuid() == 0:
        command = {"command": (sys.executable, "-c", AS_NOBODY)}
        for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            parent.chmod(0o755)
    said = assert_one_sentence(run("serve", "--port", "0", "--data", folder, **command))
    assert str(folder) in said


def test_a_folder_of_a_newer_format_is_refused(serve: Any, run: Any, tmp_path: Path) -> None:
    import lmdb

    serve("serve", "--port", "0", "--data", tmp_path).terminate()
    environment = lmdb.open(str(tmp_path))
    with environment.begin(write=True) as transaction:
        transaction.put(FORMAT_KEY, b"999")
    environment.close()
    said = assert_one_sentence(run("serve", "--port", "0", "--data", tmp_path))
    assert "The data folder has format 999" in said


def test_a_folder_that_holds_something_else_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not an LMDB file" * 1000)
    said = assert_one_sentence(run("serve", "--port", "0", "--data", tmp_path))
    assert f"Cannot open the data folder {tmp_path}" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "65536", "--in-memory"),
        ("serve", "--port", "-1", "--in-memory"),
        ("serve", "--port", "http", "--in-memory"),
        ("serve", "--nonsense"),
        ("nonsense",),
    ],
)
def test_wrong_arguments_are_refused_with_the_usage(run: Any, arguments: tuple[str, ...]) -> None:
    completed = run(*arguments)
    assert completed.returncode == 2
    assert completed.stderr.startswith("Usage: ")
    assert "Error: " in completed.stderr


def test_the_version_is_printed(run: Any) -> None:
    completed = run("--version")
    assert completed.returncode == 0
    assert completed.stdout.startswith("partita, version ")


def test_a_client_error_is_no_reason_to_log(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    with pytest.raises(ClientError):
        server.client().get_item(TableName="missing", Key={"pk": {"S": "a"}})
    assert server.terminate() == (0, "")
