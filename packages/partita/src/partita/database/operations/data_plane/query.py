"""Query: the items of one partition key, in the order of their sort keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from partita.database.item.attribute_values import Item
from partita.database.item.key_encoding import KeyRange
from partita.database.operations.data_plane.expression_parameters import (
    ENVELOPE,
    QUERY,
    check_parameters,
    compile_expressions,
)
from partita.database.operations.data_plane.result_pages import (
    ReadSource,
    check_projected,
    check_select,
    check_start_key,
    find_source,
    read,
    select,
    start_values,
)
from partita.database.operations.operation_context import ReadContext, Request
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key_values
from partita.errors import ValidationException

OUTSIDE: Final = (
    "The provided starting key is outside query boundaries based on provided conditions"
)
NOT_IN_RANGE: Final = "The provided starting key does not match the range key predicate"
NOTHING_AFTER_IT: Final = "The provided exclusive start key is invalid"
ONE_ROW: Final = "The query can return at most one row and cannot be restarted"


def query(context: ReadContext, request: Request) -> bytes:
    check_parameters(request, QUERY)
    check_select(request, ENVELOPE)
    start_key = start_values(request)
    expressions = compile_expressions(request, QUERY)
    source = find_source(context, request)
    if start_key is not None:
        check_start_key(source, start_key)
    assert expressions.key_condition is not None
    keys = expressions.key_condition.resolve(source.partition, source.sort, expressions.values)
    check_range_values(source, keys)
    start, stop = source.range(keys)
    if start_key is not None:
        _check_start_range(source, keys, start_key)
        start, stop = after(source, start_key, start, stop, request.get("ScanIndexForward", True))
    if expressions.filter:
        _check_filter(source, expressions.filter.attributes, request)
    selection = select(context, request, source, expressions)
    if not selection.fetches:
        context.partition = table_layout.partition_of(start)
    return read(context, request, selection, start, stop, keys.partition)


def check_range_values(source: ReadSource, keys: KeyRange) -> None:
    """Check that the operands of a key condition are valid key values."""
    names = [name for name, _ in source.partition + source.sort]
    leading = dict(zip(names, keys.partition + keys.equal, strict=False))
    check_key_values(source.partition, source.sort, leading)
    for operand in keys.operands:
        compared = source.sort[len(keys.equal)]
        check_key_values((), (compared,), {compared.name: operand})


def after(
    source: ReadSource, start_key: Item, start: bytes, stop: bytes, forward: bool
) -> tuple[bytes, bytes]:
    """Returns the part of a range after the start key, in the direction of the read."""
    place = source.place(start_key)
    return (max(start, place + b"\x00"), stop) if forward else (start, min(stop, place))


def _check_filter(source: ReadSource, attributes: frozenset[str], request: Request) -> None:
    """Check that the filter of a Query only uses projected attributes that are not keys.

    The filter of a Scan has no such restriction.
    """
    for name, _ in source.partition + source.sort:
        if name in attributes:
            subject = "Filter Expression" if "FilterExpression" in request else "QueryFilter"
            raise ValidationException(
                f"{subject} can only contain non-primary key attributes: "
                f"Primary key attribute: {name}"
            )
    check_projected(source, attributes)


def _check_start_range(source: ReadSource, keys: KeyRange, start_key: Item) -> None:
    if source.has_one_item_per_partition:
        # Such a query never returns a LastEvaluatedKey (both recorded).
        raise ValidationException(NOTHING_AFTER_IT)
    partition = tuple(start_key[name] for name, _ in source.partition)
    has_sort_condition = bool(keys.equal or keys.comparison)
    if has_sort_condition:
        first, last = source.range(replace(keys, partition=partition))
        if not first <= source.place(start_key) < last:
            raise ValidationException(NOT_IN_RANGE)
    if partition != keys.partition:
        raise ValidationException(ONE_ROW if has_sort_condition else OUTSIDE)
