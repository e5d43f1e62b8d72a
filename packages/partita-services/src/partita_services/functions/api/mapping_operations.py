"""Event source mappings: create, update, get, list, delete."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from partita.client import ClientError
from partita.errors import (
    FunctionNotFound,
    InvalidParameterValueException,
    MappingInUse,
    PartitaError,
    ResourceConflictException,
)
from partita.foundation.server_settings import FOR_EVER
from partita_services.functions import function_arns
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request, page
from partita_services.functions.function_arns import LATEST, QualifiedFunction
from partita_services.functions.function_records import MappingRecord
from partita_services.functions.function_store import MAPPINGS
from partita_services.functions.mappings.event_source_mapping import DYNAMODB, KINESIS, service_of
from partita_services.functions.mappings.mapping_runner import DELETING, DISABLED, ENABLED

SOURCES = (KINESIS, DYNAMODB)
LIST_MAX = 100
RECORD_AGE_SECONDS_MIN = 60
FILTERS_MAX = 10
DEFAULTS: dict[str, Any] = {
    "BatchSize": 100,
    "MaximumBatchingWindowInSeconds": 0,
    "ParallelizationFactor": 1,
    "MaximumRecordAgeInSeconds": FOR_EVER,
    "BisectBatchOnFunctionError": False,
    "MaximumRetryAttempts": FOR_EVER,
    "TumblingWindowInSeconds": 0,
    "FunctionResponseTypes": [],
}
CHANGEABLE = (*DEFAULTS, "DestinationConfig", "FilterCriteria")
NOT_BUILT = (
    "AmazonManagedKafkaEventSourceConfig",
    "DocumentDBEventSourceConfig",
    "KMSKeyArn",
    "LoggingConfig",
    "MetricsConfig",
    "ProvisionedPollerConfig",
    "Queues",
    "ScalingConfig",
    "SelfManagedEventSource",
    "SelfManagedKafkaEventSourceConfig",
    "SourceAccessConfigurations",
    "Topics",
)
READING = {
    DYNAMODB: ("GetRecords", "GetShardIterator", "DescribeStream"),
    KINESIS: ("GetRecords", "GetShardIterator", "DescribeStream", "ListShards"),
}
"""The actions that the function's role needs on a stream."""
TRANSITION_SECONDS = 0.05
"""A transition state, such as Creating, can be seen for this long."""
UNKNOWN = "The resource you requested does not exist."


async def create_event_source_mapping(service: LambdaService, request: Request) -> Answer:
    source = request.get("EventSourceArn", "")
    await _check_source(service, request, source)
    target = function_arns.qualified(request["FunctionName"])
    await service.catalog.version(target)
    await _check_role(service, target, source)
    identity = str(uuid.uuid4())
    configuration: dict[str, Any] = {
        "UUID": identity,
        "StartingPosition": request["StartingPosition"],
        **DEFAULTS,
        "EventSourceArn": source,
        "FunctionArn": _function_arn(target),
        "LastModified": service.clock(),
        "LastProcessingResult": "No records processed",
        "State": "Creating",
        "StateTransitionReason": "User action",
        "EventSourceMappingArn": function_arns.mapping_arn(identity),
    }
    if "StartingPositionTimestamp" in request:
        configuration["StartingPositionTimestamp"] = request["StartingPositionTimestamp"]
    _change(service, configuration, request)
    is_enabled = request.get("Enabled", True)
    async with service.changes:
        await _refuse_second(service, configuration)
        # The position is saved before the mapping, so that LATEST is the time of this request.
        await service.mappings.begin(configuration)
        record = MappingRecord(
            uuid=identity, configuration=configuration, tags=request.get("Tags", {})
        )
        record.goal = ENABLED if is_enabled else DISABLED
        await service.store.save(MAPPINGS, identity, record)
    _settle_later(service, record.uuid)
    return dict(configuration)


def _function_arn(target: QualifiedFunction) -> str:
    return function_arns.function_arn(
        target.name, "" if target.qualifier == LATEST else target.qualifier
    )


