"""The companion of a server that runs functions and whatever calls them, so that they block
nothing.

The server starts it when it is first needed, and passes it the requests of the Lambda and
EventBridge Scheduler APIs.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from partita.clock import system_clock
from partita.server import companion_process, frames
from partita.server.http.messages import HttpResponse
from partita_services.functions.api.registry import Api
from partita_services.functions.api.service import Service
from partita_services.functions.catalog import Catalog
from partita_services.functions.destinations import Destinations
from partita_services.functions.folders import OwnFolder
from partita_services.functions.mappings.mappings import Mappings
from partita_services.functions.packages import Packages
from partita_services.functions.queue import Queue
from partita_services.functions.running import outlet
from partita_services.functions.schedules.scheduler import Scheduler
from partita_services.functions.schedules.targets import Targets
from partita_services.functions.sessions import Sessions
from partita_services.functions.sinks import Sinks
from partita_services.functions.storage.store import Store

CONNECTIONS = 64


class Functions:
    def __init__(self, start: frames.Start) -> None:
        settings, folder = start.settings, Path(start.folder)
        client = self._client = companion_process.client_of(start, CONNECTIONS)
        scheduling = self._scheduling = companion_process.client_of(
            replace(start, credentials=start.scheduler_credentials), CONNECTIONS
        )
        sessions = Sessions(client, start.certificate, system_clock)
        store = self._store = Store(client)
        packages = Packages(store, OwnFolder(is_in_memory=start.is_encrypted))
        catalog = Catalog(
            store, settings.functions, folder, start.endpoint, system_clock(), sessions, packages
        )
        destinations = Destinations(Sinks(settings.sinks, folder, client), folder)
        queue = Queue(store, catalog, destinations, system_clock, start.time_scale)
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
        sent_by_schedules = Destinations(Sinks(settings.sinks, folder, scheduling), folder)
        targets = Targets(scheduling, catalog, queue, sent_by_schedules, start.operations)
        scheduler = Scheduler(
            store, targets, sent_by_schedules, settings.schedules, system_clock, start.time_scale
        )
        self._service = Service(
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
        self._api = Api(self._service)
        self._reaping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Resume mappings, schedules and asynchronous invocations that were under way."""
        await self._store.prepare()
        self._reaping = asyncio.create_task(self._service.catalog.reap())
        await self._service.queue.open()
        await self._service.mappings.open()
        await self._service.scheduler.open()

    async def answer(self, operation: str, body: bytes) -> HttpResponse:
        return await self._api.answer(operation, body)

    def stop_waiting(self) -> None:
        """No operation of these services waits."""

    async def close(self) -> None:
        service = self._service
        tasks = [*service.under_way, *([self._reaping] if self._reaping else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.scheduler.close()
        await service.mappings.close()
        await service.queue.close()
        await service.catalog.close()
        await self._client.close()
        await self._scheduling.close()


def main(server_pid: str) -> None:
    outlet.install()
    companion_process.main("functions", server_pid, Functions)
