"""Parallel and Map states under way: their lines start, end, and fail together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from partita.workflows.language.definition import State
from partita.workflows.language.errors import BRANCH_FAILED, StateError
from partita.workflows.language.interpreting.run import Fork, Line
from partita.workflows.language.limits import INLINE_MAP_CONCURRENCY_MAX
from partita.workflows.language.states import data_flow, map_items
from partita.workflows.language.values import Json

if TYPE_CHECKING:
    from partita.workflows.language.interpreting.walk import Walk


def execute_parallel(walk: Walk, line: Line, state: State) -> None:
    given = data_flow.effective_input(state, walk.scope(line))
    count = len(state.branches)
    walk.tell(line, "ParallelStateStarted")
    line.fork = Fork(total=count, waiting=[], concurrency=count, running=count)
    for number in range(count):
        branch = _new_line(walk, line, number)
        branch.path = (*line.path, state.name, number)
        branch.input = given
        _start(walk, branch)


def execute_map(walk: Walk, line: Line, state: State) -> None:
    scope = data_flow.selected(state, walk.scope(line))
    items = map_items.items_of(walk, line, state, scope)
    concurrency = data_flow.number_of(state, "MaxConcurrency", scope) or INLINE_MAP_CONCURRENCY_MAX
    tolerated = map_items.tolerated(state, scope, len(items))
    walk.tell(line, "MapStateStarted", {"length": len(items)})
    line.fork = Fork(
        total=len(items),
        waiting=items,
        concurrency=min(concurrency, INLINE_MAP_CONCURRENCY_MAX),
        tolerated=tolerated,
    )
    _go_on(walk, line, state)


def _start_iterations(walk: Walk, line: Line, state: State) -> None:
    """Start as many iterations of a Map state as may run at once."""
    fork = _fork_of(line)
    while fork.waiting and fork.running < fork.concurrency:
        item = fork.waiting[0]
        given = map_items.item_input(walk, line, state, item)
        del fork.waiting[0]
        fork.running += 1
        iteration = _new_line(walk, line, item.number)
        iteration.path = (*line.path, state.name, 0)
        iteration.item, iteration.input = item, given
        walk.tell(iteration, "MapIterationStarted", _iteration(iteration, state))
        _start(walk, iteration)


def branch_ended(walk: Walk, line: Line, output: Json) -> None:
    """The last state of a branch or iteration was left."""
    parent, state, fork = _remove(walk, line)
    fork.succeeded[line.number] = output
    if state.type == "Map":
        walk.tell(line, "MapIterationSucceeded", _iteration(line, state), moves=False)
    walk.attempt(parent, partial(_go_on, walk, parent, state))


def branch_failed(walk: Walk, line: Line, error: StateError) -> None:
    """Nothing in a branch or iteration met its error."""
    parent, state, fork = _remove(walk, line)
    fork.failed += 1
    if state.type == "Map":
        walk.tell(line, "MapIterationFailed", _iteration(line, state), moves=False)
        if fork.tolerated is not None:
            if fork.failed <= fork.tolerated:
                assert line.item is not None
                fork.lost.append(line.item)
                walk.attempt(parent, partial(_go_on, walk, parent, state))
                return
            error = map_items.too_many_failures()
    abort_lines(walk, parent)
    walk.tell(parent, f"{state.type}StateFailed")
    if state.type == "Parallel":
        error = StateError(error.error, error.cause, aliases=(*error.aliases, BRANCH_FAILED))
    walk.fail_too(parent, error)


def resume(walk: Walk, line: Line) -> bool:
    """Go on with a fork of an execution that is redriven; False when there is none to go on with.

    What succeeded is kept, unless all did: then it was the state itself that failed.
    """
    fork = line.fork
    if fork is None or fork.is_over:
        return False
    fork.waiting = sorted([*fork.lost, *fork.waiting], key=lambda item: item.number)
    fork.lost, fork.failed = [], 0
    walk.attempt(line, partial(_go_on, walk, line, walk.state_of(line)))
    return True


def abort_lines(walk: Walk, line: Line) -> None:
    """End whatever goes on within a line's fork."""
    for inner in [other for other in walk.run.lines.values() if other.parent == line.id]:
        abort_lines(walk, inner)
        inner.last_event = line.last_event
        if inner.is_entered:
            walk.tell(inner, f"{walk.state_of(inner).type}StateAborted", moves=False)
        if inner.item is not None:
            details = _iteration(inner, walk.state_of(line))
            walk.tell(inner, "MapIterationAborted", details, moves=False)
        walk.cancel(inner)
        del walk.run.lines[inner.id]


def _go_on(walk: Walk, line: Line, state: State) -> None:
    fork = _fork_of(line)
    if not fork.is_over:
        _start_iterations(walk, line, state)
        return
    walk.tell(line, f"{state.type}StateSucceeded", moves=False)
    walk.conclude(line, state, fork.outputs)


def _new_line(walk: Walk, parent: Line, number: int) -> Line:
    line = Line(id=walk.new_id(), parent=parent.id, number=number)
    line.last_event = parent.last_event
    walk.run.lines[line.id] = line
    return line


def _start(walk: Walk, line: Line) -> None:
    line.state = walk.machine.states_at(line.path).start_at
    walk.ready(line)


def _remove(walk: Walk, line: Line) -> tuple[Line, State, Fork]:
    assert line.parent is not None
    del walk.run.lines[line.id]
    parent = walk.run.lines[line.parent]
    fork = _fork_of(parent)
    fork.running -= 1
    # What comes next comes after the branch, and not after the start of its fork.
    parent.last_event = line.last_event
    return parent, walk.state_of(parent), fork


def _fork_of(line: Line) -> Fork:
    assert line.fork is not None
    return line.fork


def _iteration(line: Line, state: State) -> dict[str, Json]:
    return {"name": state.name, "index": line.number}
