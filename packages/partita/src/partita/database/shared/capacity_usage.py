"""Capacity across servers: units that one server has consumed are taken from all others' buckets.

Every server has token buckets for a table's whole capacity, and publishes once a second how much it
has consumed. In between, the servers together may serve too much; then all of them are in debt, and
the average over time is that of one server.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from psycopg import AsyncConnection

from partita.database.capacity.capacity_accounts import CapacityAccount
from partita.database.capacity.ledger import OFF, Ledger
from partita.database.capacity.token_buckets import BURST_SECONDS
from partita.foundation.clock import Clock

_PUBLISH: Final = """
    INSERT INTO partita_usage (server, table_number, index_name, reads, writes)
    SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::float8[], %b::float8[])
    ON CONFLICT (server, table_number, index_name) DO UPDATE SET
        reads = EXCLUDED.reads, writes = EXCLUDED.writes, at = now()"""
_CONSUMED_BY_OTHERS: Final = """
    SELECT table_number, index_name, sum(reads), sum(writes) FROM partita_usage
    WHERE server <> %s GROUP BY table_number, index_name"""

Place = tuple[int, str]
"""A table's number and the name of an index; the name is empty for the table itself."""
Units = tuple[float, float]
"""Read and write units, since a server started."""
NONE: Final[Units] = (0.0, 0.0)


class CapacityUsage:
    def __init__(self, ledger: Ledger, instance: int, clock: Clock) -> None:
        self._ledger = ledger
        self._instance = instance
        self._clock = clock
        self._published: dict[Place, Units] = {}
        self._others: dict[Place, deque[tuple[float, Units]]] = {}
        """Totals of the other servers at the times of the last fetches, for as long as a bucket
        saves units."""
        self._has_fetched = False
        """False at first: what others consumed before this server started is not charged here."""
        self._charged: dict[int, Units] = {}
        """How much of the others' consumption was charged to an account, by the identity of that.
        """

    async def exchange(self, connection: AsyncConnection[Any]) -> None:
        if self._ledger.mode == OFF:
            return
        await self._publish(connection)
        cursor = await connection.execute(_CONSUMED_BY_OTHERS, [self._instance], binary=True)
        now = self._clock()
        for number, index_name, reads, writes in await cursor.fetchall():
            first = NONE if self._has_fetched else (reads, writes)
            history = self._others.setdefault((number, index_name), deque([(now, first)]))
            history.append((now, (reads, writes)))
            while now - history[0][0] > BURST_SECONDS:
                history.popleft()
        self._has_fetched = True
        self._charge()

    async def _publish(self, connection: AsyncConnection[Any]) -> None:
        consumed = {
            place: (account.read.consumed, account.write.consumed)
            for place, account in self._accounts().items()
        }
        new = {
            place: units for place, units in consumed.items() if self._published.get(place) != units
        }
        if new:
            numbers, names = zip(*new, strict=True)
            reads, writes = zip(*new.values(), strict=True)
            parameters = [self._instance, *map(list, (numbers, names, reads, writes))]
            await connection.execute(_PUBLISH, parameters, binary=True)
            self._published |= new

    def _charge(self) -> None:
        accounts = self._accounts()
        for place, account in accounts.items():
            history = self._others.get(place)
            if history is None:
                continue
            latest = history[-1][1]
            # A new account starts with full buckets: it owes what others consumed of that burst.
            before = self._charged.get(id(account), history[0][1])
            for side, units_before, units in zip(
                (account.read, account.write), before, latest, strict=True
            ):
                side.take(max(0.0, units - units_before))
            self._charged[id(account)] = latest
        kept = {id(account) for account in accounts.values()}
        self._charged = {key: units for key, units in self._charged.items() if key in kept}

    def _accounts(self) -> dict[Place, CapacityAccount]:
        return {
            (number, account.index_name or ""): account
            for number, accounts in self._ledger.tables.items()
            for account in accounts
        }
