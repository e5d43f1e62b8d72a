"""What a request to the catalogue can be refused with. Each class has its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from partita.errors import PartitaError


class CatalogueError(PartitaError):
    status: ClassVar[int]


class Refused(CatalogueError):
    """What is asked for breaks a rule."""

    status = 400


class NotFound(CatalogueError):
    status = 404


class Conflict(CatalogueError):
    """It is there already, or does not fit what is there."""

    status = 409


class Changed(CatalogueError):
    """Somebody else was faster: the version that the update builds on is not the latest."""

    status = 412


class InMigration(CatalogueError):
    """Updates of a metric wait while it is being copied, some milliseconds (figure 5.9)."""

    status = 423


class Unavailable(CatalogueError):
    """A database does not answer."""

    status = 503


def no_metric(name: str) -> NotFound:
    return NotFound(f"There is no metric {name}.")


def no_version(name: str, version: int) -> NotFound:
    return NotFound(f"The metric {name} has no version {version}.")


def metric_exists(name: str) -> Conflict:
    return Conflict(f"There is a metric {name} already.")


def changed(name: str, expected: int, latest: int) -> Changed:
    return Changed(
        f"The latest version of {name} is {latest}, not {expected}: read it again, then update."
    )


def in_migration(name: str) -> InMigration:
    return InMigration(f"The metric {name} is being migrated: try again in a moment.")
