"""The companion of a server that runs workflows, a separate process, so that they block nothing.

The server starts it when it is first needed, and passes it the requests of the Step Functions API.
Its state is in a table of that server, which it reaches over the wire: it may be killed at any
moment, and the next one continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from partita.clock import system_clock
from partita.server import companion_process, frames
from partita.server.http.messages import HttpResponse
from partita.server.responses import JSON_1_0
from partita_services.functions.api.registry import OPERATIONS as REST
from partita_services.functions.sinks import Sinks
from partita_services.workflows.api.machines import remove_later
from partita_services.workflows.api.registry import OPERATIONS, Api
from partita_services.workflows.api.service import Service
from partita_services.workflows.evaluation.pool import Pool
from partita_services.workflows.running.engine import Engine
from partita_services.workflows.running.executions import Executions
from partita_services.workflows.running.storage.items import MACHINES, TABLE
from partita_services.workflows.running.storage.records import DELETING, Machine
from partita_services.workflows.running.storage.store import Store
from partita_services.workflows.running.tasks.activities import Activities
from partita_services.workflows.running.tasks.buckets import Buckets
from partita_services.workflows.running.tasks.delayed_messages import DelayedMessages
from partita_services.workflows.running.tasks.functions import Functions, RemoteFunctions
from partita_services.workflows.running.tasks.integrations import STATES_NAMES, Abilities
from partita_services.workflows.running.tasks.jobs import Jobs
from partita_services.workflows.running.tasks.map_runs import Children
from partita_services.workflows.running.tasks.runner import TaskRunner
from partita_services.workflows.running.trials import Trials

if TYPE_CHECKING:
    from partita_services.workflows.running.tasks.sealed_objects import SealedObjects

CONNECTIONS = 32
MACHINES_PAGE = 1000


class Workflows:
    """The workflow engine with its API. Programs can also run it in their own process."""

    def __init__(
        self, start: frames.Start, table: str = TABLE, functions: Functions | None = None
    ) -> None:
        """Without `functions`, tasks call the Lambda API."""
        self.client = companion_process.client_of(start, CONNECTIONS)
        self._functions = functions or RemoteFunctions(self.client)
        activities = Activities()
        store = Store(self.client, table)
        folder, settings = Path(start.folder), start.settings
        stand_ins = {stand_in.resource: stand_in.function for stand_in in settings.stand_ins}
        sinks = Sinks(settings.sinks, folder, self.client)
        self._delayed = DelayedMessages(store, sinks, system_clock, start.time_scale)
        abilities = Abilities(
            frozenset(
                (
                    *start.operations,
                    *(f"{STATES_NAMES}{name}" for name in OPERATIONS),
                    *(f"{service}.{name}" for service, table in REST.items() for name in table),
                )
            )
            if start.operations
            else None,
            start.may_upload,
            stand_ins,
        )
        pool = Pool(abilities)
        tasks = TaskRunner(
            self.client,
            store,
            self._functions,
            activities,
            sinks,
            Buckets(settings.buckets, folder, _sealed_objects(start.bucket_key)),
            Jobs(settings.jobs),
            stand_ins,
            self._delayed,
            pool,
        )
        engine = Engine(store, tasks, pool, system_clock, start.time_scale)
        executions = tasks.executions = Executions(store, engine, system_clock)
        tasks.map_runs.children = Children(executions.running, executions.run_child)
        trials = Trials(tasks, system_clock, start.time_scale)
        self.service = Service(store, engine, pool, executions, activities, trials, system_clock)
        self.api = Api(self.service)

    async def open(self) -> None:
        """Resume executions, delayed messages and deletions that were under way."""
        service = self.service
        await service.store.prepare()
        await service.engine.recover()
        await self._delayed.recover()
        after = None
        while True:
            machines, after = await service.store.page(MACHINES, Machine, MACHINES_PAGE, after)
            for machine in machines:
                if machine.status == DELETING:
                    remove_later(service, machine.name)
            if after is None:
                return

    async def close(self) -> None:
        await self.service.engine.close()
        self._delayed.close()
        await self._functions.close()
        await self.client.close()

    async def answer(self, operation: str, body: bytes) -> HttpResponse:
        status, content = await self.api.answer(operation, body)
        return HttpResponse(status, content, JSON_1_0)

    def stop_waiting(self) -> None:
        self.service.activities.close()


def _sealed_objects(bucket_key: str) -> SealedObjects | None:
    if not bucket_key:
        return None
    from partita_services.workflows.running.tasks.sealed_objects import SealedObjects

    return SealedObjects(bucket_key)


def main(server_pid: str) -> None:
    companion_process.main("workflows", server_pid, Workflows)
