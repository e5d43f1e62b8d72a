"""The table of functions and of what calls them, over the wire.

functions           / NAME        a function
versions#NAME       / 0000000001  a version of it
aliases#NAME        / NAME        an alias of it
event-invokes#NAME  / QUALIFIER   what becomes of its asynchronous invocations
code#NAME           / DIGEST      a package of its code
events              / ID          an asynchronous invocation that has not ended
mappings            / UUID        an event source mapping
checkpoints#UUID    / SHARD       how far it has read
schedules           / GROUP#NAME  a schedule
groups              / NAME        a group of schedules
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from partita.client import Client, ClientError
from partita.client.record_table import ABSENT, RecordTable, definition, key, rest_keys
from partita_services.functions.storage import TABLE

FUNCTIONS, MAPPINGS, EVENTS = "functions", "mappings", "events"
SCHEDULES, GROUPS = "schedules", "groups"
REMEMBERED = ("functions", "versions#", "aliases#", "event-invokes#")
PAGE = 1000
CONDITION_FAILED = "ConditionalCheckFailedException"

Result = TypeVar("Result")
Record = TypeVar("Record", bound=msgspec.Struct)


def event_invokes_of(name: str) -> str:
    return f"event-invokes#{name}"


def code_of(name: str) -> str:
    return f"code#{name}"


def checkpoints_of(uuid: str) -> str:
    return f"checkpoints#{uuid}"


class RecordExists(Exception):
    """A record that was to be new is there already."""


class StoredPackage(msgspec.Struct):
    """Code as it was uploaded."""

    zip: str

    @classmethod
    def of(cls, content: bytes) -> StoredPackage:
        return cls(base64.b64encode(content).decode())

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.zip)


class FunctionStore(RecordTable):
    """Nobody else writes here, so what was read of functions is remembered."""

    def __init__(self, client: Client, table: str = TABLE) -> None:
        super().__init__(client, definition(table))
        self._remembered: dict[tuple[str, str], bytes | None] = {}

    async def save(
        self, partition: str, sort: str, record: msgspec.Struct, *, is_new: bool = False
    ) -> None:
        """Returns when it is on disk. Raises Exists when a new one is there."""
        content = msgspec.json.encode(record)
        self._remembered.pop((partition, sort), None)
        action = await self._prepared(
            lambda: self.put(partition, sort, content, condition=ABSENT if is_new else None)
        )
        request = {**action["Put"], "ReturnValues": "ALL_OLD"}
        try:
            answer = await self._prepared(lambda: self.call("PutItem", request))
        except ClientError as error:
            if error.code != CONDITION_FAILED:
                raise
            raise RecordExists from error
        await self.delete_all(rest_keys(answer.get("Attributes", {})))

    async def find(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        if not partition.startswith(REMEMBERED):
            return await self._prepared(lambda: self.read(partition, sort, kind))
        place = (partition, sort)
        if place not in self._remembered:
            item = await self._prepared(lambda: self.get(partition, sort))
            self._remembered[place] = None if item is None else await self.record(item)
        content = self._remembered[place]
        return None if content is None else msgspec.json.decode(content, type=kind)

    async def all(self, partition: str, kind: type[Record]) -> list[Record]:
        records: list[Record] = []
        after: str | None = None
        while True:
            page, after = await self._prepared(partial(self.page, partition, kind, PAGE, after))
            records += page
            if after is None:
                return records

    async def erase(self, partition: str, sort: str) -> None:
        """With its further items, if it has some."""
        self._remembered.pop((partition, sort), None)
        item = await self._prepared(lambda: self.get(partition, sort))
        if item is not None:
            await self.delete_all([key(partition, sort), *rest_keys(item)])

    async def erase_all(self, partition: str) -> None:
        for place in [place for place in self._remembered if place[0] == partition]:
            del self._remembered[place]
        await self.delete_all(await self.keys(partition))

    async def _prepared(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        """If the table was deleted, everything is gone, and it is created again."""
        try:
            return await ask()
        except ClientError as error:
            if error.code != "ResourceNotFoundException":
                raise
        await self.prepare()
        return await ask()
