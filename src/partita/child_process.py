"""How a process begins that a server starts: it has nothing of the server's, and ends with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

STANDARD = 3
"""Descriptors 0, 1 and 2 are given to a process on purpose."""
PARENT_DEATH_SIGNAL = 1
"""Of prctl(2)."""


def begin(parent: int, *kept: int) -> None:
    """Close what the parent has open, except for descriptors that it passes, and end with it.

    uvloop lets children inherit what is open, such as the file of the database. Even if the parent
    is killed, two processes must not do the same work.
    """
    first = STANDARD
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()
