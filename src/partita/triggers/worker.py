"""A function's own process: a slow or broken function stops nothing but itself.

An event comes in as a line of JSON on stdin, the result goes out as one on what was stdout; what
the function prints goes to stderr. The process ends with the server, however that ends.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

PARENT_DEATH_SIGNAL = 1


class Context:
    """The second argument of a function, as far as there is something to say."""

    def __init__(self, function_name: str, seconds: float) -> None:
        self.function_name = function_name
        self.aws_request_id = str(uuid.uuid4())
        self._deadline = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(1000 * (self._deadline - time.monotonic())))


def main(function_name: str, seconds: str) -> None:
    _end_with_the_server()
    # Ctrl-C is for the server, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a function prints must not come between its results.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path.cwd()))
    function: Callable[[Any, Context], Any] | None = None
    for line in sys.stdin.buffer:
        try:
            function = function or load(function_name)
            answer = {"result": function(json.loads(line), Context(function_name, float(seconds)))}
            encoded = json.dumps(answer).encode()
        except Exception as error:
            encoded = json.dumps({"error": type(error).__name__, "message": str(error)}).encode()
        answers.write(encoded + b"\n")
        answers.flush()


def load(function_name: str) -> Callable[[Any, Context], Any]:
    module, _, name = function_name.partition(":")
    function: Callable[[Any, Context], Any] = attrgetter(name)(importlib.import_module(module))
    return function


def _end_with_the_server() -> None:
    """A function of a server that was killed must not run beside that of the next one."""
    parent = os.getppid()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
