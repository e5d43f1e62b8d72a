"""Tables for the tests of shared storage."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from testkit.servers.database_servers import PostgreSQL

SECONDS_MAX = 30

_COMMITS_THAT_WAIT = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = %s AND wait_event_type = 'Lock' AND query !~ '^DELETE FROM partita_commits'"""

_numbers = itertools.count(1)


def create(client: Any, **more: Any) -> str:
    """Creates an on-demand table with a string key `pk`."""
    name = f"shared_{next(_numbers)}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=more.pop(
            "AttributeDefinitions", [{"AttributeName": "pk", "AttributeType": "S"}]
        ),
        BillingMode="PAY_PER_REQUEST",
        **more,
    )
    return name


def item(key: str, **numbers: int) -> dict[str, Any]:
    return {"pk": {"S": key}, **{name: {"N": str(value)} for name, value in numbers.items()}}


def number(client: Any, table: str, key: str, name: str) -> int:
    found = client.get_item(TableName=table, Key=item(key), ConsistentRead=True)
    return int(found["Item"][name]["N"])


def until(holds: Callable[[], Any]) -> Any:
    """Waits until a call returns a true value, and returns it."""
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def wait_for_commits(postgresql: PostgreSQL, database: str, count: int) -> None:
    """Waits until this many commits are waiting for a lock."""
    with postgresql.connect(database) as connection:
        until(lambda: connection.execute(_COMMITS_THAT_WAIT, [database]).fetchone()[0] >= count)


def active(client: Any, table: str) -> None:
    until(lambda: client.describe_table(TableName=table)["Table"]["TableStatus"] == "ACTIVE")


def backed_up(client: Any, table: str) -> str:
    made = client.create_backup(TableName=table, BackupName="of-all-servers")
    arn = str(made["BackupDetails"]["BackupArn"])
    until(lambda: is_backed_up(client, arn))
    return arn


def is_backed_up(client: Any, arn: str) -> bool:
    described = client.describe_backup(BackupArn=arn)["BackupDescription"]
    return bool(described["BackupDetails"]["BackupStatus"] == "AVAILABLE")
