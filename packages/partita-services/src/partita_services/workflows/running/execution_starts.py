"""Starting executions of stored machines, and waiting for them to end."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any, NamedTuple

import msgspec

from partita.errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    StateMachineDeleting,
    StateMachineDoesNotExist,
)
from partita.foundation.clock import Clock
from partita_services.record_table import RecordConflict
from partita_services.workflows.evaluation.evaluation_messages import DefinitionText
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.execution_input import check_input
from partita_services.workflows.running.live_execution import LiveExecution
from partita_services.workflows.running.state_machine_arns import ExecutionName
from partita_services.workflows.running.storage.workflow_records import (
    DELETING,
    EXPRESS,
    RUNNING,
    ExecutionRecord,
    MachineAlias,
    MachineRecord,
)
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.workflow_engine import WorkflowEngine


class ChosenMachine(NamedTuple):
    """The machine that an ARN of a machine, version or alias stands for."""

    machine: MachineRecord
    version: int | None = None
    alias: str | None = None
    description: str | None = None


class ExecutionStarts:
    def __init__(self, store: WorkflowStore, engine: WorkflowEngine, clock: Clock) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock

    async def machine(self, arn: str) -> MachineRecord:
        machine = await self._store.machine(state_machine_arns.machine_name(arn))
        if machine is None:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
        return machine

    async def chosen(self, arn: str) -> ChosenMachine:
        """The machine of an ARN, with the definition of the version that the ARN names."""
        name, qualifier = state_machine_arns.qualified(arn)
        machine = await self._store.machine(name)
        if machine is not None and qualifier is None:
            return ChosenMachine(machine)
        alias = None
        if qualifier is not None and not qualifier.isdecimal():
            alias = await self._store.alias(name, qualifier)
            qualifier = None if alias is None else str(_routed(alias))
        version = None
        if qualifier is not None:
            version = await self._store.version(name, int(qualifier))
        if machine is None or version is None:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
        return ChosenMachine(
            msgspec.structs.replace(
                machine,
                definition=await self._store.definition(version.digest),
                role_arn=version.role_arn,
                created_at=version.created_at,
                updated_at=version.created_at,
                revision_id=version.revision_id,
                logging=version.logging,
                tracing=version.tracing,
            ),
            version.number,
            None if alias is None else alias.name,
            version.description,
        )

    async def start(
        self,
        machine_arn: str,
        name: str | None = None,
        input: str = "{}",
        trace_header: str | None = None,
        *,
        since: float | None = None,
    ) -> dict[str, Any]:
        """The answer to StartExecution.

        An execution with the same name that began after `since` was started by the same caller,
        before a restart.
        """
        chosen = await self.chosen(machine_arn)
        execution = self._new(chosen, name, input, trace_header)
        try:
            await self._engine.start(execution, chosen.machine.definition)
        except RecordConflict:
            execution = await self._same(execution, since)
        return {"executionArn": execution.arn, "startDate": execution.started_at}

    async def run(
        self, chosen: ChosenMachine, name: str | None, input: str, trace: str | None
    ) -> LiveExecution:
        """Start a synchronous execution, which is not stored."""
        execution = self._new(chosen, name, input, trace)
        return await self._engine.start(execution, chosen.machine.definition, is_kept=False)

    def running(self, arn: str) -> tuple[ExecutionRecord, DefinitionText]:
        """An execution under way, and its definition."""
        live = self._engine.live(arn)
        assert live is not None
        return live.execution, live.definition

    async def run_child(
        self, machine: MachineRecord, name: str, input: str, *, is_kept: bool
    ) -> ExecutionRecord:
        """The ended execution of a map run. One that is stored is found again by its name after a
        restart."""
        execution = self._new(ChosenMachine(machine), name, input, None)
        if is_kept:
            await self._store.put_definition(machine)
        try:
            live = await self._engine.start(execution, machine.definition, is_kept=is_kept)
        except RecordConflict:
            return await self.finished(execution.arn)
        try:
            return await asyncio.shield(live.finished)
        except asyncio.CancelledError:
            # The map run was cancelled, and nobody else waits for its executions.
            self._engine.abort(live)
            raise

    async def finished(self, arn: str) -> ExecutionRecord:
        live = self._engine.live(arn)
        if live is not None:
            return await asyncio.shield(live.finished)
        execution = await self._store.execution(arn)
        if execution is None or execution.status == RUNNING:
            raise ExecutionDoesNotExist(f"Execution Does Not Exist: '{arn}'")
        return execution

    def _new(
        self, chosen: ChosenMachine, name: str | None, input: str, trace: str | None
    ) -> ExecutionRecord:
        machine = chosen.machine
        if machine.status == DELETING:
            raise StateMachineDeleting(
                f"State Machine Deleting: '{state_machine_arns.machine_arn(machine.name)}'"
            )
        check_input(input)
        if name is not None:
            state_machine_arns.check_name(name)
        named = ExecutionName(machine.name, name or str(uuid.uuid4()))
        is_express = machine.type == EXPRESS
        return ExecutionRecord(
            arn=state_machine_arns.express_arn(named, str(uuid.uuid4()))
            if is_express
            else state_machine_arns.execution_arn(named),
            name=named.name,
            machine=machine.name,
            version=chosen.version,
            alias=chosen.alias,
            type=machine.type,
            digest=machine.digest,
            role_arn=machine.role_arn,
            revision_id=machine.revision_id,
            machine_updated_at=machine.updated_at,
            started_at=self._clock(),
            input=input,
            trace_header=trace,
        )

    async def _same(self, execution: ExecutionRecord, since: float | None) -> ExecutionRecord:
        """The existing execution of that name, if starting it again is idempotent."""
        existing = await self._store.execution(execution.arn)
        if (
            existing is None
            or existing.input != execution.input
            or not (
                existing.status == RUNNING or (since is not None and existing.started_at >= since)
            )
        ):
            raise ExecutionAlreadyExists(f"Execution Already Exists: '{execution.arn}'")
        return existing


def _routed(alias: MachineAlias) -> int:
    """A version of an alias, chosen by the weights."""
    [number] = random.choices(list(alias.routes), list(alias.routes.values()))
    return number
