"""Commands whose modules are imported only when they run, so that `partita --help` stays quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click


class LazyCommand(NamedTuple):
    """A command that is not imported yet, and its line in `partita --help`."""

    load: Callable[[], click.Command]
    help: str


def _audit() -> click.Command:
    from partita.server.security.administration.audit_command import audit

    return audit


def _backup() -> click.Command:
    from partita.copies.backups.backup_commands import backup

    return backup


def _console() -> click.Command:
    from partita.console.console_command import console

    return console


def _diff() -> click.Command:
    from partita.copies.table_files.table_commands import diff

    return diff


def _export() -> click.Command:
    from partita.copies.table_files.table_commands import export_command

    return export_command


def _import() -> click.Command:
    from partita.copies.table_files.table_commands import import_command

    return import_command


def _keys() -> click.Command:
    from partita.server.security.administration.keys_command import keys

    return keys


def _policies() -> click.Command:
    from partita.server.security.administration.policies_command import policies

    return policies


def _query() -> click.Command:
    from partita.copies.table_files.table_commands import query

    return query


def _restore() -> click.Command:
    from partita.copies.backups.backup_commands import restore_command

    return restore_command


def _scan() -> click.Command:
    from partita.copies.table_files.table_commands import scan

    return scan


def _storage() -> click.Command:
    from partita.cli.storage_commands import storage

    return storage


def _users() -> click.Command:
    from partita.server.security.administration.users_command import users

    return users


LATE = {
    "audit": LazyCommand(_audit, "Verify the audit log."),
    "backup": LazyCommand(_backup, "Back up a running server or a shared storage."),
    "console": LazyCommand(_console, "Show any DynamoDB in a browser."),
    "diff": LazyCommand(_diff, "Show what changed in a table between two moments."),
    "export": LazyCommand(_export, "Write a table to a CSV, JSON lines or Parquet file."),
    "import": LazyCommand(_import, "Put the items of a file into a table."),
    "keys": LazyCommand(_keys, "Create keys, and encrypt a data folder."),
    "policies": LazyCommand(_policies, "Manage IAM policies."),
    "query": LazyCommand(_query, "Print the items of a partition as JSON."),
    "restore": LazyCommand(_restore, "Restore a backup, and verify it."),
    "scan": LazyCommand(_scan, "Print the items of a table as JSON."),
    "storage": LazyCommand(_storage, "Manage storage that several servers share."),
    "users": LazyCommand(_users, "Manage users, groups and roles."),
}
