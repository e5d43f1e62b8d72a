"""Tags of machines and activities."""

from __future__ import annotations

from partita.errors import InvalidArn, ResourceNotFound, TooManyTags
from partita.foundation.service_limits import TAGS_PER_RESOURCE_MAX
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import (
    ActivityRecord,
    MachineRecord,
)


def tags_in(request: Request) -> dict[str, str]:
    tags = {tag.get("key", ""): tag.get("value", "") for tag in request.get("tags", ())}
    _check_count(tags)
    return tags


async def tag_resource(service: StepFunctionsService, request: Request) -> Answer:
    async with service.changes:
        resource = await _resource(service, request["resourceArn"])
        resource.tags = {**resource.tags, **tags_in(request)}
        _check_count(resource.tags)
        await _keep(service, resource)
    return {}


async def untag_resource(service: StepFunctionsService, request: Request) -> Answer:
    removed = request["tagKeys"]
    async with service.changes:
        resource = await _resource(service, request["resourceArn"])
        resource.tags = {key: value for key, value in resource.tags.items() if key not in removed}
        await _keep(service, resource)
    return {}


async def list_tags_for_resource(service: StepFunctionsService, request: Request) -> Answer:
    resource = await _resource(service, request["resourceArn"])
    return {"tags": [{"key": key, "value": value} for key, value in resource.tags.items()]}


def _check_count(tags: dict[str, str]) -> None:
    if len(tags) > TAGS_PER_RESOURCE_MAX:
        raise TooManyTags(f"A resource has {TAGS_PER_RESOURCE_MAX} tags at most")


async def _resource(service: StepFunctionsService, arn: str) -> MachineRecord | ActivityRecord:
    kind = state_machine_arns.kind_of(arn)
    resource: MachineRecord | ActivityRecord | None
    if kind == state_machine_arns.MACHINE:
        resource = await service.store.machine(state_machine_arns.machine_name(arn))
    elif kind == state_machine_arns.ACTIVITY:
        resource = await service.store.activity(state_machine_arns.activity_name(arn))
    else:
        raise InvalidArn(f"Invalid Arn: 'Resource type not valid in this context: {kind or arn}'")
    if resource is None:
        raise ResourceNotFound(f"Resource not found: '{arn}'", resourceName=arn)
    return resource


async def _keep(service: StepFunctionsService, resource: MachineRecord | ActivityRecord) -> None:
    if isinstance(resource, MachineRecord):
        await service.store.put_machine(resource, is_new=False)
    else:
        await service.store.put_activity(resource, is_new=False)
