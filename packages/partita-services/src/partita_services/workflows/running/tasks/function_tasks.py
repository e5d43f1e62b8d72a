"""The functions that tasks call: over the Lambda API, or in processes of a program's own engine."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from partita.client import Client, ClientError
from partita.client.lambda_invoke import invoke
from partita.errors import TooManyRequestsException
from partita.foundation.server_settings import FunctionSettings as Setting
from partita_services.functions.runtime.function_pool import FunctionPool
from partita_services.functions.runtime.function_process import FunctionError, LoadedFunction
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.running.state_machine_arns import function_arn, function_name

LATEST = "$LATEST"


class TaskFunctions(Protocol):
    async def call(
        self, resource: str, event: Any, *, is_event: bool = False, role: str = ""
    ) -> tuple[Any, str]:
        """The result of a function, and the version that was called. Raises StateError when it
        fails.

        With `is_event`, the call is asynchronous. `role` is the role whose rights count, where the
        server asks for any.
        """

    async def close(self) -> None: ...


class RemoteFunctions:
    """Functions of the Lambda API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(
        self, resource: str, event: Any, *, is_event: bool = False, role: str = ""
    ) -> tuple[Any, str]:
        name = function_name(resource)
        if name is None:
            raise _unknown(resource)
        try:
            invoked = await invoke(
                self._client, name, json.dumps(event).encode(), is_event=is_event, role=role
            )
        except ClientError as error:
            if error.code == "ResourceNotFoundException":
                raise _unknown(resource) from error
            cause = f"{error.message} (Service: Lambda, Status Code: {error.status})"
            raise StateError(f"Lambda.{error.code}", cause) from error
        if is_event:
            return {}, invoked.version
        payload = json.loads(invoked.payload)
        if invoked.is_error:
            raise StateError(payload["errorType"], json.dumps(payload))
        return payload, invoked.version

    async def close(self) -> None:
        pass


class LocalFunctions:
    """Functions that a program brings along, by name."""

    def __init__(self, functions: Iterable[Setting], folder: Path) -> None:
        starts = asyncio.Lock()
        self._calls: set[asyncio.Task[Any]] = set()
        self._pools = {
            setting.name: FunctionPool(_described(setting, folder), starts, setting.concurrency)
            for setting in functions
        }

    async def call(
        self, resource: str, event: Any, *, is_event: bool = False, role: str = ""
    ) -> tuple[Any, str]:
        pool = self._pools.get(function_name(resource) or "")
        if pool is None:
            raise _unknown(resource)
        call = asyncio.create_task(pool.call(json.dumps(event).encode()))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        try:
            # The function runs on when the task is cancelled, as on Lambda.
            outcome = await asyncio.shield(call)
            return json.loads(outcome.result()), LATEST
        except TooManyRequestsException as error:
            cause = f"{error.message} (Service: Lambda, Status Code: 429)"
            raise StateError("Lambda.TooManyRequestsException", cause) from error
        except FunctionError as error:
            raise StateError(error.error_type, json.dumps(error.content)) from error

    def _forget(self, call: asyncio.Task[Any]) -> None:
        """Retrieve the call's error. Otherwise asyncio logs it when nobody waited for the call."""
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()

    async def close(self) -> None:
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))


def _described(setting: Setting, folder: Path) -> LoadedFunction:
    return LoadedFunction(
        setting.name,
        setting.handler,
        folder / setting.folder,
        setting.timeout_seconds,
        function_arn(setting.name),
        {**os.environ, **setting.environment},
    )


def _unknown(resource: str) -> StateError:
    return StateError(
        "Lambda.ResourceNotFoundException",
        f"Function not found: {resource} (Service: Lambda, Status Code: 404)",
    )
