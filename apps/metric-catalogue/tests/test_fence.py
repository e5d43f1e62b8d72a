"""What the databases refuse: servers that were never told of the move, and writers that slept
through it. Nobody's acknowledged write is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes
from testkit.servers.database_servers import MariaDB

from .conftest import Answer, Api, Catalogue, PrivateMariaDB, Serve, scalar
from .population import populate
from .test_migration import assert_equal, run


def without_endpoint(catalogue: Catalogue, *command: str) -> list[str]:
    return ["metrics", *command, "--mysql", catalogue.options["--mysql"]]


def done(catalogue: Catalogue, command: str, *more: str) -> str:
    ended = processes.run(*catalogue.arguments(command, *more), env=catalogue.environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@contextmanager
def server_of(catalogue: Catalogue, mode: str = "legacy") -> Iterator[processes.Server]:
    arguments = catalogue.arguments("serve", "--port", "0", "--mode", mode)
    with processes.starting() as start:
        yield start(*arguments, env=catalogue.environment, stderr=None)


class Request(threading.Thread):
    """A request that runs while the test goes on."""

    def __init__(self, url: str, *request: Any) -> None:
        super().__init__()
        self._url = url
        self._request = request
        self.answer: Answer | None = None
        self.start()

    def run(self) -> None:
        with closing(Api(self._url)) as api:
            self.answer = api(*self._request)

    def answered(self) -> Answer:
        self.join()
        assert self.answer is not None
        return self.answer


@contextmanager
def sleeping_with_the_row(
    catalogue: Catalogue, server: processes.Server, metric: str
) -> Iterator[Request]:
    """A server that was stopped while it waited for the row of a metric, and has the row now."""
    connection = catalogue.mariadb.connect(catalogue.name)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    cursor.execute("SELECT id FROM metrics WHERE name = %s FOR UPDATE", (metric,))
    request = Request(server.url, "PUT", f"/metrics/{metric}", scalar(aggregationParam=1))
    waits = "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS"
    with closing(catalogue.mariadb.connect()) as watching:
        looking = watching.cursor()
        found = 0
        while not found:
            looking.execute(waits)
            ((found,),) = looking.fetchall()
    # By then it has reported its sessions.
    time.sleep(0.5)
    os.kill(server.process.pid, signal.SIGSTOP)
    cursor.execute("ROLLBACK")
    connection.close()
    try:
        yield request
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def test_after_the_cutover_a_server_without_an_endpoint_takes_nothing(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    with processes.starting() as start:
        old = start(
            *without_endpoint(catalogue, "serve", "--port", "0"),
            env=catalogue.environment,
            stderr=None,
        )
        with closing(Api(old.url)) as stray:
            assert stray("PUT", "/metrics/m", scalar()).status == 200
            for command in ("migrate", "cutover"):
                done(catalogue, command)
            for request in (
                ("PUT", "/metrics/m", scalar()),
                ("POST", "/dimensions", {"name": "city"}),
                ("GET", "/metrics/m"),
            ):
                answer = stray(*request)
                assert answer.status == 503, answer
                assert (
                    "was moved" in answer.body["detail"] or "being moved" in answer.body["detail"]
                )
    late = processes.run(
        *without_endpoint(catalogue, "serve", "--port", "0"), env=catalogue.environment
    )
    assert late.returncode == 1
    assert "The catalogue was moved: its mode is dynamodb" in late.stderr
    assert api("PUT", "/metrics/m", scalar()).body["latestVersion"] == 3


@pytest.mark.soak
def test_versions_written_past_the_fence_are_not_overwritten_silently(
    catalogue: Catalogue, serve: Serve, tmp_path: Path
) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    api("PUT", "/metrics/m", scalar())
    for command in ("migrate", "cutover"):
        done(catalogue, command)
    assert api("PUT", "/metrics/m", scalar()).body["latestVersion"] == 3
    write_past_the_fence(catalogue)
    refused = run(catalogue, "rollback")
    assert refused.returncode == 1
    assert "version 3 of m, by stray at 2026-01-01T00:00:00.000Z" in refused.stderr
    assert "Nothing has changed, and the mode is dynamodb" in refused.stderr
    assert api("GET", "/health").body["mode"] == "dynamodb"
    assert api("PUT", "/metrics/m", scalar()).body["latestVersion"] == 4

    replaced = tmp_path / "replaced.jsonl"
    said = done(catalogue, "rollback", "--replaced", str(replaced))
    assert "strange: only MariaDB has it, and it stays there" in said
    kept = [json.loads(line) for line in replaced.read_text().splitlines()]
    assert {(one["name"], one["version"], one["updatedBy"]) for one in kept} == {("m", 3, "stray")}
    metric = api("GET", "/metrics/m").body
    assert (metric["latestVersion"], metric["updatedBy"]) == (4, "mrcandre")
    assert api("GET", "/metrics/strange").body["updatedBy"] == "stray"
    assert api("PUT", "/metrics/m", scalar()).body["latestVersion"] == 5


def write_past_the_fence(catalogue: Catalogue) -> None:
    connection = catalogue.mariadb.connect(catalogue.name)
    cursor = connection.cursor()
    cursor.execute("SHOW TRIGGERS")
    for row in cursor.fetchall():
        cursor.execute(f"DROP TRIGGER {row[0]}")
    connection.close()
    version = (
        "INSERT INTO metric_versions (metric_id, version, updated_at, updated_by, "
        "aggregation_style, value_type) SELECT id, {}, '2026-01-01', 'stray', 'SUM', 'SCALAR' "
        "FROM metrics WHERE name = '{}';"
    )
    catalogue.mariadb.execute(
        version.format(3, "m") + "INSERT INTO metric_groups (name) VALUES ('strange');"
        "INSERT INTO metrics (name, metric_group_id, created_at, created_by) "
        "SELECT 'strange', id, '2026-01-01', 'stray' FROM metric_groups WHERE name = 'strange';"
        + version.format(1, "strange"),
        catalogue.name,
    )


def test_a_writer_that_slept_through_the_cutover_writes_where_the_others_do(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    for _ in range(5):
        api("PUT", "/metrics/m", scalar())
    with server_of(catalogue) as sleeper:
        done(catalogue, "migrate")
        with sleeping_with_the_row(catalogue, sleeper, "m") as request:
            forget(catalogue, sleeper)
            done(catalogue, "cutover")
            seventh = api("PUT", "/metrics/m", scalar(aggregationParam=7))
            assert seventh.body["latestVersion"] == 7
        late = request.answered()
    assert (late.status, late.body["latestVersion"]) == (200, 8)
    versions = api("GET", "/metrics/m/versions").body["versions"]
    assert [one.get("aggregationParam") for one in versions[-2:]] == [7, 1]
    done(catalogue, "rollback")
    assert_equal(catalogue, {"m": 8})


@pytest.mark.soak
def test_a_writer_that_slept_through_a_rollback_writes_where_the_others_do(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    with server_of(catalogue) as sleeper:
        for command in ("migrate", "cutover"):
            done(catalogue, command)
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        request = Request(sleeper.url, "PUT", "/metrics/m", scalar(aggregationParam=1))
        forget(catalogue, sleeper)
        done(catalogue, "rollback")
        assert api("PUT", "/metrics/m", scalar()).body["latestVersion"] == 2
        os.kill(sleeper.process.pid, signal.SIGCONT)
        late = request.answered()
    assert (late.status, late.body["latestVersion"]) == (200, 3)
    assert api("GET", "/metrics/m").body["aggregationParam"] == 1


def forget(catalogue: Catalogue, server: processes.Server) -> None:
    """Makes a server look as if it had been silent for as long as commands wait for it."""
    name = f"{socket.gethostname()}-{server.process.pid}"
    catalogue.partita.client().delete_item(
        TableName=f"{catalogue.name}-directory",
        Key={"kind": {"S": "server"}, "name": {"S": name}},
    )


@pytest.mark.soak
def test_a_session_that_holds_a_row_is_named_within_seconds(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("migrating")
    for name in ("m", "n"):
        api.add_primitive(name, "country")
    catalogue.mariadb.execute("UPDATE metrics SET migratedToDynamoDB = 1", catalogue.name)
    catalogue.partita.client().delete_item(
        TableName=catalogue.name, Key={"name": {"S": "m"}, "version": {"S": "0"}}
    )
    with server_of(catalogue) as sleeper:
        with sleeping_with_the_row(catalogue, sleeper, "m") as request:
            began = time.monotonic()
            ended = run(catalogue, "migrate")
            assert time.monotonic() - began < 30
        assert request.answered().status in (200, 503)
        name = f"{socket.gethostname()}-{sleeper.process.pid}"
    assert ended.returncode == 1
    assert "m: LockTimeout: A row is locked by session " in ended.stdout
    assert f"which is the server {name}" in ended.stdout
    assert "errors           1" in ended.stdout
    assert catalogue.count("MIGRATED") == 1


@pytest.mark.soak
def test_a_restart_of_mariadb_ends_no_migration() -> None:
    MariaDB.require()
    with PrivateMariaDB() as mariadb, processes.starting() as start:
        partita = start("serve", "--port", "0", "--in-memory", stderr=None)
        catalogue = Catalogue(mariadb, partita)
        start(*catalogue.arguments("serve", "--port", "0"), env=catalogue.environment, stderr=None)
        populate(catalogue, 400)
        said: list[str] = []
        migrating = threading.Thread(target=lambda: said.append(done(catalogue, "migrate")))
        migrating.start()
        while catalogue.count("MIGRATED") < 40:
            time.sleep(0.05)
        mariadb.kill()
        time.sleep(2)
        mariadb.start()
        migrating.join()
        assert "processed      400" in said[0]
        assert "errors           0" in said[0]
        assert_equal(catalogue, {})
