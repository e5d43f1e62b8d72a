"""The fixtures of black-box tests: an endpoint, a boto3 client, raw requests, tables.

The tests speak to a server over the wire and know nothing of what is behind it: with
PARTITA_ENDPOINT set they run against that server, otherwise against one of our own that keeps its
data in memory.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from testkit.servers import processes

from .raw_http import Connect, Raw, raw_requests, trusting

TABLE_SECONDS_MAX = 60
REGION = "us-east-1"

TableFactory = Callable[..., str]


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    given = os.environ.get("PARTITA_ENDPOINT")
    if given:
        yield given.rstrip("/")
        return
    with processes.starting() as start:
        # What it complains of is shown at once.
        yield start("serve", "--port", "0", "--in-memory", stderr=None).url


@pytest.fixture(scope="session")
def client(endpoint: str) -> Any:
    """A boto3 client that validates nothing and retries nothing."""
    return _client("dynamodb", endpoint)


@pytest.fixture(scope="session")
def streams(endpoint: str) -> Any:
    """A client of the DynamoDB Streams API."""
    return _client("dynamodbstreams", endpoint)


@pytest.fixture(scope="session")
def kinesis(endpoint: str) -> Any:
    """A client of the Kinesis API."""
    return _client("kinesis", endpoint)


@pytest.fixture
def event_stream(kinesis: Any, table_names: Iterator[str]) -> Iterator[Callable[..., str]]:
    """`event_stream(2)`: a new one with two shards, ACTIVE, deleted after the test."""
    created: list[str] = []

    def create(shards: int | None = 1, **more: Any) -> str:
        name = next(table_names)
        count = {} if shards is None else {"ShardCount": shards}
        kinesis.create_stream(StreamName=name, **count, **more)
        created.append(name)
        waiter = kinesis.get_waiter("stream_exists")
        waiter.wait(StreamName=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 1500})
        return name

    yield create
    for name in created:
        with suppress(kinesis.exceptions.ResourceNotFoundException):
            kinesis.delete_stream(StreamName=name)


def _client(service: str, endpoint: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(
            parameter_validation=False,
            retries={"total_max_attempts": 1},
            max_pool_connections=64,
        ),
    )


@pytest.fixture(scope="session")
def raw(endpoint: str) -> Raw:
    """`raw("PutItem", {...})`: the body as given (text and bytes untouched), the answer parsed."""
    return raw_requests(endpoint)


@pytest.fixture
def connect(endpoint: str) -> Iterator[Connect]:
    """A socket, for what no client would send."""
    address = urlsplit(endpoint)
    with ExitStack() as opened:

        def connected() -> socket.socket:
            target = (address.hostname or "", address.port or 80)
            plain = opened.enter_context(socket.create_connection(target, timeout=30))
            if address.scheme != "https":
                return plain
            return opened.enter_context(trusting().wrap_socket(plain, server_hostname=target[0]))

        yield connected


@pytest.fixture(scope="session")
def table_names() -> Iterator[str]:
    """Names that no other run uses."""
    run = f"{os.getpid()}_{int(time.time())}"
    return (f"t_{run}_{number}" for number in itertools.count(1))


@pytest.fixture
def table(client: Any, table_names: Iterator[str]) -> Iterator[TableFactory]:
    """`table()` has a string key `pk`; `table(sk="N")` a sort key too; more as in CreateTable.

    `table(pk="S", sk="S", attributes={"g": "S"}, GlobalSecondaryIndexes=[...])`. The table is
    ACTIVE when its name is returned and is deleted after the test.
    """
    yield from _tables(client, table_names)


@pytest.fixture(scope="module")
def module_table(client: Any, table_names: Iterator[str]) -> Iterator[TableFactory]:
    """A factory of tables that all tests of a file share."""
    yield from _tables(client, table_names)


@pytest.fixture
def arn(client: Any, table: TableFactory) -> str:
    """The name of a table with a string key."""
    return str(client.describe_table(TableName=table())["Table"]["TableArn"])


def _tables(client: Any, table_names: Iterator[str]) -> Iterator[TableFactory]:
    created: list[str] = []

    def create(
        pk: str = "S",
        sk: str | None = None,
        attributes: Mapping[str, str] | None = None,
        **more: Any,
    ) -> str:
        name = more.pop("TableName", None) or next(table_names)
        types = {"pk": pk, **({"sk": sk} if sk else {}), **(attributes or {})}
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
        if sk:
            schema.append({"AttributeName": "sk", "KeyType": "RANGE"})
        if "ProvisionedThroughput" not in more:
            more.setdefault("BillingMode", "PAY_PER_REQUEST")
        client.create_table(
            TableName=name,
            KeySchema=more.pop("KeySchema", schema),
            AttributeDefinitions=more.pop(
                "AttributeDefinitions",
                [{"AttributeName": key, "AttributeType": kind} for key, kind in types.items()],
            ),
            **more,
        )
        created.append(name)
        wait_until_active(client, name)
        return name

    yield create
    for name in created:
        _delete(client, name)


def wait_until_active(client: Any, name: str) -> dict[str, Any]:
    """The table's description, once it and its indexes are ACTIVE."""
    deadline = time.monotonic() + TABLE_SECONDS_MAX
    while True:
        description: dict[str, Any] = client.describe_table(TableName=name)["Table"]
        indexes = description.get("GlobalSecondaryIndexes", [])
        statuses = [description["TableStatus"], *(index["IndexStatus"] for index in indexes)]
        if all(status == "ACTIVE" for status in statuses):
            return description
        assert time.monotonic() < deadline, f"{name} is still {statuses}"
        time.sleep(0.02)


def _delete(client: Any, name: str) -> None:
    try:
        client.delete_table(TableName=name)
    except client.exceptions.ResourceNotFoundException:
        return
    except client.exceptions.ClientError as error:
        if "protected against deletion" in str(error):
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
        elif error.response["Error"]["Code"] == "ResourceInUseException":
            # An index of it is being filled or removed.
            wait_until_active(client, name)
        else:
            raise
        client.delete_table(TableName=name)
