"""The targets of mappings: a function, a function that only one trigger has, or a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from partita.errors import RestError
from partita_services.functions import function_arns
from partita_services.functions.function_arns import QualifiedFunction
from partita_services.functions.function_catalog import FunctionCatalog
from partita_services.functions.message_sinks import SendFailed, in_thread, post
from partita_services.functions.runtime.function_pool import FunctionPool
from partita_services.functions.runtime.function_process import FunctionError


class CallFailed(Exception):
    """Raised when the call did not succeed; its text is the reason."""


class CallRefused(Exception):
    """Raised when the call was not made, so that it does not count as an attempt; its text is the
    reason."""


class MappingTarget(Protocol):
    arn: str
    """The name of the target in reports of failures."""
    version: str
    """The version of the function that was called last."""

    async def call(self, event: bytes) -> bytes:
        """Returns the result as JSON. Raises CallFailed or CallRefused."""

    async def close(self) -> None: ...


class FunctionTarget:
    def __init__(self, catalog: FunctionCatalog, function: QualifiedFunction) -> None:
        self.arn = function_arns.function_arn(*function)
        self.version = function_arns.LATEST
        self._catalog = catalog
        self._function = function

    async def call(self, event: bytes) -> bytes:
        try:
            invocation = await self._catalog.invoke(self._function, event)
            self.version = invocation.version
            return invocation.outcome.result()
        except FunctionError as error:
            raise CallFailed(str(error)) from error
        except RestError as error:
            raise CallRefused(f"{error.wire_code}: {error.message}") from error

    async def close(self) -> None:
        pass


class TriggerFunction:
    """A function that the settings name for one trigger only."""

    version = function_arns.LATEST

    def __init__(
        self,
        arn: str,
        catalog: FunctionCatalog,
        role: str | None,
        make: Callable[[dict[str, str]], FunctionPool],
    ) -> None:
        """`make` makes a pool, given the environment of its processes."""
        self.arn = arn
        self._catalog = catalog
        self._role = role
        self._make = make
        self._pool: FunctionPool | None = None
        self._key_id = ""

    async def call(self, event: bytes) -> bytes:
        try:
            pool = await self._current()
            return (await pool.call(event)).result()
        except FunctionError as error:
            raise CallFailed(str(error)) from error
        except RestError as error:
            raise CallRefused(f"{error.wire_code}: {error.message}") from error

    async def _current(self) -> FunctionPool:
        """The pool of processes. It is replaced when the session in their environment is
        renewed."""
        environment = await self._catalog.environment_of(self._role)
        key_id = environment["AWS_ACCESS_KEY_ID"]
        if self._pool is not None and self._key_id != key_id:
            self._catalog.close_later(self._pool)
            self._pool = None
        if self._pool is None:
            self._pool, self._key_id = self._make(environment), key_id
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()


class HttpEndpoint:
    """A URL that gets the event as a POST; any 2xx status is a success."""

    version = function_arns.LATEST

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self.arn = self._url = url
        self._timeout_seconds = timeout_seconds

    async def call(self, event: bytes) -> bytes:
        try:
            # A socket's timeout holds for each part of an answer. This one holds for the whole.
            async with asyncio.timeout(self._timeout_seconds):
                return await in_thread(partial(post, self._url, event, self._timeout_seconds))
        except TimeoutError:
            text = f"{self._url} took longer than {self._timeout_seconds} seconds"
            raise CallFailed(text) from None
        except SendFailed as error:
            raise CallFailed(str(error)) from error

    async def close(self) -> None:
        pass
