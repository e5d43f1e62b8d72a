"""Creates the tables, the functions, the state machine and the schedule of the migration."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from pathlib import Path

import boto3

from partita.apps.metrics.dynamodb.tables import Tables, create_tables
from partita.apps.metrics.migration.state_machine import DEFINITION, NAME, ROLE
from partita.client import Client
from partita.workflows.language import strip_comments

HERE = Path(__file__).parent
INVOKER = "MetricMigrationInvoker"
OURS = "from partita.apps.metrics.migration.functions import {function} as handler\n"
CODE = {
    "MigrateOneMetricLambda": OURS.format(function="migrate_one_metric"),
    "CleanUpDynamoDbFromMigratedMetricMetadataLambda": OURS.format(function="clean_up"),
    INVOKER: (HERE / "invoker.py").read_text(),
}
GIVEN = ("PARTITA_METRICS_MYSQL", "PARTITA_METRICS_PASSWORD", "PARTITA_METRICS_TABLE")


async def create() -> None:
    client = Client(os.environ["AWS_ENDPOINT_URL"])
    await create_tables(client, Tables(os.environ.get("PARTITA_METRICS_TABLE", "metrics")))
    await client.close()


def package(code: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("function.py", code)
    return content.getvalue()


asyncio.run(create())
machine = boto3.client("stepfunctions").create_state_machine(
    name=NAME, definition=strip_comments(DEFINITION.read_text()), roleArn=ROLE
)["stateMachineArn"]
variables = {name: os.environ[name] for name in GIVEN if name in os.environ}
variables |= {"AWS_ENDPOINT_URL_DYNAMODB": os.environ["AWS_ENDPOINT_URL"], "MACHINE": machine}
functions = boto3.client("lambda")
for name, code in CODE.items():
    created = functions.create_function(
        FunctionName=name,
        Runtime="python3.12",
        Handler="function.handler",
        Role=ROLE,
        Timeout=60,
        Environment={"Variables": variables},
        Code={"ZipFile": package(code)},
    )
boto3.client("scheduler").create_schedule(
    Name=INVOKER,
    ScheduleExpression="rate(1 minute)",
    FlexibleTimeWindow={"Mode": "OFF"},
    Target={"Arn": created["FunctionArn"], "RoleArn": ROLE, "Input": "{}"},
)
