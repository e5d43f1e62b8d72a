"""The mode as MariaDB tells it, for a server that was started without DynamoDB: the switch of the
move says whether the catalogue is still here."""

from __future__ import annotations

from collections.abc import Sequence

from metric_catalogue.mariadb.connections import ConnectionPool
from metric_catalogue.modes import Mode
from partita_migrate import switch

SELECT_SIDE = f"SELECT side FROM {switch.TABLE} WHERE scope = %s"


class SwitchMode:
    def __init__(self, database: ConnectionPool) -> None:
        self._database = database

    async def read(self) -> Mode | None:
        found = await self._database.rows(SELECT_SIDE, switch.ALL)
        return Mode.DYNAMODB if [row["side"] for row in found] == [switch.TARGET] else Mode.LEGACY

    async def report(self, server: str, mode: Mode, sessions: Sequence[int]) -> None:
        """Nobody asks: the fence does not count on it."""

    async def leave(self, server: str) -> None:
        """Nobody asks."""
