"""Versions of machines, which never change, and aliases, which route to one or two versions."""

from __future__ import annotations

import msgspec

from partita.errors import (
    ConflictException,
    InvalidArn,
    ResourceNotFound,
    ServiceQuotaExceededException,
    StateMachineDeleting,
    ValidationException,
)
from partita_services.record_table import RecordConflict, aliases_of, version_sort, versions_of
from partita_services.workflows.api import page_tokens
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import (
    DELETING,
    MachineAlias,
    MachineRecord,
    MachineVersion,
)

VERSIONS_MAX, ALIASES_MAX = 1000, 100
"""The maximum of a machine. (API reference)"""
INITIAL = "INITIAL"
"""The revision of a machine before its first update. (API reference)"""


# Versions.


def next_version(machine: MachineRecord, request: Request, now: float) -> MachineVersion | None:
    """The version to publish together with a created or updated machine, if the request asks for
    it."""
    if not request.get("publish"):
        return None
    return _published_now(machine, request.get("versionDescription"), now)


def _published_now(machine: MachineRecord, description: str | None, now: float) -> MachineVersion:
    machine.last_version += 1
    return MachineVersion(
        number=machine.last_version,
        digest=machine.digest,
        role_arn=machine.role_arn,
        created_at=now,
        revision_id=machine.revision_id,
        description=description,
        logging=machine.logging,
        tracing=machine.tracing,
    )


def published(machine: str, version: MachineVersion | None) -> Answer:
    if version is None:
        return {}
    return {"stateMachineVersionArn": state_machine_arns.version_arn(machine, version.number)}


async def publish_state_machine_version(service: StepFunctionsService, request: Request) -> Answer:
    async with service.changes:
        machine = await service.executions.machine(request["stateMachineArn"])
        if machine.status == DELETING:
            raise StateMachineDeleting(f"State Machine Deleting: '{request['stateMachineArn']}'")
        current = machine.revision_id or INITIAL
        if request.get("revisionId", current) != current:
            raise ConflictException(
                "Failed to publish the State Machine version for revision "
                f"{request['revisionId']}. The current State Machine revision is {current}."
            )
        version = await service.store.version(machine.name, machine.last_version)
        if version is None or version.revision_id != machine.revision_id:
            await _check_count(service, versions_of(machine.name), MachineVersion, VERSIONS_MAX)
            version = _published_now(machine, request.get("description"), service.clock())
            await service.store.put_machine(machine, is_new=False, version=version)
    return {**published(machine.name, version), "creationDate": version.created_at}


async def list_state_machine_versions(service: StepFunctionsService, request: Request) -> Answer:
    machine = await service.executions.machine(request["stateMachineArn"])
    limit, after = page_tokens.limit_of(request), page_tokens.place(request, str)
    versions, last = await service.store.page(
        versions_of(machine.name), MachineVersion, limit, after, is_reverse=True
    )
    listed = [
        {**published(machine.name, version), "creationDate": version.created_at}
        for version in versions
    ]
    return {"stateMachineVersions": listed, **page_tokens.more(last)}


async def delete_state_machine_version(service: StepFunctionsService, request: Request) -> Answer:
    machine, number = _version(request["stateMachineVersionArn"])
    async with service.changes:
        users = [alias.name for alias in await _aliases(service, machine) if number in alias.routes]
        if users:
            raise ConflictException(
                "Version to be deleted must not be referenced by an alias. Current list of aliases "
                f"referencing this version: [{', '.join(users)}]"
            )
        await service.store.erase(versions_of(machine), version_sort(number))
    return {}


def _version(arn: str) -> tuple[str, int]:
    machine, qualifier = state_machine_arns.qualified(arn)
    if qualifier is None or not qualifier.isdecimal():
        raise InvalidArn(f"Invalid Arn: 'Invalid ARN: {arn}'")
    return machine, int(qualifier)


# Aliases.


async def create_state_machine_alias(service: StepFunctionsService, request: Request) -> Answer:
    async with service.changes:
        machine, routes = await _routes(service, request["routingConfiguration"])
        await _check_count(service, aliases_of(machine), MachineAlias, ALIASES_MAX)
        now = service.clock()
        alias = MachineAlias(
            name=request["name"],
            routes=routes,
            created_at=now,
            updated_at=now,
            description=request.get("description"),
        )
        try:
            await service.store.put_alias(machine, alias, is_new=True)
        except RecordConflict:
            existing = await service.store.alias(machine, alias.name)
            if existing is None or (existing.routes, existing.description) != (
                routes,
                alias.description,
            ):
                raise ConflictException(
                    "Failed to create alias because an alias with the same name and a different "
                    "routing configuration already exists."
                ) from None
            alias = existing
    return {
        "stateMachineAliasArn": state_machine_arns.version_arn(machine, alias.name),
        "creationDate": alias.created_at,
    }


