"""The items of a Map state: selection, batches, and tolerated failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita_services.workflows.language.definition import State
from partita_services.workflows.language.errors import (
    EXCEED_TOLERATED_FAILURE_THRESHOLD,
    RUNTIME,
    StateError,
)
from partita_services.workflows.language.expressions.scope import Scope
from partita_services.workflows.language.expressions.templates import (
    fill_query_template,
    fill_template,
    find_path,
)
from partita_services.workflows.language.interpreting.run import Item, Line
from partita_services.workflows.language.states import data_flow
from partita_services.workflows.language.values import Json, is_number, json_text

if TYPE_CHECKING:
    from partita_services.workflows.language.interpreting.walk import Walk


def item_input(walk: Walk, line: Line, state: State, item: Item) -> Json:
    """The input of an iteration."""
    if "ItemBatcher" in state.fields:
        # The selector was applied to each item before batching.
        return item.value
    return _selected(data_flow.selected(state, walk.scope(line)), state, item)


def _selected(scope: Scope, state: State, item: Item) -> Json:
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


def item_context(item: Item) -> dict[str, Json]:
    """`$$.Map.Item` in an iteration."""
    context = {"Index": item.index, "Value": item.value}
    return context if item.key is None else {**context, "Key": item.key}


def items_of(state: State, scope: Scope) -> list[Item]:
    """The item or batch of each iteration."""
    items = numbered(array_of(state, scope))
    if "ItemBatcher" in state.fields:
        return _batches(state, scope, items)
    return items


def inputs_of(state: State, scope: Scope, values: list[Json] | dict[str, Json]) -> list[Json]:
    """The input of each iteration over these items."""
    items = numbered(values)
    if "ItemBatcher" in state.fields:
        return [batch.value for batch in _batches(state, scope, items)]
    return [_selected(scope, state, item) for item in items]


def numbered(values: list[Json] | dict[str, Json]) -> list[Item]:
    if isinstance(values, dict):
        return [
            Item(number=number, index=number, value=value, key=key)
            for number, (key, value) in enumerate(values.items())
        ]
    return [Item(number=number, index=number, value=value) for number, value in enumerate(values)]


def array_of(state: State, scope: Scope) -> list[Json] | dict[str, Json]:
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


def _batches(state: State, scope: Scope, items: list[Item]) -> list[Item]:
    """Items in batches of limited number and size (ItemBatcher)."""
    batcher = State(state.name, "ItemBatcher", state.fields["ItemBatcher"], state.query_language)
    items_max = data_flow.number_of(batcher, "MaxItemsPerBatch", scope) or len(items)
    bytes_max = data_flow.number_of(batcher, "MaxInputBytesPerBatch", scope)
    frame: dict[str, Json] = {}
    if "BatchInput" in batcher.fields:
        frame["BatchInput"] = _batch_input(batcher, scope)
    batches: list[Item] = []
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


def _batch(number: int, index: int, frame: dict[str, Json], values: list[Json]) -> Item:
    return Item(number=number, index=index, value={**frame, "Items": values})


def _batch_input(batcher: State, scope: Scope) -> Json:
    template = batcher.fields["BatchInput"]
    if batcher.is_jsonata:
        return fill_query_template(template, scope, "ItemBatcher/BatchInput")
    return fill_template(template, scope)


class Threshold(NamedTuple):
    """How many items may fail: a number, a percentage of all items, both, or neither."""

    number: int | None
    percentage: float | None

    def of(self, total: int) -> int | None:
        """How many of a total may fail; the smaller bound when there are two."""
        bounds = [] if self.number is None else [self.number]
        if self.percentage is not None:
            bounds.append(int(total * self.percentage // 100))
        return min(bounds, default=None)


def threshold(state: State, scope: Scope) -> Threshold:
    number = data_flow.number_of(state, "ToleratedFailureCount", scope)
    percentage = data_flow.scalar_of(state, "ToleratedFailurePercentage", scope)
    if percentage is not None and not (is_number(percentage) and 0 <= percentage <= 100):
        name = "ToleratedFailurePercentage"
        raise data_flow.wrong_value(state, name, "a number from 0 to 100", percentage)
    return Threshold(number, percentage)


def too_many_failures() -> StateError:
    return StateError(
        EXCEED_TOLERATED_FAILURE_THRESHOLD,
        "The specified tolerated failure threshold was exceeded",
    )
