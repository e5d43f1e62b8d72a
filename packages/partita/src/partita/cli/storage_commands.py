"""`partita storage`: the tables that servers share in PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from partita.assembly.required_extras import key_source
from partita.errors import StorageError
from partita.installation.optional_packages import packages_required

_url = click.argument("url", envvar="PARTITA_SERVE_STORAGE")


class StorageGroup(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        with packages_required("partita[postgresql]"):
            return super().invoke(ctx)


@click.group(cls=StorageGroup)
def storage() -> None:
    """Manage the storage that several servers share: URL is postgresql://user@host/db."""


@storage.command()
@_url
def init(url: str) -> None:
    """Create the tables; nothing happens where they are there already."""
    from partita.assembly import checks_at_rest
    from partita.database.storage.postgresql.postgresql_pool import place

    is_new = checks_at_rest.create_tables(url)
    click.echo(f"{place(url)}: {'ready for servers' if is_new else 'was ready already'}.")


@storage.command()
@_url
def check(url: str) -> None:
    """Verify that this Partita can serve the storage, and every invariant of what is in it.

    Exits with 0 when all is well, 1 when something is wrong, 2 when it cannot be opened. Servers
    may go on meanwhile.
    """
    from partita.assembly import checks_at_rest
    from partita.database.storage.postgresql import postgresql_schema
    from partita.database.storage.postgresql.postgresql_pool import connected

    async def fits() -> None:
        async with connected(url) as connection:
            await postgresql_schema.check(connection)

    try:
        asyncio.run(fits())
        is_well = checks_at_rest.check_storage(url, say=click.echo)
    except StorageError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(2)
    sys.exit(0 if is_well else 1)


@storage.command()
@_url
def status(url: str) -> None:
    """Show the servers, who leads, and what is stored."""
    from partita.database.storage.postgresql import postgresql_schema
    from partita.database.storage.postgresql.postgresql_pool import connected

    async def run() -> list[str]:
        async with connected(url) as connection:
            await postgresql_schema.check(connection)
            return [line async for line in postgresql_schema.status(connection)]

    for line in asyncio.run(run()):
        click.echo(line)


@storage.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--encryption-key",
    metavar="SOURCE",
    envvar="PARTITA_SERVE_ENCRYPTION_KEY",
    help="Of an encrypted folder to copy from: file:PATH, env:NAME or command:LINE. In PostgreSQL, "
    "Partita does not encrypt.",
)
def copy(source: str, target: str, encryption_key: str | None) -> None:
    """Copy a data folder into PostgreSQL, or back: FROM and TO are folders or URLs.

    A copy that was interrupted goes on when it is run again. A folder that is being served is
    followed until its server stops; what is copied from PostgreSQL is as it was when the copy
    began. The copy is verified before it may be served.
    """
    from partita.assembly import checks_at_rest

    key = key_source(encryption_key)
    if not checks_at_rest.copy_storage(source, target, click.echo, key):
        sys.exit(1)
