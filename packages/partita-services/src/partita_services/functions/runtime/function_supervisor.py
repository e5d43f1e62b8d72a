"""The supervisor of a function's process. It holds the function to its limits, and outlives it.

It is run as a program, reads one line of JSON about the function, and forks. The child becomes the
function's process (`function_worker.py`), and the parent watches it. Processes that the function
starts become children of the supervisor when their own parent ends, even in sessions of their own
(the supervisor is their subreaper). So none of them is left when the supervisor has ended: together
with the function's process, on SIGTERM, or when the companion is gone for whatever reason.

Only Linux has subreapers and `/proc`. Elsewhere the process group is killed, and the limits of
memory and processes are not enforced.

This module imports the standard library only. It runs in the environment of the function, whose own
modules must not replace ours.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)."""
BUSY_SECONDS, IDLE_SECONDS = 0.05, 0.25
"""The intervals at which a function's memory is measured, while it computes and while it waits."""
SHARE_MAX = 0.05
"""The share of a processor that measuring may take."""
STORAGE_SECONDS = 1.0
KILL_SECONDS = 0.005
FILES_MAX = 100_000
"""The maximum number of files in a function's temporary folder."""
PROCESSES_MAX = 1024
"""Processes and threads together. (Lambda guide, "Quotas")"""
DESCRIPTORS_MAX = 1024
OOM_SCORE = "500"
"""When the kernel itself runs out of memory, it kills functions before the server."""
OUT_OF_MEMORY = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
OUT_OF_STORAGE, OUT_OF_PROCESSES = OUT_OF_MEMORY - 1, OUT_OF_MEMORY - 2
"""With these signals a supervisor kills itself after it has killed a function for exceeding a
limit, so that its exit code says which limit it was."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MB = 1024 * 1024


def main() -> NoReturn:
    # uvloop lets children inherit descriptors of the companion, such as its socket to the server.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    start = json.loads(_first_line())
    is_over = SignalFlag()
    _prctl(SET_CHILD_SUBREAPER, 1)
    _prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != start["parent"]:
        os._exit(0)
    scratch, own = start["scratch"], os.getpid()
    if scratch:
        os.mkdir(scratch, 0o700)
    worker = os.fork()
    if not worker:
        is_over.forget()
        _become_worker(start, own)
    _let_go_of_the_pipes()
    try:
        status = _supervise(worker, start, is_over)
    finally:
        kill_all(worker)
        if scratch:
            remove(Path(scratch))
    _end_as(status)


def _first_line() -> bytes:
    """The line about the function. The companion sends nothing else before the worker has reported
    that it started."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            os._exit(0)
        line += part
    return line


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# The child


def _become_worker(start: dict[str, Any], supervisor: int) -> NoReturn:
    # Not a session of its own: the kernel's autogroup scheduling would double the time of a call.
    os.setpgid(0, 0)
    _prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    _limit(start)
    if start["scratch"]:
        os.environ["TMPDIR"] = start["scratch"]
    os.environ.update(start["variables"])
    if "TZ" in start["variables"]:
        time.tzset()
    paths = start["variables"].get("PYTHONPATH", "")
    sys.path[0:0] = [path for path in paths.split(os.pathsep) if path]
    _worker().main(start["handler"], start["memory_mb"], OUT_OF_MEMORY)
    sys.exit()


def _limit(start: dict[str, Any]) -> None:
    limits = {resource.RLIMIT_CORE: 0}
    if start["storage_mb"]:
        # This limit also holds for deleted files that are still open.
        limits[resource.RLIMIT_FSIZE] = start["storage_mb"] * MB
    if start["memory_mb"]:
        limits[resource.RLIMIT_NOFILE] = DESCRIPTORS_MAX
    for limit, value in limits.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))


