"""All checks of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita_migrate.understanding.planning.readiness import mysql, postgresql, sqlite
from partita_migrate.understanding.planning.readiness.check import ServerCheck
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.connection import Source, SourceError

CHECKS: dict[str, tuple[Callable[[Source, Inventory], Iterator[ServerCheck]], ...]] = {
    "mysql": mysql.CHECKS,
    "mariadb": mysql.CHECKS,
    "postgresql": postgresql.CHECKS,
    "sqlite": sqlite.CHECKS,
}


def check_server(source: Source, inventory: Inventory) -> list[ServerCheck]:
    found: list[ServerCheck] = []
    for check in CHECKS[source.dialect]:
        try:
            found += check(source, inventory)
        except SourceError as error:
            if source.is_lost:
                raise
            name = check.__name__.replace("_", " ")
            found.append(
                ServerCheck(
                    purpose="backup" if "backup" in name else "changes",
                    setting=name,
                    found="not known",
                    is_ready=False,
                    change=f"Ask the administrator: {error}",
                )
            )
    return found
