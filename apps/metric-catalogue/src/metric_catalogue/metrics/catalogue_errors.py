"""The errors with which the catalogue refuses a request: each class has the HTTP status and the
`reason` that a client receives."""

from __future__ import annotations

from typing import ClassVar

from partita.errors import PartitaError


class CatalogueError(PartitaError):
    """The base of all errors that clients of the HTTP API can receive."""

    status: ClassVar[int]
    reason: ClassVar[str]
    """Part of the API: programs tell errors apart by it, so it does not change with the class's
    name."""

    @property
    def client_message(self) -> str:
        """The message for clients; the log and the commands print `str(error)`."""
        return str(self)


class RequestRefused(CatalogueError):
    """Raised when a request breaks a rule of the catalogue."""

    status, reason = 400, "Refused"


class MetricNotFound(CatalogueError):
    """Raised when there is no such metric or version."""

    status, reason = 404, "NotFound"


class MetricConflict(CatalogueError):
    """Raised when something of that name already exists, or the request conflicts with what
    exists."""

    status, reason = 409, "Conflict"


class VersionChanged(CatalogueError):
    """Raised when the version on which an update is based is no longer the latest."""

    status, reason = 412, "Changed"


class MetricInMigration(CatalogueError):
    """Raised when a metric is to be updated while it is copied, which takes milliseconds
    (figure 5.9)."""

    status, reason = 423, "InMigration"


class CatalogueUnavailable(CatalogueError):
    """Raised when a request cannot be answered at the moment; the client may try again."""

    status, reason = 503, "Unavailable"


class DatabaseUnavailable(CatalogueUnavailable):
    """Raised when a database does not answer. The message names the database and the user; clients
    receive neither."""

    @property
    def client_message(self) -> str:
        return "A database of the catalogue does not answer: try again in a moment."


class CatalogueMoved(CatalogueUnavailable):
    """Raised when another database takes the writes now. Nothing was written."""

    def __init__(self) -> None:
        super().__init__("The catalogue is being moved: try again in a moment.")


def dynamodb_failed(error: PartitaError) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"The request to DynamoDB failed: {error}")


def no_metric(name: str) -> MetricNotFound:
    return MetricNotFound(f"There is no metric {name}.")


def no_version(name: str, version: int) -> MetricNotFound:
    return MetricNotFound(f"The metric {name} has no version {version}.")


def metric_exists(name: str) -> MetricConflict:
    return MetricConflict(f"The metric {name} already exists.")


def changed(name: str, expected: int, latest: int) -> VersionChanged:
    return VersionChanged(
        f"The latest version of {name} is {latest}, not {expected}: read it again, then update."
    )


def in_migration(name: str) -> MetricInMigration:
    return MetricInMigration(f"The metric {name} is being migrated: try again in a moment.")
