"""`partita audit`: whether the audit log is whole."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from partita.server.security.audit.log import read_head, verify
from partita.server.security.commands.files import data_option

FOLDER = "audit"


@click.group()
def audit() -> None:
    """The log of who did what, in the folder `audit` of a data folder."""


@audit.command("verify")
@data_option
@click.option(
    "--audit",
    "folder",
    envvar="PARTITA_SERVE_AUDIT",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the audit log, if it is not in the data folder.",
)
def verify_log(data: Path, folder: Path | None) -> None:
    """Say which events have been changed or removed, also while a server runs.

    Exits with 0 when none has. Note the digest elsewhere: whoever can write to the folder could
    write a whole log anew, but not one with this digest.
    """
    folder = folder or data / FOLDER
    findings = list(verify(folder))
    for finding in findings:
        click.echo(finding)
    head = read_head(folder)
    if not findings and head is not None:
        click.echo(f"Events {head.first} to {head.last} are whole; digest {head.digest}.")
    sys.exit(1 if findings else 0)
