"""The rights that PartiQL statements need: to select, insert, update or delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from partita.database.expressions.name_resolution import Values
from partita.database.operations.operation_context import DatabaseService
from partita.database.operations.partiql.language.bindings import read_parameters
from partita.database.operations.partiql.language.statement_compiler import (
    CompiledStatement,
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    UpdateStatement,
    compile_statement,
)
from partita.database.operations.partiql.language.statement_plan import (
    plan_item,
    plan_read,
    plan_single_read,
)
from partita.database.tables.definition.table_schema import Table
from partita.errors import DynamoDBError
from partita.server.security.rights.item_rights import (
    ALL,
    ATTRIBUTES,
    CONSUMED_CAPACITY,
    ENCLOSING_OPERATION,
    FULL_TABLE_SCAN,
    NONE,
    PREFIX,
    PROJECTED,
    RETURN_VALUES,
    SELECT,
    SPECIFIC,
    find_table,
    key_names,
    leading_keys,
    partition_and_sort,
    returned,
    source_arn,
    tags_of,
)
from partita.server.security.rights.requested_rights import (
    Keys,
    Request,
    RequestedRight,
    Rights,
    policy_of,
)

ACTIONS: Final = {
    InsertStatement: "PartiQLInsert",
    UpdateStatement: "PartiQLUpdate",
    DeleteStatement: "PartiQLDelete",
}
# The clauses of RETURNING have the names of ReturnValues, except MODIFIED for UPDATED.
RETURNING: Final = {"MODIFIED_OLD": "UPDATED_OLD", "MODIFIED_NEW": "UPDATED_NEW"}


def statement_need(
    service: DatabaseService, part: Request, whole: Request, enclosing: str
) -> RequestedRight | None:
    """Returns the right that a statement needs, or None if the statement is invalid.

    The functions that plan a statement also determine here what it reads, so that rights and
    execution cannot disagree. A statement that they refuse is refused by the operation, too.
    """
    try:
        statement = compile_statement(part["Statement"])
        values = statement.values(read_parameters(part.get("Parameters", ())))
    except DynamoDBError:
        return None
    index_name = statement.index_name if isinstance(statement, SelectStatement) else None
    action = ACTIONS.get(type(statement), "PartiQLSelect")
    table = find_table(service, statement.table_name)
    keys = partial(_keys, statement, values, table, part, whole, enclosing)
    arn = source_arn(service, statement.table_name, index_name)
    return RequestedRight(PREFIX + action, arn, keys, policy_of(table))


def _keys(
    statement: CompiledStatement,
    values: Values,
    table: Table | None,
    part: Request,
    whole: Request,
    enclosing: str,
) -> Keys:
    keys: dict[str, Sequence[str]] = {**tags_of(table)}
    names = _attributes(statement)
    is_alone = part is whole
    if is_alone and table is not None and type(statement) is SelectStatement:
        names |= key_names(table, statement.index_name)
    if names:
        keys[ATTRIBUTES] = tuple(sorted(names))
    if table is not None:
        keys |= _leading(statement, values, table, is_alone=is_alone)
    if isinstance(statement, SelectStatement):
        is_index = statement.index_name is not None
        keys[SELECT] = (SPECIFIC if statement.columns else PROJECTED if is_index else ALL,)
    else:
        clause = getattr(statement, "returning", None) or NONE
        keys[RETURN_VALUES] = (returned(part, RETURNING.get(clause, clause)),)
    keys[CONSUMED_CAPACITY] = (whole.get("ReturnConsumedCapacity", NONE),)
    if enclosing:
        keys[ENCLOSING_OPERATION] = (enclosing,)
    return keys


def _attributes(statement: CompiledStatement) -> set[str]:
    """Returns all attributes that a statement names, also if it only compares or sorts by them."""
    names: set[str] = set()
    if isinstance(statement, InsertStatement):
        names |= set(statement.item)
    condition = getattr(statement, "condition", None)
    if condition is not None:
        names |= condition.attributes
    if isinstance(statement, SelectStatement):
        names |= {name for name, _ in statement.order_by}
        if statement.columns:
            names |= {str(path[0]) for path in statement.columns.paths}
    if isinstance(statement, UpdateStatement):
        names |= statement.update.attributes
        names |= {str(path[0]) for path in statement.update.operand_paths}
    return names


def _leading(statement: CompiledStatement, values: Values, table: Table, *, is_alone: bool) -> Keys:
    partition = (table.partition,)
    try:
        if isinstance(statement, InsertStatement):
            item = {name: values[node.name] for name, node in statement.item.items()}
            return leading_keys(partition, (item,))
        if isinstance(statement, SelectStatement) and not isinstance(statement, ExistsStatement):
            if is_alone:
                return _selected(statement, values, table)
            plan = plan_single_read(statement, table, values)
        else:
            assert isinstance(statement, (UpdateStatement, DeleteStatement, ExistsStatement))
            plan = plan_item(statement, table, values)
    except DynamoDBError:
        return {}
    return leading_keys(partition, (plan.key,)) if plan else {}


def _selected(statement: SelectStatement, values: Values, table: Table) -> Keys:
    partition, sort = partition_and_sort(table, statement.index_name)
    plan = plan_read(statement, partition[0], sort[0] if sort else None, table, values)
    keys: dict[str, Any] = {FULL_TABLE_SCAN: ("false" if plan.ranges else "true",)}
    name = partition[0].name
    items = [{name: keys_read.partition[0]} for keys_read in plan.ranges]
    return keys | leading_keys(partition[:1], items)


def _right(member: str, enclosing: str = "") -> Rights:
    def rights(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        needs = [
            statement_need(service, statement, request, enclosing)
            for statement in _statements(request, member)
        ]
        return [need for need in needs if need is not None]

    return rights


def _statements(request: Request, member: str) -> Sequence[Request]:
    return request[member] if member else (request,)


RIGHTS: Final[dict[str, Rights]] = {
    "BatchExecuteStatement": _right("Statements"),
    "ExecuteStatement": _right(""),
    "ExecuteTransaction": _right("TransactStatements", "ExecuteTransaction"),
}
