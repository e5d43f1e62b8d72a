"""The network between servers and PostgreSQL is cut, slow, or half open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from partita.database.storage.postgresql.optimistic_commit import _TOKEN
from testkit.data.item_tables import create, item, number, until
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.proxy import Proxy
from testkit.servers.shared_storage import storage_url

from .test_faults import Writers


class Site(NamedTuple):
    proxy: Proxy
    clients: list[Any]
    table: str


@pytest.fixture(scope="module")
def site(postgresql: PostgreSQL) -> Iterator[Site]:
    """One server behind the network, one beside the database."""
    storage = storage_url(postgresql, "far")
    assert processes.run("storage", "init", storage).returncode == 0
    with Proxy(postgresql.port) as proxy, processes.starting() as start:
        far = storage.replace(f":{postgresql.port}/", f":{proxy.port}/")
        clients = [
            start("serve", "--port", "0", "--storage", url, stderr=None).client()
            for url in (far, storage)
        ]
        yield Site(proxy, clients, create(clients[0]))
        proxy.mend()
    assert processes.run("storage", "check", storage).returncode == 0


def test_a_cut_network_loses_nothing_acknowledged(site: Site) -> None:
    with Writers(site.clients[:1] * 4, site.table) as writers:
        for _ in range(3):
            writers.wait_for(10)
            site.proxy.cut()
            time.sleep(0.3)
            site.proxy.mend()
        writers.wait_for(10)
    for place, acknowledged in enumerate(writers.acknowledged):
        assert number(site.clients[1], site.table, f"w{place}", "n") >= acknowledged


@pytest.mark.parametrize("has_come", [True, False], ids=["committed", "never came"])
def test_a_commit_without_an_answer_is_found_out_and_counts_once(
    site: Site, *, has_come: bool
) -> None:
    """The server does not know the outcome: it must neither lose the write nor repeat it."""
    key = f"counted {has_come}"
    count_up = {
        "TableName": site.table,
        "Key": item(key),
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    site.clients[0].update_item(**count_up)
    # The token is sent together with the COMMIT. Summing counts also commits, but without a token.
    site.proxy.stop_at(_TOKEN.sql, is_passed=has_come)
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(site.clients[0].update_item, **count_up)
        assert site.proxy.is_stopped.wait(10)
        if has_come:
            until(lambda: number(site.clients[1], site.table, key, "n") == 2)
        site.proxy.mend()
        counting.result()
    assert number(site.clients[1], site.table, key, "n") == 2


def test_a_server_without_its_database_still_shows_its_own_figures(site: Site) -> None:
    url = site.clients[0].meta.endpoint_url
    site.proxy.cut()
    try:
        with urlopen(f"{url}/metrics", timeout=60) as answer:
            assert b"partita_requests_total" in answer.read()
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{url}/partitions?table={site.table}", timeout=60)
        with refused.value as problem:
            assert problem.code == 500
            assert b"The storage cannot be reached." in problem.read()
    finally:
        site.proxy.mend()
    until(lambda: _is_back(site))


def _is_back(site: Site) -> bool:
    try:
        site.clients[0].put_item(TableName=site.table, Item=item("back", n=1))
    except ClientError:
        return False
    return True


def test_a_slow_network_only_takes_longer(site: Site) -> None:
    site.proxy.delay_seconds = 0.1
    try:
        started = time.monotonic()
        site.clients[0].put_item(TableName=site.table, Item=item("slow", n=1))
        assert time.monotonic() - started > 0.2
        assert number(site.clients[1], site.table, "slow", "n") == 1
    finally:
        site.proxy.delay_seconds = 0.0


@pytest.mark.soak
def test_a_half_open_network_is_given_up_and_used_again(site: Site) -> None:
    with Writers(site.clients[:1] * 4, site.table) as writers:
        writers.wait_for(10)
        site.proxy.silence()
        started = time.monotonic()
        with pytest.raises(ClientError) as refused:
            site.clients[0].get_item(TableName=site.table, Key=item("a"))
        assert refused.value.response["Error"]["Code"] == "InternalServerError"
        assert time.monotonic() - started < 25
        site.proxy.mend()
        writers.wait_for(10)
    for place, acknowledged in enumerate(writers.acknowledged):
        assert number(site.clients[1], site.table, f"w{place}", "n") >= acknowledged


@pytest.mark.soak
def test_a_server_behind_a_half_open_network_stops_when_told(postgresql: PostgreSQL) -> None:
    storage = storage_url(postgresql, "silent")
    assert processes.run("storage", "init", storage).returncode == 0
    with Proxy(postgresql.port) as proxy, processes.starting() as start:
        far = storage.replace(f":{postgresql.port}/", f":{proxy.port}/")
        server = start("serve", "--port", "0", "--storage", far)
        client = server.client()
        with Writers([client] * 4, create(client)) as writers:
            writers.wait_for(10)
            proxy.silence()
            time.sleep(1)
            started = time.monotonic()
            code, said = server.terminate()
        assert code == 0
        assert time.monotonic() - started < 40
        assert "Traceback" not in said