async def _check_role(service: LambdaService, target: QualifiedFunction, source: str) -> None:
    """Refuse a function whose role may not read the stream."""
    role = await service.catalog.role_of(target.name)
    kind = service_of(source)
    try:
        for action in READING[kind]:
            await service.client.check_right(role, f"{kind}:{action}", source)
    except ClientError as error:
        needed = ", ".join(READING[kind][:-1]) + f", and {READING[kind][-1]}"
        raise InvalidParameterValueException(
            f"Cannot access stream {source}. Please ensure the role can perform the {needed} "
            "Actions on your stream in IAM."
        ) from error


async def _check_source(service: LambdaService, request: Request, source: str) -> None:
    for member in NOT_BUILT:
        if request.get(member):
            raise InvalidParameterValueException(f"{member} is not supported by this server.")
    if service_of(source) not in SOURCES:
        raise InvalidParameterValueException(
            f"Unrecognized event source {source!r}: this server has DynamoDB and Kinesis streams."
        )
    position = request.get("StartingPosition")
    if position is None:
        raise InvalidParameterValueException(
            f"1 validation error detected: Value null at 'startingPosition' failed to satisfy "
            f"constraint: Member must not be null for {source}"
        )
    if position == "AT_TIMESTAMP":
        if service_of(source) != KINESIS:
            raise InvalidParameterValueException(
                f"Unsupported starting position for arn type: {source}"
            )
        moment = request.get("StartingPositionTimestamp")
        if moment is None or moment > service.clock():
            raise InvalidParameterValueException(
                "StartingPositionTimestamp is required with AT_TIMESTAMP, and cannot be in the "
                "future."
            )
    elif "StartingPositionTimestamp" in request:
        raise InvalidParameterValueException(
            "StartingPositionTimestamp is only valid with AT_TIMESTAMP."
        )
    await _check_stream(service, source)


async def _check_stream(service: LambdaService, source: str) -> None:
    description: tuple[str, str, dict[str, Any]] = (
        "dynamodbstreams",
        "DescribeStream",
        {"StreamArn": source},
    )
    if service_of(source) == KINESIS:
        name = source.partition(":stream/")[2]
        description = ("kinesis", "DescribeStreamSummary", {"StreamName": name})
    try:
        await service.client.call(*description)
    except ClientError as error:
        raise InvalidParameterValueException(
            f"Stream not found: {source}" if "NotFound" in error.code else error.message
        ) from None


def _change(service: LambdaService, configuration: dict[str, Any], request: Request) -> None:
    """Apply a request to a configuration; refuse values that make no sense."""
    configuration |= {name: request[name] for name in CHANGEABLE if name in request}
    age = configuration["MaximumRecordAgeInSeconds"]
    if age not in (FOR_EVER, 0) and age < RECORD_AGE_SECONDS_MIN:
        raise InvalidParameterValueException(
            f"MaximumRecordAgeInSeconds is -1, or at least {RECORD_AGE_SECONDS_MIN}, not {age}."
        )
    if age == 0:
        configuration["MaximumRecordAgeInSeconds"] = FOR_EVER
    if configuration["TumblingWindowInSeconds"] and configuration["ParallelizationFactor"] > 1:
        raise InvalidParameterValueException(
            "ParallelizationFactor cannot be more than 1 with TumblingWindowInSeconds."
        )
    destination = configuration.get("DestinationConfig", {}).get("OnFailure", {})
    if arn := destination.get("Destination"):
        service.destinations.check(arn)
    if configuration.get("DestinationConfig", {}).get("OnSuccess"):
        raise InvalidParameterValueException(
            "OnSuccess destination is not supported for event source mappings."
        )
    filters = configuration.get("FilterCriteria", {}).get("Filters", [])
    if len(filters) > FILTERS_MAX:
        raise InvalidParameterValueException(f"There are more than {FILTERS_MAX} filters.")
    if not filters:
        configuration.pop("FilterCriteria", None)
    try:
        service.mappings.check(configuration)
    except PartitaError as error:
        if isinstance(error, InvalidParameterValueException):
            raise
        raise InvalidParameterValueException(
            f"Invalid filter pattern definition. {error}"
        ) from None


