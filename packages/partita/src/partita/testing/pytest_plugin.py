"""Fixtures for pytest, under the names that users of pytest-dynamodb know.

pytest imports this module in every run, whether it is used or not. So boto3 and the rest of Partita
are imported only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from partita.testing import Database
    from partita.testing.boto_transport import BotocoreHook

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DynamoDBProcess:
    """A running server: the value of the fixture `dynamodb_proc`."""

    host: str
    port: int
    database: Database

    @property
    def endpoint_url(self) -> str:
        return f"http://{self.host}:{self.port}"


@pytest.fixture(scope="session")
def dynamodb_proc() -> Iterator[DynamoDBProcess]:
    """A server on a free port, for the whole session; it has `host`, `port`, `endpoint_url`."""
    from partita import testing

    with testing.database() as database, testing.server(database, host=HOST) as url:
        yield DynamoDBProcess(HOST, int(url.rpartition(":")[2]), database)


@pytest.fixture(scope="session")
def _dynamodb_resource(dynamodb_proc: DynamoDBProcess) -> Any:
    from partita.testing import boto_transport

    return boto_transport.resource_at(dynamodb_proc.endpoint_url)


@pytest.fixture
def dynamodb(dynamodb_proc: DynamoDBProcess, _dynamodb_resource: Any) -> Iterator[Any]:
    """A boto3 resource of `dynamodb_proc`; all tables are removed after the test."""
    yield _dynamodb_resource
    dynamodb_proc.database.faults.clear()
    for table in _dynamodb_resource.tables.all():
        if table.deletion_protection_enabled:
            table.update(DeletionProtectionEnabled=False)
        table.delete()


@pytest.fixture(scope="session")
def dynamodb_prepared() -> Iterator[Database]:
    """The database that every `dynamodb_branch` starts from; it is empty unless you override it.

    An override takes `dynamodb_prepared`, creates tables and items in it, and returns it.
    """
    from partita import testing

    with testing.database() as database:
        yield database


@pytest.fixture
def dynamodb_database(dynamodb_prepared: Database) -> Iterator[Database]:
    """The database behind `dynamodb_branch`, with its clock and faults."""
    if dynamodb_prepared is None:
        raise pytest.UsageError("The fixture dynamodb_prepared must return its database.")
    with dynamodb_prepared.branch() as branch:
        yield branch


@pytest.fixture(scope="session")
def _dynamodb_exchangeable() -> tuple[Any, BotocoreHook]:
    """A resource for all tests, whose hook gets the branch of each test.

    Creating a boto3 resource takes longer than creating a branch.
    """
    from partita.testing import boto_transport

    hook = boto_transport.BotocoreHook(_no_test)
    return boto_transport.exchangeable_resource(hook), hook


def _no_test(request: Any) -> Any:
    raise RuntimeError("A dynamodb_branch was used after the end of its test.")


@pytest.fixture
def dynamodb_branch(
    dynamodb_database: Database, _dynamodb_exchangeable: tuple[Any, BotocoreHook]
) -> Iterator[Any]:
    """A boto3 resource of a branch of `dynamodb_prepared` that only this test sees."""
    resource, hook = _dynamodb_exchangeable
    hook.answer = dynamodb_database.answer
    yield resource
    hook.answer = _no_test