async def update_state_machine_alias(service: StepFunctionsService, request: Request) -> Answer:
    if not request.keys() & {"description", "routingConfiguration"}:
        raise ValidationException("The description or the routingConfiguration must be specified")
    async with service.changes:
        machine, alias = await _alias(service, request["stateMachineAliasArn"])
        alias.description = request.get("description", alias.description)
        if "routingConfiguration" in request:
            routed, alias.routes = await _routes(service, request["routingConfiguration"])
            if routed != machine:
                raise ValidationException("An alias routes to versions of its own state machine")
        alias.updated_at = service.clock()
        await service.store.put_alias(machine, alias, is_new=False)
    return {"updateDate": alias.updated_at}


async def describe_state_machine_alias(service: StepFunctionsService, request: Request) -> Answer:
    machine, alias = await _alias(service, request["stateMachineAliasArn"])
    described = {
        "stateMachineAliasArn": state_machine_arns.version_arn(machine, alias.name),
        "name": alias.name,
        "routingConfiguration": [
            {
                "stateMachineVersionArn": state_machine_arns.version_arn(machine, number),
                "weight": weight,
            }
            for number, weight in alias.routes.items()
        ],
        "creationDate": alias.created_at,
        "updateDate": alias.updated_at,
    }
    return (
        described if alias.description is None else described | {"description": alias.description}
    )


async def delete_state_machine_alias(service: StepFunctionsService, request: Request) -> Answer:
    async with service.changes:
        machine, alias = await _alias(service, request["stateMachineAliasArn"])
        await service.store.erase(aliases_of(machine), alias.name)
    return {}


async def list_state_machine_aliases(service: StepFunctionsService, request: Request) -> Answer:
    """All aliases of a machine, or of a version, in order of their names."""
    name, qualifier = state_machine_arns.qualified(request["stateMachineArn"])
    machine = await service.executions.machine(state_machine_arns.machine_arn(name))
    aliases = await _aliases(service, machine.name)
    if qualifier is not None:
        aliases = [alias for alias in aliases if qualifier in map(str, alias.routes)]
    after = page_tokens.place(request, str) or ""
    aliases = [alias for alias in aliases if alias.name > after]
    limit = page_tokens.limit_of(request)
    listed = [
        {
            "stateMachineAliasArn": state_machine_arns.version_arn(machine.name, alias.name),
            "creationDate": alias.created_at,
        }
        for alias in aliases[:limit]
    ]
    return {
        "stateMachineAliases": listed,
        **page_tokens.more(aliases[limit - 1].name if len(aliases) > limit else None),
    }


async def _aliases(service: StepFunctionsService, machine: str) -> list[MachineAlias]:
    return (await service.store.page(aliases_of(machine), MachineAlias, ALIASES_MAX))[0]


async def _alias(service: StepFunctionsService, arn: str) -> tuple[str, MachineAlias]:
    machine, name = state_machine_arns.qualified(arn)
    alias = None if name is None else await service.store.alias(machine, name)
    if alias is None:
        raise ResourceNotFound(
            "Request references a resource that does not exist.", resourceName=arn
        )
    return machine, alias


async def _routes(
    service: StepFunctionsService, routing: list[Request]
) -> tuple[str, dict[int, int]]:
    """The machine in a routing configuration, and the weight of each version."""
    version_arns = [route["stateMachineVersionArn"] for route in routing]
    if len(set(version_arns)) < len(version_arns):
        raise ValidationException(_received("distinct state machine version ARNs", version_arns))
    weights = [route["weight"] for route in routing]
    if sum(weights) != 100:
        raise ValidationException(
            f"Sum of routing configuration weights must equal 100. Received: {weights}"
        )
    machines, routes = set(), {}
    for arn, weight in zip(version_arns, weights, strict=True):
        machine, qualifier = state_machine_arns.qualified(arn)
        is_version = qualifier is not None and qualifier.isdecimal()
        if not is_version or await service.store.version(machine, int(qualifier or 0)) is None:
            raise ValidationException(_received("state machine version ARNs", version_arns))
        machines.add(machine)
        routes[int(qualifier or 0)] = weight
    if len(machines) > 1:
        raise ValidationException(_received("versions of one state machine", version_arns))
    return machines.pop(), routes


def _received(what: str, arns: list[str]) -> str:
    return f"Routing configuration must contain {what}. Received: [{', '.join(arns)}]"


async def _check_count(
    service: StepFunctionsService, partition: str, kind: type[msgspec.Struct], most: int
) -> None:
    records, _ = await service.store.page(partition, kind, most)
    if len(records) >= most:
        raise ServiceQuotaExceededException(
            f"A state machine has {most} {kind.__name__.lower()} records at most"
        )
