"""Moves from SQL on the console: the status of a folder, and commands of `partita migrate`.

Commands run in processes of their own, as they would from a terminal, so they survive when the page
is closed, and their progress is in the folder. Only the commands and options below can be run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from partita.client import Credentials
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

FLAGS: Final = {
    "load": {"IsFollowed": "--follow"},
    "follow": {"Once": "--once"},
    "verify": {"Repair": "--repair"},
    "cutover": {"OneWay": "--one-way"},
    "rollback": {"WritersStopped": "--writers-stopped"},
    "finish": {"GiveUp": "--give-up"},
}
"""The commands of a move, with the options of each besides `--dry-run`."""
CONFIRMED_COMMANDS: Final = frozenset(("cutover", "rollback", "finish"))
"""These change which side takes writes, so the user must type the name of the move first."""
LINES_KEPT: Final = 200
OUTPUT_BYTES_MAX: Final = 1 << 20
STATUS_SECONDS: Final = 5.0
STOP_SECONDS_MAX: Final = 10.0
PATIENCE_SECONDS: Final = 2.0
LINE_BYTES_MAX: Final = 1 << 20


class RunRequest(msgspec.Struct, frozen=True):
    Command: str
    Options: list[str] = []
    DryRun: bool = False
    Name: str = ""
    """The name of the move, which the user typed to confirm the command."""


class MigrationRun:
    """One run of a command, with its progress and output."""

    def __init__(self, number: int, command: str, *, is_dry: bool, now: float) -> None:
        self.number = number
        self.command = command
        self.is_dry = is_dry
        self.began_at = now
        self.ended_at: float | None = None
        self.code: int | None = None
        self.progress: dict[str, Any] = {}
        self.messages: deque[str] = deque(maxlen=LINES_KEPT)
        self.output = b""

    def to_json(self) -> dict[str, Any]:
        return {
            "Number": self.number,
            "Command": self.command,
            "DryRun": self.is_dry,
            "Began": self.began_at,
            "Ended": self.ended_at,
            "Code": self.code,
            "Progress": self.progress,
            "Said": list(self.messages),
            "Result": _decoded(self.output) if self.ended_at is not None else None,
        }


class MigrationTarget(NamedTuple):
    """The endpoint that moves write to."""

    endpoint: str | None
    """None for Amazon DynamoDB in the region of the environment."""
    certificate: str = ""
    """The path of the endpoint's certificate, if it is self-signed."""

    def environment(self) -> dict[str, str]:
        if not self.certificate:
            return {}
        return {"AWS_CA_BUNDLE": self.certificate, "SSL_CERT_FILE": self.certificate}


