"""Which store answers, agreed on by all servers of a catalogue while they run.

    legacy <-> migrating <-> mirrored <-> dynamodb

Neighbours understand each other's writes, so that servers may be in either of two while the mode
changes, never further apart. The mode is an item of the directory. A server looks at it all the
time; when it has changed, requests of the old mode finish, and then the server says so in an item
of its own. Whoever changes the mode waits for all servers to say so. A server that cannot
read the mode for a while counts as gone, and knows that: it takes no more writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

from partita.apps.metrics.dynamodb.tables import Tables
from partita.apps.metrics.dynamodb.transactions import entry
from partita.client import Client, ClientError
from partita.clock import Clock, system_clock
from partita.errors import PartitaError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
LEASE_SECONDS = 5.0
"""How long a server may go on without having read the mode."""
AGREED_SECONDS_MAX = 60.0
MODE = entry("mode", "mode")
SERVER = "server"


class Mode(StrEnum):
    LEGACY = "legacy"
    MIGRATING = "migrating"
    MIRRORED = "mirrored"
    DYNAMODB = "dynamodb"


ORDER = tuple(Mode)


def steps(start: Mode, end: Mode) -> tuple[Mode, ...]:
    """The modes to go through, the end among them."""
    here, there = ORDER.index(start), ORDER.index(end)
    if here <= there:
        return ORDER[here + 1 : there + 1]
    return ORDER[there:here][::-1]


class Modes:
    """The mode as it is kept, and what the servers say."""

    def __init__(self, client: Client, tables: Tables, clock: Clock = system_clock) -> None:
        self._client = client
        self._table = tables.directory
        self._clock = clock

    async def read(self) -> Mode | None:
        request = {"TableName": self._table, "Key": MODE, "ConsistentRead": True}
        try:
            item = (await self._client.call("dynamodb", "GetItem", request)).get("Item")
        except ClientError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        return None if item is None else Mode(item["mode"]["S"])

    async def begin(self, mode: Mode) -> Mode:
        """The mode to start with, unless there is one already."""
        put = {
            "TableName": self._table,
            "Item": {**MODE, "mode": {"S": mode}},
            "ConditionExpression": "attribute_not_exists(kind)",
        }
        try:
            await self._client.call("dynamodb", "PutItem", put)
        except ClientError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
        return await self.read() or mode

    async def change(self, old: Mode, new: Mode) -> None:
        """Returns when every server that runs is in the new mode."""
        put = {
            "TableName": self._table,
            "Item": {**MODE, "mode": {"S": new}},
            "ConditionExpression": "#mode = :old",
            "ExpressionAttributeNames": {"#mode": "mode"},
            "ExpressionAttributeValues": {":old": {"S": old}},
        }
        try:
            await self._client.call("dynamodb", "PutItem", put)
        except ClientError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
            raise PartitaError(
                f"The mode is not {old} any more: somebody else is changing it."
            ) from error
        await self.wait_for_servers(new)

    async def wait_for_servers(self, mode: Mode) -> None:
        ends = self._clock() + AGREED_SECONDS_MAX
        while others := await self._servers_not_in(mode):
            if self._clock() > ends:
                raise PartitaError(
                    f"These servers do not go over to {mode}: {', '.join(others)}. "
                    "Stop them, then try again."
                )
            await asyncio.sleep(LOOK_SECONDS / 2)

    async def _servers_not_in(self, mode: Mode) -> list[str]:
        query = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "kind = :kind",
            "ExpressionAttributeValues": {":kind": {"S": SERVER}},
        }
        items = (await self._client.call("dynamodb", "Query", query))["Items"]
        # Twice the lease: clocks of machines differ a little.
        oldest = self._clock() - 2 * LEASE_SECONDS
        return [
            item["name"]["S"]
            for item in items
            if item["mode"]["S"] != mode and float(item["seenAt"]["N"]) > oldest
        ]

    async def say(self, server: str, mode: Mode) -> None:
        seen_at = {"N": f"{self._clock():.3f}"}
        item = {**entry(SERVER, server), "mode": {"S": mode}, "seenAt": seen_at}
        await self._client.call("dynamodb", "PutItem", {"TableName": self._table, "Item": item})

    async def leave(self, server: str) -> None:
        key = entry(SERVER, server)
        await self._client.call("dynamodb", "DeleteItem", {"TableName": self._table, "Key": key})


class Watch:
    """One server's view of the mode: enters requests in it, and follows when it changes."""

    def __init__(
        self,
        modes: Modes | None,
        server: str,
        understood: set[Mode],
        mode: Mode,
        now: Callable[[], float],
    ) -> None:
        self.mode = mode
        self._understood = understood
        self._modes = modes
        self._server = server
        self._now = now
        self._looked_at = now()
        # One at a time, or an old look could undo a newer one.
        self._looking = asyncio.Lock()
        self._looks = 0
        self._running = dict.fromkeys(Mode, 0)
        self._complaint = ""

    @property
    def is_current(self) -> bool:
        """Whether writes may be taken."""
        return self._modes is None or self._now() - self._looked_at < LEASE_SECONDS

    def enter(self) -> Mode:
        self._running[self.mode] += 1
        return self.mode

    def leave(self, mode: Mode) -> None:
        self._running[mode] -= 1

    async def begin(self) -> None:
        """Before the first request. First be known, so that who changes the mode waits; then look:
        it may have changed just before.
        """
        if self._modes is not None:
            await self._modes.say(self._server, self.mode)
            await self._look(self._modes)

    async def follow(self) -> None:
        """Until cancelled."""
        if self._modes is None:
            return
        try:
            while True:
                async with self._looking:
                    await self._try_to_look(self._modes)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            with suppress(ClientError):
                await self._modes.leave(self._server)

    async def look_again(self) -> None:
        """For a write that comes when the lease has run out: this process may just have been slow.
        Those who wait together look once.
        """
        looks = self._looks
        async with self._looking:
            if self._modes is not None and looks == self._looks:
                await self._try_to_look(self._modes)

    async def _try_to_look(self, modes: Modes) -> None:
        """What goes wrong is said once. Unless it passes, the lease runs out by itself."""
        self._looks += 1
        try:
            await self._look(modes)
            self._complaint = ""
        except PartitaError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                logger.warning("%s", error)

    async def _look(self, modes: Modes) -> None:
        before = self._now()
        mode = await modes.read()
        if mode is not None and mode not in self._understood:
            raise PartitaError(f"The mode is {mode}, for which this server lacks a database.")
        self.mode = mode or self.mode
        # Requests of an old mode that are under way keep us in it.
        old = [other for other in Mode if other != self.mode and self._running[other]]
        await modes.say(self._server, *old[:1] or [self.mode])
        self._looked_at = before
