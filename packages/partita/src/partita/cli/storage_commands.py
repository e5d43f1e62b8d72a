"""`partita storage`: manages the data that servers share in PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from partita.database.storage.data_folder.keyring_access import key_source
from partita.errors import StorageError
from partita.installation.optional_packages import packages_required

_url = click.argument("url", envvar="PARTITA_SERVE_STORAGE")


class StorageGroup(click.Group):
    """A group whose commands need the package for PostgreSQL."""

    def invoke(self, ctx: click.Context) -> Any:
        with packages_required("partita[postgresql]"):
            return super().invoke(ctx)


@click.group(cls=StorageGroup)
def storage() -> None:
    """Manage the storage that several servers share: URL is postgresql://user@host/db."""


@storage.command()
@_url
def init(url: str) -> None:
    """Create the tables that are missing, or upgrade them."""
    from partita.copies.storage_copy.postgresql_target import create_tables
    from partita.database.storage.postgresql.postgresql_pool import place

    is_new = create_tables(url)
    click.echo(f"{place(url)}: {'ready for servers' if is_new else 'was ready already'}.")


@storage.command()
@_url
def check(url: str) -> None:
    """Verify that this Partita can serve the storage, and every invariant of its data.

    Exits with 0 without findings, 1 with findings, 2 when the storage cannot be opened. Servers may
    run meanwhile.
    """
    from partita.copies.integrity_check import check_postgresql
    from partita.database.storage.postgresql import postgresql_schema
    from partita.database.storage.postgresql.postgresql_pool import connected

    async def fits() -> None:
        async with connected(url) as connection:
            await postgresql_schema.check(connection)

    try:
        asyncio.run(fits())
        has_no_findings = check_postgresql(url, click.echo)
    except StorageError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(2)
    sys.exit(0 if has_no_findings else 1)


@storage.command()
@_url
def status(url: str) -> None:
    """Show the servers, the leader, and the size of the data."""
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
    help="The key of an encrypted FROM: file:PATH, env:NAME or command:LINE. Partita does not "
    "encrypt in PostgreSQL.",
)
def copy(source: str, target: str, encryption_key: str | None) -> None:
    """Copy a data folder into PostgreSQL, or back: FROM and TO are folders or URLs.

    An interrupted copy continues when it is run again. A folder that is being served is followed
    until its server stops; PostgreSQL is copied as it is when the copy begins. The copy is verified
    before it can be served.
    """
    from partita.copies.storage_copy.storage_transfer import copy_storage

    if not copy_storage(source, target, click.echo, key_source(encryption_key)):
        sys.exit(1)
