"""Errors with which the catalogue refuses a request. Each class has its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from partita.errors import PartitaError


class CatalogueError(PartitaError):
    status: ClassVar[int]

    @property
    def told(self) -> str:
        """What clients read."""
        return str(self)

    @property
    def reason(self) -> str:
        """The class that has the status: finer ones are not for clients."""
        return next(kind.__name__ for kind in type(self).__mro__ if "status" in vars(kind))


class Refused(CatalogueError):
    """The request breaks a rule."""

    status = 400


class NotFound(CatalogueError):
    status = 404


class Conflict(CatalogueError):
    """It exists already, or conflicts with what exists."""

    status = 409


class Changed(CatalogueError):
    """The version on which the update is based is no longer the latest."""

    status = 412


class InMigration(CatalogueError):
    """A metric cannot be updated while it is copied, which takes milliseconds (figure 5.9)."""

    status = 423


class Unavailable(CatalogueError):
    """The request cannot be answered now; clients are told why as far as it concerns them."""

    status = 503


class DatabaseUnavailable(Unavailable):
    """Commands and the log say which database it is, and under which user; clients are not told."""

    @property
    def told(self) -> str:
        return "A database of the catalogue does not answer: try again in a moment."


class Moved(Unavailable):
    """Another database takes writes now. Nothing was written."""

    def __init__(self) -> None:
        super().__init__("The catalogue is being moved: try again in a moment.")


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
