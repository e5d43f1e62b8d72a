"""Fixtures: one server with `--auth`, to which tests add users."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita.server.security.identities.user_directory import AccessKey
from testkit.servers import processes
from testkit.servers.users import ADMINISTRATOR, People


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("protected")
    everybody = People(folder)
    everybody.add(policies=[ADMINISTRATOR])
    with processes.starting() as start:
        # Tests send many invalid signatures, which would otherwise be throttled.
        limits = ("--limit-failures", "1000000")
        everybody.server = start(
            *("serve", "--auth", "--port", "0", "--data", folder, *limits), stderr=None
        )
        yield everybody


@pytest.fixture(scope="session")
def administrator(people: People) -> AccessKey:
    return people.add(policies=[ADMINISTRATOR])


@pytest.fixture(scope="session")
def admin(people: People, administrator: AccessKey) -> Any:
    """A client with all rights."""
    return people.client(administrator)


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    return (f"table{number}" for number in itertools.count(1))


@pytest.fixture
def table(admin: Any, names: Iterator[str]) -> Iterator[Callable[..., str]]:
    """`table()` creates a table with the string keys `pk` and `sk`."""
    created: list[str] = []

    def create(**more: Any) -> str:
        name = next(names)
        admin.create_table(
            **{
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
                **more,
            }
        )
        created.append(name)
        return name

    yield create
    for name in created:
        admin.delete_table(TableName=name)
