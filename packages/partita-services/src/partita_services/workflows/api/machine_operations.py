"""State machines: create, update, delete, describe, list, validate."""

from __future__ import annotations

import uuid
from hashlib import blake2b

import msgspec

from partita.errors import (
    InvalidEncryptionConfiguration,
    InvalidLoggingConfiguration,
    InvalidStateMachineDefinition,
    InvalidTracingConfiguration,
    MissingRequiredParameter,
    StateMachineAlreadyExists,
    StateMachineDeleting,
    ValidationException,
)
from partita_services.record_table import RecordConflict
from partita_services.workflows.api import machine_tags, machine_versions, page_tokens
from partita_services.workflows.api.execution_operations import wants_metadata_only
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.evaluation.evaluation_messages import (
    DefinitionValidated,
    ValidateDefinition,
)
from partita_services.workflows.language import Diagnostic, InvalidDefinition
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.running import state_machine_arns
from partita_services.workflows.running.storage.workflow_records import (
    DELETING,
    STANDARD,
    MachineRecord,
    MachineVersion,
)
from partita_services.workflows.running.storage.workflow_table import MACHINES

DIAGNOSTICS_MAX = 100


async def create_state_machine(service: StepFunctionsService, request: Request) -> Answer:
    state_machine_arns.check_name(request["name"])
    state_machine_arns.check_role(request["roleArn"])
    _check_configurations(request)
    now = service.clock()
    machine = MachineRecord(
        name=request["name"],
        type=request.get("type", STANDARD),
        definition=request["definition"],
        role_arn=request["roleArn"],
        created_at=now,
        updated_at=now,
        logging=request.get("loggingConfiguration"),
        tracing=request.get("tracingConfiguration"),
        tags=machine_tags.tags_in(request),
    )
    await _check_definition(service, machine.definition, machine.type)
    version = machine_versions.next_version(machine, request, now)
    try:
        await service.store.put_machine(machine, is_new=True, version=version)
    except RecordConflict:
        machine = await _same(service, machine, version)
    return {
        "stateMachineArn": state_machine_arns.machine_arn(machine.name),
        "creationDate": machine.created_at,
        **machine_versions.published(machine.name, version),
    }


async def _same(
    service: StepFunctionsService, machine: MachineRecord, version: MachineVersion | None
) -> MachineRecord:
    """The existing machine, if creating it again is idempotent. (API reference)"""
    arn = state_machine_arns.machine_arn(machine.name)
    existing = await service.store.machine(machine.name)
    # If it does not exist any more, its deletion has just ended.
    if existing is None or existing.status == DELETING:
        raise StateMachineDeleting(f"State Machine Deleting: '{arn}'")
    names = ("definition", "type", "logging", "tracing")
    is_different = any(getattr(existing, name) != getattr(machine, name) for name in names)
    if is_different or (version is not None and existing.last_version == 0):
        raise StateMachineAlreadyExists(f"State Machine Already Exists: '{arn}'")
    return existing


async def update_state_machine(service: StepFunctionsService, request: Request) -> Answer:
    changed = [name for name in _CHANGES if name in request]
    if not changed:
        raise MissingRequiredParameter(
            "Either the definition, the role ARN, the LoggingConfiguration, or the "
            "TracingConfiguration must be specified"
        )
    _check_configurations(request)
    if "roleArn" in request:
        state_machine_arns.check_role(request["roleArn"])
    async with service.changes:
        machine = await service.executions.machine(request["stateMachineArn"])
        if machine.status == DELETING:
            raise StateMachineDeleting(f"State Machine Deleting: '{request['stateMachineArn']}'")
        if "definition" in request:
            await _check_definition(service, request["definition"], machine.type)
        for name in changed:
            setattr(machine, _CHANGES[name], request[name])
        machine.updated_at, machine.revision_id = service.clock(), str(uuid.uuid4())
        version = machine_versions.next_version(machine, request, machine.updated_at)
        await service.store.put_machine(machine, is_new=False, version=version)
    return {
        "updateDate": machine.updated_at,
        "revisionId": machine.revision_id,
        **machine_versions.published(machine.name, version),
    }


_CHANGES = {
    "definition": "definition",
    "roleArn": "role_arn",
    "loggingConfiguration": "logging",
    "tracingConfiguration": "tracing",
}


async def delete_state_machine(service: StepFunctionsService, request: Request) -> Answer:
    async with service.changes:
        machine = await service.store.machine(
            state_machine_arns.machine_name(request["stateMachineArn"])
        )
        if machine is not None and machine.status != DELETING:
            machine.status = DELETING
            # The status is stored first: a removal that is cut short is continued after the
            # restart.
            await service.store.put_machine(machine, is_new=False)
            remove_later(service, machine.name)
    return {}


