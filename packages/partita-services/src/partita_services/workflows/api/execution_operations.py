"""Executions: start, describe, list, read their history, stop."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from msgspec import structs

from partita.errors import (
    ExecutionDoesNotExist,
    ResourceNotFound,
    StateMachineTypeNotSupported,
    ValidationException,
)
from partita.foundation.service_limits import MB
from partita_services.workflows.api import page_tokens
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.language import Stopped
from partita_services.workflows.running import redrives, state_machine_arns
from partita_services.workflows.running.storage.workflow_records import (
    ABORTED,
    EXPRESS,
    RUNNING,
    ExecutionRecord,
    MachineRecord,
    MapRun,
    MapRunCounts,
)

NOT_SUPPORTED = "This operation is not supported by this type of state machine"
HISTORY_PAGE_CHARS_MAX = 4 * MB
"""A page of a history ends after so much data, even if it has fewer events than it may."""
DATA_MEMBERS = ("input", "output", "parameters")
CHANGES = {
    "maxConcurrency": "concurrency",
    "toleratedFailureCount": "tolerated_count",
    "toleratedFailurePercentage": "tolerated_percentage",
}
"""The limits that UpdateMapRun may change, by the request's members."""


async def start_execution(service: StepFunctionsService, request: Request) -> Answer:
    return await service.executions.start(
        request["stateMachineArn"],
        request.get("name"),
        request.get("input", "{}"),
        request.get("traceHeader"),
    )


async def start_sync_execution(service: StepFunctionsService, request: Request) -> Answer:
    chosen = await service.executions.chosen(request["stateMachineArn"])
    if chosen.machine.type != EXPRESS:
        raise StateMachineTypeNotSupported(NOT_SUPPORTED)
    live = await service.executions.run(
        chosen, request.get("name"), request.get("input", "{}"), request.get("traceHeader")
    )
    execution = await asyncio.shield(live.finished)
    assert execution.stopped_at is not None
    seconds = execution.stopped_at - execution.started_at
    answer = _outcome(execution, request)
    answer["billingDetails"] = {
        "billedMemoryUsedInMB": 64,
        "billedDurationInMilliseconds": 100 * (int(seconds * 10) + 1),
    }
    return answer


