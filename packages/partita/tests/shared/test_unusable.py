"""A database that answers but cannot be used: clients may retry, and the log says why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from partita.database.storage.postgresql.postgresql_schema import SCHEMA_VERSION
from testkit.data.item_tables import create, item, number
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

USABLE_SECONDS_MAX = 30
ROLE, PASSWORD = "plain_role", "plain"
FULL = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON partita_rows
        FOR EACH STATEMENT EXECUTE FUNCTION refuse()"""
ROOM_AGAIN = "DROP TRIGGER full_disk ON partita_rows; DROP FUNCTION refuse()"


class Site(NamedTuple):
    postgresql: PostgreSQL
    server: processes.Server
    client: Any
    table: str

    def execute(self, script: str) -> None:
        self.postgresql.execute(script, "unusable")

    def wait_for_a_put(self) -> None:
        deadline = time.monotonic() + USABLE_SECONDS_MAX
        while True:
            try:
                self.client.put_item(TableName=self.table, Item=item("a", n=2))
                return
            except ClientError:
                assert time.monotonic() < deadline
                time.sleep(0.1)


@pytest.fixture(scope="module")
def site(postgresql: PostgreSQL) -> Iterator[Site]:
    """A server that connects as a role without superuser rights."""
    postgresql.execute(
        f"DROP ROLE IF EXISTS {ROLE}; CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'", "postgres"
    )
    superuser = storage_url(postgresql, "unusable")
    postgresql.execute(f"GRANT CREATE ON SCHEMA public TO {ROLE}", "unusable")
    address = superuser.rpartition("@")[2]
    storage = f"postgresql://{ROLE}:{PASSWORD}@{address}"
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--storage", storage)
        client = server.client()
        table = create(client)
        client.put_item(TableName=table, Item=item("a", n=1))
        yield Site(postgresql, server, client, table)
        code, said = server.terminate()
        assert code == 0
    assert processes.run("storage", "check", storage).returncode == 0
    assert "cannot be used: could not extend file: No space left on device" in said
    assert "can be used again" in said
    assert "Traceback" not in said


def _expect_refusal(site: Site) -> None:
    with pytest.raises(ClientError) as refused:
        site.client.put_item(TableName=site.table, Item=item("a", n=99))
    assert refused.value.response["Error"]["Code"] == "InternalServerError"


def test_a_full_disk_refuses_writes_and_not_reads(site: Site) -> None:
    site.execute(FULL)
    try:
        _expect_refusal(site)
        assert number(site.client, site.table, "a", "n") in (1, 2)
    finally:
        site.execute(ROOM_AGAIN)
    site.wait_for_a_put()


def test_a_database_that_is_read_only_refuses_writes_and_not_reads(site: Site) -> None:
    site.postgresql.execute("ALTER SYSTEM SET default_transaction_read_only = on", "postgres")
    site.postgresql.execute("SELECT pg_reload_conf()", "postgres")
    try:
        deadline = time.monotonic() + USABLE_SECONDS_MAX
        while True:
            try:
                site.client.put_item(TableName=site.table, Item=item("a", n=2))
                assert time.monotonic() < deadline
            except ClientError:
                break
        _expect_refusal(site)
    finally:
        with site.postgresql.connect() as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
    site.wait_for_a_put()


def test_a_schema_that_is_changed_under_a_server_is_noticed(site: Site) -> None:
    site.execute("UPDATE partita_format SET version = 99")
    try:
        _expect_refusal(site)
        with pytest.raises(ClientError):
            number(site.client, site.table, "a", "n")
    finally:
        site.execute(f"UPDATE partita_format SET version = {SCHEMA_VERSION}")
    site.wait_for_a_put()


def test_without_connections_requests_are_refused_until_there_are_some(site: Site) -> None:
    site.postgresql.execute(
        f"""ALTER ROLE {ROLE} CONNECTION LIMIT 0;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'""",
        "postgres",
    )
    try:
        _expect_refusal(site)
        _expect_refusal(site)
    finally:
        site.postgresql.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1", "postgres")
    site.wait_for_a_put()


@pytest.mark.soak
def test_an_operator_is_told_that_there_are_no_connections(postgresql: PostgreSQL) -> None:
    postgresql.execute("DROP ROLE IF EXISTS few", "postgres")
    postgresql.execute("CREATE ROLE few LOGIN PASSWORD 'few'", "postgres")
    address = storage_url(postgresql, "few").rpartition("@")[2]
    postgresql.execute("GRANT CREATE ON SCHEMA public TO few", "few")
    storage = f"postgresql://few:few@{address}"
    assert processes.run("storage", "init", storage).returncode == 0
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--storage", storage)
        postgresql.execute("ALTER ROLE few CONNECTION LIMIT 0", "postgres")
        postgresql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'",
            "postgres",
        )
        time.sleep(14)
        said = server.terminate()[1]
    assert 'too many connections for role "few"' in said
