"""Two PostgreSQL servers that Patroni leads, with etcd: from Debian, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from testkit.servers.database_servers import PostgreSQL, find, free_port

NODES = 2
PASSWORD = "open sesame"
STATE_SECONDS_MAX = 120
LEASE_SECONDS = 20
"""The shortest TTL that Patroni accepts: a lost leader is replaced after it."""


class Cluster:
    def __init__(self) -> None:
        if find("patroni") is None or find("etcd") is None:
            pytest.skip("patroni and etcd-server are not installed")
        self._folder = Path(tempfile.mkdtemp(prefix="partita-patroni-"))
        self._etcd_port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.nodes = [Node(self._folder, place, self._etcd_port) for place in range(NODES)]

    def __enter__(self) -> Cluster:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        for node in self.nodes:
            node.write_settings()
        folders = [str(self._folder), *(str(node.postgresql.folder) for node in self.nodes)]
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "postgres:postgres", *folders], check=True)
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        self._start(
            "etcd",
            *(str(find("etcd")), "--data-dir", str(self._folder / "etcd")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )
        for node in self.nodes:
            self.start(node)
        self.wait_for_standby()

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            self.kill(node)
        for process in self._processes.values():
            process.kill()
            process.wait()
        for folder in (self._folder, *(node.postgresql.folder for node in self.nodes)):
            shutil.rmtree(folder, ignore_errors=True)

    def start(self, node: Node) -> None:
        self._start(node.name, str(find("patroni")), str(node.settings))

    def kill(self, node: Node) -> None:
        """Kills all processes of its machine."""
        if node.name in self._processes:
            self._processes[node.name].kill()
            self._processes[node.name].wait()
        with suppress(OSError, ValueError):
            pid = int((node.data / "postmaster.pid").read_text().split("\n")[0])
            os.kill(pid, signal.SIGKILL)

    def leader(self) -> Node | None:
        return next((node for node in self.nodes if node.is_in_state("leader")), None)

    def wait_for_leader(self) -> Node:
        return _until(self.leader)

    def wait_for_standby(self) -> Node:
        """The standby that has everything that was acknowledged."""

        def standby() -> Node | None:
            return next((node for node in self.nodes if node.is_in_state("synchronous")), None)

        return _until(standby)

    def create(self, database: str) -> str:
        leader = self.wait_for_leader()
        with leader.postgresql.connect() as connection:
            connection.execute(f"CREATE DATABASE {database}")
        hosts = ",".join(f"127.0.0.1:{node.postgresql.port}" for node in self.nodes)
        user, password = leader.postgresql.user, quote(PASSWORD, safe="")
        return f"postgresql://{user}:{password}@{hosts}/{database}?target_session_attrs=read-write"

    def _start(self, name: str, *command: str) -> None:
        as_user = self.nodes[0].postgresql._as_user(list(command))
        with (self._folder / f"{name}.log").open("ab") as log:
            environment = {**os.environ, "HOME": str(self._folder)}
            self._processes[name] = subprocess.Popen(
                as_user, stdout=log, stderr=log, cwd=self._folder, env=environment
            )


class Node:
    def __init__(self, folder: Path, place: int, etcd_port: int) -> None:
        self.name = f"node{place}"
        self.settings = folder / f"{self.name}.yml"
        self._etcd_port = etcd_port
        self._own_port = free_port()
        self.postgresql = PostgreSQL()
        self.postgresql.password = PASSWORD
        self.data = self.postgresql.folder / "data"

    def write_settings(self) -> None:
        own, database = f"127.0.0.1:{self._own_port}", f"127.0.0.1:{self.postgresql.port}"
        users = {
            "superuser": {"username": self.postgresql.user, "password": PASSWORD},
            "replication": {"username": "replicator", "password": PASSWORD},
        }
        content = {
            "scope": "partita",
            "name": self.name,
            "restapi": {"listen": own, "connect_address": own},
            "etcd3": {"host": f"127.0.0.1:{self._etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": LEASE_SECONDS,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "no-sync"],
            },
            "postgresql": {
                "listen": database,
                "connect_address": database,
                "data_dir": str(self.data),
                "pgpass": str(self.postgresql.folder / "pgpass"),
                "bin_dir": str(Path(str(find("pg_controldata"))).parent),
                "authentication": users,
                "parameters": {"unix_socket_directories": "", "max_connections": 40},
                "pg_hba": [
                    f"host {what} 127.0.0.1/32 scram-sha-256"
                    for what in ("all all", "replication all")
                ],
                "remove_data_directory_on_diverged_timelines": True,
            },
        }
        # Every JSON document is valid YAML.
        self.settings.write_text(json.dumps(content))

    def is_in_state(self, state: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._own_port}/{state}", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def _until(found: Callable[[], Node | None]) -> Node:
    deadline = time.monotonic() + STATE_SECONDS_MAX
    while (node := found()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return node
