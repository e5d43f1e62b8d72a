"""Moves from SQL: what `partita migrate` tells of a folder, and its commands, started from a page.

They run in processes of their own, as from a terminal: they outlive a page that is closed, and what
they have done is in the folder. Only the commands and options below can be given.
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
"""The commands of a move, and what can be asked of each besides a dry run."""
NAMED_FIRST: Final = frozenset(("cutover", "rollback", "finish"))
"""Which side is written to changes with these: whoever starts one has to name the move."""
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
    """Of the move, typed again."""


class MigrationRun:
    """One command."""

    def __init__(self, number: int, command: str, *, is_dry: bool, now: float) -> None:
        self.number = number
        self.command = command
        self.is_dry = is_dry
        self.began_at = now
        self.ended_at: float | None = None
        self.code: int | None = None
        self.progress: dict[str, Any] = {}
        self.said: deque[str] = deque(maxlen=LINES_KEPT)
        self.output = b""

    def shown(self) -> dict[str, Any]:
        return {
            "Number": self.number,
            "Command": self.command,
            "DryRun": self.is_dry,
            "Began": self.began_at,
            "Ended": self.ended_at,
            "Code": self.code,
            "Progress": self.progress,
            "Said": list(self.said),
            "Result": _decoded(self.output) if self.ended_at is not None else None,
        }


class MigrationTarget(NamedTuple):
    """Where moves go to."""

    endpoint: str | None
    """Without one, the region of the environment at Amazon's."""
    certificate: str = ""
    """What it shows, where no authority has signed it."""

    def environment(self) -> dict[str, str]:
        if not self.certificate:
            return {}
        return {"AWS_CA_BUNDLE": self.certificate, "SSL_CERT_FILE": self.certificate}


class MigrationFolder:
    def __init__(self, name: str, folder: Path, target: MigrationTarget, clock: Clock) -> None:
        self.name = name
        self.folder = folder
        self.run: MigrationRun | None = None
        self.lag: dict[str, Any] | None = None
        """How far the last command that followed was behind."""
        self._target = target
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()
        self._told: tuple[float, dict[str, Any]] = (0.0, {})
        self._refreshing: asyncio.Task[dict[str, Any]] | None = None
        self._ended = 0
        """How many commands: what was asked for before the end of one is not true any more."""

    async def status(self) -> dict[str, Any]:
        """What the folder says: at once if it is known, and asked again if that is long ago."""
        asked_at, told = self._told
        if not told:
            return await self._ask_status()
        if self._clock() - asked_at >= STATUS_SECONDS and not self._asking.locked():
            self._refreshing = asyncio.create_task(self._ask_status())
        return told

    async def _ask_status(self) -> dict[str, Any]:
        async with self._asking:
            while True:
                ended = self._ended
                told = await self._told_by("status", "--json")
                if ended == self._ended:
                    break
            self._told = (self._clock(), told)
            return told

    async def designs(self) -> list[Any]:
        told = await self._told_by("status", "--json", "--designs")
        found = told.get("designs")
        return found if isinstance(found, list) else []

    async def _told_by(self, *arguments: str) -> dict[str, Any]:
        process = await self._started(arguments)
        output, errors = await process.communicate()
        if process.returncode:
            raise PartitaError(_sentence(errors) or f"{self.folder} cannot be read.")
        return _decoded(output) or {}

    async def start(self, asked: RunRequest, credentials: Credentials | None = None) -> int:
        """`credentials` are those of whoever starts it, where the target asks for some.

        Answers the number of the run.
        """
        if asked.Command not in FLAGS:
            raise PartitaError(f"The console does not start {asked.Command}.")
        before = self.run
        if before is not None and before.ended_at is None:
            raise PartitaError(f"{self.name} is at work: wait for it or stop it.")
        if asked.Command in NAMED_FIRST and not asked.DryRun and asked.Name != self.name:
            raise PartitaError(f"Type {self.name} to confirm {asked.Command}.")
        flags = FLAGS[asked.Command]
        if unknown := [one for one in asked.Options if one not in flags]:
            raise PartitaError(f"{asked.Command} has no option {unknown[0]}.")
        arguments = [asked.Command, "--json", *(flags[one] for one in asked.Options)]
        if asked.DryRun:
            arguments.append("--dry-run")
        if self._target.endpoint is not None:
            arguments += ["--endpoint", self._target.endpoint]
        number = 1 if before is None else before.number + 1
        self.run = MigrationRun(number, asked.Command, is_dry=asked.DryRun, now=self._clock())
        try:
            self._process = await self._started(arguments, credentials)
        except OSError as error:
            self.run = before
            raise PartitaError(f"{asked.Command} could not be started: {error}.") from error
        self._watching = asyncio.create_task(self._watch(self._process, self.run))
        return number

    async def _started(
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
        self._ended += 1
        self._told = (0.0, {})

    def stop(self) -> None:
        """As Ctrl-C does: it goes on where it was when it is started again."""
        process = self._process
        if process is not None:
            process.send_signal(signal.SIGINT)
            # Where Ctrl-C is ignored, as in the background of a shell, it is told otherwise.
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
        await asyncio.gather(*(one.close() for one in self._moves.values()))


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
    wanted = name
    while wanted in taken:
        wanted, number = f"{name}-{number}", number + 1
    return wanted


def _note(run: MigrationRun, line: str) -> None:
    """A line of progress, or something that is said."""
    done, _, rest = line.partition("\t")
    total, _, description = rest.partition("\t")
    if done.isdigit() and total.isdigit():
        run.progress = {"What": description, "Done": int(done), "Total": int(total)}
    elif line:
        run.said.append(line)


async def _all(stream: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while piece := await stream.read(1 << 16):
        if len(content) < OUTPUT_BYTES_MAX:
            content += piece
    return bytes(content)


def _decoded(output: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(output)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _sentence(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ") if lines else ""
