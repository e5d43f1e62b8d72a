"""The tables of the catalogue in DynamoDB.

`metrics` is the table of figure 5.3. Its index swaps the parts of the key: the partition of version
"0" has every metric once, in order of names.

`metrics-directory` has everything else, by kind and name: dimensions; groups, until their metric is
added; consumers of a metric; deleted metrics, until their values are deleted (kind "deleted") and
until a rollback has deleted them in MariaDB (kind "gone"); the mode, and the mode of each server.

`metrics-values` has the values of primitive metrics: see `data/value_store.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from partita.client import Client, ClientError
from partita.errors import PartitaError

ACTIVE_SECONDS_MAX = 120
BY_VERSION = "byVersion"
DIMENSION = "dimension"
GROUP = "group"
CONSUMER = "consumer of "
"""The kind of a consumer's entry begins with this; the name of the consumed metric follows."""
DELETED = "deleted"
"""The kind of entries for metrics whose values have still to be deleted."""
GONE = "gone"
"""The kind of entries for metrics that were deleted since the cutover and that MariaDB still
has."""
MODE = {"kind": {"S": "mode"}, "name": {"S": "mode"}}
MODE_COPIES = 128
"""How many copies of the mode there are. Each transaction checks one of them at random, because
concurrent transactions that check the same item cancel each other."""
GUARD = {"kind": {"S": "guard"}, "name": {"S": "references"}}
"""Counts the transactions that add references or delete metrics. Each is conditional on the count
that it read, so of two updates that together would close a cycle only one succeeds, and no metric
is deleted while another begins to use it."""


class CatalogueTables(NamedTuple):
    """The names of the three tables; `metrics` is the one that a user chooses."""

    metrics: str = "metrics"

    @property
    def directory(self) -> str:
        return f"{self.metrics}-directory"

    @property
    def values(self) -> str:
        return f"{self.metrics}-values"


def _table(name: str, partition_key: str, sort_key: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key(partition_key, sort_key),
        "AttributeDefinitions": [
            {"AttributeName": partition_key, "AttributeType": "S"},
            {"AttributeName": sort_key, "AttributeType": "S"},
        ],
    }


def _key(partition_key: str, sort_key: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": sort_key, "KeyType": "RANGE"},
    ]


def descriptions(tables: CatalogueTables) -> list[dict[str, Any]]:
    index = {
        "IndexName": BY_VERSION,
        "KeySchema": _key("version", "name"),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    return [
        {**_table(tables.metrics, "name", "version"), "GlobalSecondaryIndexes": [index]},
        _table(tables.directory, "kind", "name"),
        _table(tables.values, "metric", "place"),
    ]


async def create_tables(client: Client, tables: CatalogueTables) -> None:
    """Creates the tables that do not exist. Returns when all are active."""
    for description in descriptions(tables):
        try:
            await client.call("dynamodb", "CreateTable", description)
        except ClientError as error:
            if error.code != "ResourceInUseException":
                raise
        await _wait_until_active(client, description["TableName"])


async def _wait_until_active(client: Client, name: str) -> None:
    for _ in range(ACTIVE_SECONDS_MAX):
        answer = await client.call("dynamodb", "DescribeTable", {"TableName": name})
        if answer["Table"]["TableStatus"] in ("ACTIVE", "UPDATING"):
            return
        await asyncio.sleep(1)
    raise PartitaError(f"The table {name} is still not active after {ACTIVE_SECONDS_MAX} seconds.")
