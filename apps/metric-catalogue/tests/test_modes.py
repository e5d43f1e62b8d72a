"""A server follows the mode, and takes writes only while its lease holds."""

from __future__ import annotations

import asyncio

from metric_catalogue.stores.catalogue_modes import LEASE_SECONDS, Mode, Modes, ModeWatch
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables, create_tables
from partita.client import Client
from testkit.servers import processes


def test_a_server_that_was_only_slow_takes_writes_after_reading_the_mode_again(
    partita: processes.Server,
) -> None:
    async def story() -> None:
        client, tables = Client(partita.url), CatalogueTables("slow")
        await create_tables(client, tables)
        modes = Modes(client, tables)
        await modes.begin(Mode.LEGACY)
        time = 0.0
        watch = ModeWatch(modes, "server", set(Mode), Mode.LEGACY, lambda: time)
        await watch.begin()
        time = 2 * LEASE_SECONDS
        assert not watch.is_current
        await asyncio.gather(*(watch.refresh() for _ in range(3)))
        assert watch.is_current
        await client.close()

    asyncio.run(story())


def test_a_server_that_cannot_read_the_mode_takes_no_writes() -> None:
    async def story() -> None:
        client = Client("http://127.0.0.1:1", tries=1)
        time = 0.0
        watch = ModeWatch(
            Modes(client, CatalogueTables()), "server", set(Mode), Mode.LEGACY, lambda: time
        )
        time = 2 * LEASE_SECONDS
        await watch.refresh()
        assert not watch.is_current
        await client.close()

    asyncio.run(story())
