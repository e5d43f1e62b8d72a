"""SQLite: a backup at any time, and no log of changes unless `load --follow` creates one."""

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
        "not there",
        "`partita migrate load --follow` creates one with triggers; without it, stop the writers"
        " before the load begins.",
    )


CHECKS = (backup, changes)
