"""All event source mappings of a server; each one is a worker that reads its stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from partita.client import Client
from partita.client.consumer.consumer_worker import ConsumerWorker
from partita.errors import PartitaError
from partita.foundation.clock import Clock
from partita.foundation.server_settings import TriggerSettings
from partita_services.functions import function_arns
from partita_services.functions.destinations import Destinations
from partita_services.functions.function_arns import QualifiedFunction
from partita_services.functions.function_catalog import FunctionCatalog
from partita_services.functions.function_records import MappingRecord
from partita_services.functions.function_store import (
    MAPPINGS,
    FunctionStore,
    checkpoints_of,
)
from partita_services.functions.mappings.batch_delivery import BatchDelivery, DeliveryDependencies
from partita_services.functions.mappings.event_source_mapping import (
    EventSourceMapping,
    configuration_of,
    mapping_of,
    mapping_of_trigger,
)
from partita_services.functions.mappings.event_sources import SourceShard, source_of
from partita_services.functions.mappings.mapping_targets import (
    FunctionTarget,
    HttpEndpoint,
    MappingTarget,
    TriggerFunction,
)
from partita_services.functions.mappings.shard_checkpoints import ShardCheckpoint, ShardCheckpoints
from partita_services.functions.runtime.function_pool import FunctionPool
from partita_services.functions.runtime.function_process import FunctionSpec

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
REST_SECONDS = 5.0
"""The pause after an unforeseen failure, for example when a full disk keeps checkpoints from being
saved."""
NOTHING_YET = "No records processed"
ENABLED, DISABLED, DELETING = "Enabled", "Disabled", "Deleting"


class Mappings:
    def __init__(
        self,
        store: FunctionStore,
        client: Client,
        catalog: FunctionCatalog,
        destinations: Destinations,
        triggers: Iterable[TriggerSettings],
        since: tuple[float, dict[str, str]],
        folder: Path,
        clock: Clock,
    ) -> None:
        """`since` is the time at which triggers began, and the last sequence numbers of their
        streams then."""
        self._store = store
        self._client = client
        self._catalog = catalog
        self._since = since
        self._destinations = destinations
        self._triggers = tuple(triggers)
        self._folder = folder
        self._clock = clock
        self._starts = asyncio.Lock()
        self._runners: dict[str, MappingRunner] = {}

    async def open(self) -> None:
        for trigger in self._triggers:
            mapping = mapping_of_trigger(trigger, *self._since)
            role = "" if trigger.role is None else function_arns.role_arn(trigger.role)
            self._runners[mapping.uuid] = self._runner(mapping, self._target(trigger), role)
        for record in await self._store.all(MAPPINGS, MappingRecord):
            await self.settle(record)
        for runner in self._runners.values():
            runner.start()

    def check(self, configuration: dict[str, Any]) -> None:
        """Refuse a configuration that can never run, for example malformed filter patterns."""
        source_of(mapping_of(configuration), self._client, self._clock)

    async def begin(self, configuration: dict[str, Any]) -> None:
        """Save where a new mapping begins: records that come from now on are delivered."""
        await (await self._made(configuration)).checkpoints.begin()

    async def settle(self, record: MappingRecord) -> None:
        """End a transition: run the mapping as it is configured, stop it, or remove it."""
        await self._stop(record.uuid)
        if record.goal == DELETING:
            # The record goes last: after a kill, it is still there with its goal, and this is done
            # again.
            await self._store.erase_all(checkpoints_of(record.uuid))
            await self._store.erase(MAPPINGS, record.uuid)
            return
        if record.configuration["State"] != record.goal:
            record.configuration["State"] = record.goal
            await self._store.save(MAPPINGS, record.uuid, record)
        if record.goal == ENABLED:
            runner = self._runners[record.uuid] = await self._made(record.configuration)
            runner.start()

    async def _stop(self, uuid: str) -> None:
        runner = self._runners.pop(uuid, None)
        if runner is not None:
            await runner.stop()

    def of_settings(self) -> list[MappingRecord]:
        """The triggers as mappings. Only the settings can change them."""
        records = []
        for trigger in self._triggers:
            uuid = mapping_of_trigger(trigger, *self._since).uuid
            configuration = configuration_of(trigger, self._runners[uuid].target_arn)
            records.append(
                MappingRecord(
                    uuid=uuid,
                    configuration={**configuration, "LastModified": self._since[0]},
                )
            )
        return records

    def last_result(self, uuid: str) -> str:
        runner = self._runners.get(uuid)
        return NOTHING_YET if runner is None else runner.last_result

    async def close(self) -> None:
        await asyncio.gather(*(runner.stop() for runner in self._runners.values()))

    async def _made(self, configuration: dict[str, Any]) -> MappingRunner:
        """A runner for a mapping. It reads the stream with the rights of the function's role."""
        function = QualifiedFunction(*function_arns.qualified(configuration["FunctionArn"]))
        role = await self._catalog.role_of(function.name)
        return self._runner(
            mapping_of(configuration), FunctionTarget(self._catalog, function), role
        )

    def _runner(
        self, mapping: EventSourceMapping, target: MappingTarget, role: str = ""
    ) -> MappingRunner:
        """Without a role, the mapping has the server's own rights."""
        return MappingRunner(
            self._store,
            self._client.acting_for(role),
            mapping,
            target,
            self._destinations.acting_for(role),
            self._clock,
        )

    def _target(self, trigger: TriggerSettings) -> MappingTarget:
        if trigger.endpoint is not None:
            return HttpEndpoint(trigger.endpoint, trigger.timeout_seconds)
        assert trigger.function is not None
        if ":" not in trigger.function:
            return FunctionTarget(self._catalog, function_arns.qualified(trigger.function))
        arn, handler = function_arns.function_arn(trigger.name), trigger.function

        def make(environment: dict[str, str]) -> FunctionPool:
            function = FunctionSpec(
                *(trigger.name, handler, self._folder, trigger.timeout_seconds, arn, environment)
            )
            return FunctionPool(function, self._starts)

        return TriggerFunction(arn, self._catalog, trigger.role, make)


class MappingRunner:
    """Runs one mapping."""

    def __init__(
        self,
        store: FunctionStore,
        client: Client,
        mapping: EventSourceMapping,
        target: MappingTarget,
        destinations: Destinations,
        clock: Clock,
    ) -> None:
        self.last_result = NOTHING_YET
        self._target = target
        self.target_arn = target.arn
        self._name = mapping.name
        self._source = source_of(mapping, client, clock)
        self.checkpoints = ShardCheckpoints(store, mapping, self._source)
        self._dependencies = DeliveryDependencies(
            mapping, self._source, target, destinations, clock, self._note_result
        )
        self._running: asyncio.Task[None] | None = None

    def _note_result(self, result: str) -> None:
        self.last_result = result

    def start(self) -> None:
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        worker = ConsumerWorker(
            self._name,
            self._source,
            self.checkpoints,
            self._consume,
            look_seconds=LOOK_SECONDS,
            rest_seconds=REST_SECONDS,
        )
        try:
            await worker.run()
        except PartitaError:
            logger.exception("The %s has ended.", self._name)

    async def _consume(self, shard: SourceShard, checkpoint: ShardCheckpoint) -> None:
        delivery = BatchDelivery(
            self._dependencies, shard, partial(self.checkpoints.save, checkpoint)
        )
        await delivery.consume(checkpoint.position, checkpoint.window)

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._target.close()
