"""Servers that share a database: what a caller may do follows from tables that another server may
have made or changed a moment ago."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.users import (
    ADMINISTRATOR,
    People,
    client_for,
    policy,
    refusal,
    statement,
    table_arn,
)

from ..shared.conftest import storage_url

KEY = {"pk": {"S": "other"}}
ITEM = {**KEY, "value": {"S": "secret"}}


@pytest.fixture(scope="module")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> People:
    return People(tmp_path_factory.mktemp("shared-users"))


@pytest.fixture(scope="module")
def urls(everybody: People, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The URLs of two servers that share a database and their users."""
    PostgreSQL.require()
    everybody.add(policies=[ADMINISTRATOR])
    with PostgreSQL() as postgresql, processes.starting() as start:
        url = storage_url(postgresql, "rights")
        assert processes.run("storage", "init", url).returncode == 0
        options = ("--auth", "--port", "0", "--storage", url, "--users", everybody.path)
        servers = [
            start("serve", *options, "--audit", tmp_path_factory.mktemp("audit"), stderr=None)
            for _ in range(2)
        ]
        everybody.server = servers[0]
        yield [server.url for server in servers]


@pytest.fixture(scope="module")
def owner(everybody: People, urls: list[str]) -> Any:
    return everybody.client(everybody.add(policies=[ADMINISTRATOR]))


def create(owner: Any, name: str) -> None:
    owner.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    owner.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    owner.put_item(TableName=name, Item=ITEM)


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("get_item", {"Key": KEY}),
        ("put_item", {"Item": KEY}),
        ("delete_item", {"Key": KEY}),
        ("execute_statement", {"Statement": "SELECT * FROM \"{}\" WHERE pk = 'other'"}),
    ],
)
def test_leading_keys_count_in_a_table_that_another_server_has_just_created(
    everybody: People, urls: list[str], owner: Any, operation: str, asked: dict[str, Any]
) -> None:
    mine = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["mine"]}}
    key = everybody.add(statement("dynamodb:*", Condition=mine))
    client = client_for(urls[1], key.id, key.secret)
    name = f"new-{operation}"
    create(owner, name)
    if "Statement" in asked:
        request = {"Statement": asked["Statement"].format(name)}
    else:
        request = {"TableName": name, **asked}
    code, _ = refusal(getattr(client, operation), **request)
    assert code == "AccessDeniedException"
    assert owner.get_item(TableName=name, Key=KEY)["Item"] == ITEM


def test_the_policy_of_a_table_counts_at_once_on_all_servers(
    everybody: People, urls: list[str], owner: Any
) -> None:
    key = everybody.add(statement("dynamodb:*"))
    client = client_for(urls[1], key.id, key.secret)
    create(owner, "closed")
    assert client.get_item(TableName="closed", Key=KEY)["Item"] == ITEM
    user = f"arn:aws:iam::123456789012:user/{everybody.name_of(key)}"
    denying = statement("dynamodb:GetItem", table_arn("closed"), "Deny", Principal={"AWS": user})
    document = msgspec.json.encode(policy(denying)).decode()
    owner.put_resource_policy(ResourceArn=table_arn("closed"), Policy=document)
    code, _ = refusal(client.get_item, TableName="closed", Key=KEY)
    assert code == "AccessDeniedException"
