"""Child processes: how they start, exchange messages with their parent, and end.

The parent starts a module with `start`. The child gets one end of a socket pair as its standard
input and calls `begin` before anything else, so that it has no descriptor of the parent and never
outlives it. Both sides exchange frames: the length of a message, then the message.

    parent                                      child
    process, connection = await start(MODULE)   begin(parent_pid)
    connection.sendall(framed(question))        receive_frame(connection)
    await stop(process, seconds_max)

The supervisor of a function's process (partita_services) does not use this module. It runs in the
environment of the function, with the standard library only.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import struct
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

FIRST_DESCRIPTOR = 3
"""Descriptors 0, 1 and 2 are passed to a child on purpose."""
SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
LENGTH = struct.Struct(">I")


# The parent


async def start(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    kept: Sequence[int] = (),
) -> tuple[Process, socket.socket]:
    """Start a module as a child, and return it with our end of the socket pair.

    The child's first argument is the id of this process, which `begin` takes. `kept` are further
    descriptors that it inherits, under the same numbers.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                # With -P, a file in the working directory cannot replace one of our modules.
                *(sys.executable, "-P", "-m", module, str(os.getpid()), *arguments),
                stdin=theirs.fileno(),
                env=environment,
                pass_fds=kept,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


async def stop(process: Process, seconds_max: float, kill: Callable[[], None] | None = None) -> int:
    """Send SIGTERM, and SIGKILL after the deadline. Returns the exit code of the reaped child."""
    with suppress(ProcessLookupError):
        process.terminate()
    return await reap(process, seconds_max, kill)


async def reap(process: Process, seconds_max: float, kill: Callable[[], None] | None = None) -> int:
    """Wait for a child that is about to end, and kill it after the deadline.

    `kill` replaces the SIGKILL, for a child with children of its own.
    """
    try:
        async with asyncio.timeout(seconds_max):
            return await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            (kill or process.kill)()
        return await process.wait()


class RestartBackoff:
    """The pause before a child is started again: it doubles while the child ends too soon."""

    def __init__(self, seconds: float, seconds_max: float) -> None:
        self._seconds_min = self._seconds = seconds
        self._seconds_max = seconds_max

    def next_seconds(self, *, was_healthy: bool) -> float:
        doubled = min(2 * self._seconds, self._seconds_max)
        self._seconds = self._seconds_min if was_healthy else doubled
        return self._seconds


# The child


def begin(parent: int, *kept: int) -> None:
    """Close all descriptors but 0, 1, 2 and `kept`, and end when the parent ends.

    uvloop lets children inherit every open descriptor, the database's file among them.
    """
    first = FIRST_DESCRIPTOR
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))
    end_with(parent)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends.

    The next parent must not find an old child that still does the same work. Linux only; on other
    systems a child ends when its socket is closed.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    # The parent may have ended before the call, which then has no effect.
    if os.getppid() != parent:
        sys.exit()


# Frames


def framed(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


def take_frame(received: bytearray) -> bytes | None:
    """Removes the first frame from the received bytes; returns None while it is incomplete."""
    if len(received) < LENGTH.size:
        return None
    end = LENGTH.size + LENGTH.unpack_from(received)[0]
    if len(received) < end:
        return None
    content = bytes(received[LENGTH.size : end])
    # This is cheap: a bytearray drops its beginning without moving the rest.
    del received[:end]
    return content


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Returns the next frame, or None when the other side has closed the connection."""
    try:
        head = await reader.readexactly(LENGTH.size)
        return await reader.readexactly(LENGTH.unpack(head)[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_frame(connection: BinaryIO) -> bytes | None:
    """Like `read_frame`, for a blocking pipe or the file object of a socket."""
    head = connection.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    content = connection.read(length)
    return content if len(content) == length else None
