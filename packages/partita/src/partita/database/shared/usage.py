"""Capacity across servers: what each has served is taken from the buckets of all others.

Every server keeps buckets of its own for a table's whole capacity, and writes down once a second
what it has served. Between two seconds they may serve too much together; then all of them are in
debt, and the average is that of one server.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from psycopg import AsyncConnection

from partita.clock import Clock
from partita.database.capacity.accounts import Account
from partita.database.capacity.buckets import BURST_SECONDS
from partita.database.capacity.ledger import OFF, Ledger

_TELL: Final = """
    INSERT INTO partita_usage (server, table_number, index_name, reads, writes)
    SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::float8[], %b::float8[])
    ON CONFLICT (server, table_number, index_name) DO UPDATE SET
        reads = EXCLUDED.reads, writes = EXCLUDED.writes, at = now()"""
_HEAR: Final = """
    SELECT table_number, index_name, sum(reads), sum(writes) FROM partita_usage
    WHERE server <> %s GROUP BY table_number, index_name"""

Place = tuple[int, str]
"""A table's number and the name of its index, or nothing for the table."""
Units = tuple[float, float]
"""Read and written, since a server began."""
NONE: Final[Units] = (0.0, 0.0)


class Usage:
    def __init__(self, ledger: Ledger, instance: int, clock: Clock) -> None:
        self._ledger = ledger
        self._instance = instance
        self._clock = clock
        self._told: dict[Place, Units] = {}
        self._heard: dict[Place, deque[tuple[float, Units]]] = {}
        """What others had served, as it was heard; the last minutes of it."""
        self._has_heard = False
        """What others served before this server began is no debt of it."""
        self._charged: dict[int, Units] = {}
        """What of it was taken from an account, by its identity."""

    async def exchange(self, connection: AsyncConnection[Any]) -> None:
        if self._ledger.mode == OFF:
            return
        await self._tell(connection)
        cursor = await connection.execute(_HEAR, [self._instance], binary=True)
        now = self._clock()
        for number, index_name, reads, writes in await cursor.fetchall():
            first = NONE if self._has_heard else (reads, writes)
            heard = self._heard.setdefault((number, index_name), deque([(now, first)]))
            heard.append((now, (reads, writes)))
            while now - heard[0][0] > BURST_SECONDS:
                heard.popleft()
        self._has_heard = True
        self._charge()

    async def _tell(self, connection: AsyncConnection[Any]) -> None:
        served = {
            place: (account.read.consumed, account.write.consumed)
            for place, account in self._accounts().items()
        }
        new = {place: units for place, units in served.items() if self._told.get(place) != units}
        if new:
            numbers, names = zip(*new, strict=True)
            reads, writes = zip(*new.values(), strict=True)
            parameters = [self._instance, *map(list, (numbers, names, reads, writes))]
            await connection.execute(_TELL, parameters, binary=True)
            self._told |= new

    def _charge(self) -> None:
        accounts = self._accounts()
        for place, account in accounts.items():
            heard = self._heard.get(place)
            if heard is None:
                continue
            latest = heard[-1][1]
            # An account that is new here begins without what others used of its burst.
            before = self._charged.get(id(account), heard[0][1])
            for side, had, has in zip((account.read, account.write), before, latest, strict=True):
                side.take(max(0.0, has - had))
            self._charged[id(account)] = latest
        kept = {id(account) for account in accounts.values()}
        self._charged = {key: units for key, units in self._charged.items() if key in kept}

    def _accounts(self) -> dict[Place, Account]:
        return {
            (number, account.index_name or ""): account
            for number, accounts in self._ledger.tables.items()
            for account in accounts
        }
