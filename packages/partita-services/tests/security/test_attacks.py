"""Attacks that once succeeded: each way in stays closed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import cbor2
import pytest

from partita.client.aws_services import FUNCTIONS_TABLE, SERVICES, WORKFLOWS_TABLE
from partita.client.request_signing import Credentials, signed_headers
from partita.database.storage.sealing.encrypted_folders import keyring_of
from partita.database.storage.sealing.master_keys import KeySource
from partita.foundation.clock import system_clock
from partita.server.security.identities.access_file import AccessFile
from testkit.packaging.function_packages import create, wait_for
from testkit.servers import processes
from testkit.servers.users import (
    ACCOUNT,
    ADMINISTRATOR,
    REGION,
    TABLE,
    People,
    events,
    refusal,
    statement,
    table_arn,
)

from .test_functions import trusting

ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
DEFINITION = '{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}'
CBOR = "application/x-amz-cbor-1.1"


def posted(people: People, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    assert people.server is not None
    connection = HTTPConnection(urlsplit(people.server.url).netloc)
    connection.request("POST", "/", body, headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def signed(people: People, key: Any, service: str, headers: dict[str, str], body: bytes) -> Any:
    assert people.server is not None
    headers = {"Host": urlsplit(people.server.url).netloc, **headers}
    credentials = Credentials(key.id, key.secret)
    added = signed_headers(SERVICES[service], REGION, credentials, headers, body, system_clock())
    return posted(people, headers | added, body)


@pytest.mark.parametrize("content_type", [CBOR, "application/x-amz-json-1.1"])
def test_a_request_in_cbor_comes_from_the_same_address(people: People, content_type: str) -> None:
    here = {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}
    key = people.add(statement("kinesis:*"), statement("kinesis:*", effect="Deny", Condition=here))
    headers = {"Content-Type": content_type, "X-Amz-Target": "Kinesis_20131202.ListStreams"}
    body = cbor2.dumps({}) if content_type == CBOR else b"{}"
    status, answer = signed(people, key, "kinesis", headers, body)
    assert status == 400 and b"explicit deny" in answer


@pytest.fixture(scope="module")
def passing(people: People) -> Any:
    """A user who may pass roles that begin with `app`, and no others."""
    services = trusting("states")
    services["Principal"]["Service"] = [
        f"{name}.amazonaws.com" for name in ("states", "lambda", "scheduler")
    ]
    people.add_role("app-narrow", services, statement("dynamodb:ListTables"))
    people.add_role("Powerful", services, statement("*"))
    return people.add(
        statement(["states:*", "lambda:*", "scheduler:*"]),
        statement("iam:PassRole", f"{ROLE}app*"),
    )


def _machine(people: People, key: Any, role: str) -> Any:
    client = people.client(key, "stepfunctions")
    return client.create_state_machine, {
        "name": f"m-{uuid4().hex[:12]}",
        "definition": DEFINITION,
        "roleArn": role,
    }


def _function(people: People, key: Any, role: str) -> Any:
    code = "def handler(event, context): return 1"
    client = people.client(key, "lambda")
    name = f"f-{uuid4().hex[:12]}"
    return lambda **asked: create(client, name, code, **asked), {"Role": role}


def _schedule(people: People, key: Any, role: str) -> Any:
    target = {"Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:putItem", "RoleArn": role}
    return people.client(key, "scheduler").create_schedule, {
        "Name": f"s-{uuid4().hex[:12]}",
        "ScheduleExpression": "rate(30 days)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target,
    }


@pytest.mark.parametrize("made", [_machine, _function, _schedule])
@pytest.mark.parametrize("role", [f"{ROLE}app/Powerful", f"{ROLE}app-narrow/x/Powerful"])
def test_a_path_before_the_name_of_a_role_passes_no_other_role(
    people: People, passing: Any, made: Callable[..., Any], role: str
) -> None:
    call, asked = made(people, passing, role)
    code, text = refusal(call, **asked)
    assert code == "AccessDeniedException"
    assert f"iam:PassRole on resource: {ROLE}Powerful" in text
    call, asked = made(people, passing, f"{ROLE}service-role/app-narrow")
    assert call(**asked)


@pytest.mark.parametrize("table", [FUNCTIONS_TABLE, WORKFLOWS_TABLE])
def test_tables_of_services_are_not_for_everybody_who_may_use_all_tables(
    people: People, passing: Any, admin: Any, table: str
) -> None:
    """Whoever could write there could run code with any role."""
    people.client(passing, "lambda").list_functions()
    people.client(passing, "stepfunctions").list_state_machines()
    key = people.add(policies=["AmazonDynamoDBFullAccess"])
    client = people.client(key)
    record = {"pk": {"S": "functions"}, "sk": {"S": "planted"}}
    statements = [{"Statement": f"SELECT * FROM \"{table}\" WHERE pk = 'functions'"}]
    asked: list[tuple[Any, dict[str, Any]]] = [
        (client.get_item, {"TableName": table, "Key": record}),
        (client.get_item, {"TableName": table_arn(table), "Key": record}),
        (client.put_item, {"TableName": table, "Item": record}),
        (client.scan, {"TableName": table}),
        (client.create_table, {"TableName": table, **TABLE}),
        (client.create_backup, {"TableName": table, "BackupName": "mine"}),
        (client.execute_statement, statements[0]),
        (client.batch_execute_statement, {"Statements": statements}),
        (client.batch_write_item, {"RequestItems": {table: [{"PutRequest": {"Item": record}}]}}),
        (
            client.transact_write_items,
            {"TransactItems": [{"Put": {"TableName": table, "Item": record}}]},
        ),
        (client.delete_table, {"TableName": table}),
    ]
    for call, request in asked:
        code, text = refusal(call, **request)
        assert code == "AccessDeniedException" and "partita:UseServiceTables" in text, request
    assert admin.scan(TableName=table, Limit=1)["ScannedCount"] <= 1


def test_nothing_is_decoded_for_somebody_unknown(people: People) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.PutItem",
    }
    for wrong in (b"{" * 100, b"{" * 100_000):
        status, answer = posted(people, headers, wrong)
        assert status == 400 and b"MissingAuthenticationTokenException" in answer


def hits(people: People, key: Any) -> str:
    """The operator page's count of answers from the cache."""
    assert people.server is not None
    connection = HTTPConnection(urlsplit(people.server.url).netloc)
    password = b64encode(f"{key.id}:{key.secret}".encode()).decode()
    connection.request("GET", "/metrics", headers={"Authorization": f"Basic {password}"})
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return next(one for one in lines if 'cache_hits_total{operation="GetItem"}' in one)


