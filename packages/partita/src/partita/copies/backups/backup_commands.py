"""`partita backup` and `partita restore`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from partita.client import Client
from partita.copies.backups.backup_format import (
    LATEST,
    BackupSummary,
    backup_names,
    find_backup,
    keep_newest,
)
from partita.copies.backups.backup_locations import only_writer, open_location
from partita.copies.backups.restore_backup import check_backup, restore_folder, restore_postgresql
from partita.copies.backups.server_backup import Progress, back_up_server
from partita.copies.progress_line import ProgressLine
from partita.copies.time_arguments import seconds_of
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.keyring_access import key_source
from partita.errors import PartitaError
from partita.installation.optional_packages import require_postgresql

_key = click.option(
    "--encryption-key",
    metavar="SOURCE",
    envvar="PARTITA_SERVE_ENCRYPTION_KEY",
    help="The key of an encrypted database: file:PATH, env:NAME or command:LINE.",
)

_storage = click.option(
    "--storage",
    metavar="URL",
    help="The database that servers share, postgresql://user@host/db, instead of a server.",
)


@click.command("backup")
@click.argument("place", metavar="DIR|s3://BUCKET/PREFIX")
@click.option("--every", metavar="TIME", help="Repeat at this interval: 30m, 6h, 1d.")
@click.option(
    "--keep", type=click.IntRange(1), help="Keep this many backups, and remove older ones."
)
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
    help="The server to back up.",
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
    """Back up a running server, or the data that servers share in PostgreSQL, as of one commit.

    Data that an earlier backup in the same place contains is not written again. Each backup is
    verified as `partita check` verifies a data folder. AWS_ENDPOINT_URL_S3 gives the S3 endpoint.
    """
    pause = None if every is None else seconds_of(every)
    while True:
        try:
            with only_writer(place):
                _back_up(place, storage, endpoint, keep, encryption_key, is_checked=is_checked)
        except PartitaError as error:
            if pause is None:
                raise
            # The next backup may succeed, and the last good one is kept.
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
    location = open_location(place, is_new=True)
    line = ProgressLine("copied", what="keys")
    if storage is None:
        summary = asyncio.run(_back_up_server(endpoint, location, line.add))
    else:
        require_postgresql()
        from partita.copies.backups.postgresql_backup import back_up_postgresql

        summary = back_up_postgresql(storage, location, line.add)
    line.end()
    if is_checked and not check_backup(location, summary.name, key_source(key), click.echo):
        raise PartitaError(f"The backup {summary.name} in {place} is damaged: see above.")
    click.echo(
        f"{place} has {summary.name}: {summary.keys:,} keys, {summary.bytes_written:,} bytes new."
    )
    if keep is not None:
        for name in keep_newest(location, keep):
            click.echo(f"{name} is removed.")


async def _back_up_server(endpoint: str, location: Archive, progress: Progress) -> BackupSummary:
    client = Client(endpoint, tries=3)
    try:
        return await back_up_server(client, location, progress)
    finally:
        await client.close()


@click.command("restore")
@click.argument("place", metavar="DIR|s3://BUCKET/PREFIX")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The data folder to create; it must not exist.",
)
@click.option("--backup", "name", default=LATEST, show_default=True, help="The backup to restore.")
@click.option("--list", "is_listed", is_flag=True, help="Show the names of all backups.")
@click.option("--check", "is_checked", is_flag=True, help="Verify a backup without restoring it.")
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
    """Restore a backup into a new data folder or into PostgreSQL, and verify it.

    Exits with 1 if the backup is damaged.
    """
    location = open_location(place)
    if is_listed:
        for listed_name in backup_names(location):
            click.echo(listed_name)
        return
    name = find_backup(location, name, place)
    key = key_source(encryption_key)
    if is_checked:
        sys.exit(0 if check_backup(location, name, key, click.echo) else 1)
    if (data is None) == (storage is None):
        raise click.UsageError("Give either --data DIR, the folder to create, or --storage URL.")
    line = ProgressLine("restored", what="keys")
    if storage is not None:
        require_postgresql()
        is_good = restore_postgresql(location, name, storage, line.add, click.echo)
        restored = "the database"
    else:
        assert data is not None
        is_good = restore_folder(location, name, data, key, line.add, click.echo)
        restored = f"{data}.part"
    line.end(f" from {name}")
    if not is_good:
        raise PartitaError(
            f"The backup {name} is damaged; what could be restored is in {restored}."
        )
    click.echo(f"{data or 'The database'} is ready to be served.")
