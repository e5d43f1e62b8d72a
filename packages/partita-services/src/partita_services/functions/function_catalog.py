"""The catalog of functions: those of the settings, of installed packages, and those that clients
created.

A package provides a function as an entry point of the group `partita.functions`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import entry_points
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from partita.errors import FunctionNotFound
from partita.foundation.server_settings import FunctionSettings
from partita_services.background_tasks import BackgroundTasks
from partita_services.functions import function_arns
from partita_services.functions.function_arns import LATEST, QualifiedFunction
from partita_services.functions.function_records import (
    AliasRecord,
    Configuration,
    FunctionRecord,
    VersionRecord,
)
from partita_services.functions.function_store import FUNCTIONS, FunctionStore
from partita_services.functions.runtime.code_packages import CodePackages
from partita_services.functions.runtime.function_pool import (
    IDLE_MAX,
    IDLE_SECONDS_MAX,
    FunctionPool,
)
from partita_services.functions.runtime.function_process import (
    FunctionLimits,
    FunctionSpec,
    InvocationOutcome,
)
from partita_services.functions.runtime.role_sessions import RoleSessions
from partita_services.record_table import aliases_of, version_sort, versions_of

GROUP = "partita.functions"
ROLE = function_arns.role_arn(function_arns.OWN_ROLE)
NO_ROLE = function_arns.role_arn("-")
"""The role of a deleted function. No role has this name."""
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "PARTITA_PURE")
"""The variables of the server's environment that uploaded code sees."""
REAP_SECONDS = 5.0


class InvokedVersion(NamedTuple):
    """The version that an invocation runs."""

    configuration: Configuration
    package: str
    concurrency: int | None

    @property
    def number(self) -> str:
        return str(self.configuration["Version"])


class Invocation(NamedTuple):
    outcome: InvocationOutcome
    version: str


