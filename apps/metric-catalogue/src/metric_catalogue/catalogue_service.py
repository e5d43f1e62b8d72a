"""The catalogue as a service: opens the databases and serves the API over them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TypedDict

from metric_catalogue.api.catalogue_handlers import CatalogueApi
from metric_catalogue.api.catalogue_monitoring import CatalogueMonitoring
from metric_catalogue.data.metric_data_service import CACHE_SECONDS, MetricDataService
from metric_catalogue.migration.dual_writes import MigratingCatalogue
from metric_catalogue.stores.catalogue import Catalogue
from metric_catalogue.stores.catalogue_modes import (
    BEFORE_CUTOVER,
    Mode,
    Modes,
    ModeSource,
    ModeWatch,
)
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables, create_tables
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue, create_schema
from metric_catalogue.stores.mariadb.mariadb_connections import (
    LOCK_SECONDS_MAX,
    ConnectionPool,
    parse_address,
)
from metric_catalogue.stores.mariadb.switch_mode import SwitchMode
from partita.client import Client
from partita.client.aws_client import REGION
from partita.errors import PartitaError
from partita.server.http.web.web_service import WebService, origins_from_environment
from partita_services.alarms import Alarm, Alarms


class ClientLimits(TypedDict):
    tries: int
    seconds_max: float


REQUIRED_OPTIONS = {
    Mode.LEGACY: {"mysql"},
    Mode.MIGRATING: {"mysql", "endpoint"},
    Mode.SEALED: {"mysql", "endpoint"},
    Mode.DYNAMODB: {"endpoint"},
}
HASTY: ClientLimits = {"tries": 3, "seconds_max": 3.0}
"""Short limits for calls that others wait for: dual writes, which hold a lock in MariaDB, and
reads of the mode."""


@dataclass
class OpenStores:
    """The databases that the options name, and the catalogues on them."""

    mariadb: MariaDBCatalogue | None = None
    dynamodb: DynamoDBCatalogue | None = None
    copied: DynamoDBCatalogue | None = None
    """The catalogue in DynamoDB as dual writes use it: before the cutover, with short timeouts."""
    modes: Modes | None = None
    client: Client | None = None
    """The client of DynamoDB, where the values of metrics are in every mode."""

    def catalogues(self) -> dict[Mode, Catalogue]:
        catalogues: dict[Mode, Catalogue] = {}
        if self.mariadb is not None:
            catalogues[Mode.LEGACY] = self.mariadb
        if self.dynamodb is not None:
            # In the mode `sealed` DynamoDB answers reads and refuses writes.
            catalogues[Mode.DYNAMODB] = catalogues[Mode.SEALED] = self.dynamodb
        if self.mariadb is not None and self.copied is not None:
            catalogues[Mode.MIGRATING] = MigratingCatalogue(self.mariadb, self.copied)
        return catalogues

    def mode_source(self) -> ModeSource:
        """Returns where to read the mode. A server without DynamoDB reads the switch in MariaDB."""
        if self.modes is not None:
            return self.modes
        if self.mariadb is None:
            raise PartitaError("Name a database: --mysql, --endpoint, or both.")
        return SwitchMode(self.mariadb.database)


@asynccontextmanager
async def open_stores(
    mysql: str | None,
    endpoint: str | None,
    tables: CatalogueTables,
    connections: int = 16,
    lock_seconds: int = LOCK_SECONDS_MAX,
) -> AsyncIterator[OpenStores]:
    """Opens the databases that are named, and creates missing tables."""
    async with AsyncExitStack() as stack:
        stores = OpenStores()
        if mysql is not None:
            database = ConnectionPool(parse_address(mysql), connections, lock_seconds)
            stack.callback(database.close)
            await create_schema(database)
            stores.mariadb = MariaDBCatalogue(database)
        if endpoint is not None:
            region = os.environ.get("AWS_DEFAULT_REGION", REGION)
            client = Client(endpoint, region, connections=connections)
            hasty = Client(endpoint, region, connections=connections, **HASTY)
            stack.push_async_callback(client.close)
            stack.push_async_callback(hasty.close)
            await create_tables(client, tables)
            stores.dynamodb = DynamoDBCatalogue(client, tables)
            stores.copied = DynamoDBCatalogue(hasty, tables, BEFORE_CUTOVER)
            stores.modes = Modes(hasty, tables)
            stores.client = client
        yield stores


async def serve(
    host: str,
    port: int,
    mode: Mode,
    mysql: str | None,
    endpoint: str | None,
    tables: CatalogueTables,
    say: Callable[[str], None],
    cache_seconds: float = CACHE_SECONDS,
    alarms: tuple[Alarm, ...] = (),
) -> None:
    """Serves the API until SIGINT or SIGTERM."""
    async with open_stores(mysql, endpoint, tables) as stores:
        catalogues = stores.catalogues()
        if stores.modes is not None:
            mode = await stores.modes.begin(mode)
        source = stores.mode_source()
        if mode not in catalogues:
            raise PartitaError(
                f"The mode {mode} needs --{' and --'.join(sorted(REQUIRED_OPTIONS[mode]))}."
            )
        server = f"{socket.gethostname()}-{os.getpid()}"
        sessions = stores.mariadb.database.sessions if stores.mariadb is not None else tuple
        watch = ModeWatch(source, server, set(catalogues), mode, monotonic, sessions)
        await watch.begin()
        web = WebService(origins=origins_from_environment())
        data = None
        if stores.dynamodb is not None:
            data = MetricDataService(stores.dynamodb.reads, tables, cache_seconds)
        monitoring = CatalogueMonitoring(watch, stores.mariadb, data)
        CatalogueApi(catalogues, watch, data, monitoring).add_to(web)
        watched = Alarms(alarms, monitoring.readings)
        web.add("GET", "/alarms", watched.show)
        background = [asyncio.create_task(work) for work in (watch.follow(), watched.run())]
        try:
            await web.serve(
                host, port, lambda url: say(f"The catalogue listens on {url} ({watch.mode})")
            )
        finally:
            for task in background:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
