"""Waiting requests share round trips: reads a query, writes a transaction and its sync."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from partita.database.storage.postgresql.batch_fetch import _KEYS
from testkit.data.item_tables import create, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.proxy import Proxy
from testkit.servers.shared_storage import storage_url

REQUESTS = 30
SHARED_MAX = REQUESTS // 2
"""Three rounds run at a time, and on a busy machine the requests may be spread over them."""


class Site(NamedTuple):
    proxy: Proxy
    client: Any
    table: str
    pool: ThreadPoolExecutor


@pytest.fixture(scope="module")
def site(postgresql: PostgreSQL) -> Iterator[Site]:
    """A server with a slow connection to its database: requests arrive while others wait."""
    storage = storage_url(postgresql, "gathered")
    assert processes.run("storage", "init", storage).returncode == 0
    with (
        Proxy(postgresql.port) as proxy,
        processes.starting() as start,
        ThreadPoolExecutor(REQUESTS) as pool,
    ):
        far = storage.replace(f":{postgresql.port}/", f":{proxy.port}/")
        client = start("serve", "--port", "0", "--storage", far).client()
        table = create(client)
        keys = [item(f"k{place}") for place in range(REQUESTS)]
        list(pool.map(lambda key: client.put_item(TableName=table, Item=key), keys))
        proxy.delay_seconds = 0.2
        yield Site(proxy, client, table, pool)
        proxy.delay_seconds = 0.0


def test_writes_that_wait_share_a_transaction(site: Site) -> None:
    before = site.proxy.statements[b"COMMIT"]

    def put(place: int) -> None:
        site.client.put_item(TableName=site.table, Item=item(f"k{place}", n=1))

    list(site.pool.map(put, range(REQUESTS)))
    assert 1 <= site.proxy.statements[b"COMMIT"] - before <= SHARED_MAX


def test_reads_that_wait_share_a_round_trip(site: Site) -> None:
    before = site.proxy.statements[_KEYS.sql]

    def get(place: int) -> Any:
        key = item(f"k{place}")
        return site.client.get_item(TableName=site.table, Key=key, ConsistentRead=True)

    found = list(site.pool.map(get, range(REQUESTS)))
    assert all("Item" in one for one in found)
    assert 1 <= site.proxy.statements[_KEYS.sql] - before <= SHARED_MAX
