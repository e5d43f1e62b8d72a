"""`partita backup` and `partita restore`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from partita.assembly.required_extras import key_source, require_postgresql
from partita.client import Client
from partita.copies.backups.backup_format import LATEST, backup_names, find_backup, keep_newest
from partita.copies.backups.backup_locations import only_writer, open_location
from partita.copies.backups.restore_backup import check, restore
from partita.copies.backups.server_backup import BackupSummary, take
from partita.copies.progress_line import ProgressLine
from partita.copies.time_arguments import seconds_of
from partita.database.storage.archive import Archive
from partita.errors import PartitaError

_key = click.option(
    "--encryption-key",
    metavar="SOURCE",
    envvar="PARTITA_SERVE_ENCRYPTION_KEY",
    help="Of an encrypted database: file:PATH, env:NAME or command:LINE.",
)

_storage = click.option(
    "--storage",
    metavar="URL",
    help="postgresql://user@host/db: where servers share their data, instead of a server.",
)


@click.command("backup")
@click.argument("place", metavar="DIR|s3://BUCKET/PREFIX")
@click.option("--every", metavar="TIME", help="Again and again: 30m, 6h, 1d.")
@click.option("--keep", type=click.IntRange(1), help="So many backups; older ones are removed.")
@click.option(
    "--check/--no-check", "is_checked", default=True, help="Verify each backup.  [default: check]"
)
@_key
@_storage
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default="http://127.0.0.1:8000",
    show_default=True,
    help="Where the server is.",
)
def backup(
    place: str,
    every: str | None,
    keep: int | None,
    is_checked: bool,
    encryption_key: str | None,
    storage: str | None,
    endpoint: str,
) -> None:
    """Back up a running server, or what servers share in PostgreSQL: all of it, as of one commit.

    What an earlier backup in the same place has is not written again. Each is verified as `partita
    check` verifies a data folder. An S3 endpoint is taken from AWS_ENDPOINT_URL_S3.
    """
    pause = None if every is None else seconds_of(every)
    while True:
        try:
            with only_writer(place):
                _back_up(place, storage, endpoint, keep, encryption_key, is_checked=is_checked)
        except PartitaError as error:
            if pause is None:
                raise
            # The next one may succeed; the last good one is there.
            click.echo(f"partita: {error}", err=True)
        if pause is None:
            return
        asyncio.run(asyncio.sleep(pause))


def _back_up(
    place: str,
    storage: str | None,
    endpoint: str,
    keep: int | None,
    key: str | None,
    *,
    is_checked: bool,
) -> None:
    target = open_location(place, is_new=True)
    progress = ProgressLine("copied", what="keys")
    taken = _take(storage, endpoint, target, progress.add)
    progress.end()
    if is_checked and not _check(target, taken.name, key):
        raise PartitaError(f"The backup {taken.name} in {place} is not well: see above.")
    click.echo(f"{place} has {taken.name}: {taken.keys:,} keys, {taken.bytes_written:,} bytes new.")
    if keep is not None:
        for name in keep_newest(target, keep):
            click.echo(f"{name} is removed.")


def _take(
    storage: str | None, endpoint: str, target: Archive, progress: Callable[[int], None]
) -> BackupSummary:
    if storage is not None:
        require_postgresql()
        from partita.copies.backups import storage_backup as shared

        return shared.take(storage, target, progress)

    async def run() -> BackupSummary:
        client = Client(endpoint, tries=3)
        try:
            return await take(client, target, progress)
        finally:
            await client.close()

    return asyncio.run(run())


def _check(source: Archive, name: str, key: str | None) -> bool:
    with TemporaryDirectory(prefix="partita-") as scratch:
        return check(source, name, key_source(key), click.echo, Path(scratch))


@click.command("restore")
@click.argument("place", metavar="DIR|s3://BUCKET/PREFIX")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The data folder to make, which is not there yet.",
)
@click.option("--backup", "name", default=LATEST, show_default=True, help="Which one.")
@click.option("--list", "is_listed", is_flag=True, help="Show which backups there are.")
@click.option("--check", "is_checked", is_flag=True, help="Verify a backup, and restore nothing.")
@_key
@_storage
def restore_command(
    place: str,
    data: Path | None,
    name: str,
    is_listed: bool,
    is_checked: bool,
    encryption_key: str | None,
    storage: str | None,
) -> None:
    """Make a data folder of a backup, or fill PostgreSQL, and verify it: then it may be served.

    Exits with 0 when all is well, and with 1 when something is wrong with the backup.
    """
    source = open_location(place)
    if is_listed:
        for one in backup_names(source):
            click.echo(one)
        return
    found = find_backup(source, name, place)
    if is_checked:
        sys.exit(0 if _check(source, found, encryption_key) else 1)
    if (data is None) == (storage is None):
        raise click.UsageError("Name the data folder to make, --data DIR, or --storage URL.")
    progress = ProgressLine("restored", what="keys")
    if storage is not None:
        require_postgresql()
        from partita.copies.backups import storage_backup as shared

        is_well = shared.restore(source, found, storage, progress.add, click.echo)
        left = "the database"
    else:
        assert data is not None
        is_well = restore(source, found, data, key_source(encryption_key), progress.add, click.echo)
        left = f"{data}.part"
    progress.end(f" from {found}")
    if not is_well:
        raise PartitaError(f"The backup {found} is not well; what was restored is in {left}.")
    click.echo(f"{data or 'The database'} is ready to be served.")
