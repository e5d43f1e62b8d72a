"""The companion of a server that runs functions and whatever calls them, so that they block
nothing.

The server starts it when it is first needed, and passes it the requests of the Lambda and
EventBridge Scheduler APIs.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from partita.foundation.clock import system_clock
from partita.server.companions import companion_frames, companion_main
from partita.server.http.http_messages import HttpResponse
from partita_services.functions.api.lambda_registry import LambdaApi
from partita_services.functions.api.lambda_service import LambdaService
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_catalog import FunctionCatalog
from partita_services.functions.function_store import FunctionStore
from partita_services.functions.invocation_queue import InvocationQueue
from partita_services.functions.mappings.mapping_runner import Mappings
from partita_services.functions.message_sinks import Sinks
from partita_services.functions.runtime import stderr_outlet
from partita_services.functions.runtime.code_folder import CodeFolder
from partita_services.functions.runtime.code_packages import CodePackages
from partita_services.functions.runtime.role_sessions import RoleSessions
from partita_services.functions.schedules.schedule_targets import ScheduleTargets
from partita_services.functions.schedules.scheduler import Scheduler

CONNECTIONS = 64


class FunctionsCompanion:
    def __init__(self, start: companion_frames.CompanionStart) -> None:
        settings, folder = start.settings, Path(start.folder)
        client = self._client = companion_main.client_of(start, CONNECTIONS)
        # Schedules have a key of their own, with the rights of the Scheduler service.
        scheduling = self._scheduling = companion_main.client_of(
            replace(start, credentials=start.scheduler_credentials), CONNECTIONS
        )
        sessions = RoleSessions(client, start.certificate, system_clock)
        store = self._store = FunctionStore(client)
        packages = CodePackages(store, CodeFolder(is_in_memory=start.is_encrypted))
        catalog = FunctionCatalog(
            store, settings.functions, folder, start.endpoint, system_clock(), sessions, packages
        )
        destinations = Destinations(Sinks(settings.sinks, folder, client), folder)
        queue = InvocationQueue(store, catalog, destinations, system_clock, start.time_scale)
        mappings = Mappings(
            store,
            client,
            catalog,
            destinations,
            settings.triggers,
            (start.since, start.last_sequences),
            folder,
            system_clock,
        )
        # What schedules send goes out with the key of schedules as well.
        sent_by_schedules = Destinations(Sinks(settings.sinks, folder, scheduling), folder)
        targets = ScheduleTargets(scheduling, catalog, queue, sent_by_schedules, start.operations)
        scheduler = Scheduler(
            store, targets, sent_by_schedules, settings.schedules, system_clock, start.time_scale
        )
        self._service = LambdaService(
            client,
            store,
            packages,
            catalog,
            queue,
            mappings,
            destinations,
            scheduler,
            sessions,
            system_clock,
            start.may_upload,
        )
        self._api = LambdaApi(self._service)

    async def open(self) -> None:
        """Resume mappings, schedules and asynchronous invocations that were under way."""
        await self._store.prepare()
        self._service.background.start(self._service.catalog.reap())
        await self._service.queue.open()
        await self._service.mappings.open()
        await self._service.scheduler.open()

    async def answer(self, operation: str, body: bytes) -> HttpResponse:
        return await self._api.answer(operation, body)

    def stop_waiting(self) -> None:
        """No operation of these services waits."""

    async def close(self) -> None:
        service = self._service
        await service.background.close()
        await service.scheduler.close()
        await service.mappings.close()
        await service.queue.close()
        await service.catalog.close()
        await self._client.close()
        await self._scheduling.close()


def main(server_pid: str) -> None:
    stderr_outlet.install()
    companion_main.main("functions", server_pid, FunctionsCompanion)
