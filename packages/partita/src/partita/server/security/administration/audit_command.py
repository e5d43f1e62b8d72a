"""`partita audit`: verifies the audit log."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from partita.server.security.administration.access_options import data_option, key_option
from partita.server.security.audit.audit_head import read_head
from partita.server.security.audit.audit_log import verify

FOLDER = "audit"


@click.group()
def audit() -> None:
    """The log of who did what, in the folder `audit` of a data folder."""


@audit.command("verify")
@data_option
@key_option
@click.option(
    "--audit",
    "folder",
    envvar="PARTITA_SERVE_AUDIT",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the audit log, if it is not in the data folder.",
)
def verify_log(data: Path, encryption_key: str | None, folder: Path | None) -> None:
    """Report events that were changed or removed. A server may run meanwhile.

    Exits with 0 if the log is complete. Keep the digest in another place: somebody who can write to
    the folder could forge a whole log, but not one with this digest.
    """
    folder = folder or data / FOLDER
    keyring = None
    if encryption_key is not None:
        from partita.database.storage.sealing.encrypted_folders import keyring_of
        from partita.database.storage.sealing.master_keys import KeySource

        keyring = keyring_of(data, KeySource(encryption_key))
    findings = list(verify(folder, keyring))
    for finding in findings:
        click.echo(finding)
    head = None if findings else read_head(folder, keyring)
    if head is not None:
        click.echo(f"Events {head.first} to {head.last} are complete; digest {head.digest}.")
    sys.exit(1 if findings else 0)
