"""The EventBridge Scheduler API: schedules and schedule groups."""

from __future__ import annotations

import json
from typing import Any

from partita.errors import FunctionNotFound, ScheduleConflict, ValidationException
from partita_services.functions import function_arns
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request, page
from partita_services.functions.function_records import GroupRecord, ScheduleRecord
from partita_services.functions.function_store import GROUPS, SCHEDULES
from partita_services.functions.schedules.schedule_expressions import InvalidScheduleExpression
from partita_services.functions.schedules.scheduler import DEFAULT, OF_SETTINGS, sort_of
from partita_services.record_table import RecordConflict

LIST_MAX = 100
COPIED = (
    "ActionAfterCompletion",
    "Description",
    "EndDate",
    "FlexibleTimeWindow",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "StartDate",
    "State",
    "Target",
)
DATE_MAX = 253_402_300_799
"""The last second of the year 9999."""
NOT_BUILT = ("EcsParameters", "SageMakerPipelineParameters")


async def create_schedule(service: LambdaService, request: Request) -> Answer:
    group, name = request.get("GroupName", DEFAULT), request["Name"]
    async with service.changes:
        await _check_group(service, group)
        if await _find(service, group, name) is not None:
            raise ScheduleConflict(f"Schedule {name} already exists.")
        record = ScheduleRecord(
            group=group, name=name, configuration=_configuration(service, request, None)
        )
        await service.scheduler.put(record)
    return {"ScheduleArn": function_arns.schedule_arn(group, name)}


def _configuration(
    service: LambdaService, request: Request, created_at: float | None
) -> dict[str, Any]:
    """The whole configuration: an update resets members that it does not name to their defaults, as
    in the service."""
    now = service.clock()
    configuration: dict[str, Any] = {
        "ScheduleExpressionTimezone": "UTC",
        "State": "ENABLED",
        "ActionAfterCompletion": "NONE",
        **{name: request[name] for name in COPIED if name in request},
        "CreationDate": now if created_at is None else created_at,
        "LastModificationDate": now,
    }
    if "KmsKeyArn" in request:
        raise ValidationException("KmsKeyArn is not supported by this server.")
    _check_target(service, configuration["Target"])
    window = configuration["FlexibleTimeWindow"]
    if (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window):
        raise ValidationException(
            "MaximumWindowInMinutes is required for the mode FLEXIBLE, and only there."
        )
    _check_dates(configuration)
    if configuration.get("StartDate", 0) > configuration.get("EndDate", float("inf")):
        raise ValidationException("The StartDate you specify cannot be after the EndDate.")
    try:
        service.scheduler.next_of(configuration)
    except InvalidScheduleExpression as error:
        raise ValidationException(str(error)) from None
    return configuration


