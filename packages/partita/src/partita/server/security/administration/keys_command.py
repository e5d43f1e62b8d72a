"""`partita keys`: makes and shows the keys of encrypted data folders, encrypts and decrypts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from partita.database.storage.sealing.cipher import CannotUnseal
from partita.database.storage.sealing.encrypted_folders import keyring_of
from partita.database.storage.sealing.master_keys import KeySource, new_printed_key
from partita.errors import PartitaError
from partita.server.security.administration.access_options import data_option, key_option
from partita.server.security.audit.audit_head import seal_head
from partita.server.security.identities.access_file import FILE_NAME, AccessFile, begin_sealing

if TYPE_CHECKING:
    from partita.database.storage.sealing.keyring import Keyring

AUDIT: Final = "audit"
KEPT_AS_THEY_ARE: Final = (AUDIT, "tls")


@click.group()
def keys() -> None:
    """Keys for `serve --encryption-key`."""


@keys.command()
def new() -> None:
    """Print a new key: 32 random bytes in base64.

    To rotate, put it on the first line of the file of keys, above the key in use. A running server
    uses it at once and encrypts everything under it. Remove the old line when `partita keys show`
    reports that no rotation is under way.
    """
    click.echo(new_printed_key())


@keys.command()
@data_option
@key_option
def show(data: Path, encryption_key: str | None) -> None:
    """Show which key a data folder is encrypted under, and whether a rotation is under way."""
    if encryption_key is None:
        raise click.UsageError("Give --encryption-key: it says where the key is.")
    keyring = keyring_of(data, KeySource(encryption_key))
    if keyring.is_new:
        click.echo(f"{data} is not encrypted yet.")
        return
    click.echo(f"key {keyring.fingerprint}, generation {keyring.generation}")
    state = "under way" if keyring.is_rotating else "none under way"
    click.echo(f"tables and streams {len(keyring.numbers) - 1}, rotation {state}")


@keys.command()
@click.argument("source", metavar="FROM", type=click.Path(path_type=Path))
@click.argument("target", metavar="TO", type=click.Path(path_type=Path))
@key_option
def encrypt(source: Path, target: Path, encryption_key: str | None) -> None:
    """Copy a plain data folder into a new, encrypted one.

    No server may use FROM while this runs. It stays unchanged: remove it once TO works for you.
    Tables, streams, users, the audit log and certificates are copied. Backups and point-in-time
    recovery are not.
    """
    if encryption_key is None:
        raise click.UsageError("Give --encryption-key: it says where the key is.")
    from partita.database.at_rest.folder_encryption import encrypt_folder

    done = encrypt_folder(
        source,
        target,
        KeySource(encryption_key),
        lambda keyring: _copy_files(source, target, keyring),
    )
    count = len(done.tables)
    click.echo(f"{count} tables, {done.items} items encrypted in {target}, and checked.")
    for name in done.without_recovery:
        click.echo(f"Point-in-time recovery of {name} is off: enable it again.")
    for name in done.with_new_stream:
        click.echo(f"The stream of {name} has ended, and a new one begun: see its LatestStreamArn.")


def _copy_files(source: Path, target: Path, keyring: Keyring) -> None:
    """Copies the users, the audit log and the certificates of a folder that is being encrypted."""
    begin_sealing(target, keyring)
    if (source / FILE_NAME).exists():
        users = AccessFile(target / FILE_NAME, lambda: keyring)
        with users.changing() as change:
            change.directory = AccessFile(source / FILE_NAME).load()
    for name in KEPT_AS_THEY_ARE:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
    seal_head(target / AUDIT, keyring)


@keys.command()
@click.argument("source", metavar="FROM", type=click.Path(path_type=Path, exists=True))
@click.argument("target", metavar="TO", type=click.Path(path_type=Path))
@key_option
def decrypt(source: Path, target: Path, encryption_key: str | None) -> None:
    """Decrypt an export that an encrypted server wrote to a folder, into a new folder.

    FROM is the folder of the bucket, or one in it, and TO a new folder. A key that has been
    rotated since the export must still be among those of --encryption-key.
    """
    if encryption_key is None:
        raise click.UsageError("Give --encryption-key: it says where the key is.")
    from partita.database.storage.sealing.sealed_object import is_sealed, open_object

    if target.exists():
        raise click.UsageError(f"{target} already exists: choose a new folder.")
    masters = KeySource(encryption_key).read()
    files = sorted(path for path in source.rglob("*") if path.is_file())
    for path in files:
        content = path.read_bytes()
        if is_sealed(content):
            try:
                content = open_object(masters, path.absolute().as_posix(), content)
            except CannotUnseal as error:
                raise PartitaError(f"{path} cannot be opened. {error}") from None
        new = target / path.relative_to(source)
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
    click.echo(f"{len(files)} files written to {target}.")
