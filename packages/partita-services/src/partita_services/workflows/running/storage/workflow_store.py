"""The store of machines, their versions and aliases, activities, executions and histories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from partita.client import Client
from partita_services.record_table import (
    ABSENT,
    Action,
    Item,
    RecordTable,
    aliases_of,
    key,
    query,
    rest_keys,
    version_sort,
    versions_of,
)
from partita_services.workflows.evaluation.evaluation_messages import ExecutionStep
from partita_services.workflows.running.storage import workflow_table
from partita_services.workflows.running.storage.group_commits import GroupCommits
from partita_services.workflows.running.storage.workflow_records import (
    EXPRESS,
    RUNNING,
    SUCCEEDED,
    ActivityRecord,
    DelayedMessage,
    ExecutionRecord,
    MachineAlias,
    MachineRecord,
    MachineVersion,
    MapRun,
)

Event = dict[str, Any]
_encode = msgspec.json.encode


class WorkflowStore(RecordTable):
    def __init__(self, client: Client, table: str = workflow_table.TABLE) -> None:
        super().__init__(client, workflow_table.table_definition(table))
        self._commits = GroupCommits(self._transact)
        self._definitions: set[str] = set()
        """The digests of the definitions that map runs have stored."""
        self._rests: dict[str, Sequence[Item]] = {}
        """The keys of the further items of long states, by execution."""

    async def _transact(self, actions: list[Action]) -> None:
        await self.send("TransactWriteItems", {"TransactItems": actions})

    # Machines and activities

    async def machine(self, name: str) -> MachineRecord | None:
        return await self.find(workflow_table.MACHINES, name, MachineRecord)

    async def activity(self, name: str) -> ActivityRecord | None:
        return await self.find(workflow_table.ACTIVITIES, name, ActivityRecord)

    async def put_machine(
        self, machine: MachineRecord, *, is_new: bool, version: MachineVersion | None = None
    ) -> None:
        """Raises RecordConflict when a new machine exists already, or one to be changed does
        not."""
        definition = machine.definition.encode()
        actions = [
            await self.put(f"definition#{machine.digest}", workflow_table.DEFINITION, definition),
            await self.put(
                workflow_table.MACHINES, machine.name, _encode(machine), condition=_expected(is_new)
            ),
        ]
        if version is not None:
            partition, sort = versions_of(machine.name), version_sort(version.number)
            actions.append(await self.put(partition, sort, _encode(version)))
        await self._commits.commit(actions)

    async def put_definition(self, machine: MachineRecord) -> None:
        """Store the definition that the executions of a map run use: it belongs to no machine."""
        if machine.digest not in self._definitions:
            content = machine.definition.encode()
            await self._commits.commit(
                [await self.put(f"definition#{machine.digest}", workflow_table.DEFINITION, content)]
            )
            self._definitions.add(machine.digest)

    async def version(self, machine: str, number: int) -> MachineVersion | None:
        return await self.find(versions_of(machine), version_sort(number), MachineVersion)

    async def alias(self, machine: str, name: str) -> MachineAlias | None:
        return await self.find(aliases_of(machine), name, MachineAlias)

    async def put_alias(self, machine: str, alias: MachineAlias, *, is_new: bool) -> None:
        record, condition = _encode(alias), _expected(is_new)
        await self._commits.commit(
            [await self.put(aliases_of(machine), alias.name, record, condition=condition)]
        )

    async def put_activity(self, activity: ActivityRecord, *, is_new: bool) -> None:
        record = _encode(activity)
        condition = _expected(is_new)
        await self._commits.commit(
            [await self.put(workflow_table.ACTIVITIES, activity.name, record, condition=condition)]
        )

    # Executions

    async def definition(self, digest: str) -> str:
        item = await self.get(f"definition#{digest}", workflow_table.DEFINITION)
        if item is None:
            raise KeyError(digest)
        return (await self.record(item)).decode()

    async def execution(self, arn: str) -> ExecutionRecord | None:
        return await self.find(arn, workflow_table.EXECUTION, ExecutionRecord)

    async def begin(self, execution: ExecutionRecord, step: ExecutionStep) -> None:
        """Store a new execution. Raises RecordConflict when the name is taken."""
        # Express executions are stored only while they run, so that they can be resumed.
        if execution.type == EXPRESS and execution.status != RUNNING:
            return
        actions = [await self._put_execution(execution, step.event_count, ABSENT)]
        # A failed execution keeps its state, from which it can be redriven.
        if execution.status != SUCCEEDED:
            actions.append(await self._put_state(execution, 1, step))
        await self._commits.commit([*actions, *await self._put_events(execution, step)])

    async def advance(self, execution: ExecutionRecord, revision: int, step: ExecutionStep) -> None:
        """Store a new state with the events that led to it.

        `revision` is that of the state before. Raises RecordConflict when it has changed.
        """
        before = self._rests.get(execution.arn, [])
        state = await self._put_state(
            execution, revision + 1, step, workflow_table.at_revision(revision)
        )
        await self._commits.commit([state, *await self._put_events(execution, step)])
        await self.delete_all(before)

    async def finish(self, execution: ExecutionRecord, revision: int, step: ExecutionStep) -> None:
        condition = workflow_table.at_revision(revision)
        if execution.type == EXPRESS:
            actions = [self.delete(execution.arn, workflow_table.EXECUTION)]
        else:
            actions = [await self._put_execution(execution, step.event_count)]
        if execution.type == EXPRESS or execution.status == SUCCEEDED:
            actions.append(self.delete(execution.arn, workflow_table.STATE, condition))
        else:
            actions.append(await self._put_state(execution, revision + 1, step, condition))
        await self._commits.commit([*actions, *await self._put_events(execution, step)])
        await self.delete_all(self._rests.pop(execution.arn, []))

    async def resume(self, execution: ExecutionRecord, revision: int, step: ExecutionStep) -> None:
        """Store that a redriven execution runs again. Raises RecordConflict when it is running
        already."""
        before = self._rests.get(execution.arn, [])
        actions = [
            await self._put_execution(execution, step.event_count),
            await self._put_state(
                execution, revision + 1, step, workflow_table.at_revision(revision)
            ),
        ]
        await self._commits.commit([*actions, *await self._put_events(execution, step)])
        await self.delete_all(before)

    async def running(self) -> AsyncIterator[str]:
        """The ARNs of all running executions."""
        async for item in self.each({"IndexName": workflow_table.RUNNING}, "Scan"):
            yield item["running"]["S"]

    async def state(self, arn: str) -> tuple[int, bytes] | None:
        """The revision and the encoded run of an execution; None when it has succeeded."""
        item = await self.get(arn, workflow_table.STATE)
        if item is None:
            return None
        self._remember_rest(arn, item)
        return int(item["revision"]["N"]), await self.record(item)

    async def executions(
        self,
        machine: str,
        status: str | None,
        is_wanted: Callable[[dict[str, Any]], bool],
        limit: int,
        after: Item | None,
    ) -> tuple[list[dict[str, Any]], Item | None]:
        """A page of a machine's executions, latest first, and the key to continue after."""
        request = query("machine = :machine", {":machine": machine})
        request |= {"IndexName": workflow_table.STARTS, "ScanIndexForward": False}
        if status is not None:
            request["FilterExpression"] = "#status = :status"
            request["ExpressionAttributeNames"] = {"#status": "status"}
            request["ExpressionAttributeValues"][":status"] = {"S": status}
        if after is not None:
            request["ExclusiveStartKey"] = after
        page: list[dict[str, Any]] = []
        last: Item | None = None
        async for item in self.each(request):
            if len(page) == limit:
                return page, last
            listed = msgspec.json.decode(item["listing"]["S"])
            if not is_wanted(listed):
                continue
            page.append(listed)
            last = {name: item[name] for name in ("pk", "sk", "machine", "started")}
        return page, None

    async def put_map_run(self, run: MapRun) -> None:
        sort = f"{workflow_table.MAP_RUN}{run.arn}"
        await self._commits.commit([await self.put(run.execution_arn, sort, _encode(run))])

    async def map_run(self, execution_arn: str, arn: str) -> MapRun | None:
        return await self.find(execution_arn, f"{workflow_table.MAP_RUN}{arn}", MapRun)

    async def map_runs(self, execution_arn: str) -> list[MapRun]:
        condition = "pk = :pk AND begins_with(sk, :prefix)"
        request = query(condition, {":pk": execution_arn, ":prefix": workflow_table.MAP_RUN})
        return [
            msgspec.json.decode(await self.record(item), type=MapRun)
            async for item in self.each(request)
        ]

    # Messages

    async def put_delayed_message(self, message: DelayedMessage) -> None:
        await self._commits.commit(
            [await self.put(workflow_table.DELAYED, message.id, _encode(message))]
        )

    # Histories

    async def event_count(self, arn: str) -> int:
        counts = [
            await self._event_count(arn, sort)
            for sort in (workflow_table.STATE, workflow_table.EXECUTION)
        ]
        return next((count for count in counts if count is not None), 0)

    async def has_state(self, arn: str) -> bool:
        """True when the state of the execution is stored."""
        return await self._event_count(arn, workflow_table.STATE) is not None

    async def _event_count(self, arn: str, sort: str) -> int | None:
        request = {"Key": key(arn, sort), "ProjectionExpression": "events"}
        answer = await self.call("GetItem", {**request, "ConsistentRead": True})
        return int(answer["Item"]["events"]["N"]) if "Item" in answer else None

    async def events(self, arn: str, first: int, *, is_reverse: bool) -> AsyncIterator[Event]:
        """The history from an event on, forwards or backwards."""
        start = workflow_table.history_sort(first)
        if not is_reverse:
            # The item that has this event may begin with an earlier one.
            request = _history_query(arn, workflow_table.HISTORY, start)
            request |= {"ScanIndexForward": False, "Limit": 1}
            async for item in self.each(request):
                start = item["sk"]["S"]
                break
            request = _history_query(arn, start, workflow_table.HISTORY + "~")
        else:
            request = _history_query(arn, workflow_table.HISTORY, start)
            request["ScanIndexForward"] = False
        async for item in self.each(request):
            events = msgspec.json.decode(await self.record(item))
            for event in reversed(events) if is_reverse else events:
                if (event["id"] <= first) if is_reverse else (event["id"] >= first):
                    yield event

    async def remove_machine(self, machine: str) -> None:
        """Delete the machine's executions, versions and aliases, and then the machine. So a
        deletion that is cut short can be found and continued."""
        await self._remove_executions(machine)
        for partition in (versions_of(machine), aliases_of(machine)):
            await self.erase_all(partition)
        await self.erase(workflow_table.MACHINES, machine)

    async def _remove_executions(self, machine: str) -> None:
        request = query("machine = :machine", {":machine": machine})
        keys = []
        async for entry in self.each({**request, "IndexName": workflow_table.STARTS}):
            keys += await self.keys(entry["pk"]["S"])
        await self.delete_all(keys)

    # Items of executions

    async def _put_execution(
        self, execution: ExecutionRecord, event_count: int, condition: Item | None = None
    ) -> Action:
        attributes = _execution_attributes(execution, event_count)
        record = _encode(execution)
        return await self.put(
            execution.arn, workflow_table.EXECUTION, record, attributes, condition
        )

    async def _put_state(
        self,
        execution: ExecutionRecord,
        revision: int,
        step: ExecutionStep,
        condition: Item | None = None,
    ) -> Action:
        attributes = {
            "revision": {"N": str(revision)},
            "events": {"N": str(step.event_count)},
        }
        if execution.status == RUNNING:
            attributes["running"] = {"S": execution.arn}
        action = await self.put(
            execution.arn, workflow_table.STATE, step.run, attributes, condition
        )
        if execution.status == RUNNING:
            self._remember_rest(execution.arn, action["Put"]["Item"])
        return action

    async def _put_events(self, execution: ExecutionRecord, step: ExecutionStep) -> list[Action]:
        if execution.type == EXPRESS or not step.first_event:
            return []
        sort = workflow_table.history_sort(step.first_event)
        return [await self.put(execution.arn, sort, step.events)]

    def _remember_rest(self, arn: str, state: Item) -> None:
        """States are written often. The further items of the previous state are deleted later,
        after the commit."""
        keys = rest_keys(state)
        if keys:
            self._rests[arn] = keys
        else:
            self._rests.pop(arn, None)


def _expected(is_new: bool) -> Item:
    return ABSENT if is_new else {"ConditionExpression": "attribute_exists(pk)"}


def _execution_attributes(execution: ExecutionRecord, event_count: int) -> Item:
    attributes: Item = {
        "status": {"S": execution.status},
        "events": {"N": str(event_count)},
    }
    if execution.type != EXPRESS:
        listing = {
            "arn": execution.arn,
            "name": execution.name,
            "status": execution.status,
            "started_at": execution.started_at,
            "stopped_at": execution.stopped_at,
            "redrive_count": execution.redrive_count,
            "redriven_at": execution.redriven_at,
            "version": execution.version,
            "alias": execution.alias,
        }
        attributes |= {
            "machine": {"S": execution.machine},
            "started": {"S": workflow_table.started_sort(execution.started_at, execution.name)},
            "listing": {"S": _encode(listing).decode()},
        }
    return attributes


def _history_query(arn: str, first: str, last: str) -> dict[str, Any]:
    values = {":pk": arn, ":first": first, ":last": last}
    return query("pk = :pk AND sk BETWEEN :first AND :last", values)