async def _refuse_second(service: LambdaService, configuration: dict[str, Any]) -> None:
    source, function = configuration["EventSourceArn"], configuration["FunctionArn"]
    for record in await service.store.all(MAPPINGS, MappingRecord):
        existing = record.configuration
        if (existing["EventSourceArn"], existing["FunctionArn"]) == (source, function):
            raise ResourceConflictException(
                f'The event source arn (" {source} ") and function (" {function} ") provided '
                "mapping already exists. Please update or delete the existing mapping with UUID "
                f"{record.uuid}"
            )


def _settle_later(service: LambdaService, uuid: str) -> None:
    """End a transition after a moment in which clients can see it, as in the service."""

    async def settle() -> None:
        await asyncio.sleep(TRANSITION_SECONDS)
        async with service.changes:
            # Read the record again: its tags may have changed in the meantime.
            await service.mappings.settle(await find(service, uuid))

    service.background.start(settle())


async def find(service: LambdaService, uuid: str) -> MappingRecord:
    for trigger in service.mappings.of_settings():
        if trigger.uuid == uuid:
            return trigger
    record = await service.store.find(MAPPINGS, uuid, MappingRecord)
    if record is None:
        raise FunctionNotFound(UNKNOWN)
    return record


def _shown(service: LambdaService, record: MappingRecord) -> Answer:
    return {
        **record.configuration,
        "LastProcessingResult": service.mappings.last_result(record.uuid),
    }


async def get_event_source_mapping(service: LambdaService, request: Request) -> Answer:
    return _shown(service, await find(service, request["UUID"]))


async def list_event_source_mappings(service: LambdaService, request: Request) -> Answer:
    criteria = {}
    if "FunctionName" in request:
        criteria["FunctionArn"] = _function_arn(function_arns.qualified(request["FunctionName"]))
    if "EventSourceArn" in request:
        criteria["EventSourceArn"] = request["EventSourceArn"]
    listed = [
        _shown(service, record)
        for record in (
            *service.mappings.of_settings(),
            *await service.store.all(MAPPINGS, MappingRecord),
        )
        if all(record.configuration[name] == value for name, value in criteria.items())
    ]
    shown, marker = page(request, listed, limit=LIST_MAX, most=LIST_MAX)
    answer: Answer = {"EventSourceMappings": list(shown)}
    return answer | ({"NextMarker": marker} if marker else {})


async def update_event_source_mapping(service: LambdaService, request: Request) -> Answer:
    for member in NOT_BUILT:
        if request.get(member):
            raise InvalidParameterValueException(f"{member} is not supported by this server.")
    async with service.changes:
        record = await _changeable(service, request["UUID"], "update")
        configuration = record.configuration
        if "FunctionName" in request:
            target = function_arns.qualified(request["FunctionName"])
            await service.catalog.version(target)
            configuration["FunctionArn"] = _function_arn(target)
        _change(service, configuration, request)
        was_enabled = configuration["State"] == ENABLED
        is_enabled = request.get("Enabled", was_enabled)
        states = {(True, False): "Disabling", (False, True): "Enabling"}
        configuration["State"] = states.get((was_enabled, is_enabled), "Updating")
        configuration["LastModified"] = service.clock()
        record.goal = ENABLED if is_enabled else DISABLED
        await service.store.save(MAPPINGS, record.uuid, record)
        shown = _shown(service, record)
    _settle_later(service, record.uuid)
    return shown


async def of_client(service: LambdaService, uuid: str) -> MappingRecord:
    """A mapping that clients may change, which excludes triggers of the settings."""
    record = await find(service, uuid)
    if record.uuid in (trigger.uuid for trigger in service.mappings.of_settings()):
        raise ResourceConflictException(
            "This mapping is a trigger in the settings of this server; change it there."
        )
    return record


async def _changeable(service: LambdaService, uuid: str, change: str) -> MappingRecord:
    record = await of_client(service, uuid)
    if record.configuration["State"] not in (ENABLED, DISABLED):
        raise MappingInUse(f"Cannot {change} the event source mapping because it is in use.")
    return record


async def delete_event_source_mapping(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        record = await _changeable(service, request["UUID"], "delete")
        record.configuration["State"] = record.goal = DELETING
        await service.store.save(MAPPINGS, record.uuid, record)
        shown = _shown(service, record)
    _settle_later(service, record.uuid)
    return shown
