"""Databases that enforce capacity, tables in them, and what their pages show."""

from __future__ import annotations

import json
from typing import Any

from botocore.config import Config

from partita import testing
from partita.server.http.http_messages import HttpRequest

NOON = 1_900_065_600.0
"""A noon of 2030, UTC."""


def make(capacity: str) -> testing.Database:
    database = testing.database(capacity=capacity)
    database.clock.set(NOON)
    return database


def once(database: testing.Database) -> Any:
    """A client that does not try again."""
    return database.client(config=Config(retries={"total_max_attempts": 1}))


def page(database: testing.Database, target: str) -> Any:
    """Returns the response of a GET: JSON decoded, text as it is."""
    body = database.answer(HttpRequest(b"GET", target.encode())).body
    return json.loads(body) if body.startswith(b"{") else body.decode()


def create(client: Any, name: str = "votes", *, units: int | None = None, **more: Any) -> None:
    """A table with the string key `id`; without units it is on demand."""
    names = {"id", *more.pop("keys", ())}
    if units is None:
        more["BillingMode"] = "PAY_PER_REQUEST"
    else:
        more["ProvisionedThroughput"] = provisioned(units)
    more.setdefault("KeySchema", [{"AttributeName": "id", "KeyType": "HASH"}])
    client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in sorted(names)
        ],
        **more,
    )


def provisioned(read: int, write: int | None = None) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": read if write is None else write}


def index(name: str, key: str, units: int | None = None) -> dict[str, Any]:
    more = {} if units is None else {"ProvisionedThroughput": provisioned(units)}
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }


def item(key: str, **more: str) -> dict[str, dict[str, str]]:
    return {name: {"S": value} for name, value in {"id": key, **more}.items()}
