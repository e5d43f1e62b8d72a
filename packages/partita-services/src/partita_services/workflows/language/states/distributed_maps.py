"""Distributed Map states: a map run is a task of its own, whose iterations are executions.

The task carries what the run needs of the state's scope. The engine reads the items, and starts an
execution for each item or each batch of items.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from partita_services.workflows.language.expressions.evaluation_scope import (
    EvaluationScope,
    StepMoment,
)
from partita_services.workflows.language.expressions.payload_templates import (
    fill_query_template,
    fill_template,
    find_path,
)
from partita_services.workflows.language.interpreting.engine_interface import StartTask
from partita_services.workflows.language.interpreting.execution_state import ExecutionLine
from partita_services.workflows.language.interpreting.task_resources import MAP_RUN, map_run_arn
from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.machine_definition import State, StateMachine, processor_of
from partita_services.workflows.language.states import data_flow, map_items

if TYPE_CHECKING:
    from partita_services.workflows.language.interpreting.machine_walk import MachineWalk

DISTRIBUTED = "DISTRIBUTED"


def is_distributed(state: State) -> bool:
    config = processor_of(state.fields)[1].get("ProcessorConfig", {})
    return bool(config.get("Mode") == DISTRIBUTED)


def start(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    scope = data_flow.selected(state, walk.scope(line))
    id = walk.new_id()
    execution = walk.run.context["Execution"]["Id"]
    items = None if "ItemReader" in state.fields else map_items.array_of(state, scope)
    task = StartTask(
        id=id,
        state=state.name,
        resource=MAP_RUN,
        input={
            "mapRunArn": map_run_arn(execution, label_of(state), id),
            "path": list(line.path),
            "data": scope.data,
            "context": scope.context,
            "variables": dict(scope.variables),
            "items": items,
            "reader": _filled(state, "ItemReader", scope),
            "writer": _filled(state, "ResultWriter", scope),
            "concurrency": data_flow.number_of(state, "MaxConcurrency", scope),
        },
        scheduled_at=walk.moment.now,
    )
    length = 0 if items is None else len(items)
    walk.record_event(line, "MapStateStarted", {"length": length})
    line.waits_for, line.task = id, task
    walk.commands.append(task)


def label_of(state: State) -> str:
    """The label of the state in the names of its executions."""
    label = state.fields.get("Label") or state.name.replace(" ", "")
    return str(label)[:40]


def _filled(state: State, name: str, scope: EvaluationScope) -> Json:
    """A reader or writer, with its parameters evaluated."""
    fields = state.fields.get(name)
    if fields is None:
        return None
    config = dict(fields.get("ReaderConfig", {}))
    if state.is_jsonata:
        parameters = fill_query_template(fields.get("Arguments", {}), scope, f"{name}/Arguments")
        config = fill_query_template(config, scope, f"{name}/ReaderConfig")
    else:
        parameters = fill_template(fields.get("Parameters", {}), scope)
        if "MaxItemsPath" in config:
            config["MaxItems"] = find_path(config["MaxItemsPath"], scope, "MaxItemsPath")
    return {**fields, "Parameters": parameters, "ReaderConfig": config}


def state_of(machine: StateMachine, task: StartTask) -> State:
    """The Map state of a map run."""
    return machine.states_at(tuple(task.input["path"])).states[task.state]


def inputs_of(state: State, task: StartTask, items: list[Json] | dict[str, Json]) -> list[Json]:
    """The input of each execution."""
    return map_items.inputs_of(state, _scope(task), items)


def threshold(state: State, task: StartTask) -> map_items.FailureThreshold:
    return map_items.threshold(state, _scope(task))


def _scope(task: StartTask) -> EvaluationScope:
    moment = StepMoment(task.scheduled_at, random.Random(task.id))
    input = task.input
    states = {"input": input["data"]}
    return EvaluationScope(input["data"], input["context"], input["variables"], moment, states)


def definition_of(machine: StateMachine, state: State) -> dict[str, Json]:
    """The definition of the machine that the executions run."""
    processor = processor_of(state.fields)[1]
    return {
        "QueryLanguage": machine.query_language,
        "StartAt": processor["StartAt"],
        "States": processor["States"],
    }