def _check_target(service: LambdaService, target: dict[str, Any]) -> None:
    for member in NOT_BUILT:
        if member in target:
            raise ValidationException(f"{member} is not supported by this server.")
    service.scheduler.targets.check(target)
    if arn := target.get("DeadLetterConfig", {}).get("Arn"):
        try:
            service.destinations.check(arn)
        except Exception as error:
            raise ValidationException(str(error)) from None
    if "Input" in target:
        try:
            json.loads(target["Input"], parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise ValidationException("The Input of the Target is not valid JSON.") from None


def _refuse_constant(name: str) -> None:
    """JSON has neither NaN nor Infinity, but Python's decoder accepts them."""
    raise ValueError(name)


def _check_dates(configuration: dict[str, Any]) -> None:
    for name in ("StartDate", "EndDate"):
        if not 0 <= configuration.get(name, 0) <= DATE_MAX:
            raise ValidationException(f"The {name} is not a date.")


async def _check_group(service: LambdaService, group: str) -> None:
    if group == OF_SETTINGS:
        raise ScheduleConflict(
            "Schedules in the group settings come from the settings of this server; change them "
            "there."
        )
    await _group(service, group)


async def _group(service: LambdaService, name: str) -> GroupRecord:
    if name in (DEFAULT, OF_SETTINGS):
        return GroupRecord(name=name, created_at=0.0)
    group = await service.store.find(GROUPS, name, GroupRecord)
    if group is None:
        raise FunctionNotFound(f"Schedule group {name} does not exist.")
    return group


async def _find(service: LambdaService, group: str, name: str) -> ScheduleRecord | None:
    return await service.store.find(SCHEDULES, sort_of(group, name), ScheduleRecord)


async def _existing(service: LambdaService, request: Request) -> ScheduleRecord:
    group, name = request.get("GroupName", DEFAULT), request["Name"]
    record = await _find(service, group, name)
    if record is None:
        raise FunctionNotFound(f"Schedule {name} does not exist.")
    return record


async def get_schedule(service: LambdaService, request: Request) -> Answer:
    record = await _existing(service, request)
    return {
        "Arn": function_arns.schedule_arn(record.group, record.name),
        "GroupName": record.group,
        "Name": record.name,
        **record.configuration,
    }


async def update_schedule(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        await _check_group(service, request.get("GroupName", DEFAULT))
        record = await _existing(service, request)
        created_at = record.configuration["CreationDate"]
        record.configuration = _configuration(service, request, created_at)
        await service.scheduler.put(record)
    return {"ScheduleArn": function_arns.schedule_arn(record.group, record.name)}


async def delete_schedule(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        if request.get("GroupName") == OF_SETTINGS:
            await _check_group(service, OF_SETTINGS)
        await service.scheduler.remove(await _existing(service, request))
    return {}


async def list_schedules(service: LambdaService, request: Request) -> Answer:
    if "GroupName" in request:
        await _group(service, request["GroupName"])
    prefix = request.get("NamePrefix", "")
    listed = [
        _summary(record)
        for record in await service.store.all(SCHEDULES, ScheduleRecord)
        if request.get("GroupName") in (None, record.group)
        and request.get("State") in (None, record.configuration["State"])
        and record.name.startswith(prefix)
    ]
    shown, token = page(request, listed, limit=LIST_MAX, most=LIST_MAX)
    answer: Answer = {"Schedules": list(shown)}
    return answer | ({"NextToken": token} if token else {})


def _summary(record: ScheduleRecord) -> Answer:
    configuration = record.configuration
    return {
        "Arn": function_arns.schedule_arn(record.group, record.name),
        "CreationDate": configuration["CreationDate"],
        "GroupName": record.group,
        "LastModificationDate": configuration["LastModificationDate"],
        "Name": record.name,
        "State": configuration["State"],
        "Target": {"Arn": configuration["Target"]["Arn"]},
    }


# Groups


async def create_schedule_group(service: LambdaService, request: Request) -> Answer:
    name = request["Name"]
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
    record = GroupRecord(name=name, created_at=service.clock(), tags=tags)
    try:
        if name in (DEFAULT, OF_SETTINGS):
            raise RecordConflict
        await service.store.save(GROUPS, name, record, is_new=True)
    except RecordConflict:
        raise ScheduleConflict(f"Schedule group {name} already exists.") from None
    return {"ScheduleGroupArn": function_arns.group_arn(name)}


async def get_schedule_group(service: LambdaService, request: Request) -> Answer:
    return _shown(await _group(service, request["Name"]))


async def list_schedule_groups(service: LambdaService, request: Request) -> Answer:
    own = GroupRecord(name=DEFAULT, created_at=0.0)
    prefix = request.get("NamePrefix", "")
    groups = [own, *await service.store.all(GROUPS, GroupRecord)]
    listed = [_shown(group) for group in groups if group.name.startswith(prefix)]
    shown, token = page(request, listed, limit=LIST_MAX, most=LIST_MAX)
    answer: Answer = {"ScheduleGroups": list(shown)}
    return answer | ({"NextToken": token} if token else {})


async def delete_schedule_group(service: LambdaService, request: Request) -> Answer:
    name = request["Name"]
    async with service.changes:
        await _group(service, name)
        if name in (DEFAULT, OF_SETTINGS):
            raise ValidationException(f"The schedule group {name} cannot be deleted.")
        for record in await service.store.all(SCHEDULES, ScheduleRecord):
            if record.group == name:
                await service.scheduler.remove(record)
        await service.store.erase(GROUPS, name)
    return {}


async def tag_resource(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        group = await _tagged(service, request)
        group.tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        await service.store.save(GROUPS, group.name, group)
    return {}


async def untag_resource(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        group = await _tagged(service, request)
        for key in request["TagKeys"]:
            group.tags.pop(key, None)
        await service.store.save(GROUPS, group.name, group)
    return {}


async def list_tags_for_resource(service: LambdaService, request: Request) -> Answer:
    group = await _tagged(service, request)
    return {"Tags": [{"Key": key, "Value": value} for key, value in group.tags.items()]}


async def _tagged(service: LambdaService, request: Request) -> GroupRecord:
    """Only groups have tags. (EventBridge Scheduler API, "TagResource")"""
    arn = request["ResourceArn"]
    name = function_arns.group_of(arn)
    if name is None:
        raise ValidationException(f"{arn} is not the ARN of a schedule group.")
    if arn != function_arns.group_arn(name):
        # The ARN has another region, account or partition.
        raise FunctionNotFound(f"Schedule group {arn} does not exist.")
    if name in (DEFAULT, OF_SETTINGS):
        raise ValidationException(f"The schedule group {name} has no tags.")
    return await _group(service, name)


def _shown(group: GroupRecord) -> Answer:
    return {
        "Arn": function_arns.group_arn(group.name),
        "CreationDate": group.created_at,
        "LastModificationDate": group.created_at,
        "Name": group.name,
        "State": "ACTIVE",
    }
