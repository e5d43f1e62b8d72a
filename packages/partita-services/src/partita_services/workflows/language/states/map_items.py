"""The items of a Map state: selection, batches, and tolerated failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita_services.workflows.language.expressions.evaluation_scope import EvaluationScope
from partita_services.workflows.language.expressions.payload_templates import (
    fill_query_template,
    fill_template,
    find_path,
)
from partita_services.workflows.language.interpreting.execution_state import ExecutionLine, MapItem
from partita_services.workflows.language.json_values import Json, is_number, json_text
from partita_services.workflows.language.language_errors import (
    EXCEED_TOLERATED_FAILURE_THRESHOLD,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.machine_definition import State
from partita_services.workflows.language.states import data_flow

if TYPE_CHECKING:
    from partita_services.workflows.language.interpreting.machine_walk import MachineWalk


def item_input(walk: MachineWalk, line: ExecutionLine, state: State, item: MapItem) -> Json:
    """The input of an iteration."""
    if "ItemBatcher" in state.fields:
        # The selector was applied to each item before batching.
        return item.value
    return _selected(data_flow.selected(state, walk.scope(line)), state, item)


def _selected(scope: EvaluationScope, state: State, item: MapItem) -> Json:
    template = state.fields.get("ItemSelector", state.fields.get("Parameters"))
    if template is None:
        if item.key is not None:
            return {"Key": item.key, "Value": item.value}
        return item.value
    context = {**scope.context, "Map": {"Item": item_context(item)}}
    scope = scope._replace(context=context)
    if state.is_jsonata:
        return fill_query_template(template, scope, "ItemSelector")
    return fill_template(template, scope)


def item_context(item: MapItem) -> dict[str, Json]:
    """`$$.Map.Item` in an iteration."""
    context = {"Index": item.index, "Value": item.value}
    return context if item.key is None else {**context, "Key": item.key}


def items_of(state: State, scope: EvaluationScope) -> list[MapItem]:
    """The item or batch of each iteration."""
    items = numbered(array_of(state, scope))
    if "ItemBatcher" in state.fields:
        return _batches(state, scope, items)
    return items


def inputs_of(
    state: State, scope: EvaluationScope, values: list[Json] | dict[str, Json]
) -> list[Json]:
    """The input of each iteration over these items."""
    items = numbered(values)
    if "ItemBatcher" in state.fields:
        return [batch.value for batch in _batches(state, scope, items)]
    return [_selected(scope, state, item) for item in items]


def numbered(values: list[Json] | dict[str, Json]) -> list[MapItem]:
    if isinstance(values, dict):
        return [
            MapItem(number=number, index=number, value=value, key=key)
            for number, (key, value) in enumerate(values.items())
        ]
    return [
        MapItem(number=number, index=number, value=value) for number, value in enumerate(values)
    ]


def array_of(state: State, scope: EvaluationScope) -> list[Json] | dict[str, Json]:
    if state.is_jsonata:
        field = "Items"
        values = scope.data
        if field in state.fields:
            values = fill_query_template(state.fields[field], scope, field)
        if isinstance(values, list | dict):
            return values
        raise data_flow.wrong_value(state, field, "an array", values)
    path = state.fields.get("ItemsPath", "$")
    values = find_path(path, scope, "ItemsPath")
    if isinstance(values, list):
        scope.note("afterItemsPath", values)
        return values
    # The message calls the context object $ too. (observed)
    reference = path.replace("$$", "$")
    raise StateError(RUNTIME, f'Reference path "{reference}" must point to array.')


def _batches(state: State, scope: EvaluationScope, items: list[MapItem]) -> list[MapItem]:
    """Items in batches of limited number and size (ItemBatcher)."""
    batcher = State(state.name, "ItemBatcher", state.fields["ItemBatcher"], state.query_language)
    items_max = data_flow.number_of(batcher, "MaxItemsPerBatch", scope) or len(items)
    bytes_max = data_flow.number_of(batcher, "MaxInputBytesPerBatch", scope)
    frame: dict[str, Json] = {}
    if "BatchInput" in batcher.fields:
        frame["BatchInput"] = _batch_input(batcher, scope)
    batches: list[MapItem] = []
    gathered: list[Json] = []
    size = 0
    for item in items:
        value = _selected(scope, state, item)
        grown = size + len(json_text(value).encode())
        is_too_large = bytes_max is not None and gathered and grown > bytes_max
        if len(gathered) >= items_max or is_too_large:
            batches.append(_batch(len(batches), item.index - len(gathered), frame, gathered))
            gathered, size = [], 0
            grown = len(json_text(value).encode())
        gathered.append(value)
        size = grown
    if gathered:
        batches.append(_batch(len(batches), len(items) - len(gathered), frame, gathered))
    return batches


def _batch(number: int, index: int, frame: dict[str, Json], values: list[Json]) -> MapItem:
    return MapItem(number=number, index=index, value={**frame, "Items": values})


def _batch_input(batcher: State, scope: EvaluationScope) -> Json:
    template = batcher.fields["BatchInput"]
    if batcher.is_jsonata:
        return fill_query_template(template, scope, "ItemBatcher/BatchInput")
    return fill_template(template, scope)


class FailureThreshold(NamedTuple):
    """The number of items that may fail: an absolute number, a percentage of all items, both, or
    neither."""

    number: int | None
    percentage: float | None

    def of(self, total: int) -> int | None:
        """Returns the number of items out of a total that may fail; the smaller bound when there
        are two."""
        bounds = [] if self.number is None else [self.number]
        if self.percentage is not None:
            bounds.append(int(total * self.percentage // 100))
        return min(bounds, default=None)


def threshold(state: State, scope: EvaluationScope) -> FailureThreshold:
    number = data_flow.number_of(state, "ToleratedFailureCount", scope)
    percentage = data_flow.scalar_of(state, "ToleratedFailurePercentage", scope)
    if percentage is not None and not (is_number(percentage) and 0 <= percentage <= 100):
        name = "ToleratedFailurePercentage"
        raise data_flow.wrong_value(state, name, "a number from 0 to 100", percentage)
    return FailureThreshold(number, percentage)


def too_many_failures() -> StateError:
    return StateError(
        EXCEED_TOLERATED_FAILURE_THRESHOLD,
        "The specified tolerated failure threshold was exceeded",
    )
