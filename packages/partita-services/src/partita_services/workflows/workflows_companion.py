"""The companion of a server that runs workflows, a separate process, so that they block nothing.

The server starts it when it is first needed, and passes it the requests of the Step Functions API.
Its state is in a table of that server, which it reaches over the wire: it may be killed at any
moment, and the next one continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from partita.foundation.clock import system_clock
from partita.server.companions import companion_frames, companion_main
from partita.server.http.http_messages import HttpResponse
from partita.server.protocol.aws_responses import JSON_1_0
from partita_services.functions.api.lambda_registry import OPERATIONS as REST
from partita_services.functions.message_sinks import Sinks
from partita_services.workflows.api.machine_operations import remove_later
from partita_services.workflows.api.step_functions_registry import OPERATIONS, StepFunctionsApi
from partita_services.workflows.api.step_functions_service import StepFunctionsService
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.running.execution_starts import ExecutionStarts
from partita_services.workflows.running.state_test_runner import StateTestRunner
from partita_services.workflows.running.storage.workflow_records import DELETING, MachineRecord
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.storage.workflow_table import MACHINES
from partita_services.workflows.running.tasks.activities import Activities
from partita_services.workflows.running.tasks.function_tasks import TaskFunctions
from partita_services.workflows.running.tasks.integrations import STATES_NAMES, ServerAbilities
from partita_services.workflows.running.tasks.map_runs import ChildLauncher
from partita_services.workflows.running.tasks.services.delayed_messages import DelayedMessages
from partita_services.workflows.running.tasks.services.job_tasks import JobTasks
from partita_services.workflows.running.tasks.services.s3_objects import S3Buckets
from partita_services.workflows.running.tasks.task_runner import TaskRunner
from partita_services.workflows.running.workflow_engine import WorkflowEngine

if TYPE_CHECKING:
    from partita_services.workflows.running.tasks.services.sealed_objects import SealedObjects

CONNECTIONS = 32
MACHINES_PAGE = 1000


class WorkflowsCompanion:
    """Puts the parts of the workflow engine together, and answers the server."""

    def __init__(self, start: companion_frames.CompanionStart) -> None:
        client = self._client = companion_main.client_of(start, CONNECTIONS)
        activities = Activities()
        store = WorkflowStore(client)
        folder, settings = Path(start.folder), start.settings
        stand_ins = {stand_in.resource: stand_in.function for stand_in in settings.stand_ins}
        sinks = Sinks(settings.sinks, folder, client)
        self._delayed = DelayedMessages(store, sinks, system_clock, start.time_scale)
        abilities = ServerAbilities(
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
        pool = EvaluationPool(abilities)
        tasks = TaskRunner(
            client,
            store,
            TaskFunctions(client),
            activities,
            sinks,
            S3Buckets(settings.buckets, folder, _sealed_objects(start.bucket_key)),
            JobTasks(settings.jobs),
            stand_ins,
            self._delayed,
            pool,
        )
        engine = WorkflowEngine(store, tasks, pool, system_clock, start.time_scale)
        executions = tasks.executions = ExecutionStarts(store, engine, system_clock)
        tasks.map_runs.children = ChildLauncher(executions.running, executions.run_child)
        trials = StateTestRunner(tasks, system_clock, start.time_scale)
        self.service = StepFunctionsService(
            store, engine, pool, executions, activities, trials, system_clock
        )
        self.api = StepFunctionsApi(self.service)

    async def open(self) -> None:
        """Resume executions, delayed messages and deletions that were under way."""
        service = self.service
        await service.store.prepare()
        await service.engine.recover()
        await self._delayed.recover()
        after = None
        while True:
            machines, after = await service.store.page(
                MACHINES, MachineRecord, MACHINES_PAGE, after
            )
            for machine in machines:
                if machine.status == DELETING:
                    remove_later(service, machine.name)
            if after is None:
                return

    async def close(self) -> None:
        await self.service.engine.close()
        self._delayed.close()
        await self._client.close()

    async def answer(self, operation: str, body: bytes) -> HttpResponse:
        status, content = await self.api.answer(operation, body)
        return HttpResponse(status, content, JSON_1_0)

    def stop_waiting(self) -> None:
        self.service.activities.close()


def _sealed_objects(bucket_key: str) -> SealedObjects | None:
    if not bucket_key:
        return None
    from partita_services.workflows.running.tasks.services.sealed_objects import SealedObjects

    return SealedObjects(bucket_key)


def main(server_pid: str) -> None:
    companion_main.main("workflows", server_pid, WorkflowsCompanion)
