"""Runs all readiness checks for the kind of server at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita_migrate.understanding.planning.readiness import (
    mysql_readiness,
    postgresql_readiness,
    sqlite_readiness,
)
from partita_migrate.understanding.planning.readiness.readiness_check import ServerCheck
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError

CHECKS: dict[str, tuple[Callable[[SourceDatabase, Inventory], Iterator[ServerCheck]], ...]] = {
    "mysql": mysql_readiness.CHECKS,
    "mariadb": mysql_readiness.CHECKS,
    "postgresql": postgresql_readiness.CHECKS,
    "sqlite": sqlite_readiness.CHECKS,
}


def check_server(source: SourceDatabase, inventory: Inventory) -> list[ServerCheck]:
    results: list[ServerCheck] = []
    for check in CHECKS[source.dialect]:
        try:
            results += check(source, inventory)
        except SourceError as error:
            if source.is_lost:
                raise
            name = check.__name__.replace("_", " ")
            results.append(
                ServerCheck(
                    purpose="backup" if "backup" in name else "changes",
                    setting=name,
                    found="unknown",
                    is_ready=False,
                    change=f"Ask the administrator: {error}",
                )
            )
    return results
