"""Invoke, and the configuration of asynchronous invocations."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import msgspec

from partita.errors import (
    FunctionNotFound,
    InvalidParameterValueException,
    InvalidRequestContentException,
    RequestTooLargeException,
)
from partita.foundation.service_limits import MB
from partita_services.functions import function_arns
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request, page
from partita_services.functions.function_arns import QualifiedFunction
from partita_services.functions.function_records import EventInvokeRecord
from partita_services.functions.function_store import event_invokes_of

EVENT, DRY_RUN = "Event", "DryRun"
SYNC_BYTES_MAX, ASYNC_BYTES_MAX = 6 * MB, 1 * MB
"""(Lambda guide, "Quotas")"""
EVENT_INVOKE = ("MaximumRetryAttempts", "MaximumEventAgeInSeconds", "DestinationConfig")


async def invoke(service: LambdaService, request: Request) -> Answer:
    target = function_arns.qualified(request["FunctionName"], request.get("Qualifier"))
    kind = request.get("InvocationType", "RequestResponse")
    _check_built(request)
    event = _event(request["Payload"], ASYNC_BYTES_MAX if kind == EVENT else SYNC_BYTES_MAX)
    client_context = _client_context(request.get("ClientContext"))
    version = await service.catalog.version(target)
    if kind == DRY_RUN:
        return {"StatusCode": 204}
    if kind == EVENT:
        await service.queue.add(target, event, client_context)
        return {"StatusCode": 202}
    invocation = await service.catalog.invoke(target, event, str(uuid.uuid4()), client_context)
    outcome = invocation.outcome
    answer: Answer = {
        "StatusCode": 200,
        "ExecutedVersion": invocation.version or version.number,
        "Payload": outcome.payload,
    }
    if outcome.error is not None:
        answer["FunctionError"] = "Unhandled"
    if request.get("LogType") == "Tail":
        answer["LogResult"] = base64.b64encode(outcome.log).decode()
    return answer


def _check_built(request: Request) -> None:
    for member in ("DurableExecutionName", "TenantId"):
        if member in request:
            raise InvalidParameterValueException(f"{member} is not supported by this server.")


def _event(payload: bytes, bytes_max: int) -> bytes:
    """Checks a payload, and writes it on one line, as the processes of functions read it."""
    if len(payload) > bytes_max:
        raise RequestTooLargeException(
            f"{len(payload)} byte payload is too large for the {bytes_max} byte limit"
        )
    if not payload.strip():
        return b"{}"
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestContentException(
            f"Could not parse request body into json: Could not parse payload into json: {error}"
        ) from None
    # A newline would end the call in the protocol of the worker. This removes all whitespace.
    return msgspec.json.format(payload, indent=-1)


def _client_context(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return msgspec.json.decode(base64.b64decode(text, validate=True))
    except (ValueError, msgspec.DecodeError):
        raise InvalidRequestContentException(
            "Client context must be a valid Base64-encoded JSON object."
        ) from None


# Destinations


async def put_function_event_invoke_config(service: LambdaService, request: Request) -> Answer:
    target = await _target(service, request)
    return await _save(service, target, {"DestinationConfig": _both({})}, request)


async def update_function_event_invoke_config(service: LambdaService, request: Request) -> Answer:
    target = await _target(service, request)
    record = await _existing(service, target)
    return await _save(service, target, record.configuration, request)


async def _save(
    service: LambdaService,
    target: QualifiedFunction,
    configuration: dict[str, Any],
    request: Request,
) -> Answer:
    for destination in request.get("DestinationConfig", {}).values():
        if arn := destination.get("Destination"):
            service.destinations.check(arn)
    changes = {name: request[name] for name in EVENT_INVOKE if name in request}
    if "DestinationConfig" in changes:
        changes["DestinationConfig"] = _both(changes["DestinationConfig"])
    configuration = {
        **configuration,
        **changes,
        "FunctionArn": function_arns.function_arn(*target),
        "LastModified": service.clock(),
    }
    record = EventInvokeRecord(qualifier=target.qualifier, configuration=configuration)
    await service.store.save(event_invokes_of(target.name), target.qualifier, record)
    return configuration


def _both(destinations: dict[str, Any]) -> dict[str, Any]:
    return {"OnSuccess": {}, "OnFailure": {}, **destinations}


async def get_function_event_invoke_config(service: LambdaService, request: Request) -> Answer:
    return (await _existing(service, await _target(service, request))).configuration


async def list_function_event_invoke_configs(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    await service.catalog.function(name)
    records = await service.store.all(event_invokes_of(name), EventInvokeRecord)
    shown, marker = page(request, [record.configuration for record in records])
    answer: Answer = {"FunctionEventInvokeConfigs": list(shown)}
    return answer | ({"NextMarker": marker} if marker else {})


async def delete_function_event_invoke_config(service: LambdaService, request: Request) -> Answer:
    target = await _target(service, request)
    await _existing(service, target)
    await service.store.erase(event_invokes_of(target.name), target.qualifier)
    return {}


async def _target(service: LambdaService, request: Request) -> QualifiedFunction:
    target = function_arns.qualified(request["FunctionName"], request.get("Qualifier"))
    await service.catalog.version(target)
    return target


async def _existing(service: LambdaService, target: QualifiedFunction) -> EventInvokeRecord:
    partition = event_invokes_of(target.name)
    record = await service.store.find(partition, target.qualifier, EventInvokeRecord)
    if record is None:
        arn = function_arns.function_arn(*target)
        raise FunctionNotFound(f"The function {arn} doesn't have an EventInvokeConfig")
    return record
