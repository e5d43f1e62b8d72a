"""`partita keys`: the keys that a data folder is encrypted under."""

from __future__ import annotations

from pathlib import Path

import click

from partita.database.storage.sealing.folders import keyring_of
from partita.database.storage.sealing.master_keys import KeySource, new_printed_key
from partita.server.security.commands.files import data_option, key_option


@click.group()
def keys() -> None:
    """Keys for `serve --encryption-key`."""


@keys.command()
def new() -> None:
    """Print a new key: 32 random bytes, in base64.

    To rotate, put it on the first line of the file of keys, above the one in use; a running server
    takes it at once, and seals everything anew. Remove the old line when `partita keys show` says
    so.
    """
    click.echo(new_printed_key())


@keys.command()
@data_option
@key_option
def show(data: Path, encryption_key: str | None) -> None:
    """Say which key a data folder is under, and whether a rotation is over."""
    if encryption_key is None:
        raise click.UsageError("--encryption-key says where the key is.")
    keyring = keyring_of(data, KeySource(encryption_key))
    if keyring.is_new:
        click.echo(f"{data} is not encrypted yet.")
        return
    click.echo(f"key {keyring.fingerprint}, generation {keyring.generation}")
    state = "under way" if keyring.is_rotating else "none under way"
    click.echo(f"tables and streams {len(keyring.numbers) - 1}, rotation {state}")
