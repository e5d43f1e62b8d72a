"""`partita storage`, and servers that refuse to start with one sentence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from testkit.data.item_tables import create, item
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url


def test_a_database_is_made_ready_once(postgresql: PostgreSQL) -> None:
    url = storage_url(postgresql, "fresh")
    refused = processes.run("serve", "--port", "0", "--storage", url)
    assert refused.returncode == 1
    assert refused.stderr == (
        "partita: The database has no tables of Partita; create them with partita storage init.\n"
    )
    first, second = (processes.run("storage", "init", url) for _ in range(2))
    assert "ready for servers" in first.stdout
    assert "was ready already" in second.stdout
    assert postgresql.password not in first.stdout
    assert processes.run("storage", "check", url).returncode == 0


def test_a_database_is_made_ready_by_several_at_once(postgresql: PostgreSQL) -> None:
    url = storage_url(postgresql, "fresh_for_all")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: processes.run("storage", "init", url), range(4)))
    assert [one.stderr for one in done] == [""] * 4
    assert sum("ready for servers" in one.stdout for one in done) == 1


def test_a_schema_of_another_version_is_refused(postgresql: PostgreSQL) -> None:
    url = storage_url(postgresql, "future")
    processes.run("storage", "init", url)
    postgresql.execute("UPDATE partita_format SET version = 99", "future")
    for command in (("serve", "--port", "0", "--storage", url), ("storage", "check", url)):
        refused = processes.run(*command)
        assert refused.returncode == (2 if "check" in command else 1)
        assert "schema 99" in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_status_shows_the_servers_and_one_leader(
    storage: str, servers: list[processes.Server]
) -> None:
    lines = processes.run("storage", "status", storage).stdout.splitlines()
    running = [line for line in lines if line.startswith("server ")]
    assert len(running) == len(servers)
    assert sum(line.endswith("leads") for line in running) == 1


def test_what_is_not_a_url_is_one_sentence() -> None:
    refused = processes.run("serve", "--port", "0", "--storage", "not a url")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "Traceback" not in refused.stderr


def test_a_check_finds_what_does_not_fit(postgresql: PostgreSQL) -> None:
    url = storage_url(postgresql, "damaged")
    assert processes.run("storage", "init", url).returncode == 0
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--storage", url).client()
        table = create(client)
        for place in range(5):
            client.put_item(TableName=table, Item=item(f"k{place}"))
        client.delete_item(TableName=table, Key=item("k0"))
    well = processes.run("storage", "check", url)
    assert (well.returncode, well.stdout) == (
        0,
        "1 tables, 4 items, 0 index entries checked: no findings.\n",
    )
    postgresql.execute("DELETE FROM partita_rows WHERE substr(key, 1, 1) = '\\x10'", "damaged")
    damaged = processes.run("storage", "check", url)
    assert damaged.returncode == 1
    assert f"table {table}" in damaged.stdout


def test_a_role_that_owns_nothing_is_enough_for_a_server(postgresql: PostgreSQL) -> None:
    url = storage_url(postgresql, "owned")
    assert processes.run("storage", "init", url).returncode == 0
    postgresql.execute(
        """DROP ROLE IF EXISTS server; CREATE ROLE server LOGIN PASSWORD 'server';
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO server""",
        "owned",
    )
    storage = f"postgresql://server:server@{url.rpartition('@')[2]}"
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--storage", storage)
        client = server.client()
        spec = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        table = create(client, StreamSpecification=spec)
        client.put_item(TableName=table, Item=item("a", n=1))
        assert client.scan(TableName=table)["Count"] == 1
        client.delete_table(TableName=table)
        assert server.terminate() == (0, "")