class MigrationFolder:
    """The folder of one move: its status, and the command that runs in it (one at a time)."""

    def __init__(self, name: str, folder: Path, target: MigrationTarget, clock: Clock) -> None:
        self.name = name
        self.folder = folder
        self.run: MigrationRun | None = None
        self.lag: dict[str, Any] | None = None
        """How far behind its source the last command that reported a lag was."""
        self._target = target
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._fetching = asyncio.Lock()
        self._status: tuple[float, dict[str, Any]] = (0.0, {})
        self._refreshing: asyncio.Task[dict[str, Any]] | None = None
        self._runs_ended = 0
        """Counts the commands that have ended: a status fetched before one ended is outdated."""

    async def status(self) -> dict[str, Any]:
        """Returns the last status at once, and refreshes it in the background when it is old.

        Each status takes a process of its own, which is too slow for every refresh of the page.
        """
        fetched_at, status = self._status
        if not status:
            return await self._fetch_status()
        if self._clock() - fetched_at >= STATUS_SECONDS and not self._fetching.locked():
            self._refreshing = asyncio.create_task(self._fetch_status())
        return status

    async def _fetch_status(self) -> dict[str, Any]:
        async with self._fetching:
            while True:
                runs_ended = self._runs_ended
                status = await self._run_for_json("status", "--json")
                if runs_ended == self._runs_ended:
                    break
            self._status = (self._clock(), status)
            return status

    async def designs(self) -> list[Any]:
        status = await self._run_for_json("status", "--json", "--designs")
        designs = status.get("designs")
        return designs if isinstance(designs, list) else []

    async def _run_for_json(self, *arguments: str) -> dict[str, Any]:
        process = await self._start_process(arguments)
        output, errors = await process.communicate()
        if process.returncode:
            raise PartitaError(_sentence(errors) or f"{self.folder} cannot be read.")
        return _decoded(output) or {}

    async def start(self, request: RunRequest, credentials: Credentials | None = None) -> int:
        """Starts a command and returns the number of the run.

        `credentials` are those of the user, if the target requires signed requests.
        """
        if request.Command not in FLAGS:
            raise PartitaError(f"The console cannot start {request.Command}.")
        before = self.run
        if before is not None and before.ended_at is None:
            raise PartitaError(f"{self.name} is running a command: wait for it or stop it.")
        is_confirmed = request.DryRun or request.Name == self.name
        if request.Command in CONFIRMED_COMMANDS and not is_confirmed:
            raise PartitaError(f"Type {self.name} to confirm {request.Command}.")
        flags = FLAGS[request.Command]
        if unknown := [option for option in request.Options if option not in flags]:
            raise PartitaError(f"{request.Command} has no option {unknown[0]}.")
        arguments = [request.Command, "--json", *(flags[option] for option in request.Options)]
        if request.DryRun:
            arguments.append("--dry-run")
        if self._target.endpoint is not None:
            arguments += ["--endpoint", self._target.endpoint]
        number = 1 if before is None else before.number + 1
        self.run = MigrationRun(number, request.Command, is_dry=request.DryRun, now=self._clock())
        try:
            self._process = await self._start_process(arguments, credentials)
        except OSError as error:
            self.run = before
            raise PartitaError(f"{request.Command} could not be started: {error}.") from error
        self._watching = asyncio.create_task(self._watch(self._process, self.run))
        return number

    async def _start_process(
        self, arguments: Sequence[str], credentials: Credentials | None = None
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "partita.cli", "migrate", *arguments, str(self.folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                **self._target.environment(),
                **_environment(credentials),
                "PARTITA_PROGRESS": "lines",
            },
            limit=LINE_BYTES_MAX,
        )

    async def _watch(self, process: asyncio.subprocess.Process, run: MigrationRun) -> None:
        assert process.stdout is not None and process.stderr is not None
        reading = asyncio.create_task(_all(process.stdout))
        async for line in process.stderr:
            _note(run, line.decode(errors="replace").rstrip())
        run.output = await reading
        run.code = await process.wait()
        run.ended_at = self._clock()
        run.progress = {}
        result = _decoded(run.output) or {}
        if "lag_seconds" in result:
            bytes_ = result.get("lag_bytes")
            self.lag = {"Seconds": result["lag_seconds"], "Bytes": bytes_, "At": run.ended_at}
        self._process = None
        self._runs_ended += 1
        self._status = (0.0, {})

    def stop(self) -> None:
        """Interrupts the command like Ctrl-C; started again, it continues where it stopped."""
        process = self._process
        if process is not None:
            process.send_signal(signal.SIGINT)
            # Processes that a shell starts in the background ignore SIGINT; SIGTERM follows.
            asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._end, process)

    def _end(self, process: asyncio.subprocess.Process) -> None:
        if process is self._process:
            process.terminate()

    async def close(self) -> None:
        self.stop()
        if self._watching is not None:
            await asyncio.wait([self._watching], timeout=STOP_SECONDS_MAX)


class MigrationFolders:
    def __init__(
        self, folders: Sequence[Path], target: MigrationTarget, clock: Clock = system_clock
    ) -> None:
        self._moves: dict[str, MigrationFolder] = {}
        for folder in folders:
            name = _free(folder.resolve().name, self._moves)
            self._moves[name] = MigrationFolder(name, folder, target, clock)

    def names(self) -> list[str]:
        return list(self._moves)

    def find(self, name: str) -> MigrationFolder:
        if name not in self._moves:
            raise PartitaError(f"There is no move {name}.")
        return self._moves[name]

    async def close(self) -> None:
        await asyncio.gather(*(move.close() for move in self._moves.values()))


def _environment(credentials: Credentials | None) -> dict[str, str]:
    if credentials is None:
        return {}
    key_id, secret, token = credentials
    return {
        "AWS_ACCESS_KEY_ID": key_id,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_SESSION_TOKEN": token or "",
    }


def _free(name: str, taken: dict[str, MigrationFolder]) -> str:
    number = 2
    candidate = name
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


def _note(run: MigrationRun, line: str) -> None:
    """Notes a line of stderr: progress such as "3\t10\tloading orders", or a message."""
    done, _, rest = line.partition("\t")
    total, _, description = rest.partition("\t")
    if done.isdigit() and total.isdigit():
        run.progress = {"What": description, "Done": int(done), "Total": int(total)}
    elif line:
        run.messages.append(line)


async def _all(stream: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while piece := await stream.read(1 << 16):
        if len(content) < OUTPUT_BYTES_MAX:
            content += piece
    return bytes(content)


def _decoded(output: bytes) -> dict[str, Any] | None:
    try:
        decoded = msgspec.json.decode(output)
    except msgspec.DecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None


def _sentence(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ") if lines else ""
