"""Parallel and Map states under way: how their lines start, end and fail."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from partita_services.workflows.language.interpreting.execution_state import (
    ExecutionLine,
    RunningFork,
)
from partita_services.workflows.language.json_values import Json, check_size
from partita_services.workflows.language.language_errors import BRANCH_FAILED, StateError
from partita_services.workflows.language.language_limits import INLINE_MAP_CONCURRENCY_MAX
from partita_services.workflows.language.machine_definition import State
from partita_services.workflows.language.states import data_flow, distributed_maps, map_items

if TYPE_CHECKING:
    from partita_services.workflows.language.interpreting.machine_walk import MachineWalk


def execute_parallel(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    input = data_flow.effective_input(state, walk.scope(line))
    check_size(input, state.name)
    count = len(state.branches)
    walk.record_event(line, "ParallelStateStarted")
    line.fork = RunningFork(total=count, waiting=[], concurrency=count, running=count)
    for number in range(count):
        branch = _new_line(walk, line, number)
        branch.path = (*line.path, state.name, number)
        branch.input = input
        _start(walk, branch)


def execute_map(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    if distributed_maps.is_distributed(state):
        distributed_maps.start(walk, line, state)
        return
    scope = data_flow.selected(state, walk.scope(line))
    items = map_items.items_of(state, scope)
    concurrency = data_flow.number_of(state, "MaxConcurrency", scope) or INLINE_MAP_CONCURRENCY_MAX
    tolerated = map_items.threshold(state, scope).of(len(items))
    walk.record_event(line, "MapStateStarted", {"length": len(items)})
    line.fork = RunningFork(
        total=len(items),
        waiting=items,
        concurrency=min(concurrency, INLINE_MAP_CONCURRENCY_MAX),
        tolerated=tolerated,
    )
    _go_on(walk, line, state)


def _start_iterations(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    """Start as many iterations of a Map state as may run at once."""
    fork = _fork_of(line)
    while fork.waiting and fork.running < fork.concurrency:
        item = fork.waiting[0]
        input = map_items.item_input(walk, line, state, item)
        check_size(input, state.name)
        # Only now, after its input was evaluated: if that fails, a redrive still finds the item.
        del fork.waiting[0]
        fork.running += 1
        iteration = _new_line(walk, line, item.number)
        iteration.path = (*line.path, state.name, 0)
        iteration.item, iteration.input = item, input
        walk.record_event(iteration, "MapIterationStarted", _iteration(iteration, state))
        _start(walk, iteration)


def branch_ended(walk: MachineWalk, line: ExecutionLine, output: Json) -> None:
    """A branch or iteration has left its last state."""
    parent, state, fork = _remove(walk, line)
    fork.succeeded[line.number] = output
    if state.type == "Map":
        walk.record_event(line, "MapIterationSucceeded", _iteration(line, state), moves=False)
    walk.attempt(parent, partial(_go_on, walk, parent, state))


def branch_failed(walk: MachineWalk, line: ExecutionLine, error: StateError) -> None:
    """A branch or iteration failed with an error that nothing in it handled."""
    parent, state, fork = _remove(walk, line)
    fork.failed += 1
    if state.type == "Map":
        walk.record_event(line, "MapIterationFailed", _iteration(line, state), moves=False)
        if fork.tolerated is not None:
            if fork.failed <= fork.tolerated:
                assert line.item is not None
                fork.lost.append(line.item)
                walk.attempt(parent, partial(_go_on, walk, parent, state))
                return
            error = map_items.too_many_failures()
    abort_lines(walk, parent)
    walk.record_event(parent, f"{state.type}StateFailed")
    if state.type == "Parallel":
        error = StateError(error.error, error.cause, aliases=(*error.aliases, BRANCH_FAILED))
    walk.fail_too(parent, error)


def resume(walk: MachineWalk, line: ExecutionLine) -> bool:
    """Continue a fork of a redriven execution. Returns False when there is nothing to continue.

    Lines that succeeded are kept. If all of them did, the state itself failed, and starts again.
    """
    fork = line.fork
    if fork is None or fork.is_over:
        return False
    fork.waiting = sorted([*fork.lost, *fork.waiting], key=lambda item: item.number)
    fork.lost, fork.failed = [], 0
    walk.attempt(line, partial(_go_on, walk, line, walk.state_of(line)))
    return True


def abort_lines(walk: MachineWalk, line: ExecutionLine) -> None:
    """End all lines within a line's fork."""
    for inner in [other for other in walk.run.lines.values() if other.parent == line.id]:
        abort_lines(walk, inner)
        inner.last_event = line.last_event
        if inner.is_entered:
            walk.record_event(inner, f"{walk.state_of(inner).type}StateAborted", moves=False)
        if inner.item is not None:
            details = _iteration(inner, walk.state_of(line))
            walk.record_event(inner, "MapIterationAborted", details, moves=False)
        walk.cancel(inner)
        del walk.run.lines[inner.id]


def _go_on(walk: MachineWalk, line: ExecutionLine, state: State) -> None:
    fork = _fork_of(line)
    if not fork.is_over:
        _start_iterations(walk, line, state)
        return
    walk.record_event(line, f"{state.type}StateSucceeded", moves=False)
    walk.conclude(line, state, fork.outputs)


def _new_line(walk: MachineWalk, parent: ExecutionLine, number: int) -> ExecutionLine:
    line = ExecutionLine(id=walk.new_id(), parent=parent.id, number=number)
    line.last_event = parent.last_event
    walk.run.lines[line.id] = line
    return line


def _start(walk: MachineWalk, line: ExecutionLine) -> None:
    line.state = walk.machine.states_at(line.path).start_at
    walk.ready(line)


def _remove(walk: MachineWalk, line: ExecutionLine) -> tuple[ExecutionLine, State, RunningFork]:
    assert line.parent is not None
    del walk.run.lines[line.id]
    parent = walk.run.lines[line.parent]
    fork = _fork_of(parent)
    fork.running -= 1
    # The next event follows the last one of the branch, not the start of the fork.
    parent.last_event = line.last_event
    return parent, walk.state_of(parent), fork


def _fork_of(line: ExecutionLine) -> RunningFork:
    assert line.fork is not None
    return line.fork


def _iteration(line: ExecutionLine, state: State) -> dict[str, Json]:
    return {"name": state.name, "index": line.number}
