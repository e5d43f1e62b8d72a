"""The store of functions, and of everything that calls them.

functions           / NAME        a function
versions#NAME       / 0000000001  a version of the function
aliases#NAME        / NAME        an alias of the function
event-invokes#NAME  / QUALIFIER   the configuration of its asynchronous invocations
code#NAME           / DIGEST      a package of its code
events              / ID          an asynchronous invocation that has not ended
mappings            / UUID        an event source mapping
checkpoints#UUID    / SHARD       how far the mapping has read a shard
schedules           / GROUP#NAME  a schedule
groups              / NAME        a schedule group
"""

from __future__ import annotations

import base64
from typing import TypeVar

import msgspec

from partita.client import Client, ClientError
from partita.client.aws_services import FUNCTIONS_TABLE
from partita_services.record_table import (
    ABSENT,
    RecordConflict,
    RecordTable,
    definition,
    rest_keys,
)

FUNCTIONS, MAPPINGS, EVENTS = "functions", "mappings", "events"
SCHEDULES, GROUPS = "schedules", "groups"
CACHED = ("functions", "versions#", "aliases#", "event-invokes#")
"""The partitions that every invocation reads."""
CONDITION_FAILED = "ConditionalCheckFailedException"

Record = TypeVar("Record", bound=msgspec.Struct)


def event_invokes_of(name: str) -> str:
    return f"event-invokes#{name}"


def code_of(name: str) -> str:
    return f"code#{name}"


def checkpoints_of(uuid: str) -> str:
    return f"checkpoints#{uuid}"


class StoredPackage(msgspec.Struct):
    """A zip archive, as it was uploaded."""

    zip: str

    @classmethod
    def of(cls, content: bytes) -> StoredPackage:
        return cls(base64.b64encode(content).decode())

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.zip)


class FunctionStore(RecordTable):
    """Nobody else writes to this table, so functions are cached once they were read."""

    def __init__(self, client: Client, table: str = FUNCTIONS_TABLE) -> None:
        super().__init__(client, definition(table))
        self._cache: dict[tuple[str, str], bytes | None] = {}

    async def save(
        self, partition: str, sort: str, record: msgspec.Struct, *, is_new: bool = False
    ) -> None:
        """Returns when the record is on disk. Raises RecordConflict when a new record exists."""
        self._cache.pop((partition, sort), None)
        condition = ABSENT if is_new else None
        action = await self.put(partition, sort, msgspec.json.encode(record), condition=condition)
        try:
            answer = await self.call("PutItem", {**action["Put"], "ReturnValues": "ALL_OLD"})
        except ClientError as error:
            if error.code != CONDITION_FAILED:
                raise
            raise RecordConflict from error
        await self.delete_all(rest_keys(answer.get("Attributes", {})))

    async def find(self, partition: str, sort: str, kind: type[Record]) -> Record | None:
        if not partition.startswith(CACHED):
            return await super().find(partition, sort, kind)
        place = (partition, sort)
        if place not in self._cache:
            item = await self.get(partition, sort)
            self._cache[place] = None if item is None else await self.record(item)
        content = self._cache[place]
        return None if content is None else msgspec.json.decode(content, type=kind)

    async def erase(self, partition: str, sort: str) -> None:
        self._cache.pop((partition, sort), None)
        await super().erase(partition, sort)

    async def erase_all(self, partition: str) -> None:
        for place in [place for place in self._cache if place[0] == partition]:
            del self._cache[place]
        await super().erase_all(partition)