async def describe_execution(service: StepFunctionsService, request: Request) -> Answer:
    execution = await find(service, request["executionArn"])
    reason = await redrives.refusal(service.store, execution, service.clock())
    answer = {
        **_outcome(execution, request),
        **_redriven(execution.redrive_count, execution.redriven_at),
    }
    if reason is None:
        return {**answer, "redriveStatus": "REDRIVABLE"}
    return {**answer, "redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def _redriven(count: int, when: float | None) -> Answer:
    return {"redriveCount": count} if when is None else {"redriveCount": count, "redriveDate": when}


async def redrive_execution(service: StepFunctionsService, request: Request) -> Answer:
    token = request.get("clientToken")
    async with service.changes:
        execution = await find(service, request["executionArn"])
        redriven_at = await redrives.redrive_execution(
            service.store, service.engine, service.pool, execution, token, service.clock()
        )
    return {"redriveDate": redriven_at}


async def describe_state_machine_for_execution(
    service: StepFunctionsService, request: Request
) -> Answer:
    execution = await find(service, request["executionArn"])
    definition = await service.store.definition(execution.digest)
    answer = {
        "stateMachineArn": state_machine_arns.machine_arn(execution.machine),
        "name": execution.machine,
        "definition": "" if wants_metadata_only(request) else definition,
        "roleArn": execution.role_arn,
        "updateDate": execution.machine_updated_at,
        "loggingConfiguration": {"level": "OFF", "includeExecutionData": False},
        "tracingConfiguration": {"enabled": False},
    }
    if execution.revision_id is not None:
        answer["revisionId"] = execution.revision_id
    return answer


async def list_executions(service: StepFunctionsService, request: Request) -> Answer:
    if "stateMachineArn" not in request or "mapRunArn" in request:
        raise ValidationException("A stateMachineArn must be given; there are no map runs here.")
    name, qualifier = state_machine_arns.qualified(request["stateMachineArn"])
    machine = await service.executions.machine(state_machine_arns.machine_arn(name))
    if machine.type == EXPRESS:
        raise StateMachineTypeNotSupported(NOT_SUPPORTED)
    if request.get("statusFilter") == "PENDING_REDRIVE":
        raise ValidationException("A PENDING_REDRIVE statusFilter needs a mapRunArn.")
    after = page_tokens.place(request, dict[str, dict[str, str]])
    listed, last = await service.store.executions(
        machine.name,
        request.get("statusFilter"),
        partial(_is_wanted, qualifier, request.get("redriveFilter")),
        page_tokens.limit_of(request),
        after,
    )
    return {
        "executions": [_listed(machine, entry) for entry in listed],
        **page_tokens.more(last),
    }


def _is_wanted(qualifier: str | None, filter: str | None, entry: dict[str, Any]) -> bool:
    """True when the execution was started with this version or alias, and the redrive filter
    matches."""
    if qualifier is not None and qualifier not in (str(entry.get("version")), entry.get("alias")):
        return False
    return filter is None or (filter == "REDRIVEN") == (entry.get("redrive_count", 0) > 0)


def _listed(machine: MachineRecord, entry: dict[str, Any]) -> Answer:
    stopped = {} if entry["stopped_at"] is None else {"stopDate": entry["stopped_at"]}
    return {
        "executionArn": entry["arn"],
        "stateMachineArn": state_machine_arns.machine_arn(machine.name),
        "name": entry["name"],
        "status": entry["status"],
        "startDate": entry["started_at"],
        **stopped,
        **_started_with(machine.name, entry.get("version"), entry.get("alias")),
        **_redriven(entry.get("redrive_count", 0), entry.get("redriven_at")),
    }


def _started_with(machine: str, version: int | None, alias: str | None) -> Answer:
    """The version and the alias that an execution was started with."""
    qualifiers = {"stateMachineVersionArn": version, "stateMachineAliasArn": alias}
    return {
        name: state_machine_arns.version_arn(machine, qualifier)
        for name, qualifier in qualifiers.items()
        if qualifier is not None
    }


async def get_execution_history(service: StepFunctionsService, request: Request) -> Answer:
    execution = await find(service, request["executionArn"])
    limit, is_reverse = page_tokens.limit_of(request), request.get("reverseOrder", False)
    count = await service.store.event_count(execution.arn)
    first = page_tokens.place(request, int) or (count if is_reverse else 1)
    has_data = request.get("includeExecutionData", True)
    events: list[dict[str, Any]] = []
    chars = 0
    async for event in service.store.events(execution.arn, first, is_reverse=is_reverse):
        if event["id"] > count:
            break
        if len(events) == limit or chars > HISTORY_PAGE_CHARS_MAX:
            return {"events": events, **page_tokens.more(event["id"])}
        shown = event if has_data else _without_data(event)
        events.append(shown)
        chars += sum(_chars(details) for details in shown.values())
    return {"events": events}


def _chars(details: Any) -> int:
    if not isinstance(details, dict):
        return 0
    return sum(len(value) for value in details.values() if isinstance(value, str))


def _without_data(event: dict[str, Any]) -> dict[str, Any]:
    def stripped(details: Any) -> Any:
        if not isinstance(details, dict):
            return details
        return {name: value for name, value in details.items() if name not in DATA_MEMBERS}

    return {name: stripped(value) for name, value in event.items()}


async def list_map_runs(service: StepFunctionsService, request: Request) -> Answer:
    """The map runs of an execution's distributed Map states, in order of their start."""
    execution = await find(service, request["executionArn"])
    runs = await service.store.map_runs(execution.arn)
    runs.sort(key=lambda run: (run.started_at, run.arn))
    first = page_tokens.place(request, int) or 0
    last = first + page_tokens.limit_of(request)
    listed = [
        {
            "executionArn": run.execution_arn,
            "mapRunArn": run.arn,
            "stateMachineArn": state_machine_arns.machine_arn(run.machine),
            **_dates(_current(service, run, execution)),
        }
        for run in runs[first:last]
    ]
    return {"mapRuns": listed, **page_tokens.more(last if last < len(runs) else None)}


async def describe_map_run(service: StepFunctionsService, request: Request) -> Answer:
    run = await _find_map_run(service, request["mapRunArn"])
    return {
        "mapRunArn": run.arn,
        "executionArn": run.execution_arn,
        "status": run.status,
        **_dates(run),
        "maxConcurrency": run.concurrency,
        "toleratedFailurePercentage": run.tolerated_percentage or 0.0,
        "toleratedFailureCount": run.tolerated_count or 0,
        "itemCounts": _counts(run.items),
        "executionCounts": _counts(run.executions),
        "redriveCount": 0,
    }


async def update_map_run(service: StepFunctionsService, request: Request) -> Answer:
    run = await _find_map_run(service, request["mapRunArn"])
    if run.status != RUNNING:
        raise ValidationException(
            f"Only a map run that is running can be updated; the status of '{run.arn}' is "
            f"{run.status}."
        )
    changes = {CHANGES[name]: value for name, value in request.items() if name in CHANGES}
    await service.engine.map_runs.update(run, changes)
    return {}


async def _find_map_run(service: StepFunctionsService, arn: str) -> MapRun:
    """Finds a map run. Its ARN ends with the name of the execution and the number of the task."""
    prefix, _, names = arn.partition(":mapRun:")
    machine, _, last = names.partition(":")
    execution_arn = f"{prefix}:execution:{machine.rpartition('/')[0]}:{last.rpartition('-')[0]}"
    run = await service.store.map_run(execution_arn, arn) if names else None
    if run is None:
        raise ResourceNotFound(f"Resource not found: '{arn}'", resourceName=arn)
    return _current(service, run, await find(service, execution_arn))


def _current(service: StepFunctionsService, run: MapRun, execution: ExecutionRecord) -> MapRun:
    """The map run with its current counts. It counts as aborted when its execution has ended."""
    if run.status != RUNNING:
        return run
    if execution.status != RUNNING:
        return structs.replace(run, status=ABORTED, stopped_at=execution.stopped_at)
    return service.engine.map_runs.live.get(run.arn, run)


def _dates(run: MapRun) -> Answer:
    stopped = {} if run.stopped_at is None else {"stopDate": run.stopped_at}
    return {"startDate": run.started_at, **stopped}


def _counts(counts: MapRunCounts) -> dict[str, int]:
    return {
        "pending": counts.pending,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "timedOut": 0,
        "aborted": 0,
        "total": counts.total,
        "resultsWritten": counts.succeeded,
    }


async def stop_execution(service: StepFunctionsService, request: Request) -> Answer:
    execution = await find(service, request["executionArn"])
    live = service.engine.live(execution.arn)
    stopped = Stopped(request.get("error"), request.get("cause"))
    if live is not None:
        await service.engine.deliver(live, stopped)
        execution = live.execution
    elif execution.status == RUNNING:
        execution = await service.engine.end_stored(execution, stopped)
    return {"stopDate": execution.stopped_at or service.clock()}


def wants_metadata_only(request: Request) -> bool:
    return bool(request.get("includedData") == "METADATA_ONLY")


async def find(service: StepFunctionsService, arn: str) -> ExecutionRecord:
    execution_arn = state_machine_arns.execution_arn(state_machine_arns.execution_name(arn))
    live = service.engine.live(execution_arn)
    execution = live.execution if live else await service.store.execution(execution_arn)
    if execution is None:
        raise ExecutionDoesNotExist(f"Execution Does Not Exist: '{arn}'")
    return execution


def _outcome(execution: ExecutionRecord, request: Request) -> Answer:
    outcome: Answer = {
        "executionArn": execution.arn,
        "stateMachineArn": state_machine_arns.machine_arn(execution.machine),
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.started_at,
        **_started_with(execution.machine, execution.version, execution.alias),
    }
    data = {"input": execution.input, "output": execution.output}
    if not wants_metadata_only(request):
        for name, text in data.items():
            if text is not None:
                outcome |= {name: text, f"{name}Details": {"included": True}}
    for name, value in (
        ("stopDate", execution.stopped_at),
        ("error", execution.error),
        ("cause", execution.cause),
        ("traceHeader", execution.trace_header),
    ):
        if value is not None:
            outcome[name] = value
    return outcome
