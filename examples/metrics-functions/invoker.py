"""The invoker of figure 5.14: an execution for each of 500 metrics that are not migrated.

An execution has the name of its metric and a number. So a metric whose execution is still running
gets no second one, and one whose execution failed, and was cleaned up, gets the next.
"""

from __future__ import annotations

import asyncio
import json
import os
from hashlib import sha256
from typing import Any

import boto3

from partita.apps.metrics.mariadb.connections import ConnectionPool, parse_address

METRICS_AT_A_TIME = 500
TRIES_MAX = 10
SELECT = (
    "SELECT name FROM metrics m WHERE migratedToDynamoDB <> 'MIGRATED' AND EXISTS "
    "(SELECT 1 FROM metric_versions v WHERE v.metric_id = m.id) ORDER BY id LIMIT %s"
)


async def unmigrated() -> list[str]:
    database = ConnectionPool(parse_address(os.environ["PARTITA_METRICS_MYSQL"]), connections=1)
    rows = await database.rows(SELECT, METRICS_AT_A_TIME)
    database.close()
    await asyncio.sleep(0)
    return [row["name"] for row in rows]


def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    states = boto3.client("stepfunctions")
    names = asyncio.run(unmigrated())
    for name in names:
        digest = sha256(name.encode()).hexdigest()[:32]
        for number in range(1, TRIES_MAX + 1):
            try:
                states.start_execution(
                    stateMachineArn=os.environ["MACHINE"],
                    name=f"{digest}-{number}",
                    input=json.dumps({"metricName": name}),
                )
                break
            except states.exceptions.ExecutionAlreadyExists:
                continue
    return {"metrics": len(names)}
