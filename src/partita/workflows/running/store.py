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
        definition = items.items(
            f"definition#{machine.digest}", items.DEFINITION, machine.definition.encode(), {}
        )
        found = items.items(items.MACHINES, machine.name, _encode(machine), {})
        condition = items.ABSENT if is_new else {"ConditionExpression": "attribute_exists(pk)"}
        await self._commit([*self._puts(definition), *self._puts(found, condition)])

    async def put_activity(self, activity: Activity, *, is_new: bool) -> None:
        found = items.items(items.ACTIVITIES, activity.name, _encode(activity), {})
        condition = items.ABSENT if is_new else {"ConditionExpression": "attribute_exists(pk)"}
        await self._commit([*self._puts(found, condition)])

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
            if "#" in item["sk"]["S"]:
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
        found = _execution_items(execution, run)
        actions = [*self._puts(found, items.ABSENT)]
        if execution.status == RUNNING:
            actions += self._puts(_state_items(execution, 1, run))
        elif execution.type == EXPRESS:
            return
        await self._write(actions, execution, events)

    async def advance(
        self, execution: Execution, revision: int, run: Run, events: Sequence[Event]
    ) -> None:
        """How far an execution is, with the events that took it there.

        `revision` is what it was before; a Conflict when it is not that any more.
        """
        found = _state_items(execution, revision + 1, run)
        condition = items.at_revision(revision)
        await self._write([*self._puts(found, condition)], execution, events)

    async def finish(
        self, execution: Execution, revision: int, run: Run, events: Sequence[Event]
    ) -> None:
        actions = [self._delete(execution.arn, items.STATE, items.at_revision(revision))]
        if execution.type == EXPRESS:
            actions.append(self._delete(execution.arn, items.EXECUTION))
        else:
            actions += self._puts(_execution_items(execution, run))
        await self._write(actions, execution, events)

    async def running(self) -> AsyncIterator[str]:
        """The ARNs of all executions that run."""
        async for item in self._items({"IndexName": items.RUNNING}, "Scan"):
            yield item["running"]["S"]

    async def state(self, arn: str) -> tuple[int, Run] | None:
        """The revision and the run of an execution that runs."""
        item = await self._get(arn, items.STATE)
        if item is None:
            return None
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
        expected = first
        async for item in self._items(request):
            if item["sk"]["S"].count("#") > 1:
                continue
            events = msgspec.json.decode(await self._record(item))
            for event in reversed(events) if is_reverse else events:
                # Of a write that was never finished, events may have been left behind.
                if event["id"] == expected:
                    yield event
                    expected += -1 if is_reverse else 1

    async def remove_executions(self, machine: str) -> None:
        """All of a machine that is deleted."""
        request = _query("machine = :machine", {":machine": machine})
        keys = []
        async for entry in self._items({**request, "IndexName": items.STARTS}):
            arn = entry["pk"]["S"]
            of_execution = _query("pk = :pk", {":pk": arn})
            of_execution["ProjectionExpression"] = "pk, sk"
            keys += [item async for item in self._items(of_execution)]
        for start in range(0, len(keys), BATCH_DELETES_MAX):
            deletes: Any = [
                {"DeleteRequest": {"Key": one}} for one in keys[start : start + BATCH_DELETES_MAX]
            ]
            requests = {self._table: deletes}
            while requests:
                answer = await self._client.call(
                    "dynamodb", "BatchWriteItem", {"RequestItems": requests}
                )
                requests = answer.get("UnprocessedItems", {})

    async def _write(
        self, actions: list[Action], execution: Execution, events: Sequence[Event]
    ) -> None:
        history = [] if execution.type == EXPRESS else _history_items(execution.arn, events)
        size = sum(map(items.action_bytes, actions)) + sum(map(items.size, history))
        if size > items.TRANSACTION_BYTES_MAX:
            # Too much for one transaction. Events are read as far as the state before them goes,
            # so those of a write that fails halfway are not seen.
            for item in history:
                await self._call("PutItem", {"Item": item})
            history = []
        await self._commit([*actions, *self._puts(history)])

    # The wire.

    async def _commit(self, actions: list[Action]) -> None:
        await self._commits.commit(actions)

    def _delete(self, partition: str, sort: str, condition: Item | None = None) -> Action:
        key = items.key(partition, sort)
        return {"Delete": {"TableName": self._table, "Key": key, **(condition or {})}}

    def _puts(self, found: Sequence[Item], condition: Item | None = None) -> Sequence[Action]:
        return list(items.puts(self._table, found, condition))

    async def _read(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        item = await self._get(partition, sort)
        return None if item is None else msgspec.json.decode(await self._record(item), type=kind)

    async def _get(self, partition: str, sort: str) -> Item | None:
        request = {"Key": items.key(partition, sort), "ConsistentRead": True}
        item: Item | None = (await self._call("GetItem", request)).get("Item")
        return item

    async def _record(self, item: Item) -> bytes:
        found = [item]
        partition, sort = item["pk"]["S"], item["sk"]["S"]
        for number in range(1, items.pieces(item)):
            piece = await self._get(partition, items.piece_sort(sort, number))
            assert piece is not None, f"a piece of {partition} {sort} is missing"
            found.append(piece)
        return items.record(found)

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


def _execution_items(execution: Execution, run: Run) -> list[Item]:
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
    return items.items(execution.arn, items.EXECUTION, _encode(execution), attributes)


def _state_items(execution: Execution, revision: int, run: Run) -> list[Item]:
    attributes = {
        "revision": {"N": str(revision)},
        "events": {"N": str(run.event_count)},
        "running": {"S": execution.arn},
    }
    return items.items(execution.arn, items.STATE, encode_run(run), attributes)


def _history_items(arn: str, events: Sequence[Event]) -> list[Item]:
    """Events in as few items as hold them."""
    found: list[Item] = []
    gathered: list[Event] = []
    size = 0
    for event in [*events, None]:
        length = 0 if event is None else len(_encode(event))
        if gathered and (event is None or size + length > items.PIECE_BYTES_MAX):
            sort = items.history_sort(gathered[0]["id"])
            found += items.items(arn, sort, _encode(gathered), {})
            gathered, size = [], 0
        if event is not None:
            gathered.append(event)
            size += length
    return found


def _query(condition: str, values: dict[str, str]) -> dict[str, Any]:
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }


def _history_query(arn: str, first: str, last: str) -> dict[str, Any]:
    values = {":pk": arn, ":first": first, ":last": last}
    return _query("pk = :pk AND sk BETWEEN :first AND :last", values)
