"""The catalogue as a service: the one place that picks stores and wires the parts together."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TypedDict

from partita.apps.metrics.api import Api
from partita.apps.metrics.catalogue import Catalogue
from partita.apps.metrics.dynamodb import DynamoDBCatalogue
from partita.apps.metrics.legacy import LegacyCatalogue, create_schema
from partita.apps.metrics.mariadb import MariaDB, parse_address
from partita.apps.metrics.migrating import MigratingCatalogue, MirroredCatalogue
from partita.apps.metrics.modes import Mode, Modes, Watch
from partita.apps.metrics.tables import Tables, create_tables
from partita.client import Client
from partita.client.client import REGION
from partita.errors import PartitaError
from partita.server.http.web import Web


class Limits(TypedDict):
    tries: int
    seconds_max: float


NEEDS = {
    Mode.LEGACY: {"mysql"},
    Mode.MIGRATING: {"mysql", "endpoint"},
    Mode.MIRRORED: {"mysql", "endpoint"},
    Mode.DYNAMODB: {"endpoint"},
}
HASTY: Limits = {"tries": 3, "seconds_max": 3.0}
"""For what others wait for: writes that hold a lock in MariaDB, looks at the mode."""


@dataclass
class Stores:
    """The databases that were named, and the catalogues on them."""

    legacy: LegacyCatalogue | None = None
    dynamodb: DynamoDBCatalogue | None = None
    beside: DynamoDBCatalogue | None = None
    """DynamoDB again, with less patience."""
    modes: Modes | None = None

    def catalogues(self) -> dict[Mode, Catalogue]:
        found: dict[Mode, Catalogue] = {}
        if self.legacy is not None:
            found[Mode.LEGACY] = self.legacy
        if self.dynamodb is not None:
            found[Mode.DYNAMODB] = self.dynamodb
        if self.legacy is not None and self.dynamodb is not None and self.beside is not None:
            found[Mode.MIGRATING] = MigratingCatalogue(self.legacy, self.beside)
            found[Mode.MIRRORED] = MirroredCatalogue(self.legacy, self.dynamodb)
        return found


@asynccontextmanager
async def opened(
    mysql: str | None, endpoint: str | None, tables: Tables, connections: int = 16
) -> AsyncIterator[Stores]:
    """Both databases, with what is missing in them made."""
    async with AsyncExitStack() as stack:
        stores = Stores()
        if mysql is not None:
            database = MariaDB(parse_address(mysql), connections)
            stack.callback(database.close)
            await create_schema(database)
            stores.legacy = LegacyCatalogue(database)
        if endpoint is not None:
            region = os.environ.get("AWS_DEFAULT_REGION", REGION)
            client = Client(endpoint, region, connections=connections)
            hasty = Client(endpoint, region, connections=connections, **HASTY)
            stack.push_async_callback(client.close)
            stack.push_async_callback(hasty.close)
            await create_tables(client, tables)
            stores.dynamodb = DynamoDBCatalogue(client, tables)
            stores.beside = DynamoDBCatalogue(hasty, tables)
            stores.modes = Modes(hasty, tables)
        yield stores


async def serve(
    host: str,
    port: int,
    mode: Mode,
    mysql: str | None,
    endpoint: str | None,
    tables: Tables,
    say: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM."""
    async with opened(mysql, endpoint, tables) as stores:
        catalogues = stores.catalogues()
        if stores.modes is not None:
            mode = await stores.modes.begin(mode)
        if mode not in catalogues:
            raise PartitaError(
                f"The mode is {mode}: it needs --{' and --'.join(sorted(NEEDS[mode]))}."
            )
        server = f"{socket.gethostname()}-{os.getpid()}"
        watch = Watch(stores.modes, server, set(catalogues), mode, monotonic)
        await watch.begin()
        web = Web()
        Api(catalogues, watch).add_to(web)
        following = asyncio.create_task(watch.follow())
        try:
            await web.serve(
                host, port, lambda url: say(f"The catalogue listens on {url} ({watch.mode})")
            )
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
