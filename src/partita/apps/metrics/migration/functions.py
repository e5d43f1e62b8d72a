"""The functions of the state machine, as AWS Lambda calls them: handler(event, context).

Both are given {"metricName": ...}. The environment names the databases. A process runs one call at
a time, so one event loop and its connections serve all calls.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from partita.apps.metrics.dynamodb.catalogue import DynamoDBCatalogue
from partita.apps.metrics.dynamodb.tables import Tables
from partita.apps.metrics.mariadb.catalogue import MariaDBCatalogue
from partita.apps.metrics.mariadb.connections import ConnectionPool, parse_address
from partita.apps.metrics.migration import to_dynamodb
from partita.client import Client

MYSQL = "PARTITA_METRICS_MYSQL"
TABLE = "PARTITA_METRICS_TABLE"
ENDPOINT = "AWS_ENDPOINT_URL_DYNAMODB"

Event = dict[str, Any]
T = TypeVar("T")


class _Stores:
    """Opened by the first call and kept for the next."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        self.client = Client(os.environ.get(ENDPOINT), connections=2)
        self.mariadb = MariaDBCatalogue(
            ConnectionPool(parse_address(os.environ[MYSQL]), connections=2)
        )
        self.dynamodb = DynamoDBCatalogue(self.client, Tables(os.environ.get(TABLE, "metrics")))

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())
        self.mariadb.database.close()
        # Transports close in the next turn of the loop.
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


_opened: list[_Stores] = []


def close() -> None:
    while _opened:
        _opened.pop().close()


def _run(work: Callable[[MariaDBCatalogue, DynamoDBCatalogue, str], Awaitable[T]], name: str) -> T:
    if not _opened:
        _opened.append(_Stores())
    stores = _opened[0]
    return stores.loop.run_until_complete(work(stores.mariadb, stores.dynamodb, name))


def migrate_one_metric(event: Event, context: object) -> Event:
    name = event["metricName"]
    return {"metricName": name, "outcome": _run(to_dynamodb.migrate_one, name)}


def clean_up(event: Event, context: object) -> Event:
    name = event["metricName"]
    return {"metricName": name, "itemsDeleted": _run(to_dynamodb.clean_up, name)}