def _worker() -> Any:
    """Load `function_worker.py` by its path. An import by name could find a module of the function
    instead, or let the function see ours."""
    place = Path(__file__).with_name("function_worker.py")
    spec = importlib.util.spec_from_file_location("partita_worker", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The parent


class SignalFlag:
    """Wakes up on SIGTERM and at the end of children. Other signals from a terminal are left to the
    server."""

    def __init__(self) -> None:
        self.is_terminated = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        os.set_blocking(self._reading, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for other in (signal.SIGINT, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)

    def _terminate(self, *_: Any) -> None:
        self.is_terminated = True

    def wait(self, seconds: float) -> None:
        select.select([self._reading], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._reading, 4096)

    def forget(self) -> None:
        """Undo everything in the child, after the fork."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._reading)
        os.close(self._writing)


def _let_go_of_the_pipes() -> None:
    """Close our copies of the pipes, so that the companion notices when the function's process
    closes its own."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _supervise(worker: int, start: dict[str, Any], signals: SignalFlag) -> int:
    """Watch the worker until it has ended, or must end; returns the status to end with."""
    usage = ResourceUsage(start["memory_mb"], start["storage_mb"], start["scratch"])
    seconds = 0.0
    while True:
        signals.wait(seconds)
        if signals.is_terminated or os.getppid() != start["parent"]:
            return 0
        status = _reaped(worker)
        if status is not None:
            return status
        began = time.monotonic()
        exceeded = usage.exceeded()
        if exceeded:
            return exceeded
        seconds = max(usage.rest_seconds, (time.monotonic() - began) / SHARE_MAX)


def _reaped(worker: int) -> int | None:
    """The status of the worker if it has ended. Orphans that have ended are reaped as well."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return None
        if pid == worker:
            return status


class ResourceUsage:
    """The memory, processes and files of a function and all its processes together. Nothing is
    measured without a limit of memory."""

    def __init__(self, memory_mb: int | None, storage_mb: int | None, scratch: str | None) -> None:
        self._memory_bytes_max = (memory_mb or 0) * MB
        self._storage_bytes_max = (storage_mb or 0) * MB
        self._scratch = scratch
        self._ticks = 0
        self._storage_at = 0.0
        self.rest_seconds = IDLE_SECONDS

    def exceeded(self) -> int:
        """The signal for the limit that is exceeded, or 0."""
        if not self._memory_bytes_max:
            return 0
        ticks = threads = memory_bytes = 0
        pids = list(descendants(os.getpid()))
        for pid in pids:
            used = _stat(pid)
            if used is not None:
                # User and system time, threads, resident pages: proc_pid_stat(5), from the state.
                ticks += int(used[11]) + int(used[12])
                threads += int(used[17])
                memory_bytes += int(used[21]) * PAGE_BYTES
        self.rest_seconds = BUSY_SECONDS if ticks != self._ticks else IDLE_SECONDS
        self._ticks = ticks
        if threads > PROCESSES_MAX:
            return OUT_OF_PROCESSES
        # Measure again, counting shared pages once (Pss). This takes longer, so it is done last.
        is_over = memory_bytes > self._memory_bytes_max
        if is_over and sum(map(_proportional_bytes, pids)) > self._memory_bytes_max:
            return OUT_OF_MEMORY
        return self._exceeded_storage()

    def _exceeded_storage(self) -> int:
        now = time.monotonic()
        if not self._scratch or not self._storage_bytes_max or now < self._storage_at:
            return 0
        used_bytes = 0
        for files, entry in enumerate(_entries(self._scratch)):
            with suppress(OSError):
                used_bytes += entry.stat(follow_symlinks=False).st_blocks * 512
            if files > FILES_MAX or used_bytes > self._storage_bytes_max:
                return OUT_OF_STORAGE
        self._storage_at = time.monotonic() + STORAGE_SECONDS
        return 0


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat after the name, which may contain anything."""
    return (_read(f"/proc/{pid}/stat") or b"").rpartition(b") ")[2].split() or None


def _proportional_bytes(pid: int) -> int:
    for line in (_read(f"/proc/{pid}/smaps_rollup") or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        # The process has ended.
        return None


def descendants(pid: int) -> Iterator[int]:
    """All processes below a process, parents first."""
    pids = [pid]
    for parent in pids:
        for child in _children(parent):
            pids.append(child)
            yield child


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        yield from map(int, (_read(f"/proc/{pid}/task/{thread}/children") or b"").split())


def kill_all(worker: int) -> None:
    """Returns when no child is left, and therefore no descendant either: orphans become our
    children."""
    # The whole group at once, so that none of its processes can fork in the meantime.
    with suppress(OSError):
        os.killpg(worker, signal.SIGKILL)
    while True:
        for pid in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(KILL_SECONDS)


def remove(folder: Path) -> None:
    """Remove a folder, even where a function has taken away our permissions."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    for place, folders, _ in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in folders)):
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _end_as(status: int) -> NoReturn:
    """End with the worker's status, which the companion reports."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        time.sleep(1.0)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
