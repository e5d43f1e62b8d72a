"""A function's own process: a slow or broken function stops nothing but itself.

Its supervisor makes it. It says when it has started, and when it has looked for the function. From
then on, a call comes in as a line of JSON on what was stdin, the result goes out as one on what was
stdout; what the function prints goes to stderr, between the lines with which Lambda's log shows
where a call begins and ends. Errors have Lambda's names and shape.
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


class Context:
    """The second argument of a function."""

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
    """What a caller says of itself, in the members that Lambda's runtime gives it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.custom = content.get("custom")
        self.env = content.get("env")
        self.client = content.get("client")


def _client_context(content: Any) -> ClientContext | None:
    return ClientContext(content) if isinstance(content, dict) else None


class RuntimeFault(Exception):
    """What Lambda's runtime itself finds wrong with a function, under its name for it."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


Handler = Callable[[Any, Context], Any]


def main(handler_name: str, memory_mb_max: int | None, out_of_memory: int) -> None:
    """`out_of_memory` is the signal that tells the supervisor of it."""
    # Ctrl-C is for the server, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a function prints must not come between its results, nor may what it starts read calls.
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    _say(answers, STARTED)
    sys.path.insert(0, str(Path.cwd()))
    handler: Handler | None = None
    # One that cannot be loaded is looked for again when it is called, and the call says why.
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
            result = _encoded(handler(call["event"], Context(call)))
            answer = b'{"requestId":"%b","result":%b}' % (request_id.encode(), result)
        except Exception as error:
            described = _described(error)
            if len(json.dumps(described)) > RESULT_BYTES_MAX:
                described = _described(_too_large())
            _log(f"[ERROR] {described['errorType']}: {described['errorMessage']}")
            answer = json.dumps({**described, "requestId": request_id}).encode()
        _end_copies()
        if memory_mb_max and _peak_mb() > memory_mb_max:
            # Before the supervisor has seen it.
            os.kill(os.getpid(), out_of_memory)
        _log(f"END RequestId: {request_id}", _report(call, time.monotonic() - started))
        _say(answers, answer + b"\n")


def _end_copies() -> None:
    """Of this process that the function has made by a fork: only the original answers."""
    if os.getpid() != OWN:
        os._exit(0)


def _say(answers: BinaryIO, line: bytes) -> None:
    try:
        answers.write(line)
        answers.flush()
    except BrokenPipeError:
        # Who asked was killed, and we are about to be: at once, or the pipe would be tried again.
        os._exit(0)


def _log(*lines: str) -> None:
    """After what the function has printed."""
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
    """module:callable, or module.callable as Lambda has it, with folders before it."""
    separator = ":" if ":" in handler_name else "."
    path, found, name = handler_name.rpartition(separator)
    module_name = path.replace("/", ".")
    if not found or not module_name:
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
    # Without our own frame, as Lambda shows it.
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__)[1:])
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "stackTrace": frames,
    }
