"""`--storage-reads`: a replica answers eventually consistent reads, and no client goes back in
time.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from testkit.data.item_tables import create, item, number
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

from .replication import Pair

REPLICA_SECONDS_MAX = 20


class Site(NamedTuple):
    pair: Pair
    server: processes.Server
    table: str


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    PostgreSQL.require()
    with Pair() as pair, processes.starting() as start:
        standby = pair.add_standby()
        storage = storage_url(pair.primary, "read")
        reads = storage.replace(f":{pair.primary.port}/", f":{standby.port}/")
        assert processes.run("storage", "init", storage).returncode == 0
        server = start("serve", "--port", "0", "--storage", storage, "--storage-reads", reads)
        yield Site(pair, server, create(server.client()))


def test_reads_that_may_be_old_are_answered_by_the_replica(site: Site) -> None:
    client = site.server.client()
    client.put_item(TableName=site.table, Item=item("a", n=1))
    deadline = time.monotonic() + REPLICA_SECONDS_MAX
    before = _metric(site, 'partita_storage_reads_total{from="replica"}')
    while _metric(site, 'partita_storage_reads_total{from="replica"}') == before:
        assert time.monotonic() < deadline, "the replica answers nothing"
        assert _old_number(site.server.client(), site.table, "a") == 1
    assert _metric(site, "partita_storage_reads_lag_seconds") < REPLICA_SECONDS_MAX


def test_a_client_never_sees_less_than_before_while_the_replica_stands_still(site: Site) -> None:
    """The standby has received the commit, but does not replay it."""
    assert site.pair.standby is not None
    writer, reader = site.server.client(), site.server.client()
    writer.put_item(TableName=site.table, Item=item("b", n=1))
    with site.pair.standby.connect() as standby:
        _wait_for_replica(site, "b", 1)
        standby.execute("SELECT pg_wal_replay_pause()")
        try:
            writer.put_item(TableName=site.table, Item=item("b", n=2))
            assert _old_number(writer, site.table, "b") == 2
            assert number(reader, site.table, "b", "n") == 2
            assert _old_number(reader, site.table, "b") == 2
            # A new client may read the old state of the replica.
            assert _old_number(site.server.client(), site.table, "b") in (1, 2)
            time.sleep(2.5)
            assert _metric(site, "partita_storage_reads_lag_seconds") > 0.5
            assert _old_number(writer, site.table, "b") == 2
        finally:
            standby.execute("SELECT pg_wal_replay_resume()")
    _wait_for_replica(site, "b", 2)


def test_the_primary_answers_while_the_replica_is_away(site: Site) -> None:
    assert site.pair.standby is not None
    site.server.client().put_item(TableName=site.table, Item=item("c", n=3))
    site.pair.primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres")
    site.pair.primary.execute("SELECT pg_reload_conf()", "postgres")
    site.pair.standby.kill()
    assert _old_number(site.server.client(), site.table, "c") == 3
    site.server.client().put_item(TableName=site.table, Item=item("c", n=4))
    assert _old_number(site.server.client(), site.table, "c") == 4


def _wait_for_replica(site: Site, key: str, expected: int) -> None:
    """Wait until the replica answers a new client with the expected number."""
    deadline = time.monotonic() + REPLICA_SECONDS_MAX
    name = 'partita_storage_reads_total{from="replica"}'
    while True:
        before = _metric(site, name)
        found = _old_number(site.server.client(), site.table, key)
        if found == expected and _metric(site, name) > before:
            return
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _old_number(client: Any, table: str, key: str) -> int:
    return int(client.get_item(TableName=table, Key=item(key))["Item"]["n"]["N"])


def _metric(site: Site, name: str) -> float:
    with urllib.request.urlopen(f"{site.server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.rpartition(" ")[2])
