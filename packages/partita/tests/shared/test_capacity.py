"""The capacity of a table is shared by all servers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from testkit.data.item_tables import item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

UNITS = 100
SECONDS = 20


@pytest.mark.soak
def test_three_servers_serve_what_one_table_has(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "capacity")
    assert processes.run("storage", "init", storage).returncode == 0
    options = ("--storage", storage, "--capacity", "enforce")
    with processes.starting() as start:
        clients = [start("serve", "--port", "0", *options).client() for _ in range(3)]
        clients[0].create_table(
            TableName="limited",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            ProvisionedThroughput={"ReadCapacityUnits": UNITS, "WriteCapacityUnits": UNITS},
        )
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda client: _written(client, 5), clients))
            written = sum(pool.map(lambda client: _written(client, SECONDS), clients))
    assert 0.9 * UNITS * SECONDS < written < 1.1 * UNITS * SECONDS


def _written(client: Any, seconds: float) -> int:
    """The number of items that a client wrote that sends more than the capacity allows."""
    written, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            client.put_item(TableName="limited", Item=item(f"k{written % 50}"))
            written += 1
        except client.exceptions.ProvisionedThroughputExceededException:
            time.sleep(0.01)
    return written