def remove_later(service: StepFunctionsService, name: str) -> None:
    """Stop and remove the executions of a deleted machine in the background, and then the
    machine."""

    async def remove() -> None:
        await service.engine.stop_all(name)
        await service.store.remove_machine(name)

    service.removals.start(remove())


async def describe_state_machine(service: StepFunctionsService, request: Request) -> Answer:
    chosen = await service.executions.chosen(request["stateMachineArn"])
    machine = chosen.machine
    described = _described(machine)
    if chosen.version is not None:
        described["stateMachineArn"] = request["stateMachineArn"]
    if chosen.description is not None:
        described["description"] = chosen.description
    if wants_metadata_only(request):
        described["definition"] = ""
    return {**described, "status": machine.status, "creationDate": machine.created_at}


async def list_state_machines(service: StepFunctionsService, request: Request) -> Answer:
    limit, after = page_tokens.limit_of(request), page_tokens.place(request, str)
    machines, last = await service.store.page(MACHINES, MachineRecord, limit, after)
    listed = [
        {
            "stateMachineArn": state_machine_arns.machine_arn(machine.name),
            "name": machine.name,
            "type": machine.type,
            "creationDate": machine.created_at,
        }
        for machine in machines
    ]
    return {"stateMachines": listed, **page_tokens.more(last)}


async def validate_state_machine_definition(
    service: StepFunctionsService, request: Request
) -> Answer:
    diagnostics = await _diagnose(service, request["definition"], request.get("type", STANDARD))
    errors = _errors_in(diagnostics)
    if request.get("severity", "ERROR") == "ERROR":
        diagnostics = errors
    limit = request.get("maxResults") or DIAGNOSTICS_MAX
    return {
        "result": "FAIL" if errors else "OK",
        "diagnostics": [_described_diagnostic(diagnostic) for diagnostic in diagnostics[:limit]],
        "truncated": len(diagnostics) > limit,
    }


def _errors_in(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    return [diagnostic for diagnostic in diagnostics if diagnostic.severity == "ERROR"]


def _described_diagnostic(diagnostic: Diagnostic) -> Answer:
    members: Answer = msgspec.structs.asdict(diagnostic)
    return {name: value for name, value in members.items() if value is not None}


def _described(machine: MachineRecord) -> Answer:
    described: Answer = {
        "stateMachineArn": state_machine_arns.machine_arn(machine.name),
        "name": machine.name,
        "definition": machine.definition,
        "roleArn": machine.role_arn,
        "type": machine.type,
        "loggingConfiguration": machine.logging or {"level": "OFF", "includeExecutionData": False},
        "tracingConfiguration": machine.tracing or {"enabled": False},
        "encryptionConfiguration": {"type": "AWS_OWNED_KEY"},
    }
    if machine.revision_id is not None:
        described["revisionId"] = machine.revision_id
    return described


async def _check_definition(service: StepFunctionsService, definition: str, type: str) -> None:
    if errors := _errors_in(await _diagnose(service, definition, type)):
        raise InvalidStateMachineDefinition(str(InvalidDefinition(errors)))


async def _diagnose(service: StepFunctionsService, definition: str, type: str) -> list[Diagnostic]:
    key = blake2b(definition.encode(), digest_size=16).hexdigest()
    try:
        return (
            await service.pool.run(ValidateDefinition(definition, type), key, DefinitionValidated)
        ).diagnostics
    except StateError as error:
        return [Diagnostic("ERROR", "SCHEMA_VALIDATION_FAILED", error.cause or "")]


def _check_configurations(request: Request) -> None:
    """Refuse configurations that this server does not support."""
    if "versionDescription" in request and not request.get("publish"):
        raise ValidationException("Version description can only be set when publish is true")
    if request.get("loggingConfiguration", {}).get("level", "OFF") != "OFF":
        raise InvalidLoggingConfiguration(
            "Invalid Logging Configuration: 'This server has no execution logs: use level OFF.'"
        )
    if request.get("tracingConfiguration", {}).get("enabled"):
        raise InvalidTracingConfiguration(
            "Invalid Tracing Configuration: 'This server has no tracing.'"
        )
    if request.get("encryptionConfiguration", {}).get("type", "AWS_OWNED_KEY") != "AWS_OWNED_KEY":
        raise InvalidEncryptionConfiguration(
            "Invalid Encryption Configuration: 'This server has no customer managed keys.'"
        )
