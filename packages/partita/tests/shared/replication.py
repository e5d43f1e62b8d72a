"""A primary with a synchronous standby, which tests kill, pause and promote."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from testkit.servers.database_servers import PostgreSQL, find

FOLLOWS_SECONDS_MAX = 30


class Replica(PostgreSQL):
    """A standby: a copy of another server that follows it."""

    def __init__(self, primary: PostgreSQL, port: int | None) -> None:
        super().__init__()
        self._primary = primary
        self.port = port or self.port

    def initialize(self) -> None:
        if os.geteuid() == 0:
            subprocess.run(["chown", "postgres:postgres", str(self.folder)], check=True)
        source = (
            f"host=127.0.0.1 port={self._primary.port} user={self.user} "
            f"password='{self._primary.password}'"
        )
        command = [str(find("pg_basebackup")), "-d", source, "-D", str(self.folder / "data"), "-R"]
        self._run([*command, "-X", "stream", "-c", "fast"])


class Pair:
    """A primary and the standby that its commits wait for."""

    def __init__(self) -> None:
        self.primary: PostgreSQL = PostgreSQL()
        self.primary.__enter__()
        self.standby: Replica | None = None
        self._former: list[PostgreSQL] = []

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self.primary, self.standby, *self._former):
            if server is not None:
                resume(server)
                server.remove()

    def add_standby(self, port: int | None = None) -> Replica:
        standby = self.standby = Replica(self.primary, port)
        standby.__enter__()
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
        self.primary.execute("SELECT pg_reload_conf()", "postgres")
        deadline = time.monotonic() + FOLLOWS_SECONDS_MAX
        with self.primary.connect() as connection:
            while not connection.execute(
                "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
            ).fetchone():
                assert time.monotonic() < deadline
                time.sleep(0.05)
        return standby

    def promote(self) -> None:
        """Make the standby the primary, without a standby of its own."""
        assert self.standby is not None
        with self.standby.connect() as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        self._former.append(self.primary)
        self.primary, self.standby = self.standby, None

    def url(self, database: str) -> str:
        """The URL with both servers, or with the remaining one."""
        password = quote(self.primary.password, safe="")
        servers = (self.primary, self.standby)
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in servers if one is not None)
        user = self.primary.user
        return f"postgresql://{user}:{password}@{hosts}/{database}?target_session_attrs=read-write"


def pause(server: PostgreSQL) -> None:
    _signal(server, signal.SIGSTOP)


def resume(server: PostgreSQL) -> None:
    _signal(server, signal.SIGCONT)


def _signal(server: PostgreSQL, number: signal.Signals) -> None:
    """Send a signal to the server and its child processes."""
    if server._process is None:
        return
    for pid in [server._process.pid, *_children(server._process.pid)]:
        # The process of a connection may have ended in the meantime.
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found