def test_nothing_is_read_for_somebody_unknown_not_even_from_a_cache(
    people: People, administrator: Any, admin: Any
) -> None:
    """The time of a refusal must not reveal what exists."""
    admin.create_table(TableName="cached", **TABLE)
    body = b'{"TableName":"cached","Key":{"pk":{"S":"a"}}}'
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.GetItem",
    }
    for _ in range(2):
        assert signed(people, administrator, "dynamodb", headers, body)[0] == 200
    before = hits(people, administrator)
    status, answer = posted(people, headers, body)
    assert status == 400 and b"MissingAuthenticationTokenException" in answer
    assert hits(people, administrator) == before
    assert signed(people, administrator, "dynamodb", headers, body)[0] == 200
    assert hits(people, administrator) != before
    admin.delete_table(TableName="cached")


SETTINGS = """
[[functions]]
name = "shows"
handler = "shop:shows"

[[functions]]
name = "shows-with-role"
handler = "shop:shows"
role = "reader"
"""
SHOP = "import os\ndef shows(event, context): return dict(os.environ)\n"
SECRETS = {
    "PARTITA_ROOT_ACCESS_KEY_ID": "AKIAROOTROOTROOTROOT",
    "PARTITA_ROOT_SECRET_ACCESS_KEY": "root-secret-of-the-server",
    "MY_KEY": "qEvZbXhNzPZrOW9cNfSlyTqGzSySJCjlyLCHOPkEnwc=",
}


