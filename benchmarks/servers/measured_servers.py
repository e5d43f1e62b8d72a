"""The measured servers: their modes, how they are started, and their memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.drivers.single_request import HOST, Client, WireError
from benchmarks.servers import peers
from benchmarks.servers.peers import Unavailable
from scripts.dynamodb_local import free_port

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(map(str, [*ROOT.glob("packages/*/src"), *ROOT.glob("apps/*/src")]))
READY_SECONDS_MAX = 60
POLL_SECONDS = 0.01
STOP_SECONDS_MAX = 15
SETTLE_SECONDS_MAX = 30
SETTLE_POLL_SECONDS = 0.2
SETTLED_SHARE_MAX = 0.2

Mode = Literal["disk", "relaxed", "memory"]
"""`disk` is the most durable mode of a server; `relaxed` writes to disk without waiting."""


@dataclass(frozen=True)
class Command:
    arguments: list[str]
    folder: Path | None = None


@dataclass(frozen=True)
class Server:
    """One server in one mode."""

    name: str
    mode: Mode
    command: Callable[[int, Path], Command]
    """Returns the command for a port and a data folder; raises Unavailable."""
    operations: frozenset[str] | None = None
    """The operations that the server supports; None for all."""

    @property
    def label(self) -> str:
        return f"{self.name}/{self.mode}"


# How each is started


def partita(*options: str, on_disk: bool) -> Callable[[int, Path], Command]:
    def command(port: int, data: Path) -> Command:
        place = ["--data", str(data)] if on_disk else ["--in-memory"]
        serve = [sys.executable, "-m", "partita.cli", "serve", "--host", HOST]
        return Command([*serve, "--port", str(port), *place, *options])

    return command


def _relaxed_partita(port: int, data: Path) -> Command:
    asked = [sys.executable, "-m", "partita.cli", "serve", "--help"]
    page = subprocess.run(asked, capture_output=True, text=True, env=_environment()).stdout
    if "--durability" not in page:
        raise Unavailable("this Partita has no --durability")
    return partita("--durability", "relaxed", on_disk=True)(port, data)


def _bare_loop(*options: str) -> Callable[[int, Path], Command]:
    def command(port: int, data: Path) -> Command:
        loop = [sys.executable, "-m", "benchmarks.servers.bare_loop", "--port", str(port)]
        return Command([*loop, "--data", str(data), *options], ROOT)

    return command


def _dynamodb_local(*, on_disk: bool) -> Callable[[int, Path], Command]:
    def command(port: int, data: Path) -> Command:
        place = ["-dbPath", str(data)] if on_disk else ["-inMemory"]
        jar = ["-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
        options = ["-sharedDb", "-disableTelemetry", "-port", str(port), *place]
        return Command([peers.java(), *jar, *options], peers.dynamodb_local())

    return command


def _dynoxide(*, on_disk: bool) -> Callable[[int, Path], Command]:
    def command(port: int, data: Path) -> Command:
        place = ["--db-path", str(data / "dynoxide.db")] if on_disk else []
        return Command([str(peers.dynoxide()), "--host", HOST, "--port", str(port), *place])

    return command


def _dynalite(*, on_disk: bool) -> Callable[[int, Path], Command]:
    def command(port: int, data: Path) -> Command:
        place = ["--path", str(data)] if on_disk else []
        script = [peers.node(), str(peers.dynalite()), "--host", HOST, "--port", str(port)]
        return Command([*script, "--createTableMs", "0", *place])

    return command


def _moto(port: int, data: Path) -> Command:
    return Command([str(peers.moto()), "-H", HOST, "-p", str(port)])


BARE_OPERATIONS = frozenset({"GetItem", "GetItemFresh", "PutItem"})

SERVERS = (
    Server("partita", "disk", partita(on_disk=True)),
    Server("partita", "relaxed", _relaxed_partita),
    Server("partita", "memory", partita(on_disk=False)),
    Server("bare-loop", "disk", _bare_loop(), BARE_OPERATIONS),
    Server("bare-loop", "relaxed", _bare_loop("--relaxed"), BARE_OPERATIONS),
    Server("dynamodb-local", "disk", _dynamodb_local(on_disk=True)),
    Server("dynamodb-local", "memory", _dynamodb_local(on_disk=False)),
    Server("dynoxide", "disk", _dynoxide(on_disk=True)),
    Server("dynoxide", "memory", _dynoxide(on_disk=False)),
    Server("dynalite", "disk", _dynalite(on_disk=True)),
    Server("dynalite", "memory", _dynalite(on_disk=False)),
    Server("moto", "memory", _moto),
)
NAMES = tuple(dict.fromkeys(server.name for server in SERVERS))


# A server that runs


class Running:
    """A started server; `close` ends it."""

    def __init__(self, server: Server, data: Path) -> None:
        self.server = server
        self.port = free_port()
        data.mkdir(parents=True, exist_ok=True)
        command = server.command(self.port, data)
        started_at = time.monotonic()
        self._process = subprocess.Popen(
            command.arguments,
            cwd=command.folder,
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        self.ready_seconds = time.monotonic() - started_at
        self.idle_mb = self.resident_mb()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise Unavailable(f"it ended at once, with code {self._process.returncode}")
            client = Client(self.port)
            try:
                client.call("ListTables", {})
                return
            except WireError:
                time.sleep(POLL_SECONDS)
            finally:
                client.close()
        raise Unavailable(f"it did not answer within {READY_SECONDS_MAX} seconds")

    def resident_mb(self) -> float | None:
        """Returns VmRSS of the process if there is /proc; pages of mapped files are included."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return None
        lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(lines[0].split()[1]) / 1024 if lines else None

    def settle(self) -> None:
        """Waits until the server has finished the requests of a driver that has stopped."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        used_seconds = self.processor_seconds()
        while time.monotonic() < deadline:
            time.sleep(SETTLE_POLL_SECONDS)
            before, used_seconds = used_seconds, self.processor_seconds()
            if used_seconds - before <= SETTLE_POLL_SECONDS * SETTLED_SHARE_MAX:
                return

    def processor_seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    """Returns our environment with this source tree first, so that this tree is measured."""
    path = os.pathsep.join(filter(None, [*SOURCES, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
