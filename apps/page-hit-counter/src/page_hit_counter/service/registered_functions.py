"""Creates the service's functions, and a schedule, on the database's server.

An existing function of the same name with another handler is left as it is: the server's settings
may define it (`examples/pagehits-functions`), and on AWS it is deployed by the template.
"""

from __future__ import annotations

import io
import zipfile
from base64 import b64encode
from typing import Any

import orjson

from page_hit_counter.pagehits_settings import PageHitSettings
from partita.client import Client, ClientError

CODE = "from page_hit_counter.aws.lambda_functions import {part} as handler\n"
HANDLER = "function.handler"
ROLE = "arn:aws:iam::123456789012:role/pagehits"
TIMEOUT_SECONDS = 60
FUNCTIONS = "/2015-03-31/functions"


async def register_delivery(client: Client, settings: PageHitSettings) -> None:
    """Creates the function that takes deliveries. May be repeated to apply changed settings."""
    await _register(client, settings, settings.delivery.function, "delivery")
    if settings.delivery.route == "schedule":
        await _register_schedule(client, settings)


async def register_consumer(client: Client, settings: PageHitSettings) -> None:
    """Creates the consumer's function. May be repeated to apply changed settings."""
    await _register(client, settings, settings.consumer_function, "consumer")


async def _register(client: Client, settings: PageHitSettings, name: str, part: str) -> None:
    environment = {"PAGEHITS_CONFIG": settings.config} if settings.config else {}
    configuration = {
        "Handler": HANDLER,
        "Timeout": TIMEOUT_SECONDS,
        "Environment": {"Variables": environment},
    }
    function = await _get(client, "lambda", f"{FUNCTIONS}/{name}")
    if function is None:
        created = {
            "FunctionName": name,
            "Runtime": "python3.12",
            "Role": ROLE,
            "Code": {"ZipFile": _package(part)},
        }
        body = orjson.dumps(created | configuration)
        await client.request("lambda", "POST", FUNCTIONS, body)
    elif function["Configuration"].get("Handler") == HANDLER:
        path = f"{FUNCTIONS}/{name}/configuration"
        await client.request("lambda", "PUT", path, orjson.dumps(configuration))


async def _register_schedule(client: Client, settings: PageHitSettings) -> None:
    minutes = settings.delivery.schedule_minutes
    path = f"/schedules/{settings.delivery.name}"
    function = f"arn:aws:lambda:us-east-1:123456789012:function:{settings.delivery.function}"
    schedule = {
        "ScheduleExpression": f"rate({minutes} {'minute' if minutes == 1 else 'minutes'})",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": function, "RoleArn": ROLE, "Input": "{}"},
    }
    method = "POST" if await _get(client, "scheduler", path) is None else "PUT"
    await client.request("scheduler", method, path, orjson.dumps(schedule))


async def _get(client: Client, service: str, path: str) -> dict[str, Any] | None:
    try:
        answer = await client.request(service, "GET", path)
    except ClientError as error:
        if error.code != "ResourceNotFoundException":
            raise
        return None
    content: dict[str, Any] = orjson.loads(answer.content)
    return content


def _package(part: str) -> str:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("function.py", CODE.format(part=part))
    return b64encode(content.getvalue()).decode()
