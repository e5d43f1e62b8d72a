"""A pooler in transaction mode between servers and PostgreSQL: sessions keep no state."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from testkit.data.item_tables import create, item, number
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL, find, free_port
from testkit.servers.shared_storage import storage_url

START_SECONDS_MAX = 20
POOL_SIZE = 3
"""Less than the servers' connections, so that each transaction may get another one."""
SETTINGS = """
[databases]
pooled = host=127.0.0.1 port={port} dbname=pooled user={user} password='{password}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
"""


@pytest.fixture
def pooled(postgresql: PostgreSQL, tmp_path: Path) -> Iterator[str]:
    pgbouncer = find("pgbouncer")
    if pgbouncer is None:
        pytest.skip("pgbouncer is not installed")
    port = free_port()
    settings = postgresql.folder / "pgbouncer.ini"
    settings.write_text(
        SETTINGS.format(
            port=postgresql.port,
            user=postgresql.user,
            password=postgresql.password,
            own_port=port,
            pool_size=POOL_SIZE,
        )
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            postgresql._as_user([pgbouncer, str(settings)]), stdout=log, stderr=log
        )
        try:
            url = f"postgresql://{postgresql.user}@127.0.0.1:{port}/pooled"
            storage_url(postgresql, "pooled")
            _wait_for(url)
            yield url
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_servers_behind_a_pooler_keep_nothing_in_their_connections(pooled: str) -> None:
    assert processes.run("storage", "init", pooled).returncode == 0
    with processes.starting() as start:
        servers = [start("serve", "--port", "0", "--storage", pooled) for _ in range(2)]
        clients = [server.client() for server in servers]
        spec = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        table = create(clients[0], StreamSpecification=spec)

        def write(worker: int) -> None:
            for turn in range(10):
                clients[worker % 2].put_item(TableName=table, Item=item(f"{worker}-{turn}"))
                clients[turn % 2].update_item(
                    TableName=table,
                    Key=item("counter"),
                    UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": {"N": "1"}},
                )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        assert number(clients[1], table, "counter", "n") == 80
        assert clients[0].scan(TableName=table, Select="COUNT")["Count"] == 81
        assert [server.terminate() for server in servers] == [(0, ""), (0, "")]
    assert processes.run("storage", "check", pooled).returncode == 0
