"""One process of a function: started with the first call, and called once at a time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import strsignal
from typing import Any

import msgspec

from partita.foundation import child_process
from partita_services.functions.runtime import function_supervisor
from partita_services.functions.runtime.function_log import FunctionLog
from partita_services.functions.runtime.function_supervisor import descendants
from partita_services.functions.runtime.function_worker import LOADED, RESULT_BYTES_MAX, STARTED

LINE_BYTES_MAX = 2 * RESULT_BYTES_MAX
START_SECONDS_MAX = 60.0
"""The time for an interpreter to start on a busy machine, and again for the function's imports."""
END_SECONDS_MAX = 5.0
"""The time for a supervisor to end all processes of its function."""
EXIT_ERROR, TIMED_OUT, UNKNOWN = "Runtime.ExitError", "Sandbox.Timedout", "Runtime.Unknown"
INVALID_ENTRYPOINT, OUT_OF_MEMORY = "Runtime.InvalidEntrypoint", "Runtime.OutOfMemory"
"""Lambda's names for a process that exited, timed out, wrote nonsense, could not start, or ran out
of memory."""
EXCEEDED = {
    -function_supervisor.OUT_OF_MEMORY: (
        OUT_OF_MEMORY,
        "Runtime exited with error: signal: killed",
    ),
    -function_supervisor.OUT_OF_STORAGE: (
        EXIT_ERROR,
        "The function was ended: its temporary folder exceeded the size of EphemeralStorage.",
    ),
    -function_supervisor.OUT_OF_PROCESSES: (
        EXIT_ERROR,
        f"The function was ended: it had more than {function_supervisor.PROCESSES_MAX} processes "
        "and threads.",
    ),
}
"""The error for each limit that a function can exceed, by the exit code of its supervisor."""


class FunctionError(Exception):
    """Raised when a function did not succeed. `content` is the error in Lambda's shape."""

    def __init__(self, error_type: str, message: str, content: Mapping[str, Any] = {}) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.is_of_the_sandbox = not content
        """True when the process did not report the error itself; the process is not used again."""
        self.content = {"errorMessage": message, "errorType": error_type, **content}


@dataclass(frozen=True, slots=True)
class FunctionLimits:
    """The limits of a function. Functions from the settings have none."""

    memory_mb: int
    storage_mb: int
    scratch: Path
    """The folder in which each of its processes gets a temporary folder."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """The properties of a function that its processes need to start."""

    name: str
    handler: str
    """`module:callable` or `module.callable`; the folder is the first place on the import path."""
    folder: Path
    timeout_seconds: float
    arn: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment that its interpreter starts with."""
    version: str = "$LATEST"
    memory_mb: int = 128
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables that its code sees, but its interpreter does not."""
    limits: FunctionLimits | None = None


@dataclass(frozen=True, slots=True)
class InvocationOutcome:
    """The result of a call."""

    payload: bytes
    """The result as JSON, or the error in Lambda's shape."""
    error: FunctionError | None
    log: bytes
    """The end of what the function logged during the call."""

    def result(self) -> bytes:
        if self.error is not None:
            raise self.error
        return self.payload


