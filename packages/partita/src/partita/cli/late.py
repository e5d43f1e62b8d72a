"""Commands whose modules are only imported when they are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click


class Late(NamedTuple):
    load: Callable[[], click.Command]
    help: str
    """What the list of commands says of it."""


def _audit() -> click.Command:
    from partita.server.security.commands.audit import audit

    return audit


def _backup() -> click.Command:
    from partita.backups.commands import backup

    return backup


def _console() -> click.Command:
    from partita.console.commands import console

    return console


def _diff() -> click.Command:
    from partita.exchange.commands import diff

    return diff


def _export() -> click.Command:
    from partita.exchange.commands import export_command

    return export_command


def _import() -> click.Command:
    from partita.exchange.commands import import_command

    return import_command


def _keys() -> click.Command:
    from partita.server.security.commands.keys import keys

    return keys


def _policies() -> click.Command:
    from partita.server.security.commands.policies import policies

    return policies


def _query() -> click.Command:
    from partita.exchange.commands import query

    return query


def _restore() -> click.Command:
    from partita.backups.commands import restore_command

    return restore_command


def _scan() -> click.Command:
    from partita.exchange.commands import scan

    return scan


def _storage() -> click.Command:
    from partita.cli.storage import storage

    return storage


def _users() -> click.Command:
    from partita.server.security.commands.users import users

    return users


LATE = {
    "audit": Late(_audit, "Verify the log of who did what."),
    "backup": Late(_backup, "Back up a running server, or a shared storage."),
    "console": Late(_console, "Show any DynamoDB in a browser."),
    "diff": Late(_diff, "Show what changed in a table between two moments."),
    "export": Late(_export, "Write a table into CSV, JSON lines or Parquet."),
    "import": Late(_import, "Put the items of a file in a table."),
    "keys": Late(_keys, "Make keys, and encrypt a data folder."),
    "policies": Late(_policies, "Manage policies of IAM's language."),
    "query": Late(_query, "Print the items of a partition as JSON."),
    "restore": Late(_restore, "Restore a backup, and verify it."),
    "scan": Late(_scan, "Print the items of a table as JSON."),
    "storage": Late(_storage, "Manage a storage that servers share."),
    "users": Late(_users, "Manage users, groups and roles."),
}
