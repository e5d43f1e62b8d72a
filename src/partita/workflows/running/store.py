"""The table of workflows, over the wire: machines, activities, executions and their histories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import msgspec

from partita.client import Client, ClientError
from partita.workflows.language import Run, decode_run, encode_run
from partita.workflows.running import items
from partita.workflows.running.commits import Commits
from partita.workflows.running.items import Action, Item
from partita.workflows.running.records import EXPRESS, RUNNING, Activity, Execution, Machine

Event = dict[str, Any]
Record = TypeVar("Record", bound=msgspec.Struct)

TABLE_SECONDS = 0.05
BATCH_DELETES_MAX = 25
_encode = msgspec.json.encode


class Store:
    def __init__(self, client: Client, table: str = items.TABLE) -> None:
        self._client = client
        self._table = table
        self._commits = Commits(client)
        self._rests: dict[str, Sequence[Item]] = {}
        """Where the rest of an execution's state is, of those whose state is long."""

    async def prepare(self) -> None:
        """Make the table, unless it is there."""
        try:
            await self._call("CreateTable", items.table_definition(self._table))
        except ClientError as error:
            if error.code != "ResourceInUseException":
                raise
        while True:
            described = await self._call("DescribeTable", {})
            if described["Table"]["TableStatus"] == "ACTIVE":
                return
            await asyncio.sleep(TABLE_SECONDS)

    # Machines and activities.

    async def machine(self, name: str) -> Machine | None:
        return await self._read(items.MACHINES, name, Machine)

    async def activity(self, name: str) -> Activity | None:
        return await self._read(items.ACTIVITIES, name, Activity)

    async def put_machine(self, machine: Machine, *, is_new: bool) -> None:
        """A Conflict when a new machine is there already, or one to change is not."""
        definition = machine.definition.encode()
        await self._commits.commit(
            [
                await self._put(f"definition#{machine.digest}", items.DEFINITION, definition),
                await self._put(
                    items.MACHINES, machine.name, _encode(machine), condition=_expected(is_new)
                ),
            ]
        )

    async def put_activity(self, activity: Activity, *, is_new: bool) -> None:
        record = _encode(activity)
        condition = _expected(is_new)
        await self._commits.commit(
            [await self._put(items.ACTIVITIES, activity.name, record, condition=condition)]
        )

    async def remove(self, partition: str, name: str) -> None:
        await self._call("DeleteItem", {"Key": items.key(partition, name)})

    async def page(
        self, partition: str, kind: type[Record], limit: int, after: str | None
    ) -> tuple[list[Record], str | None]:
        """Machines or activities by name, and the name to go on after."""
        request = _query("pk = :pk", {":pk": partition})
        if after is not None:
            request["ExclusiveStartKey"] = items.key(partition, after)
        records: list[Record] = []
        async for item in self._items(request):
            if item["sk"]["S"].startswith("rest#"):
                continue
            if len(records) == limit:
                return records, records[-1].name  # type: ignore[attr-defined]
            content = await self._record(item)
            records.append(msgspec.json.decode(content, type=kind))
        return records, None

    # Executions.

    async def definition(self, digest: str) -> str:
        item = await self._get(f"definition#{digest}", items.DEFINITION)
        if item is None:
            raise KeyError(digest)
        return (await self._record(item)).decode()

    async def execution(self, arn: str) -> Execution | None:
        return await self._read(arn, items.EXECUTION, Execution)

    async def begin(self, execution: Execution, run: Run, events: Sequence[Event]) -> None:
        """A Conflict when there is one of that name."""
        is_running = execution.status == RUNNING
        if execution.type == EXPRESS and not is_running:
            return
        actions = [await self._put_execution(execution, run, items.ABSENT)]
        if is_running:
            actions.append(await self._put_state(execution, 1, run))
        await self._commits.commit([*actions, *await self._put_events(execution, events)])

    async def advance(
        self, execution: Execution, revision: int, run: Run, events: Sequence[Event]
    ) -> None:
        """How far an execution is, with the events that took it there.

        `revision` is what it was before; a Conflict when it is not that any more.
        """
        before = self._rests.get(execution.arn, [])
        state = await self._put_state(execution, revision + 1, run, items.at_revision(revision))
        await self._commits.commit([state, *await self._put_events(execution, events)])
        await self._delete_all(before)

    async def finish(
        self, execution: Execution, revision: int, run: Run, events: Sequence[Event]
    ) -> None:
        actions = [self._delete(execution.arn, items.STATE, items.at_revision(revision))]
        if execution.type == EXPRESS:
            actions.append(self._delete(execution.arn, items.EXECUTION))
        else:
            actions.append(await self._put_execution(execution, run))
        await self._commits.commit([*actions, *await self._put_events(execution, events)])
        await self._delete_all(self._rests.pop(execution.arn, []))

    async def running(self) -> AsyncIterator[str]:
        """The ARNs of all executions that run."""
        async for item in self._items({"IndexName": items.RUNNING}, "Scan"):
            yield item["running"]["S"]

    async def state(self, arn: str) -> tuple[int, Run] | None:
        """The revision and the run of an execution that runs."""
        item = await self._get(arn, items.STATE)
        if item is None:
            return None
        self._remember_rest(arn, item)
        return int(item["revision"]["N"]), decode_run(await self._record(item))

    async def executions(
        self, machine: str, status: str | None, limit: int, after: Item | None
    ) -> tuple[list[dict[str, Any]], Item | None]:
        """What is listed of a machine's executions, the newest first, and where to go on."""
        request = _query("machine = :machine", {":machine": machine})
        request |= {"IndexName": items.STARTS, "ScanIndexForward": False}
        if status is not None:
            request["FilterExpression"] = "#status = :status"
            request["ExpressionAttributeNames"] = {"#status": "status"}
            request["ExpressionAttributeValues"][":status"] = {"S": status}
        if after is not None:
            request["ExclusiveStartKey"] = after
        found: list[dict[str, Any]] = []
        last: Item | None = None
        async for item in self._items(request):
            if len(found) == limit:
                return found, last
            found.append(msgspec.json.decode(item["listing"]["S"]))
            last = {name: item[name] for name in ("pk", "sk", "machine", "started")}
        return found, None

    async def event_count(self, arn: str) -> int:
        for sort in (items.STATE, items.EXECUTION):
            request = {"Key": items.key(arn, sort), "ProjectionExpression": "events"}
            answer = await self._call("GetItem", {**request, "ConsistentRead": True})
            if "Item" in answer:
                return int(answer["Item"]["events"]["N"])
        return 0

    async def events(self, arn: str, first: int, *, is_reverse: bool) -> AsyncIterator[Event]:
        """The history from an event on, forwards or backwards."""
        start = items.history_sort(first)
        if not is_reverse:
            # The item that the event is in may begin with an earlier one.
            request = _history_query(arn, items.HISTORY, start)
            request |= {"ScanIndexForward": False, "Limit": 1}
            async for item in self._items(request):
                start = item["sk"]["S"]
                break
            request = _history_query(arn, start, items.HISTORY + "~")
        else:
            request = _history_query(arn, items.HISTORY, start)
            request["ScanIndexForward"] = False
        async for item in self._items(request):
            events = msgspec.json.decode(await self._record(item))
            for event in reversed(events) if is_reverse else events:
                if (event["id"] <= first) if is_reverse else (event["id"] >= first):
                    yield event

    async def remove_executions(self, machine: str) -> None:
        """All of a machine that is deleted."""
        request = _query("machine = :machine", {":machine": machine})
        keys = []
        async for entry in self._items({**request, "IndexName": items.STARTS}):
            arn = entry["pk"]["S"]
            of_execution = _query("pk = :pk", {":pk": arn})
            of_execution["ProjectionExpression"] = "pk, sk"
            keys += [item async for item in self._items(of_execution)]
        await self._delete_all(keys)

    # The wire.

    async def _put_execution(
        self, execution: Execution, run: Run, condition: Item | None = None
    ) -> Action:
        attributes = _execution_attributes(execution, run)
        record = _encode(execution)
        return await self._put(execution.arn, items.EXECUTION, record, attributes, condition)

    async def _put_state(
        self, execution: Execution, revision: int, run: Run, condition: Item | None = None
    ) -> Action:
        attributes = {
            "revision": {"N": str(revision)},
            "events": {"N": str(run.event_count)},
            "running": {"S": execution.arn},
        }
        record = encode_run(run)
        action = await self._put(execution.arn, items.STATE, record, attributes, condition)
        self._remember_rest(execution.arn, action["Put"]["Item"])
        return action

    async def _put_events(self, execution: Execution, events: Sequence[Event]) -> list[Action]:
        if execution.type == EXPRESS or not events:
            return []
        sort = items.history_sort(events[0]["id"])
        return [await self._put(execution.arn, sort, _encode(events))]

    async def _put(
        self,
        partition: str,
        sort: str,
        record: bytes,
        attributes: Item | None = None,
        condition: Item | None = None,
    ) -> Action:
        """The write of a record; what does not fit into its item is written ahead of it."""
        item, rest = items.pack(partition, sort, record, attributes or {})
        if rest:
            await asyncio.gather(*(self._call("PutItem", {"Item": one}) for one in rest))
        return {"Put": {"TableName": self._table, "Item": item, **(condition or {})}}

    def _delete(self, partition: str, sort: str, condition: Item | None = None) -> Action:
        key = items.key(partition, sort)
        return {"Delete": {"TableName": self._table, "Key": key, **(condition or {})}}

    def _remember_rest(self, arn: str, state: Item) -> None:
        """A state is written often: what was the rest of the last one is removed."""
        keys = items.rest_keys(state)
        if keys:
            self._rests[arn] = keys
        else:
            self._rests.pop(arn, None)

    async def _delete_all(self, keys: Sequence[Item]) -> None:
        for start in range(0, len(keys), BATCH_DELETES_MAX):
            batch = keys[start : start + BATCH_DELETES_MAX]
            requests: Any = {self._table: [{"DeleteRequest": {"Key": one}} for one in batch]}
            while requests:
                answer = await self._client.call(
                    "dynamodb", "BatchWriteItem", {"RequestItems": requests}
                )
                requests = answer.get("UnprocessedItems")

    async def _read(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        item = await self._get(partition, sort)
        return None if item is None else msgspec.json.decode(await self._record(item), type=kind)

    async def _get(self, partition: str, sort: str) -> Item | None:
        request = {"Key": items.key(partition, sort), "ConsistentRead": True}
        item: Item | None = (await self._call("GetItem", request)).get("Item")
        return item

    async def _record(self, item: Item) -> bytes:
        keys = items.rest_keys(item)
        rest = await asyncio.gather(*(self._get(key["pk"]["S"], key["sk"]["S"]) for key in keys))
        return items.unpack(item, [one for one in rest if one is not None])

    async def _items(self, request: Item, operation: str = "Query") -> AsyncIterator[Item]:
        if "IndexName" not in request:
            request = {**request, "ConsistentRead": True}
        while True:
            page = await self._call(operation, request)
            for item in page["Items"]:
                yield item
            if "LastEvaluatedKey" not in page:
                return
            request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def _call(self, operation: str, request: Item) -> dict[str, Any]:
        return await self._client.call("dynamodb", operation, {"TableName": self._table, **request})


def _expected(is_new: bool) -> Item:
    return items.ABSENT if is_new else {"ConditionExpression": "attribute_exists(pk)"}


def _execution_attributes(execution: Execution, run: Run) -> Item:
    attributes: Item = {
        "status": {"S": execution.status},
        "events": {"N": str(run.event_count)},
    }
    if execution.type != EXPRESS:
        listing = {
            "arn": execution.arn,
            "name": execution.name,
            "status": execution.status,
            "started_at": execution.started_at,
            "stopped_at": execution.stopped_at,
        }
        attributes |= {
            "machine": {"S": execution.machine},
            "started": {"S": items.started_sort(execution.started_at, execution.name)},
            "listing": {"S": _encode(listing).decode()},
        }
    return attributes


def _query(condition: str, values: dict[str, str]) -> dict[str, Any]:
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }


def _history_query(arn: str, first: str, last: str) -> dict[str, Any]:
    values = {":pk": arn, ":first": first, ":last": last}
    return _query("pk = :pk AND sk BETWEEN :first AND :last", values)
