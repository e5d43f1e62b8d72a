"""The three ways to a private database: over a port, in process, and for every client."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

from partita import testing
from partita.errors import PartitaError

CREDENTIALS = {
    "region_name": "eu-west-1",
    "aws_access_key_id": "any",
    "aws_secret_access_key": "any",
}

CreateTable = Callable[..., Any]


def resource_at(url: str) -> Any:
    return boto3.resource("dynamodb", endpoint_url=url, **CREDENTIALS)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a socket was connected")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_server_answers_over_its_port_until_the_block_ends(create_table: CreateTable) -> None:
    with testing.server() as url:
        table = create_table(resource_at(url))
        table.put_item(Item={"pk": "1"})
        assert table.scan()["Items"] == [{"pk": "1"}]
        address = urlsplit(url)
        assert address.hostname == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", address.port or 0), timeout=5)


def test_servers_are_private(create_table: CreateTable) -> None:
    with testing.server() as one, testing.server() as other:
        create_table(resource_at(one))
        assert list(resource_at(other).tables.all()) == []


def test_a_server_over_a_database_shows_the_same_data(
    database: testing.Database, table: Any
) -> None:
    with testing.server(database) as url:
        resource_at(url).Table("orders").put_item(Item={"pk": "wire"})
        address = resource_at(url).meta.client.describe_endpoints()["Endpoints"][0]["Address"]
    assert table.scan()["Items"] == [{"pk": "wire"}]
    assert address == urlsplit(url).netloc


@pytest.mark.parametrize(
    ("origin", "status"), [("http://localhost:3000", 200), ("http://evil.example", 403)]
)
def test_pages_of_allowed_origins_may_use_a_server(origin: str, status: int) -> None:
    with testing.server(allowed_origins=["http://localhost:3000"]) as url:
        connection = HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", "/health", headers={"Origin": origin})
        assert connection.getresponse().status == status
        connection.close()


def test_a_port_that_is_taken_is_told_at_once() -> None:
    with testing.server() as url:
        port = urlsplit(url).port or 0
        with pytest.raises(PartitaError, match="Cannot listen on"), testing.server(port=port):
            pass


@pytest.mark.usefixtures("no_network")
def test_clients_and_resources_of_a_session_need_no_port(create_table: CreateTable) -> None:
    with testing.in_process() as session:
        create_table(session.resource("dynamodb")).put_item(Item={"pk": "1"})
        found = session.client("dynamodb", region_name="eu-west-1").scan(TableName="orders")
    assert found["Items"] == [{"pk": {"S": "1"}}]


@pytest.mark.usefixtures("no_network")
def test_the_streams_of_a_session_stay_in_process_too() -> None:
    with testing.in_process() as session:
        streams = session.client("dynamodbstreams")
        assert streams.list_streams()["Streams"] == []


def answer_of(client: Any, operation: str, **parameters: Any) -> Any:
    """Returns status, headers and body of a response, without parts that differ in each call."""
    try:
        answer = getattr(client, operation)(**parameters)
    except ClientError as error:
        answer = error.response
    metadata = answer["ResponseMetadata"]
    assert len(metadata.pop("RequestId")) == 52
    for name in ("x-amzn-requestid", "date"):
        metadata["HTTPHeaders"].pop(name)
    return answer


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("scan", {"TableName": "orders", "Limit": 2, "ReturnConsumedCapacity": "TOTAL"}),
        ("scan", {"TableName": "orders"}),
        ("get_item", {"TableName": "orders", "Key": {"wrong": {"S": "1"}}}),
        ("get_item", {"TableName": "absent", "Key": {"pk": {"S": "1"}}}),
        ("put_item", {"TableName": "orders", "Item": {"pk": {"S": "x" * 410_000}}}),
        ("list_backups", {}),
        (
            "put_item",
            {
                "TableName": "orders",
                "Item": {"pk": {"S": "1"}},
                "ConditionExpression": "attribute_not_exists(pk)",
            },
        ),
    ],
)
def test_an_answer_in_process_is_the_answer_over_the_wire(
    database: testing.Database, table: Any, operation: str, parameters: dict[str, Any]
) -> None:
    for number in range(40):
        table.put_item(Item={"pk": str(number), "text": "x" * 100})
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    with testing.server(database) as url:
        over_the_wire = boto3.client("dynamodb", endpoint_url=url, config=config, **CREDENTIALS)
        expected = answer_of(over_the_wire, operation, **parameters)
    in_process = database.client(config=config)
    assert answer_of(in_process, operation, **parameters) == expected


def test_a_body_that_is_too_large_is_refused_in_process_too(
    database: testing.Database, table: Any
) -> None:
    with pytest.raises(ClientError) as refused:
        table.put_item(Item={"pk": "x" * 17_000_000})
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


def test_pages_follow_each_other_in_process(table: Any) -> None:
    with table.batch_writer() as batch:
        for number in range(60):
            batch.put_item(Item={"pk": str(number), "text": "x" * 40_000})
    pages = table.meta.client.get_paginator("scan").paginate(TableName="orders")
    sizes = [len(page["Items"]) for page in pages]
    assert len(sizes) > 1
    assert sum(sizes) == 60


def test_threads_share_a_database(database: testing.Database, table: Any) -> None:
    client = database.client()

    def add(number: int) -> None:
        client.update_item(
            TableName="orders",
            Key={"pk": {"S": "counter"}},
            UpdateExpression="ADD hits :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
        database.client().put_item(TableName="orders", Item={"pk": {"S": str(number)}})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(100)))
    assert table.get_item(Key={"pk": "counter"})["Item"]["hits"] == 100
    assert table.scan(Select="COUNT")["Count"] == 101


def test_threads_use_several_databases_at_once(create_table: CreateTable) -> None:
    def fill(name: str) -> list[str]:
        with testing.database() as database:
            table = create_table(database.resource(), name)
            for number in range(20):
                table.put_item(Item={"pk": f"{name}{number}"})
            assert database.client().list_tables()["TableNames"] == [name]
            return sorted(item["pk"] for item in table.scan()["Items"])

    names = [f"table{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for name, found in zip(names, threads.map(fill, names), strict=True):
            assert found == sorted(f"{name}{number}" for number in range(20))


@pytest.mark.usefixtures("no_network")
def test_every_client_is_intercepted_also_those_made_before(create_table: CreateTable) -> None:
    before = boto3.client("dynamodb", endpoint_url="http://127.0.0.1:1", **CREDENTIALS)
    with testing.intercept() as database:
        create_table(boto3.resource("dynamodb", region_name="us-east-1"))
        before.put_item(TableName="orders", Item={"pk": {"S": "1"}})
        assert database.resource().Table("orders").scan()["Count"] == 1


@pytest.mark.usefixtures("no_network")
def test_pynamodb_is_intercepted() -> None:
    from pynamodb.attributes import UnicodeAttribute
    from pynamodb.models import Model

    class Order(Model):
        class Meta:
            table_name = "orders"
            region = "us-east-1"
            billing_mode = "PAY_PER_REQUEST"

        pk = UnicodeAttribute(hash_key=True)

    with testing.intercept() as database:
        Order.create_table(wait=True)
        Order("1").save()
        assert [order.pk for order in Order.scan()] == ["1"]
        assert database.client().scan(TableName="orders")["Count"] == 1


def test_interception_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    environment, send, session = dict(os.environ), URLLib3Session.send, boto3.DEFAULT_SESSION
    with testing.intercept():
        assert boto3.client("dynamodb").list_tables()["TableNames"] == []
        assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
    assert dict(os.environ) == environment
    assert URLLib3Session.send is send
    assert boto3.DEFAULT_SESSION is session


def test_only_requests_to_dynamodb_are_intercepted() -> None:
    with testing.intercept(), socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 1})
        client = boto3.client("sts", endpoint_url=f"http://127.0.0.1:{port}", config=config)
        with ThreadPoolExecutor(1) as threads:
            call = threads.submit(client.get_caller_identity)
            connection, _ = listener.accept()
            assert connection.recv(65_536).startswith(b"POST / HTTP/1.1")
            connection.close()
            assert call.exception() is not None


def test_interceptions_nest(create_table: CreateTable) -> None:
    with testing.intercept():
        create_table(boto3.resource("dynamodb"), "outer")
        with testing.intercept():
            assert boto3.client("dynamodb").list_tables()["TableNames"] == []
        assert boto3.client("dynamodb").list_tables()["TableNames"] == ["outer"]


def test_interception_is_a_decorator_with_a_new_database_for_each_call(
    create_table: CreateTable,
) -> None:
    @testing.intercept()
    def create_and_list() -> Any:
        resource = boto3.resource("dynamodb")
        create_table(resource)
        return resource.meta.client.list_tables()["TableNames"]

    assert create_and_list() == ["orders"]
    assert create_and_list() == ["orders"]


def test_a_closed_database_says_so(create_table: CreateTable) -> None:
    with testing.database() as database:
        client = database.client()
        branch = database.branch()
    with pytest.raises(RuntimeError, match="is closed"):
        client.list_tables()
    with pytest.raises(RuntimeError, match="is closed"):
        branch.settle()
    database.close()
