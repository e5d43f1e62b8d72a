"""A function's own process: a slow or broken function affects nothing but itself.

The supervisor forks it. It reports that it has started, and that it has loaded the function. After
that, each call comes in as a line of JSON on what was stdin, and its result goes out as a line on
what was stdout. What the function prints goes to stderr, between the lines with which Lambda's log
marks the beginning and the end of a call. Errors have Lambda's names and shape.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

STARTED, LOADED = b"started\n", b"loaded\n"
RESULT_BYTES_MAX = 6 * 1024 * 1024
OWN = os.getpid()


class LambdaContext:
    """The second argument of a handler."""

    identity = None

    def __init__(self, call: dict[str, Any]) -> None:
        self.function_name = call["function"]
        self.function_version = call["version"]
        self.invoked_function_arn = call["arn"]
        self.memory_limit_in_mb = str(call["memory_mb"])
        self.aws_request_id = call["request_id"]
        self.client_context = _client_context(call.get("client_context"))
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = f"[{self.function_version}]{os.getpid()}"
        self._deadline = time.monotonic() + call["seconds"]

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(1000 * (self._deadline - time.monotonic())))


class ClientContext:
    """A caller's description of itself, in the members that Lambda's runtime provides."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.custom = content.get("custom")
        self.env = content.get("env")
        self.client = content.get("client")


def _client_context(content: Any) -> ClientContext | None:
    return ClientContext(content) if isinstance(content, dict) else None


class RuntimeFault(Exception):
    """Raised for problems that Lambda's runtime itself reports, under its name for them."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


Handler = Callable[[Any, LambdaContext], Any]


def main(handler_name: str, memory_mb_max: int | None, out_of_memory: int) -> None:
    """`out_of_memory` is the signal that tells the supervisor that the function used too much
    memory."""
    # Ctrl-C is for the server, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The function must not print between results, and its child processes must not read calls.
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    _say(answers, STARTED)
    sys.path.insert(0, str(Path.cwd()))
    handler: Handler | None = None
    # A handler that cannot be loaded is tried again with each call, which then reports the error.
    with suppress(Exception):
        handler = load(handler_name)
    _end_copies()
    _say(answers, LOADED)
    for line in calls:
        call = json.loads(line)
        request_id = call["request_id"]
        started = time.monotonic()
        _log(f"START RequestId: {request_id} Version: {call['version']}")
        try:
            handler = handler or load(handler_name)
            result = _encoded(handler(call["event"], LambdaContext(call)))
            answer = b'{"requestId":"%b","result":%b}' % (request_id.encode(), result)
        except Exception as error:
            described = _described(error)
            if len(json.dumps(described)) > RESULT_BYTES_MAX:
                described = _described(_too_large())
            _log(f"[ERROR] {described['errorType']}: {described['errorMessage']}")
            answer = json.dumps({**described, "requestId": request_id}).encode()
        _end_copies()
        if memory_mb_max and _peak_mb() > memory_mb_max:
            # The supervisor only measures now and then, and may not have noticed.
            os.kill(os.getpid(), out_of_memory)
        _log(f"END RequestId: {request_id}", _report(call, time.monotonic() - started))
        _say(answers, answer + b"\n")


def _end_copies() -> None:
    """End forked copies of this process that the function has made: only the original may
    answer."""
    if os.getpid() != OWN:
        os._exit(0)


def _say(answers: BinaryIO, line: bytes) -> None:
    try:
        answers.write(line)
        answers.flush()
    except BrokenPipeError:
        # The companion is gone. Without _exit, flushing the file at exit would fail again.
        os._exit(0)


def _log(*lines: str) -> None:
    """Write to the log, after what the function has printed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(2, "".join(f"{line}\n" for line in lines).encode(errors="replace"))


def _report(call: dict[str, Any], seconds: float) -> str:
    milliseconds = 1000 * seconds
    return (
        f"REPORT RequestId: {call['request_id']}\tDuration: {milliseconds:.2f} ms\t"
        f"Billed Duration: {math.ceil(milliseconds)} ms\tMemory Size: {call['memory_mb']} MB\t"
        f"Max Memory Used: {_peak_mb()} MB\t"
    )


def _peak_mb() -> int:
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def load(handler_name: str) -> Handler:
    """Load `module:callable`, or `module.callable` as on Lambda, with folders before it."""
    separator = ":" if ":" in handler_name else "."
    path, _, name = handler_name.rpartition(separator)
    module_name = path.replace("/", ".")
    if not module_name:
        text = f"Bad handler '{handler_name}': not enough values to unpack (expected 2, got 1)"
        raise RuntimeFault("Runtime.MalformedHandlerName", text)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        text = f"Unable to import module '{module_name}': {error}"
        raise RuntimeFault("Runtime.ImportModuleError", text) from error
    try:
        handler: Handler = attrgetter(name)(module)
    except AttributeError as error:
        text = f"Handler '{name}' missing on module '{module_name}'"
        raise RuntimeFault("Runtime.HandlerNotFound", text) from error
    return handler


def _encoded(result: Any) -> bytes:
    try:
        encoded = json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        text = f"Unable to marshal response: {error}"
        raise RuntimeFault("Runtime.MarshalError", text) from error
    if len(encoded) > RESULT_BYTES_MAX:
        raise _too_large()
    return encoded


def _too_large() -> RuntimeFault:
    text = f"Response payload size exceeded maximum allowed payload size ({RESULT_BYTES_MAX})."
    return RuntimeFault("Function.ResponseSizeTooLarge", text)


def _described(error: Exception) -> dict[str, Any]:
    if isinstance(error, RuntimeFault):
        return {"errorMessage": str(error), "errorType": error.error_type, "stackTrace": []}
    # Without our own frame, as on Lambda.
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__)[1:])
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "stackTrace": frames,
    }