class FunctionCatalog:
    """If several functions have the same name, the one in the settings wins, then that of a
    package."""

    def __init__(
        self,
        store: FunctionStore,
        settings: Iterable[FunctionSettings],
        folder: Path,
        endpoint: str,
        now: float,
        sessions: RoleSessions,
        packages: CodePackages,
    ) -> None:
        self._store = store
        self._folder = folder
        self._endpoint = endpoint
        offered = [
            FunctionSettings(name=point.name, handler=point.value)
            for point in entry_points(group=GROUP)
        ]
        self._settings = {setting.name: setting for setting in (*offered, *settings)}
        self._since = now
        self._sessions = sessions
        self._packages = packages
        self._starts = asyncio.Lock()
        self._pools: dict[tuple[str, str], tuple[str, FunctionPool]] = {}
        """The pools by function and version, each with the revision that it runs."""
        self._background = BackgroundTasks()
        self._chance = random.Random()

    def is_of_settings(self, name: str) -> bool:
        return name in self._settings

    async def find(self, name: str) -> FunctionRecord | None:
        setting = self._settings.get(name)
        if setting is not None:
            return _registered(setting, self._since)
        return await self._store.find(FUNCTIONS, name, FunctionRecord)

    async def function(self, name: str) -> FunctionRecord:
        function = await self.find(name)
        if function is None:
            raise not_found(name)
        return function

    async def role_of(self, name: str) -> str:
        """The role whose rights are used on behalf of a function."""
        function = await self.find(name)
        return NO_ROLE if function is None else str(function.configuration["Role"])

    async def all(self) -> list[FunctionRecord]:
        registered = [_registered(setting, self._since) for setting in self._settings.values()]
        created = await self._store.all(FUNCTIONS, FunctionRecord)
        by_name = {function.name: function for function in (*created, *registered)}
        return [by_name[name] for name in sorted(by_name)]

    async def version(self, target: QualifiedFunction) -> InvokedVersion:
        """Resolves a version or an alias; an alias chooses by its weights."""
        function = await self.function(target.name)
        qualifier = target.qualifier
        if not qualifier.isdigit() and qualifier != LATEST:
            alias = await self._store.find(aliases_of(target.name), qualifier, AliasRecord)
            if alias is None:
                raise not_found(*target)
            qualifier = self._chosen(alias)
        if qualifier == LATEST:
            return InvokedVersion(function.configuration, function.package, function.concurrency)
        published = await self._store.find(
            versions_of(target.name), version_sort(int(qualifier)), VersionRecord
        )
        if published is None:
            raise not_found(*target)
        return InvokedVersion(published.configuration, published.package, function.concurrency)

    def _chosen(self, alias: AliasRecord) -> str:
        chance = self._chance.random()
        for version, weight in alias.weights.items():
            if chance < weight:
                return version
            chance -= weight
        return alias.version

    async def invoke(
        self,
        target: QualifiedFunction,
        event: bytes,
        request_id: str = "",
        client_context: Any = None,
    ) -> Invocation:
        """Call a function. It runs on when the caller goes away, as on Lambda."""
        version = await self.version(target)
        call = self._background.start(
            self._call(target, version, event, request_id, client_context)
        )
        call.add_done_callback(_retrieve_error)
        return await asyncio.shield(call)

    async def _call(
        self,
        target: QualifiedFunction,
        version: InvokedVersion,
        event: bytes,
        request_id: str,
        client: Any,
    ) -> Invocation:
        pool = await self._pool(target.name, version)
        suffix = "" if target.qualifier == LATEST else target.qualifier
        context: dict[str, Any] = {"arn": function_arns.function_arn(target.name, suffix)}
        if client is not None:
            context["client_context"] = client
        outcome = await pool.call(event, request_id, **context)
        return Invocation(outcome, version.number)

    async def _pool(self, name: str, version: InvokedVersion) -> FunctionPool:
        place = (name, version.number)
        setting = self._settings.get(name)
        has_no_role = setting is not None and setting.role is None
        role = version.configuration["Role"]
        session = await self._sessions.environment(role, is_own=has_no_role)
        key_id = session.get("AWS_ACCESS_KEY_ID", "")
        revision = f"{version.configuration['RevisionId']} {version.concurrency} {key_id}"
        if (existing := self._pools.get(place)) is not None and existing[0] == revision:
            return existing[1]
        # The code is unpacked here, which takes time.
        function = await self._described(name, version, session)
        # Another call may have made the pool during the await.
        if (existing := self._pools.get(place)) is not None:
            if existing[0] == revision:
                await self._packages.release(function.folder)
                return existing[1]
            self.close_later(existing[1])
        pool = FunctionPool(function, self._starts, version.concurrency)
        self._pools[place] = (revision, pool)
        return pool

    async def _described(
        self, name: str, version: InvokedVersion, session: Mapping[str, str]
    ) -> FunctionSpec:
        configuration = version.configuration
        setting = self._settings.get(name)
        variables = configuration.get("Environment", {}).get("Variables", {})
        if setting is None:
            folder, trusted = await self._packages.folder(name, version.package), {}
            own = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
            limits = FunctionLimits(
                configuration["MemorySize"],
                configuration["EphemeralStorage"]["Size"],
                self._packages.place(),
            )
        else:
            # Only variables from the settings reach the interpreter itself. Uploaded ones, such as
            # PYTHONSTARTUP, could make it load code before ours.
            variables, trusted = {}, variables
            folder, own, limits = self._folder / setting.folder, dict(os.environ), None
        if setting is not None and setting.role is None:
            # Without a role, keys in our own environment come first.
            own = {**session, **own}
        else:
            own = _with_session(own, session)
        return FunctionSpec(
            name,
            configuration["Handler"] if setting is None else setting.handler,
            folder,
            configuration["Timeout"] if setting is None else setting.timeout_seconds,
            function_arns.function_arn(name),
            {**self._environment(own, name, version), **trusted},
            version.number,
            configuration["MemorySize"],
            variables,
            limits,
        )

    async def environment_of(self, role: str | None) -> dict[str, str]:
        """The environment for functions and triggers of the settings: how to reach this server, and
        a session of their role. Without a role, keys in our own environment come first."""
        arn = function_arns.role_arn(role or function_arns.OWN_ROLE)
        session = await self._sessions.environment(arn, is_own=role is None)
        own = dict(os.environ)
        return self._addressed({**session, **own} if role is None else _with_session(own, session))

    def _environment(
        self, own: Mapping[str, str], name: str, version: InvokedVersion
    ) -> dict[str, str]:
        return {
            **self._addressed(own),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": version.number,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(version.configuration["MemorySize"]),
            "_HANDLER": version.configuration["Handler"],
        }

    def _addressed(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment with variables by which boto3 finds this server."""
        return {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_REGION": function_arns.REGION,
            "AWS_DEFAULT_REGION": function_arns.REGION,
            "AWS_ACCESS_KEY_ID": "partita",
            "AWS_SECRET_ACCESS_KEY": "partita",
            **own,
        }

    def close_later(self, pool: FunctionPool) -> None:
        """Close a pool when its calls have ended."""

        async def close() -> None:
            while not pool.is_idle:
                await asyncio.sleep(0.1)
            await pool.close()
            await self._packages.release(pool.folder)

        self._background.start(close())

    def forget(self, name: str, number: str | None = None) -> None:
        """Close the processes of a deleted function or version."""
        for place in list(self._pools):
            if place[0] == name and number in (None, place[1]):
                self.close_later(self._pools.pop(place)[1])

    async def reap(self) -> None:
        """End idle processes, until cancelled."""
        while True:
            await asyncio.sleep(REAP_SECONDS)
            pools = [pool for _, pool in self._pools.values()]
            latest = sorted((used for pool in pools for used in pool.idle_since()), reverse=True)
            # Of all idle processes, those used last are kept, up to IDLE_MAX.
            since = asyncio.get_running_loop().time() - IDLE_SECONDS_MAX
            for pool in pools:
                await pool.close_unused(max([since, *latest[IDLE_MAX - 1 : IDLE_MAX]]))

    async def close(self) -> None:
        await self._background.close()
        await asyncio.gather(*(pool.close() for _, pool in self._pools.values()))
        self._packages.close()


def _with_session(own: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """A function with a role of its own must not find other credentials, wherever boto3 looks for
    them."""
    if "AWS_SESSION_TOKEN" not in session:
        return {**own, **session}
    return {**{name: own[name] for name in own if not name.startswith("AWS_")}, **session}


def _retrieve_error(call: asyncio.Task[Invocation]) -> None:
    """Otherwise asyncio logs the error of a call that nobody waits for any more."""
    if not call.cancelled():
        call.exception()


def not_found(name: str, qualifier: str = "") -> FunctionNotFound:
    suffix = "" if qualifier == LATEST else qualifier
    return FunctionNotFound(f"Function not found: {function_arns.function_arn(name, suffix)}")


def _registered(setting: FunctionSettings, since: float) -> FunctionRecord:
    """A function of the settings, as the API shows it."""
    described = repr(setting).encode()
    configuration = {
        "FunctionName": setting.name,
        "FunctionArn": function_arns.function_arn(setting.name),
        "Runtime": RUNTIME,
        "Role": ROLE if setting.role is None else function_arns.role_arn(setting.role),
        "Handler": setting.handler.replace(":", "."),
        "CodeSize": 0,
        "Description": "Registered by the settings of this server.",
        "Timeout": ceil(setting.timeout_seconds),
        "MemorySize": 128,
        "LastModified": moment(since),
        "CodeSha256": "",
        "Version": LATEST,
        "TracingConfig": {"Mode": "PassThrough"},
        "RevisionId": hashlib.md5(described, usedforsecurity=False).hexdigest(),
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "PackageType": "Zip",
        "Architectures": ["x86_64"],
        "EphemeralStorage": {"Size": 512},
    }
    if setting.environment:
        configuration["Environment"] = {"Variables": setting.environment}
    return FunctionRecord(
        name=setting.name,
        configuration=configuration,
        package="",
        concurrency=setting.concurrency,
    )


def moment(seconds: float) -> str:
    """The format of Lambda's LastModified."""
    shown = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{shown[:-3]}+0000"
