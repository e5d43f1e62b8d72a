"""Starting executions of stored machines, and waiting for them to end."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any, NamedTuple

import msgspec

from partita.clock import Clock
from partita.errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    StateMachineDeleting,
    StateMachineDoesNotExist,
)
from partita_services.workflows.evaluation.messages import Definition
from partita_services.workflows.running import arns
from partita_services.workflows.running.arns import ExecutionName
from partita_services.workflows.running.engine import Engine
from partita_services.workflows.running.execution_input import check_input
from partita_services.workflows.running.live_execution import LiveExecution
from partita_services.workflows.running.storage.commits import Conflict
from partita_services.workflows.running.storage.records import (
    DELETING,
    EXPRESS,
    RUNNING,
    Alias,
    Execution,
    Machine,
)
from partita_services.workflows.running.storage.store import Store


class Chosen(NamedTuple):
    """The machine that an ARN of a machine, version or alias stands for."""

    machine: Machine
    version: int | None = None
    alias: str | None = None
    description: str | None = None


class Executions:
    def __init__(self, store: Store, engine: Engine, clock: Clock) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock

    async def machine(self, arn: str) -> Machine:
        machine = await self._store.machine(arns.machine_name(arn))
        if machine is None:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
        return machine

    async def chosen(self, arn: str) -> Chosen:
        """The machine of an ARN, with the definition of the version that the ARN names."""
        name, qualifier = arns.qualified(arn)
        machine = await self._store.machine(name)
        if machine is not None and qualifier is None:
            return Chosen(machine)
        alias = None
        if qualifier is not None and not qualifier.isdecimal():
            alias = await self._store.alias(name, qualifier)
            qualifier = None if alias is None else str(_routed(alias))
        version = None
        if qualifier is not None:
            version = await self._store.version(name, int(qualifier))
        if machine is None or version is None:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
        return Chosen(
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
        except Conflict:
            execution = await self._same(execution, since)
        return {"executionArn": execution.arn, "startDate": execution.started_at}

    async def run(
        self, chosen: Chosen, name: str | None, input: str, trace: str | None
    ) -> LiveExecution:
        """Start a synchronous execution, which is not stored."""
        execution = self._new(chosen, name, input, trace)
        return await self._engine.start(execution, chosen.machine.definition, is_kept=False)

    def running(self, arn: str) -> tuple[Execution, Definition]:
        """An execution under way, and its definition."""
        live = self._engine.live(arn)
        assert live is not None
        return live.execution, live.definition

    async def run_child(
        self, machine: Machine, name: str, input: str, *, is_kept: bool
    ) -> Execution:
        """The ended execution of a map run. One that is stored is found again by its name after a
        restart."""
        execution = self._new(Chosen(machine), name, input, None)
        if is_kept:
            await self._store.put_definition(machine)
        try:
            live = await self._engine.start(execution, machine.definition, is_kept=is_kept)
        except Conflict:
            return await self.finished(execution.arn)
        try:
            return await asyncio.shield(live.finished)
        except asyncio.CancelledError:
            self._engine.abort(live)
            raise

    async def finished(self, arn: str) -> Execution:
        live = self._engine.live(arn)
        if live is not None:
            return await asyncio.shield(live.finished)
        execution = await self._store.execution(arn)
        if execution is None or execution.status == RUNNING:
            raise ExecutionDoesNotExist(f"Execution Does Not Exist: '{arn}'")
        return execution

    def _new(self, chosen: Chosen, name: str | None, input: str, trace: str | None) -> Execution:
        machine = chosen.machine
        if machine.status == DELETING:
            raise StateMachineDeleting(
                f"State Machine Deleting: '{arns.machine_arn(machine.name)}'"
            )
        check_input(input)
        if name is not None:
            arns.check_name(name)
        named = ExecutionName(machine.name, name or str(uuid.uuid4()))
        is_express = machine.type == EXPRESS
        return Execution(
            arn=arns.express_arn(named, str(uuid.uuid4()))
            if is_express
            else arns.execution_arn(named),
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

    async def _same(self, execution: Execution, since: float | None) -> Execution:
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


def _routed(alias: Alias) -> int:
    """A version of an alias, chosen by the weights."""
    [number] = random.choices(list(alias.routes), list(alias.routes.values()))
    return number
