"""Readiness of SQLite: it can always be backed up, but has no log to follow."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.understanding.planning.readiness.readiness_check import (
    ServerCheck,
    not_ready,
    ready,
)
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase


def backup(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    mode = str(source.rows("PRAGMA journal_mode")[0][0])
    yield ready("backup", "journal_mode", mode)


def changes(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    yield not_ready(
        "changes",
        "a log of changes",
        "missing",
        "`partita migrate load --follow` writes one with triggers; without it, stop the writers"
        " before the load begins.",
    )


CHECKS = (backup, changes)
