"""Reads the mode from MariaDB, for a server that was started without DynamoDB: the switch of
`partita migrate` says whether the catalogue is still in MariaDB."""

from __future__ import annotations

from collections.abc import Sequence

from metric_catalogue.stores.catalogue_modes import Mode
from metric_catalogue.stores.mariadb.mariadb_connections import ConnectionPool
from partita_migrate import switch

SELECT_SIDE = f"SELECT side FROM {switch.TABLE} WHERE scope = %s"


class SwitchMode:
    """A source of the mode without DynamoDB. It takes no reports: a cutover does not wait for such
    a server, because the fence refuses its writes."""

    def __init__(self, database: ConnectionPool) -> None:
        self._database = database

    async def read(self) -> Mode | None:
        rows = await self._database.rows(SELECT_SIDE, switch.ALL)
        return Mode.DYNAMODB if [row["side"] for row in rows] == [switch.TARGET] else Mode.LEGACY

    async def report(self, server: str, mode: Mode, sessions: Sequence[int]) -> None:
        """Does nothing."""

    async def leave(self, server: str) -> None:
        """Does nothing."""
