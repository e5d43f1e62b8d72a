"""The functions of the migration, as AWS Lambda calls them: handler(event, context).

The two functions of the state machine receive {"metricName": "deliveries"}. The invoker of figure
5.14 starts an execution for each of up to 500 metrics. Environment variables name the databases.
A Lambda process runs one call at a time, so one event loop and its connections serve all calls.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, TypeVar

from metric_catalogue.migration import copy_to_dynamodb
from metric_catalogue.stores.catalogue_modes import BEFORE_CUTOVER, Modes
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_catalogue import MariaDBCatalogue
from metric_catalogue.stores.mariadb.mariadb_connections import ConnectionPool, parse_address
from metric_catalogue.stores.mariadb.metric_rows import MIGRATED
from partita.client import Client, ClientError
from partita.client.aws_client import REGION

MYSQL = "PARTITA_METRICS_MYSQL"
TABLE = "PARTITA_METRICS_TABLE"
ENDPOINT = "AWS_ENDPOINT_URL_DYNAMODB"
MACHINE = "PARTITA_METRICS_MACHINE"
CONNECTIONS = 8
LOCK_SECONDS = 3
"""How long a function waits for a locked row before it fails."""
METRICS_AT_A_TIME = 500
TRIES_MAX = 100
EXISTS = "ExecutionAlreadyExists"
SELECT_UNMIGRATED = (
    f"SELECT name FROM metrics m WHERE migratedToDynamoDB <> '{MIGRATED}' AND EXISTS "
    "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id) ORDER BY id LIMIT %s"
)

Event = dict[str, Any]
T = TypeVar("T")


class _Stores:
    """Both databases, opened by the first call of a process and kept for the next calls."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        region = os.environ.get("AWS_REGION", REGION)
        tables = CatalogueTables(os.environ.get(TABLE, CatalogueTables().metrics))
        self.client = Client(os.environ.get(ENDPOINT), region, connections=CONNECTIONS)
        self._states: Client | None = None
        database = ConnectionPool(
            parse_address(os.environ[MYSQL]), connections=2, lock_seconds=LOCK_SECONDS
        )
        # Only error messages use it: they name the server whose session holds a row.
        database.server_of = Modes(self.client, tables).server_of
        self.mariadb = MariaDBCatalogue(database)
        self.dynamodb = DynamoDBCatalogue(self.client, tables, BEFORE_CUTOVER)

    @property
    def states(self) -> Client:
        """The client of Step Functions, which only the invoker needs."""
        if self._states is None:
            endpoint, region = os.environ.get("AWS_ENDPOINT_URL"), os.environ.get("AWS_REGION")
            self._states = Client(endpoint, region or REGION, connections=CONNECTIONS)
        return self._states

    def close(self) -> None:
        for client in filter(None, (self.client, self._states)):
            self.loop.run_until_complete(client.close())
        self.mariadb.database.close()
        # asyncio closes transports in the next turn of the loop.
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


_opened: list[_Stores] = []


def close() -> None:
    while _opened:
        _opened.pop().close()


def _run(work: Callable[[_Stores], Awaitable[T]]) -> T:
    if not _opened:
        _opened.append(_Stores())
    stores = _opened[0]

    async def run() -> T:
        return await work(stores)

    return stores.loop.run_until_complete(run())


def migrate_one_metric(event: Event, context: object) -> Event:
    """Copies one metric to DynamoDB (figure 5.12)."""
    name = event["metricName"]
    outcome = _run(
        lambda stores: copy_to_dynamodb.migrate_one(stores.mariadb, stores.dynamodb, name)
    )
    return {"metricName": name, "outcome": outcome}


def clean_up(event: Event, context: object) -> Event:
    """Deletes what a failed copy has written (figure 5.13)."""
    name = event["metricName"]
    count = _run(lambda stores: copy_to_dynamodb.clean_up(stores.mariadb, stores.dynamodb, name))
    return {"metricName": name, "itemsDeleted": count}


def invoke(event: Event, context: object) -> Event:
    """Starts up to 500 executions. Returns their ARNs with the names of their metrics."""
    return {"started": _run(lambda stores: _invoke(stores, set(event.get("leaveOut", ()))))}


async def _invoke(stores: _Stores, leave_out: set[str]) -> list[tuple[str, str]]:
    limit = METRICS_AT_A_TIME + len(leave_out)
    rows = await stores.mariadb.database.rows(SELECT_UNMIGRATED, limit)
    names = [row["name"] for row in rows if row["name"] not in leave_out][:METRICS_AT_A_TIME]
    places = asyncio.Semaphore(CONNECTIONS)

    async def start(name: str) -> tuple[str, str]:
        async with places:
            return await _start(stores.states, name), name

    return await asyncio.gather(*(start(name) for name in names))


async def _start(states: Client, metric: str) -> str:
    """Starts the execution of a metric, and returns its ARN.

    An execution is named after its metric and a number. StartExecution with the name and input of
    an execution that still runs returns that one, so a metric never has two, whoever invokes. After
    an execution that failed and was cleaned up, the next number starts a new one.
    """
    digest = sha256(metric.encode()).hexdigest()[:32]
    request = {"stateMachineArn": os.environ[MACHINE], "input": json.dumps({"metricName": metric})}
    for number in range(1, TRIES_MAX + 1):
        try:
            started = {**request, "name": f"{digest}-{number}"}
            return str((await states.call("states", "StartExecution", started))["executionArn"])
        except ClientError as error:
            if error.code != EXISTS or number == TRIES_MAX:
                raise
    raise AssertionError("The last attempt ends with an execution or an error.")
