"""Child processes: descriptors, the end of the parent, frames, deadlines, restarts."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from partita.foundation.child_process import (
    RestartBackoff,
    framed,
    read_frame,
    receive_frame,
    start,
    stop,
    take_frame,
)

CHILD = """
import os, sys, time
from partita.foundation.child_process import begin, framed, receive_frame

begin(int(sys.argv[1]), *map(int, sys.argv[2:]))
with open(0, "rb", buffering=0, closefd=False) as connection:
    while (question := receive_frame(connection)) is not None:
        if question == b"descriptors":
            answer = " ".join(sorted(os.listdir("/proc/self/fd"))).encode()
        else:
            answer = question.upper()
        os.write(0, framed(answer))
"""
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


def _on_path(folder: Path, name: str, text: str) -> dict[str, str]:
    (folder / f"{name}.py").write_text(text)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


async def _ask(connection: socket.socket, question: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(sock=connection)
    writer.write(framed(question))
    answer = await read_frame(reader)
    assert answer is not None
    writer.close()
    return answer


def test_a_child_answers_frames_and_has_only_the_descriptors_that_it_was_given(
    tmp_path: Path,
) -> None:
    environment = _on_path(tmp_path, "child_for_test", CHILD)

    async def story() -> tuple[bytes, int, int]:
        inherited, passed = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
        os.set_inheritable(inherited, True)
        process, connection = await start(
            "child_for_test", str(passed), environment=environment, kept=(passed,)
        )
        try:
            return await _ask(connection, b"descriptors"), passed, await process.wait()
        finally:
            os.close(inherited)
            os.close(passed)

    answer, passed, code = asyncio.run(story())
    # The folder itself is open while it is listed.
    numbers = set(map(int, answer.split()))
    assert {0, 1, 2, passed} <= numbers
    assert len(numbers) == 5
    assert code == 0


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    environment = _on_path(tmp_path, "child_for_test", CHILD)
    parent = (
        "import asyncio, os, time\n"
        "from partita.foundation.child_process import framed, read_frame, start\n"
        "async def main():\n"
        "    process, connection = await start('child_for_test')\n"
        "    reader, writer = await asyncio.open_connection(sock=connection)\n"
        "    writer.write(framed(b'hello'))\n"
        "    await read_frame(reader)\n"
        # A copy of the socket outlives the parent, so only the signal can end the child.
        "    if os.fork():\n"
        "        print(process.pid, flush=True)\n"
        "    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], env=environment, stdout=subprocess.PIPE, process_group=0
    ) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.kill()
        running.wait()
        deadline = time.monotonic() + 10
        while _is_alive(child) and time.monotonic() < deadline:
            time.sleep(0.01)
        is_alive = _is_alive(child)
        os.killpg(running.pid, signal.SIGKILL)
    assert not is_alive


def _is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def _started(program: str) -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


def test_a_child_that_ignores_sigterm_is_killed_after_the_deadline() -> None:
    async def story() -> int:
        return await stop(await _started(STUBBORN), 0.2)

    assert asyncio.run(story()) == -signal.SIGKILL


def test_a_child_that_has_ended_is_reaped_with_its_own_exit_code() -> None:
    async def story() -> int:
        process = await _started("print('ready', flush=True); raise SystemExit(3)")
        await process.wait()
        return await stop(process, 5.0)

    assert asyncio.run(story()) == 3


def test_the_pause_before_a_restart_doubles_until_a_child_was_healthy() -> None:
    backoff = RestartBackoff(0.5, 3.0)
    pauses = [backoff.next_seconds(was_healthy=False) for _ in range(4)]
    assert pauses == [1.0, 2.0, 3.0, 3.0]
    assert backoff.next_seconds(was_healthy=True) == 0.5


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_frames_are_the_same_however_they_are_cut_on_the_way(
    contents: list[bytes], size: int
) -> None:
    sent = b"".join(map(framed, contents))
    received, frames = bytearray(), []
    for at in range(0, len(sent), size):
        received += sent[at : at + size]
        while (frame := take_frame(received)) is not None:
            frames.append(frame)
    assert frames == contents
    assert not received


def test_a_frame_that_is_cut_off_is_the_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        os.write(writing, framed(b"whole") + framed(b"cut off")[:-1])
        os.close(writing)
        assert receive_frame(pipe) == b"whole"
        assert receive_frame(pipe) is None
