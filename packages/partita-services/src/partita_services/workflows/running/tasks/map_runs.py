"""Map runs: the executions of a distributed Map state, over the items of its input, of an object or
of a table.

The names of the executions follow from the run. So a run that begins again after a restart finds
the executions that it has started. Express executions are not stored, and are run again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from partita.client import Client, ClientError
from partita.foundation.clock import system_clock
from partita_services.workflows.evaluation.evaluation_messages import (
    MapRunPlan,
    PlanMapRun,
    encode_json,
)
from partita_services.workflows.evaluation.evaluation_pool import EvaluationPool
from partita_services.workflows.language import StartTask, TaskStarted, TaskSucceeded
from partita_services.workflows.language.json_values import Json, json_text, parse_json
from partita_services.workflows.language.language_errors import (
    ITEM_READER_FAILED,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.states.item_files import items_limit
from partita_services.workflows.language.states.map_items import FailureThreshold, too_many_failures
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import (
    EXPRESS,
    FAILED,
    RUNNING,
    SUCCEEDED,
    ExecutionRecord,
    MachineRecord,
    MapRun,
    MapRunCounts,
)
from partita_services.workflows.running.storage.workflow_store import WorkflowStore
from partita_services.workflows.running.tasks.services import s3_objects
from partita_services.workflows.running.tasks.services.s3_objects import S3Buckets

CONCURRENCY_MAX = 100
"""The maximum of one map run, whatever its MaxConcurrency."""
CHANGEABLE = ("concurrency", "tolerated_count", "tolerated_percentage")
"""The limits that UpdateMapRun may change."""
RESULT_WRITER_FAILED = "States.ResultWriterFailed"


class EndedChild(NamedTuple):
    """An ended execution of a map run."""

    number: int
    execution: ExecutionRecord

    @property
    def is_well(self) -> bool:
        return self.execution.status == SUCCEEDED


def _count(run: MapRun, size: int, name: str, by: int) -> None:
    setattr(run.executions, name, getattr(run.executions, name) + by)
    setattr(run.items, name, getattr(run.items, name) + by * size)


class ConcurrencyGate:
    """Lets at most as many executions run as the map run allows at the moment."""

    def __init__(self, run: MapRun) -> None:
        self._run = run
        self._taken = 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(self._is_free)
            self._taken += 1

    async def __aexit__(self, *failure: object) -> None:
        self._taken -= 1
        async with self._changed:
            self._changed.notify()

    async def look_again(self) -> None:
        """Called when the limit has changed."""
        async with self._changed:
            self._changed.notify_all()

    def _is_free(self) -> bool:
        return self._taken < min(self._run.concurrency or CONCURRENCY_MAX, CONCURRENCY_MAX)


class ChildLauncher:
    """Starts the executions of map runs; implemented by the engine."""

    def __init__(
        self,
        definition_of: Callable[[str], Any],
        run: Callable[..., Any],
    ) -> None:
        self.definition_of = definition_of
        self.run = run


class MapRuns:
    def __init__(
        self, client: Client, buckets: S3Buckets, store: WorkflowStore, pool: EvaluationPool
    ) -> None:
        self._client = client
        self._buckets = buckets
        self._store = store
        self._pool = pool
        self.live: dict[str, MapRun] = {}
        """The map runs under way, by ARN."""
        self._turns: dict[str, ConcurrencyGate] = {}
        self.children: ChildLauncher | None = None

    async def run(
        self, task: StartTask, execution_arn: str, role: str, report: Callable[..., None]
    ) -> None:
        """Run a map run and report its outcome. Raises StateError when it fails."""
        assert self.children is not None
        parent, definition = self.children.definition_of(execution_arn)
        # Before anything runs: results that cannot be written would make all the work useless.
        await self._check_writer(task, role)
        try:
            items, content = await self._items(task, role)
        except StateError as error:
            raise StateError(ITEM_READER_FAILED, error.cause) from error
        job = PlanMapRun(definition, encode_json(task), items, content)
        plan = await self._pool.run(job, definition.digest, MapRunPlan)
        child = MachineRecord(
            name=f"{parent.machine}/{plan.label}",
            type=plan.machine_type,
            definition=plan.definition,
            role_arn=parent.role_arn,
            created_at=task.scheduled_at,
            updated_at=task.scheduled_at,
        )
        if not task.is_started:
            report(TaskStarted(task.id))
        run = self.live[task.input["mapRunArn"]] = MapRun(
            arn=task.input["mapRunArn"],
            execution_arn=execution_arn,
            machine=parent.machine,
            started_at=task.scheduled_at,
            concurrency=task.input["concurrency"] or 0,
            tolerated_count=plan.tolerated_count,
            tolerated_percentage=plan.tolerated_percentage,
            executions=MapRunCounts(total=len(plan.inputs)),
            items=MapRunCounts(total=sum(plan.sizes)),
        )
        await self._keep_changes(run)
        self._turns[run.arn] = ConcurrencyGate(run)
        await self._note(run, parent)
        try:
            ended = await self._run_all(task, child, run, plan)
            result = self._result(task, ended)
            run.status = SUCCEEDED
        except StateError:
            run.status = FAILED
            raise
        finally:
            # When the server stops, the run stays RUNNING, and begins again after the restart.
            del self.live[run.arn], self._turns[run.arn]
            if run.status != RUNNING:
                run.stopped_at = system_clock()
                await self._note(run, parent)
        report(TaskSucceeded(task.id, result))

    async def update(self, run: MapRun, changes: dict[str, Any]) -> None:
        """Change the limits of a map run that is under way, or will be after a restart."""
        run = self.live.get(run.arn, run)
        for name, value in changes.items():
            setattr(run, name, value)
        await self._store.put_map_run(run)
        if run.arn in self._turns:
            await self._turns[run.arn].look_again()

    async def _keep_changes(self, run: MapRun) -> None:
        """After a restart, keep the limits that UpdateMapRun has set before."""
        before = await self._store.map_run(run.execution_arn, run.arn)
        if before is not None:
            for name in CHANGEABLE:
                setattr(run, name, getattr(before, name))

    async def _note(self, run: MapRun, parent: ExecutionRecord) -> None:
        """Store the map run, unless its execution is an express one, which is not stored either."""
        if parent.type != EXPRESS:
            await self._store.put_map_run(run)

    async def _run_all(
        self,
        task: StartTask,
        machine: MachineRecord,
        map_run: MapRun,
        plan: MapRunPlan,
    ) -> list[EndedChild]:
        inputs, sizes = plan.inputs, plan.sizes
        turns = self._turns[map_run.arn]
        ended: list[EndedChild] = []

        async def run(number: int) -> None:
            async with turns:
                # The same name after a restart, so that the execution is found and not started
                # twice.
                name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{task.input['mapRunArn']} {number}"))
                assert self.children is not None
                _count(map_run, sizes[number], "running", 1)
                execution = await self.children.run(
                    machine, name, inputs[number], is_kept=machine.type != EXPRESS
                )
                ended.append(EndedChild(number, execution))
                is_well = execution.status == SUCCEEDED
                _count(map_run, sizes[number], "running", -1)
                _count(map_run, sizes[number], "succeeded" if is_well else "failed", 1)
                if map_run.executions.failed > _tolerated(map_run):
                    raise too_many_failures()

        running = [asyncio.create_task(run(number)) for number in range(len(inputs))]
        try:
            await asyncio.gather(*running)
        except StateError:
            if task.input["writer"] is not None:
                self._result(task, ended)
            raise
        finally:
            for execution in running:
                execution.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return sorted(ended, key=lambda child: child.number)

    async def _check_writer(self, task: StartTask, role: str) -> None:
        writer = task.input["writer"]
        if writer is not None and "Resource" in writer:
            place = writer["Parameters"]
            prefix = str(place.get("Prefix", "")).strip("/")
            resource = f"{s3_objects.BUCKET_ARN}{place.get('Bucket', '')}/{prefix}/*"
            try:
                await self._check(role, "s3:PutObject", resource.replace("//", "/"))
            except StateError as error:
                raise StateError(RESULT_WRITER_FAILED, error.cause) from error

    async def _check(self, role: str, action: str, resource: str) -> None:
        try:
            await self._client.check_right(role, action, resource)
        except ClientError as error:
            raise StateError(RUNTIME, error.message) from error

    # Items

    async def _items(self, task: StartTask, role: str) -> tuple[bytes | None, bytes | None]:
        """The items as JSON, or the content of the object that they are in."""
        reader = task.input["reader"]
        if reader is None:
            return encode_json(task.input["items"]), None
        operation = reader["Resource"].rpartition(":")[2]
        parameters = reader["Parameters"]
        if operation in s3_objects.OPERATIONS:
            for action, resource in s3_objects.needs(operation, parameters):
                await self._check(role, action, resource)
        if operation == "getObject":
            bucket, key = parameters.get("Bucket", ""), parameters.get("Key", "")
            return None, self._buckets.read(bucket, key)
        if operation == "listObjectsV2":
            return encode_json(self._listed(parameters)), None
        limit = items_limit(reader.get("ReaderConfig", {}))
        return encode_json(await self._table_items(operation, parameters, limit, role)), None

    def _listed(self, parameters: dict[str, Any]) -> list[Json]:
        bucket = parameters.get("Bucket", "")
        keys = self._buckets.keys(bucket, parameters.get("Prefix", ""))
        return [self._buckets.described(bucket, key) for key in keys]

    async def _table_items(
        self, operation: str, parameters: dict[str, Any], limit: int | None, role: str
    ) -> list[Json]:
        items: list[Json] = []
        name = operation[0].upper() + operation[1:]
        while limit is None or len(items) < limit:
            try:
                page = await self._client.call_for(role, "dynamodb", name, parameters)
            except ClientError as error:
                raise StateError(RUNTIME, str(error)) from error
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            parameters = {**parameters, "ExclusiveStartKey": page["LastEvaluatedKey"]}
        return items

    # Results

    def _result(self, task: StartTask, ended: list[EndedChild]) -> Json:
        writer = task.input["writer"]
        outputs = [parse_json(child.execution.output or "null") for child in ended if child.is_well]
        if writer is None:
            return outputs
        config = writer.get("WriterConfig", {})
        transformation = config.get("Transformation", "NONE" if "Resource" in writer else "COMPACT")
        succeeded = [child for child in ended if child.is_well]
        results: list[Json] = [_described(child) for child in succeeded]
        if transformation != "NONE":
            results = outputs
        if transformation == "FLATTEN":
            results = [
                item
                for output in outputs
                for item in (output if isinstance(output, list) else [output])
            ]
        if "Resource" not in writer:
            return results
        try:
            return self._written(task, writer["Parameters"], config, results, ended)
        except StateError as error:
            raise StateError(RESULT_WRITER_FAILED, error.cause) from error

    def _written(
        self,
        task: StartTask,
        place: dict[str, Any],
        config: dict[str, Any],
        results: list[Json],
        ended: list[EndedChild],
    ) -> Json:
        """Write the results and a manifest that names the files. (Step Functions guide,
        "ResultWriter")"""
        arn = task.input["mapRunArn"]
        bucket = place.get("Bucket", "")
        run = str(uuid.uuid5(uuid.NAMESPACE_URL, arn))
        prefix = f"{place.get('Prefix', '').strip('/')}/{run}".lstrip("/")
        suffix = "jsonl" if config.get("OutputType") == "JSONL" else "json"
        groups = {
            "SUCCEEDED": results,
            "FAILED": [_described(child) for child in ended if not child.is_well],
            "PENDING": [],
        }
        files: dict[str, list[Json]] = {}
        for status, group in groups.items():
            files[status] = []
            if not group:
                continue
            key = f"{prefix}/{status}_0.{suffix}"
            text = "\n".join(map(json_text, group)) if suffix == "jsonl" else json_text(group)
            self._buckets.write(bucket, key, text.encode())
            files[status].append({"Key": key, "Size": len(text.encode())})
        manifest = {"DestinationBucket": bucket, "MapRunArn": arn, "ResultFiles": files}
        key = f"{prefix}/manifest.json"
        self._buckets.write(bucket, key, json_text(manifest).encode())
        return {"MapRunArn": arn, "ResultWriterDetails": {"Bucket": bucket, "Key": key}}


def _tolerated(run: MapRun) -> int:
    threshold = FailureThreshold(run.tolerated_count, run.tolerated_percentage)
    return threshold.of(run.executions.total) or 0


def _described(child: EndedChild) -> dict[str, Json]:
    execution = child.execution
    described: dict[str, Json] = {
        "ExecutionArn": execution.arn,
        "Input": execution.input,
        "InputDetails": {"Included": True},
        "Name": execution.name,
        "Status": execution.status,
        "StateMachineArn": state_machine_arns.machine_arn(execution.machine),
    }
    for name, value in (
        ("Output", execution.output),
        ("Error", execution.error),
        ("Cause", execution.cause),
    ):
        if value is not None:
            described[name] = value
    return described
