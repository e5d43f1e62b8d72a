"""`partita storage`: the tables that servers share in PostgreSQL."""

from __future__ import annotations

import asyncio

import click

from partita.database.storage.postgresql import schema
from partita.database.storage.postgresql.connections import connected, place

_url = click.argument("url", envvar="PARTITA_SERVE_STORAGE")


@click.group()
def storage() -> None:
    """Manage the storage that several servers share: URL is postgresql://user@host/db."""


@storage.command()
@_url
def init(url: str) -> None:
    """Create the tables; nothing happens where they are there already."""

    async def run() -> bool:
        async with connected(url) as connection:
            return await schema.init(connection)

    is_new = asyncio.run(run())
    click.echo(f"{place(url)}: {'ready for servers' if is_new else 'was ready already'}.")


@storage.command()
@_url
def check(url: str) -> None:
    """Verify that this Partita can serve the storage."""

    async def run() -> None:
        async with connected(url) as connection:
            await schema.check(connection)

    asyncio.run(run())
    click.echo(f"{place(url)}: fits this Partita.")


@storage.command()
@_url
def status(url: str) -> None:
    """Show the servers, who leads, and what is stored."""

    async def run() -> list[str]:
        async with connected(url) as connection:
            await schema.check(connection)
            return [line async for line in schema.status(connection)]

    for line in asyncio.run(run()):
        click.echo(line)
