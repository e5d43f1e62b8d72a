"""The mode: which store answers, agreed on by all servers of a catalogue while they run.

    legacy <-> migrating <-> sealed <-> dynamodb

The mode is an item of the directory, which every server polls. When it has changed, a server lets
the requests of the old mode finish and then reports the new mode in an item of its own. The command
that changes the mode waits for these reports, so the modes of two servers are never more than one
step apart. In the mode `sealed` nobody writes, and both databases answer the same.

A server that cannot read the mode loses its lease: others count it as gone, and it takes no more
writes. That keeps order among servers that work. A server that was paused, or never read the mode,
is refused by the database that it writes to: by the fence of MariaDB, and in DynamoDB by a
condition in every transaction on one of the many copies of the mode.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Protocol

from metric_catalogue.stores.dynamodb.catalogue_tables import MODE, MODE_COPIES, CatalogueTables
from metric_catalogue.stores.dynamodb.metric_items import Item
from metric_catalogue.stores.dynamodb.transaction_actions import entry, mode_copy
from partita.client import Client, ClientError
from partita.errors import PartitaError
from partita.foundation.clock import Clock, system_clock

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
LEASE_SECONDS = 5.0
"""How long a server may take writes after it last read the mode."""
CHANGE_SECONDS_MAX = 60.0
CONFLICT_SECONDS = 0.01
COPIES_AT_ONCE = 16
SERVER = "server"


class Mode(StrEnum):
    LEGACY = "legacy"
    MIGRATING = "migrating"
    SEALED = "sealed"
    DYNAMODB = "dynamodb"


ORDER = tuple(Mode)
BEFORE_CUTOVER = (Mode.LEGACY, Mode.MIGRATING)
"""The modes in which MariaDB is the authoritative side."""


def steps(start: Mode, end: Mode) -> tuple[Mode, ...]:
    """Returns the modes to pass through on the way, including the last."""
    here, there = ORDER.index(start), ORDER.index(end)
    if here <= there:
        return ORDER[here + 1 : there + 1]
    return ORDER[there:here][::-1]


class ModeSource(Protocol):
    """The place where a server reads the mode and reports its own."""

    async def read(self) -> Mode | None: ...

    async def report(self, server: str, mode: Mode, sessions: Sequence[int]) -> None: ...

    async def leave(self, server: str) -> None: ...


class Modes:
    """The mode and the reports of the servers, in the directory's table."""

    def __init__(
        self, client: Client, tables: CatalogueTables, clock: Clock = system_clock
    ) -> None:
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
        """Sets the first mode of a new catalogue. Returns the mode, which is another one if the
        catalogue has one already."""
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
        """Changes the mode. Returns when every running server is in the new mode."""
        await self.set(old, new)
        await self.wait_for_servers(new)

    async def set(self, old: Mode, new: Mode) -> None:
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
                f"The mode is no longer {old}: another command is changing it."
            ) from error
        await self.copy(new)

    async def copy(self, mode: Mode) -> None:
        """Writes all copies of the mode. When this returns, no transaction of another mode succeeds
        any more. After a kill, running it again completes the copies."""
        places = asyncio.Semaphore(COPIES_AT_ONCE)

        async def put(number: int) -> None:
            async with places:
                await self._put_patiently({**mode_copy(number), "mode": {"S": mode}})

        await asyncio.gather(*map(put, range(MODE_COPIES)))

    async def _put_patiently(self, item: Item) -> None:
        """Puts an item, and repeats that while transactions check the item."""
        ends = self._clock() + CHANGE_SECONDS_MAX
        while True:
            try:
                await self._client.call(
                    "dynamodb", "PutItem", {"TableName": self._table, "Item": item}
                )
                return
            except ClientError as error:
                if error.code != "TransactionConflictException" or self._clock() > ends:
                    raise
            await asyncio.sleep(CONFLICT_SECONDS)

    async def wait_for_servers(self, mode: Mode) -> None:
        ends = self._clock() + CHANGE_SECONDS_MAX
        while others := await self._servers_not_in(mode):
            if self._clock() > ends:
                raise PartitaError(
                    f"These servers do not change to the mode {mode}: {', '.join(others)}. "
                    "Stop them, then try again."
                )
            await asyncio.sleep(POLL_SECONDS / 2)

    async def _servers_not_in(self, mode: Mode) -> list[str]:
        # Twice the lease, because the clocks of the machines may differ.
        oldest = self._clock() - 2 * LEASE_SECONDS
        return [
            item["name"]["S"]
            for item in await self._servers()
            if item["mode"]["S"] != mode and float(item["seenAt"]["N"]) > oldest
        ]

    async def _servers(self) -> list[Item]:
        query = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "kind = :kind",
            "ExpressionAttributeValues": {":kind": {"S": SERVER}},
        }
        items: list[Item] = (await self._client.call("dynamodb", "Query", query))["Items"]
        return items

    async def server_of(self, session: int) -> str | None:
        """Returns the server that a session of MariaDB belongs to, if a server has reported it."""
        number = str(session)
        for item in await self._servers():
            if number in item.get("sessions", {}).get("NS", ()):
                silent = self._clock() - float(item["seenAt"]["N"])
                note = f", which was last seen {silent:.0f} s ago" if silent > LEASE_SECONDS else ""
                return f"{item['name']['S']}{note}"
        return None

    async def report(self, server: str, mode: Mode, sessions: Sequence[int] = ()) -> None:
        seen_at = {"N": f"{self._clock():.3f}"}
        item: Item = {**entry(SERVER, server), "mode": {"S": mode}, "seenAt": seen_at}
        if sessions:
            item["sessions"] = {"NS": [str(number) for number in sessions]}
        await self._client.call("dynamodb", "PutItem", {"TableName": self._table, "Item": item})

    async def leave(self, server: str) -> None:
        key = entry(SERVER, server)
        await self._client.call("dynamodb", "DeleteItem", {"TableName": self._table, "Key": key})