def test_functions_of_the_settings_do_not_see_the_secrets_of_the_server(tmp_path: Path) -> None:
    people = People(tmp_path / "data")
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "partita.toml").write_text(SETTINGS)
    (tmp_path / "shop.py").write_text(SHOP)
    aws = {"AWS_ACCESS_KEY_ID": "of-the-bucket", "AWS_SECRET_ACCESS_KEY": "s", "AWS_PROFILE": "p"}
    environment = {**processes.ENVIRONMENT, **aws, **SECRETS, "COLOUR": "blue"}
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", tmp_path / "data"),
            *("--config", tmp_path / "partita.toml", "--encryption-key", "env:MY_KEY"),
            env=environment,
        )

        class Root:
            id = SECRETS["PARTITA_ROOT_ACCESS_KEY_ID"]
            secret = SECRETS["PARTITA_ROOT_SECRET_ACCESS_KEY"]

        keys = KeySource("env:MY_KEY", SECRETS)
        people.file = AccessFile(people.path, lambda: keyring_of(tmp_path / "data", keys))
        people.add_role("reader", trusting("lambda"), statement("dynamodb:GetItem"))
        client = people.client(Root, "lambda")
        seen = {
            name: json.loads(client.invoke(FunctionName=name)["Payload"].read())
            for name in ("shows", "shows-with-role")
        }
    for found in seen.values():
        assert found["COLOUR"] == "blue"
        assert not set(SECRETS) & set(found)
        assert not set(SECRETS.values()) & set(found.values())
    assert seen["shows"]["AWS_ACCESS_KEY_ID"] == "of-the-bucket"
    assert seen["shows-with-role"]["AWS_SESSION_TOKEN"]
    assert "AWS_PROFILE" not in seen["shows-with-role"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("audited")
    people = People(folder)
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role("tidy", trusting("states"), statement("dynamodb:*"))
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", folder),
            *("--audit-data", "watched", "--limit-failures", "1000000"),
        )
        yield people, key, folder


def names(folder: Path) -> list[str]:
    return [one["eventName"] for one in events(folder)]


def test_data_of_a_watched_table_is_read_unseen_by_no_statement_and_no_stream(
    audited: Any,
) -> None:
    people, key, folder = audited
    client, streams = people.client(key), people.client(key, "dynamodbstreams")
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    for table in ("watched", "other"):
        client.create_table(TableName=table, StreamSpecification=stream, **TABLE)
    for table in ("other", "watched"):
        text = f"SELECT * FROM \"{table}\" WHERE pk = 'a'"
        client.execute_statement(Statement=text)
        client.batch_execute_statement(Statements=[{"Statement": text}])
        client.execute_transaction(TransactStatements=[{"Statement": text}])
        arn = client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        streams.get_records(ShardIterator=iterator)
    data = [one["eventName"] for one in events(folder) if one["eventCategory"] == "Data"]
    assert data == [
        *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
        *("GetShardIterator", "GetRecords"),
    ]


def test_what_a_workflow_changes_with_its_role_is_written_down(audited: Any) -> None:
    people, key, folder = audited
    states = people.client(key, "stepfunctions")
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:dynamodb:createTable",
        "Parameters": {"TableName": "made-by-a-machine", **TABLE},
        "End": True,
    }
    machine = states.create_state_machine(
        name="makes",
        definition=json.dumps({"StartAt": "A", "States": {"A": task}}),
        roleArn=f"{ROLE}tidy",
    )
    states.start_execution(stateMachineArn=machine["stateMachineArn"])

    def created() -> list[dict[str, Any]]:
        return [
            one
            for one in events(folder)
            if one["requestParameters"].get("tableName") == "made-by-a-machine"
        ]

    (event,) = wait_for(created)
    assert event["eventName"] == "CreateTable"
    assert event["userIdentity"]["arn"].endswith("assumed-role/tidy/states")


def test_strangers_cannot_drive_out_of_the_log_what_others_did(audited: Any) -> None:
    people, _, folder = audited
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.DeleteTable",
    }
    before = names(folder).count("DeleteTable")
    for _ in range(100):
        assert posted(people, headers, b'{"TableName":"watched"}')[0] == 400
    assert 0 < names(folder).count("DeleteTable") - before <= 60


def test_a_console_for_everybody_says_so(people: People) -> None:
    assert people.server is not None
    with processes.starting() as start:
        console = start(
            *("console", "--endpoint", people.server.url, "--host", "0.0.0.0", "--port", "0")
        )
        assert "WARNING: this console listens on 0.0.0.0" in console.terminate()[1]


def test_no_password_stands_in_the_endpoint_that_a_console_shows() -> None:
    done = processes.run("console", "--endpoint", "http://key:s3cr3t@127.0.0.1:8000")
    assert done.returncode == 1
    assert "must not contain a name and password" in done.stderr and "s3cr3t" not in done.stderr


def test_encryption_of_what_postgresql_keeps_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_text(processes.run("keys", "new").stdout)
    done = processes.run(
        *("serve", "--storage", "postgresql://127.0.0.1/none", "--port", "0"),
        *("--encryption-key", f"file:{tmp_path / 'key'}"),
    )
    assert done.returncode == 1 and "does not encrypt data in PostgreSQL" in done.stderr
