"""Commits share transactions, and one that fails does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from partita import testing
from partita.client import Client, ClientError
from partita_services.record_table import Action, RecordConflict
from partita_services.workflows.running.storage.group_commits import GroupCommits

TABLE = "things"
ABSENT = {"ConditionExpression": "attribute_not_exists(pk)"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with testing.database() as database, testing.server(database) as endpoint:
        database.client(region_name="us-east-1").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield endpoint


def put(key: str, condition: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"Put": {"TableName": TABLE, "Item": {"pk": {"S": key}}, **(condition or {})}}


class Counting(Client):
    """Counts the transactions."""

    transactions = 0

    async def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.transactions += operation == "TransactWriteItems"
        return await super().call(service, operation, request)

    async def transact(self, actions: list[Action]) -> None:
        await self.call("dynamodb", "TransactWriteItems", {"TransactItems": actions})


async def keys(client: Client) -> set[str]:
    page = await client.call("dynamodb", "Scan", {"TableName": TABLE})
    return {item["pk"]["S"] for item in page["Items"]}


def test_commits_of_the_same_moment_share_transactions(url: str) -> None:
    async def run() -> None:
        client = Counting(url)
        commits = GroupCommits(client.transact)
        await asyncio.gather(*(commits.commit([put(f"many-{n}", ABSENT)]) for n in range(300)))
        assert {f"many-{n}" for n in range(300)} <= await keys(client)
        assert client.transactions < 20
        await client.close()

    asyncio.run(run())


def test_a_conflict_is_that_of_its_own_commit(url: str) -> None:
    async def run() -> None:
        client = Counting(url)
        commits = GroupCommits(client.transact)
        await commits.commit([put("taken")])
        outcomes = await asyncio.gather(
            commits.commit([put("a"), put("b", ABSENT)]),
            commits.commit([put("c"), put("taken", ABSENT)]),
            commits.commit([put("d", ABSENT)]),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), RecordConflict, type(None)]
        found = await keys(client)
        assert {"a", "b", "d"} <= found
        assert "c" not in found
        await client.close()

    asyncio.run(run())


def test_a_commit_that_is_wrong_fails_alone(url: str) -> None:
    async def run() -> None:
        client = Counting(url)
        commits = GroupCommits(client.transact)
        wrong: dict[str, Any] = {"Put": {"TableName": TABLE, "Item": {"other": {"S": "x"}}}}
        outcomes = await asyncio.gather(
            commits.commit([put("e")]),
            commits.commit([wrong]),
            commits.commit([put("f")]),
            return_exceptions=True,
        )
        assert outcomes[0] is None
        assert isinstance(outcomes[1], ClientError)
        assert outcomes[2] is None
        assert {"e", "f"} <= await keys(client)
        await client.close()

    asyncio.run(run())