class ModeWatch:
    """The mode of one server. It follows changes, and counts the running requests of each mode."""

    def __init__(
        self,
        modes: ModeSource,
        server: str,
        understood: set[Mode],
        mode: Mode,
        now: Callable[[], float],
        sessions: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        """`sessions` returns the numbers of this server's sessions of MariaDB."""
        self.mode = mode
        self.foreign: Mode | None = None
        """The mode of the other servers, if this one was started without the database for it."""
        self._sessions = sessions
        self._understood = understood
        self._modes = modes
        self._server = server
        self._now = now
        self._refreshed_at = now()
        # One refresh at a time; otherwise an older answer could overwrite a newer one.
        self._refreshing = asyncio.Lock()
        self._refreshes = 0
        self._running = dict.fromkeys(Mode, 0)
        self._complaint = ""

    @property
    def is_current(self) -> bool:
        """True while the lease holds, so that the server may take writes."""
        return self._now() - self._refreshed_at < LEASE_SECONDS

    def enter(self) -> Mode:
        self._running[self.mode] += 1
        return self.mode

    def leave(self, mode: Mode) -> None:
        self._running[mode] -= 1

    async def begin(self) -> None:
        """Runs before the first request. Reports first, so that commands wait for this server, and
        then reads the mode, which may have changed just before the report."""
        await self._modes.report(self._server, self.mode, self._sessions())
        await self._refresh()

    async def follow(self) -> None:
        """Polls the mode until it is cancelled."""
        try:
            while True:
                async with self._refreshing:
                    await self._try_to_refresh()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            with suppress(PartitaError):
                await self._modes.leave(self._server)

    async def refresh(self) -> None:
        """Reads the mode now, for a request that finds the lease expired (perhaps this process was
        only slow) or that its database has refused. Concurrent callers share one read."""
        refreshes = self._refreshes
        async with self._refreshing:
            if refreshes == self._refreshes:
                await self._try_to_refresh()

    async def _try_to_refresh(self) -> None:
        """Reads the mode, and logs an error the first time it occurs. While errors go on, the lease
        expires by itself."""
        self._refreshes += 1
        try:
            await self._refresh()
            self._complaint = ""
        except PartitaError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                logger.warning("%s", error)

    async def _refresh(self) -> None:
        # The lease counts from before the read: the answer may be as old as that.
        before = self._now()
        mode = await self._modes.read()
        self.foreign = mode if mode not in {None, *self._understood} else None
        if self.foreign is not None:
            raise PartitaError(
                f"The catalogue was moved: its mode is {mode}, and this server was started "
                "without the database for that. Start it with both --mysql and --endpoint."
            )
        self.mode = mode or self.mode
        # The server reports an old mode as long as requests of that mode are running.
        old = [other for other in Mode if other != self.mode and self._running[other]]
        await self._modes.report(self._server, (*old, self.mode)[0], self._sessions())
        self._refreshed_at = before
