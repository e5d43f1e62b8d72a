"""ExecuteStatement: one PartiQL statement over everything else here.

A SELECT reads pages as Query and Scan do, a write is one of the actions that PutItem, UpdateItem
and DeleteItem come down to: INSERT a put of an item that must not exist, UPDATE an update of one
that must, DELETE a delete. Only the text says which it is, so the PartiQL operations are registered
as reads and as writes, with an `only_reads` that tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

from partita.database.capacity.units import Consumed
from partita.database.expressions.resolution import Values
from partita.database.item.values import TOO_LARGE
from partita.database.operations import charges
from partita.database.operations.answers import (
    answer,
    consumed_by_write,
    encode,
    member,
    raw_list,
    raw_member,
)
from partita.database.operations.context import ReadContext, Request, WriteContext
from partita.database.operations.data_plane import actions
from partita.database.operations.data_plane.actions import (
    Action,
    ConditionCheck,
    Delete,
    Put,
    Update,
)
from partita.database.operations.data_plane.expression_parameters import Expressions
from partita.database.operations.data_plane.pages import (
    Selection,
    Source,
    check_projected,
    check_start_key,
    consumed_by_page,
    read_charged,
    select,
)
from partita.database.operations.data_plane.queries import after, check_range_values
from partita.database.operations.partiql.next_tokens import (
    INVALID_TOKEN,
    Position,
    next_token,
    position_of,
)
from partita.database.partiql.compile import (
    MISPLACED_EXISTS,
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    MisplacedExists,
    SelectStatement,
    Statement,
    UpdateStatement,
    compile_statement,
)
from partita.database.partiql.plan import (
    NO_KEY,
    ItemPlan,
    ReadPlan,
    absent_or,
    check_key_type,
    existing,
    plan_item,
    plan_read,
)
from partita.database.tables import layout
from partita.database.tables.keys import check_scalar_paths
from partita.database.tables.read import FILTER_SECONDS_MAX
from partita.database.tables.schema import Table
from partita.database.tables.stored import Stored, pack
from partita.database.tables.write import Written
from partita.errors import DuplicateItemException, KeyTypeError, ValidationException
from partita.limits import ITEM_BYTES_MAX, PAGE_BYTES_MAX

DUPLICATE_ITEM = "Duplicate primary key exists in table"
NO_INDEX = "The table does not have the specified index"
CONSISTENT_READ = "Strongly consistent read is not supported on Global Secondary Indexes"
WHOLE_KEY = "Select statements within {operation} must specify the primary key in the where clause."
NO_CONDITION = "EXISTS() must contain a single item read with additional condition"


class SingleItemError(ValidationException):
    """A read that must name one item and does not. No transaction is even begun for it."""

    code = "ValidationException"


class Insert(Put):
    """A put of an item whose key must be new."""

    __slots__ = ()

    def check_condition(self, old: Stored | None) -> None:
        if old is not None:
            raise DuplicateItemException(DUPLICATE_ITEM)


def only_reads(request: Request) -> bool:
    return isinstance(compile_statement(request["Statement"]), SelectStatement)


def execute_read(context: ReadContext, request: Request) -> bytes:
    statement = compile_statement(request["Statement"])
    values = statement.values(request.get("Parameters", ()))
    if isinstance(statement, ExistsStatement):
        raise MisplacedExists(MISPLACED_EXISTS)
    assert isinstance(statement, SelectStatement)
    return _select(context, request, statement, values)


def execute_write(context: WriteContext, request: Request) -> bytes:
    statement = compile_statement(request["Statement"])
    values = statement.values(request.get("Parameters", ()))
    table = context.service.table(statement.table_name)
    action = action_of(statement, table, values, request)
    written = carry_out(context, table, action)
    shown = returned(statement, written)
    members = [raw_member("Items", raw_list([shown] if shown else []))]
    return answer(members + _capacity(request, table, consumed_by_write(table, [written])))


def _capacity(request: Request, table: Table, consumed: Consumed) -> list[bytes]:
    report = consumed.report(table.name, request.get("ReturnConsumedCapacity"))
    return [member("ConsumedCapacity", report)] if report else []


def carry_out(context: WriteContext, table: Table, action: Action) -> Written:
    if context.service.ledger.is_on:
        return charges.carry_out(context, table, action)
    return actions.carry_out(context.write_batch, table, action)


def action_of(statement: Statement, table: Table, values: Values, request: Request) -> Action:
    """The action that a write comes down to; refuses keys that do not fit the table."""
    shows_item = actions.shows_item_on_failure(request)
    if isinstance(statement, InsertStatement):
        item = _inserted(statement, table, values)
        return Insert(table.name, item, Expressions(values=values), shows_item)
    assert isinstance(statement, (UpdateStatement, DeleteStatement, ExistsStatement))
    plan = plan_item(statement, table, values)
    if isinstance(statement, ExistsStatement) and not (plan and plan.terms):
        raise SingleItemError(NO_CONDITION)
    if plan is None:
        raise KeyTypeError(NO_KEY)
    if isinstance(statement, DeleteStatement):
        condition = absent_or(statement, table, plan.terms)
        expressions = Expressions(condition=condition, values=values)
        return Delete(table.name, plan.key, expressions, shows_item)
    condition = existing(statement, table, plan.terms)
    if isinstance(statement, UpdateStatement):
        expressions = Expressions(condition=condition, update=statement.update, values=values)
        return Update(table.name, plan.key, expressions, shows_item)
    return ConditionCheck(
        table.name, plan.key, Expressions(condition=condition, values=values), shows_item
    )


def _inserted(statement: InsertStatement, table: Table, values: Values) -> Stored:
    item = {name: values[node.name] for name, node in statement.item.items()}
    for attribute in table.key_attributes:
        if attribute.name not in item:
            raise KeyTypeError(f"Key attribute should be present in the item: Key {attribute.name}")
        check_key_type(attribute, item[attribute.name])
    packed = pack(item)
    if packed.size > ITEM_BYTES_MAX:
        raise ValidationException(TOO_LARGE)
    return packed


def returned(statement: Statement, written: Written) -> bytes | None:
    """What the RETURNING clause shows, if there is anything to show."""
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
) -> ItemPlan:
    """The one item that a SELECT of a batch or transaction reads."""
    plan = None
    if statement.index_name is None:
        plan = plan_item(statement, table, values)
    if plan is None or plan.terms:
        raise SingleItemError(WHOLE_KEY.format(operation=operation))
    if statement.columns:
        check_scalar_paths(table, statement.columns.paths)
    return plan


def _select(
    context: ReadContext, request: Request, statement: SelectStatement, values: Values
) -> bytes:
    position = position_of(request)
    table = context.service.table(statement.table_name)
    source = _source(table, statement, consistent=request.get("ConsistentRead", False))
    plan = plan_read(statement, source.partition, source.sort, table, values)
    for keys in plan.ranges:
        check_range_values(source, keys)
    if plan.ranges and plan.filter:
        check_projected(source, plan.filter.attributes)
    expressions = Expressions(filter=plan.filter, projection=statement.columns, values=values)
    selection = select(context, request, source, expressions)
    result = _read_ranges(context, request, selection, plan, position)
    members = [raw_member("Items", raw_list(result.items))]
    if result.following:
        members.append(member("NextToken", next_token(request, result.following)))
    return answer(members + _capacity(request, table, result.consumed))


@dataclass(slots=True)
class Result:
    """What was read of one range or several, what it cost, and where the next page begins."""

    items: list[bytes] = field(default_factory=list)
    consumed: Consumed = field(default_factory=Consumed)
    following: Position | None = None


def _read_ranges(
    context: ReadContext,
    request: Request,
    selection: Selection,
    plan: ReadPlan,
    position: Position,
) -> Result:
    """Read range after range until the page is full: by its limit, its bytes or its time."""
    result, count, size = Result(), 0, 0
    source, limit = selection.source, request.get("Limit")
    deadline = monotonic() + FILTER_SECONDS_MAX
    asked = {
        "ScanIndexForward": plan.is_forward,
        "ConsistentRead": request.get("ConsistentRead", False),
    }
    for part, (start, stop) in enumerate(_bounds(source, plan, position), position.part):
        if limit is not None:
            asked["Limit"] = limit - count
        selection.fetched_bytes = 0
        partition = plan.ranges[part].partition if plan.ranges else ()
        page = read_charged(context, asked, selection, start, stop, partition)
        result.items += page.items
        result.consumed.add(consumed_by_page(asked, selection, page))
        count, size = count + page.scanned_count, size + page.scanned_bytes
        if page.last_evaluated is not None:
            result.following = Position(part, source.last_evaluated_key(page.last_evaluated))
            break
        is_full = count == limit or size >= PAGE_BYTES_MAX or monotonic() > deadline
        if is_full and part + 1 < len(plan.ranges):
            result.following = Position(part + 1)
            break
    return result


def _source(table: Table, statement: SelectStatement, *, consistent: bool) -> Source:
    if statement.index_name is None:
        return Source(table, None)
    index = table.index(statement.index_name)
    if index is None:
        raise ValidationException(NO_INDEX)
    if not index.is_readable:
        raise ValidationException(
            f"Cannot read from backfilling global secondary index: {index.name}"
        )
    if consistent and not index.is_local:
        raise ValidationException(CONSISTENT_READ)
    return Source(table, index)


def _bounds(source: Source, plan: ReadPlan, position: Position) -> Iterator[tuple[bytes, bytes]]:
    """The ranges that are still to be read, as bytes."""
    if position.key is not None:
        check_start_key(source, position.key)
    if position.part >= max(len(plan.ranges), 1):
        raise ValidationException(INVALID_TOKEN)
    if not plan.ranges:
        start, stop = layout.segment_range(source.prefix, 0, 1)
        yield (
            (start, stop) if position.key is None else (source.place(position.key) + b"\x00", stop)
        )
        return
    for part in range(position.part, len(plan.ranges)):
        start, stop = source.range(plan.ranges[part])
        if part == position.part and position.key is not None:
            start, stop = after(source, position.key, start, stop, plan.is_forward)
        yield start, stop
