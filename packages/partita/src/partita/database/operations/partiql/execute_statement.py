"""ExecuteStatement: runs one PartiQL statement on top of the data plane.

A SELECT reads pages as Query and Scan do. A write is one of the actions of PutItem, UpdateItem and
DeleteItem: INSERT puts an item that must not exist yet, UPDATE updates an item that must exist,
DELETE deletes one. Only the text of a statement distinguishes reads from writes, so the PartiQL
operations are registered as both, and `only_reads` decides for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from partita.database.capacity.capacity_units import ConsumedCapacity
from partita.database.expressions.name_resolution import Values
from partita.database.item.attribute_values import AttributeValue
from partita.database.item.item_sizes import check_item_size
from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations import charges
from partita.database.operations.data_plane import item_actions
from partita.database.operations.data_plane.expression_parameters import RequestExpressions
from partita.database.operations.data_plane.item_actions import (
    ConditionCheck,
    DeleteAction,
    ItemAction,
    PutAction,
    UpdateAction,
)
from partita.database.operations.data_plane.query import after, check_range_values
from partita.database.operations.data_plane.result_pages import (
    PageSelection,
    ReadSource,
    check_projected,
    check_start_key,
    consumed_by_page,
    read_charged,
    select,
)
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.partiql.language.bindings import read_parameters
from partita.database.operations.partiql.language.key_comparisons import check_key_type
from partita.database.operations.partiql.language.statement_compiler import (
    MISPLACED_EXISTS,
    CompiledStatement,
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    MisplacedExists,
    SelectStatement,
    UpdateStatement,
    compile_statement,
    is_write,
    named_index,
)
from partita.database.operations.partiql.language.statement_plan import (
    NO_KEY,
    ReadPlan,
    SingleItemPlan,
    absent_or,
    existing,
    plan_item,
    plan_read,
    plan_single_read,
)
from partita.database.operations.partiql.language.where_branches import (
    RefusedRead,
    filtered_attributes,
)
from partita.database.operations.partiql.next_tokens import (
    INVALID_TOKEN,
    SelectPosition,
    next_token,
    position_of,
)
from partita.database.operations.response_members import (
    answer,
    consumed_by_write,
    encode,
    member,
    raw_list,
    raw_member,
)
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_scalar_paths
from partita.database.tables.definition.table_schema import ALL, Table
from partita.database.tables.index_entries import projected_names
from partita.database.tables.read_path import FILTER_SECONDS_MAX
from partita.database.tables.stored_item import StoredItem, pack
from partita.database.tables.write_path import WriteEffect
from partita.errors import DuplicateItemException, KeyTypeError, ValidationException
from partita.foundation.service_limits import PAGE_BYTES_MAX

DUPLICATE_ITEM = "Duplicate primary key exists in table"
NO_INDEX = "The table does not have the specified index"
CONSISTENT_READ = "Strongly consistent read is not supported on Global Secondary Indexes"
WHOLE_KEY = "Select statements within {operation} must specify the primary key in the where clause."
NO_CONDITION = "EXISTS() must contain a single item read with additional condition"
MULTI_ATTRIBUTE_INDEX = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
    "multi-attribute RANGE keys."
)


class InsertAction(PutAction):
    """A put of an item that must not exist yet."""

    __slots__ = ()

    def check_condition(self, old: StoredItem | None) -> None:
        if old is not None:
            raise DuplicateItemException(DUPLICATE_ITEM)


def only_reads(request: Request) -> bool:
    return not is_write(request["Statement"])


def execute_read(context: ReadContext, request: Request) -> bytes:
    statement, values = bind_alone(context.service, request)
    assert isinstance(statement, SelectStatement)
    return _select(context, request, statement, values)


def execute_write(context: WriteContext, request: Request) -> bytes:
    statement, values = bind_alone(context.service, request)
    table = context.service.table(statement.table_name)
    action = action_of(statement, table, values, request)
    written = charges.carry_out(context, table, action)
    shown = returned(statement, written)
    members = [raw_member("Items", raw_list([shown] if shown else []))]
    return answer(members + _capacity(request, table, consumed_by_write(table, [written])))


def bind_alone(service: DatabaseService, request: Request) -> tuple[CompiledStatement, Values]:
    """Returns a statement outside of a transaction, and the values of its placeholders."""
    parameters = read_parameters(request.get("Parameters", ()))
    statement, values = bind(service, request["Statement"], parameters)
    if isinstance(statement, ExistsStatement):
        raise MisplacedExists(MISPLACED_EXISTS)
    return statement, values


def bind(
    service: DatabaseService, text: str, parameters: Sequence[AttributeValue]
) -> tuple[CompiledStatement, Values]:
    _refuse_multi_attribute_index(service, text)
    statement = compile_statement(text)
    return statement, statement.values(parameters)


def _refuse_multi_attribute_index(service: DatabaseService, text: str) -> None:
    """Refuse an index with several partition or sort key attributes.

    The service checks this right after the syntax, before errors that need no table (recorded).
    """
    table_and_index = named_index(text)
    if table_and_index is None:
        return
    table_name, index_name = table_and_index
    table = service.catalog.find(table_name)
    index = table.index(index_name) if table else None
    if index and max(len(index.partition), len(index.sort)) > 1:
        raise ValidationException(MULTI_ATTRIBUTE_INDEX)


def _capacity(request: Request, table: Table, consumed: ConsumedCapacity) -> list[bytes]:
    report = consumed.report(table.name, request.get("ReturnConsumedCapacity"))
    return [member("ConsumedCapacity", report)] if report else []


def action_of(
    statement: CompiledStatement, table: Table, values: Values, request: Request
) -> ItemAction:
    """Returns the action of a write; refuses keys that do not fit the schema."""
    shows_item = item_actions.shows_item_on_failure(request)
    if isinstance(statement, InsertStatement):
        item = _inserted(statement, table, values)
        return InsertAction(table.name, item, RequestExpressions(values=values), shows_item)
    assert isinstance(statement, (UpdateStatement, DeleteStatement, ExistsStatement))
    plan = plan_item(statement, table, values)
    if isinstance(statement, ExistsStatement) and not (plan and plan.terms):
        raise RefusedRead(NO_CONDITION)
    if plan is None:
        raise KeyTypeError(NO_KEY)
    if isinstance(statement, DeleteStatement):
        condition = absent_or(statement, table, plan.terms)
        expressions = RequestExpressions(condition=condition, values=values)
        return DeleteAction(table.name, plan.key, expressions, shows_item)
    condition = existing(statement, table, plan.terms)
    if isinstance(statement, UpdateStatement):
        expressions = RequestExpressions(
            condition=condition, update=statement.update, values=values
        )
        return UpdateAction(table.name, plan.key, expressions, shows_item)
    return ConditionCheck(
        table.name, plan.key, RequestExpressions(condition=condition, values=values), shows_item
    )


def _inserted(statement: InsertStatement, table: Table, values: Values) -> StoredItem:
    item = {name: values[node.name] for name, node in statement.item.items()}
    for attribute in table.key_attributes:
        if attribute.name not in item:
            raise KeyTypeError(f"Key attribute should be present in the item: Key {attribute.name}")
        check_key_type(attribute, item[attribute.name])
    packed = pack(item)
    check_item_size(packed.size)
    return packed


def returned(statement: CompiledStatement, written: WriteEffect) -> bytes | None:
    """Returns the attributes for the RETURNING clause, or None if there are none to return."""
    if not isinstance(statement, (UpdateStatement, DeleteStatement)) or not statement.returning:
        return None
    stored = written.old if statement.returning.endswith("_OLD") else written.new
    if stored is None:
        return None
    if statement.returning.startswith("ALL_") or isinstance(statement, DeleteStatement):
        return stored.body
    touched = statement.update.touched(stored.item)
    return encode(touched) if touched else None


def single_item(
    statement: SelectStatement, table: Table, values: Values, operation: str
) -> SingleItemPlan:
    """Returns the one item that a SELECT of a batch or transaction reads."""
    plan = None
    if statement.index_name is None:
        plan = plan_single_read(statement, table, values)
    if plan is None or plan.terms:
        raise RefusedRead(WHOLE_KEY.format(operation=operation))
    if statement.columns:
        check_scalar_paths(table, statement.columns.paths)
    return plan


def _select(
    context: ReadContext, request: Request, statement: SelectStatement, values: Values
) -> bytes:
    position = position_of(context, request)
    table = context.service.table(statement.table_name)
    consistent = request.get("ConsistentRead", False)
    source, plan = planned_read(table, statement, values, consistent=consistent)
    expressions = RequestExpressions(
        filter=plan.filter, projection=statement.columns, values=values
    )
    selection = select(context, request, source, expressions)
    result = _read_ranges(context, request, selection, plan, position)
    members = [raw_member("Items", raw_list(result.items))]
    if result.following:
        members.append(member("NextToken", next_token(context, request, result.following)))
    return answer(members + _capacity(request, table, result.consumed))


def planned_read(
    table: Table, statement: SelectStatement, values: Values, *, consistent: bool
) -> tuple[ReadSource, ReadPlan]:
    """Returns the table or index that a SELECT reads, and its plan; refuses invalid reads."""
    source = _source(table, statement, consistent=consistent)
    plan = plan_read(statement, *_key_schema(source), table, values)
    for keys in plan.ranges:
        check_range_values(source, keys)
    if plan.ranges and plan.filter:
        _check_filters(source, statement, values)
    return source, plan


def _check_filters(source: ReadSource, statement: SelectStatement, values: Values) -> None:
    """Refuse to read an index if every branch filters on attributes that are not projected.

    If only some branches do, the service reads it (recorded).
    """
    if source.index and source.index.projection_type != ALL:
        projected = projected_names(source.table, source.index)
        filtered = filtered_attributes(statement, *_key_schema(source), source.table, values)
        missing = [names - projected for names in filtered]
        if missing and all(missing):
            check_projected(source, missing[-1])


def _key_schema(source: ReadSource) -> tuple[KeyAttribute, KeyAttribute | None]:
    """Returns the partition key and the sort key of a source, each a single attribute."""
    (partition,) = source.partition
    return partition, source.sort[0] if source.sort else None


@dataclass(slots=True)
class SelectResult:
    """One page of a SELECT: items, consumed units, and where the next page begins."""

    items: list[bytes] = field(default_factory=list)
    consumed: ConsumedCapacity = field(default_factory=ConsumedCapacity)
    following: SelectPosition | None = None


def _read_ranges(
    context: ReadContext,
    request: Request,
    selection: PageSelection,
    plan: ReadPlan,
    position: SelectPosition,
) -> SelectResult:
    """Read ranges until the page is full by the Limit or its size, or until the time is up."""
    result, count, size = SelectResult(), 0, 0
    source, limit = selection.source, request.get("Limit")
    stopwatch = context.service.stopwatch
    deadline = stopwatch() + FILTER_SECONDS_MAX
    range_request = {
        "ScanIndexForward": plan.is_forward,
        "ConsistentRead": request.get("ConsistentRead", False),
    }
    if mode := request.get("ReturnConsumedCapacity"):
        range_request["ReturnConsumedCapacity"] = mode
    for part, (start, stop) in enumerate(bounds(source, plan, position), position.part):
        if limit is not None:
            range_request["Limit"] = limit - count
        selection.fetched_bytes = 0
        partition = plan.ranges[part].partition if plan.ranges else ()
        page = read_charged(context, range_request, selection, start, stop, partition)
        result.items += page.items
        result.consumed.add(consumed_by_page(range_request, selection, page))
        count, size = count + page.scanned_count, size + page.scanned_bytes
        if page.last_evaluated is not None:
            result.following = SelectPosition(part, source.last_evaluated_key(page.last_evaluated))
            break
        is_full = count == limit or size >= PAGE_BYTES_MAX or stopwatch() > deadline
        if is_full and part + 1 < len(plan.ranges):
            result.following = SelectPosition(part + 1)
            break
    return result


def _source(table: Table, statement: SelectStatement, *, consistent: bool) -> ReadSource:
    if statement.index_name is None:
        return ReadSource(table, None)
    index = table.index(statement.index_name)
    if index is None:
        raise ValidationException(NO_INDEX)
    if not index.is_readable:
        raise ValidationException(
            f"Cannot read from backfilling global secondary index: {index.name}"
        )
    if consistent and not index.is_local:
        raise ValidationException(CONSISTENT_READ)
    return ReadSource(table, index)


def bounds(
    source: ReadSource, plan: ReadPlan, position: SelectPosition
) -> Iterator[tuple[bytes, bytes]]:
    """Yields the ranges from a position on, as storage keys."""
    if position.key is not None:
        check_start_key(source, position.key)
    if position.part >= max(len(plan.ranges), 1):
        raise ValidationException(INVALID_TOKEN)
    if not plan.ranges:
        start, stop = table_layout.segment_range(source.prefix, 0, 1)
        yield (
            (start, stop) if position.key is None else (source.place(position.key) + b"\x00", stop)
        )
        return
    for part in range(position.part, len(plan.ranges)):
        start, stop = source.range(plan.ranges[part])
        if part == position.part and position.key is not None:
            start, stop = after(source, position.key, start, stop, plan.is_forward)
        yield start, stop