class FunctionProcess:
    """Processes with the same `starts` lock start one after the other: many interpreters that start
    at once would leave no time for anything else."""

    def __init__(self, function: FunctionSpec, starts: asyncio.Lock | None = None) -> None:
        self._function = function
        self._starts = starts or asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._log: FunctionLog | None = None
        self.is_starting = False
        self.is_called = False
        self.used_at = 0.0

    @property
    def is_running(self) -> bool:
        return self._process is not None

    async def call(self, event: bytes, request_id: str = "", **context: Any) -> InvocationOutcome:
        """Call the function. `context` holds further members of the call for the worker."""
        request_id = request_id or str(uuid.uuid4())
        self.is_called = True
        try:
            payload = await self._call(event, request_id, context)
            error = None
        except FunctionError as failure:
            payload, error = json.dumps(failure.content).encode(), failure
        finally:
            self.is_called = False
        self.used_at = asyncio.get_running_loop().time()
        log = b"" if self._log is None else await self._log.end_of(request_id)
        # The process was ended: the next one has a log of its own.
        if error is not None and self._process is None:
            self._log = None
        return InvocationOutcome(payload, error, log)

    async def _call(self, event: bytes, request_id: str, context: dict[str, Any]) -> bytes:
        function = self._function
        seconds = function.timeout_seconds
        described = {
            "request_id": request_id,
            "seconds": seconds,
            "function": function.name,
            "version": function.version,
            "arn": function.arn,
            "memory_mb": function.memory_mb,
            **context,
        }
        # The event is JSON already. It is appended as it is, without the closing brace of the head.
        head = json.dumps(described)[:-1].encode()
        try:
            process = self._process
            # A process that died since its last call has not failed this call.
            if process is None or process.returncode is not None:
                process = await self._start(request_id)
            async with _timeout(seconds, request_id):
                await _send(process, b'%b,"event":%b}\n' % (head, event))
                return _result(await _line(process, request_id), request_id)
        except FunctionError as error:
            if error.is_of_the_sandbox:
                await self.close()
            raise
        except BaseException:
            # Whatever stopped us, nobody may take the late answer for that of the next call.
            await self.close()
            raise

    async def _start(self, request_id: str) -> asyncio.subprocess.Process:
        """Start a process and wait until it can be called. This does not count as the function's
        own time."""
        self.is_starting = True
        try:
            # The lock is held until the interpreter runs. What the function imports after that may
            # take long, and does not hold up others.
            async with self._starts, _timeout(START_SECONDS_MAX, request_id):
                process = self._process = await self._spawn()
                _expect(STARTED, await _line(process, request_id), request_id)
            async with _timeout(START_SECONDS_MAX, request_id):
                _expect(LOADED, await _line(process, request_id), request_id)
        finally:
            self.is_starting = False
        return process

    async def _spawn(self) -> asyncio.subprocess.Process:
        function = self._function
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", function_supervisor.__file__),
                cwd=function.folder,
                env=dict(function.environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:
            raise FunctionError(INVALID_ENTRYPOINT, f"It cannot be started: {error}") from error
        assert process.stderr is not None
        self._log = FunctionLog(process.stderr)
        await _send(process, _start_line(function))
        return process

    async def close(self) -> None:
        """Returns when the process and everything that the function has started have ended."""
        process, self._process = self._process, None
        if process is None:
            return
        await child_process.stop(process, END_SECONDS_MAX, partial(_kill_tree, process.pid))


def _kill_tree(supervisor_pid: int) -> None:
    # A function can stop its own supervisor (SIGSTOP), which then kills nobody.
    for pid in [supervisor_pid, *descendants(supervisor_pid)]:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _start_line(function: FunctionSpec) -> bytes:
    limits = function.limits
    start = {
        "parent": os.getpid(),
        "handler": function.handler,
        "variables": dict(function.variables),
        "memory_mb": limits and limits.memory_mb,
        "storage_mb": limits and limits.storage_mb,
        "scratch": limits and str(limits.scratch / f"tmp-{uuid.uuid4()}"),
    }
    return json.dumps(start).encode() + b"\n"


@asynccontextmanager
async def _timeout(seconds: float, request_id: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        text = f"RequestId: {request_id} Error: Task timed out after {seconds:.2f} seconds"
        raise FunctionError(TIMED_OUT, text) from None


async def _send(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdin is not None
    # If the process is gone, reading its answer reports why.
    with suppress(ConnectionError):
        process.stdin.write(line)
        await process.stdin.drain()


async def _line(process: asyncio.subprocess.Process, request_id: str) -> bytes:
    """Read the next line that the process writes."""
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
    except ValueError:
        raise _nonsense(request_id) from None
    if not line.endswith(b"\n"):
        code = await process.wait()
        error_type, text = EXCEEDED.get(code) or (EXIT_ERROR, _exit(code))
        raise FunctionError(error_type, f"RequestId: {request_id} Error: {text}")
    return line


def _exit(code: int) -> str:
    """The message with which Lambda reports that a process has ended."""
    if code == 0:
        return "Runtime exited without providing a reason"
    # Lambda's words are those of Go: "signal: killed", "signal: segmentation fault".
    how = f"exit status {code}" if code > 0 else f"signal: {strsignal(-code) or -code}".lower()
    return f"Runtime exited with error: {how}"


def _result(line: bytes, request_id: str) -> bytes:
    """The result in a line, checked to be of this call: a function may write into the pipe of its
    results."""
    head = b'{"requestId":"%b","result":' % request_id.encode()
    try:
        if line.startswith(head):
            result = line[len(head) : -len(b"}\n")]
            msgspec.json.decode(result, type=msgspec.Raw)
            return result
        answer = json.loads(line)
    except (ValueError, RecursionError):
        raise _nonsense(request_id) from None
    if not isinstance(answer, dict) or answer.get("requestId") != request_id:
        raise _nonsense(request_id)
    if not {"errorType", "errorMessage"} <= answer.keys():
        raise _nonsense(request_id)
    raise FunctionError(str(answer["errorType"]), str(answer["errorMessage"]), answer)


def _expect(word: bytes, line: bytes, request_id: str) -> None:
    if line != word:
        raise _nonsense(request_id)


def _nonsense(request_id: str) -> FunctionError:
    text = f"RequestId: {request_id} Error: The function wrote into the pipe of its results"
    return FunctionError(UNKNOWN, text)
