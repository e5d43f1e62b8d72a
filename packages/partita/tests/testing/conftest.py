"""Fixtures for the tests of partita.testing: a database, and a function that creates tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import testing


@pytest.fixture
def database() -> Iterator[testing.Database]:
    with testing.database() as database:
        yield database


@pytest.fixture
def create_table() -> Callable[..., Any]:
    """`create_table(resource)` creates a table with the string key `pk`."""

    def create(resource: Any, name: str = "orders", **more: Any) -> Any:
        return resource.create_table(
            TableName=name,
            AttributeDefinitions=more.pop(
                "AttributeDefinitions", [{"AttributeName": "pk", "AttributeType": "S"}]
            ),
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            **more,
        )

    return create


@pytest.fixture
def table(database: testing.Database, create_table: Callable[..., Any]) -> Any:
    return create_table(database.resource())
