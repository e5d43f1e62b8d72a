"""Compiles the tree of a statement, as far as that is possible without its table.

Errors in the text are raised here, and errors in the parameters when a statement is bound to them.
The service checks both before it looks for the table (recorded).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from partita.database.expressions.condition import CompiledCondition, condition_of
from partita.database.expressions.document_paths import Path as DocumentPath
from partita.database.expressions.document_paths import disjoint
from partita.database.expressions.name_resolution import NameItems, Values, cached
from partita.database.expressions.projection import Projection, SelectProjection, shape_of
from partita.database.expressions.syntax.expression_parser import (
    ConditionNode,
    InvalidExpression,
    JunctionNode,
    ValueNode,
)
from partita.database.expressions.update import CompiledUpdate as UpdateExpression
from partita.database.expressions.update import update_of
from partita.database.item.attribute_values import AttributeValue
from partita.database.operations.partiql.language.bindings import Bindings, elements
from partita.database.operations.partiql.language.literals import (
    is_literal,
    member_name,
    node_name,
    shown,
    unsupported_type,
)
from partita.database.operations.partiql.language.syntax.statement_parser import parse
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    DeleteSyntax,
    FromSource,
    FunctionCall,
    Identifier,
    InsertSyntax,
    Literal,
    OperatorCall,
    ParameterMarker,
    PathExpression,
    ReturningClause,
    SelectColumn,
    SelectSyntax,
    StructLiteral,
    SyntaxNode,
    UpdateSyntax,
    refusal,
)
from partita.database.operations.partiql.language.update_actions import UpdateTranslator
from partita.database.operations.partiql.language.where_conditions import WhereTranslator
from partita.errors import ValidationException
from partita.foundation.service_limits import TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN

ALIASED = "Aliasing is not supported"
MISPLACED_EXISTS = "EXISTS can only be used in ExecuteTransaction write requests."
ON_INDEX = "This operation is not supported on an index"
SINGLE_SOURCE = "Only select from a single table or index is supported."
SINGLE_TABLE = "FROM clause may only contain a single table name in data manipulation statements"
NO_ROWS = "Select projection doesn't support value or pivot keywords"
TABLE_NAME = (
    f"Table name should be within the length [{TABLE_NAME_CHARS_MIN}, {TABLE_NAME_CHARS_MAX}] and "
    "only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
)
NO_STRUCT = (
    "Unsupported format in item expression. Please use struct format {...} to express item values "
    "for insert statement."
)
_TABLE_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{{TABLE_NAME_CHARS_MIN},{TABLE_NAME_CHARS_MAX}}}")


class UnsupportedOperation(ValidationException):
    """Raised for well-formed PartiQL that DynamoDB does not execute, such as CREATE TABLE.

    A batch reports it with another text.
    """

    code = "ValidationException"


class MisplacedExists(UnsupportedOperation):
    """Raised for EXISTS, or any other expression, in place of a statement."""

    code = "ValidationException"


@dataclass(slots=True, kw_only=True)
class CompiledStatement:
    """A compiled statement: its table and its placeholders."""

    table_name: str
    bindings: Bindings

    def values(self, parameters: Sequence[AttributeValue]) -> Values:
        """Returns the values of all placeholders, after checking the parameters."""
        values = self.bindings.values(parameters)
        self.check(values)
        return values

    def check(self, values: Values) -> None:
        """Refuse values of a type that an operator does not accept."""


@dataclass(slots=True, kw_only=True)
class ConditionalStatement(CompiledStatement):
    """A statement with a WHERE clause, as terms that must all be true."""

    where: tuple[ConditionNode, ...]
    condition: CompiledCondition | None

    def check(self, values: Values) -> None:
        if self.condition:
            self.condition.check(values)


@dataclass(slots=True, kw_only=True)
class SelectStatement(ConditionalStatement):
    index_name: str | None
    columns: SelectProjection | None
    order_by: tuple[tuple[str, bool], ...]
    """The key attributes to sort by, each with True for descending."""

    @property
    def projection(self) -> Projection | None:
        """The columns as a projection that keeps documents whole.

        Batches and transactions return items in that form (observed on DynamoDB Local).
        """
        return self.columns.as_documents() if self.columns else None


@dataclass(slots=True, kw_only=True)
class ExistsStatement(SelectStatement):
    """EXISTS(SELECT ...) in a transaction: a condition that an item must satisfy."""


@dataclass(slots=True, kw_only=True)
class InsertStatement(CompiledStatement):
    item: dict[str, ValueNode]


@dataclass(slots=True, kw_only=True)
class UpdateStatement(ConditionalStatement):
    update: UpdateExpression
    assignments: UpdateTranslator
    returning: str | None

    def check(self, values: Values) -> None:
        self.assignments.check_sets(values)
        self.update.check(values)
        ConditionalStatement.check(self, values)


@dataclass(slots=True, kw_only=True)
class DeleteStatement(ConditionalStatement):
    returning: str | None


def is_write(text: str) -> bool | None:
    """True when a statement writes, even if it is refused later; None if it is not a statement."""
    try:
        node = parse(text)
    except ValidationException:
        return None
    if isinstance(node, SelectSyntax):
        return False
    return (
        True
        if isinstance(node, (InsertSyntax, UpdateSyntax, DeleteSyntax)) or _is_exists(node)
        else None
    )


def named_index(text: str) -> tuple[str, str] | None:
    """Returns the table and index that a well-formed statement names, or None without an index.

    Nothing else in the statement is checked.
    """
    node = parse(text)
    if _is_exists(node):
        assert isinstance(node, FunctionCall)
        (node,) = node.operands
    target: SyntaxNode | None = None
    if isinstance(node, InsertSyntax):
        target = node.target
    elif isinstance(node, (SelectSyntax, UpdateSyntax, DeleteSyntax)) and node.source is not None:
        target = node.source.expression
    if (
        not isinstance(target, PathExpression)
        or not isinstance(target.root, Identifier)
        or len(target.steps) > 1
    ):
        return None
    (step,) = target.steps
    return (target.root.text, step.text) if isinstance(step, (Identifier, Literal)) else None


def compile_statement(text: str) -> CompiledStatement:
    """Compile a statement; the result is cached."""
    return _compiled(text, (), "")


@cached
def _compiled(text: str, names: NameItems, parameter: str) -> CompiledStatement:
    node = parse(text)
    try:
        return _statement(node)
    except InvalidExpression as error:
        raise ValidationException(str(error)) from None


def _statement(node: SyntaxNode) -> CompiledStatement:
    if isinstance(node, SelectSyntax):
        return _select(node)
    if isinstance(node, InsertSyntax):
        return _insert(node)
    if isinstance(node, UpdateSyntax):
        return _update(node)
    if isinstance(node, DeleteSyntax):
        return _delete(node)
    if _is_exists(node):
        assert isinstance(node, FunctionCall) and isinstance(node.operands[0], SelectSyntax)
        return _select(node.operands[0], ExistsStatement)
    raise refuse_non_statement(node)


def _is_exists(node: SyntaxNode) -> bool:
    return (
        isinstance(node, FunctionCall)
        and node.function == "exists"
        and len(node.operands) == 1
        and isinstance(node.operands[0], SelectSyntax)
    )


def refuse_non_statement(node: SyntaxNode) -> UnsupportedOperation:
    """Returns the error for a tree that is not a statement.

    The service takes every operator and function for an EXISTS in the wrong place (recorded).
    """
    if isinstance(node, (OperatorCall, FunctionCall)):
        return MisplacedExists(MISPLACED_EXISTS)
    return _unsupported(node_name(node))


def _unsupported(operation: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"Unsupported operation: {operation}")


def _select(node: SelectSyntax, kind: type[SelectStatement] = SelectStatement) -> SelectStatement:
    if not node.has_rows:
        raise refusal(NO_ROWS)
    if node.is_distinct:
        raise refusal("Unsupported token in expression: DISTINCT")
    for clause in node.unsupported:
        raise refusal(f"Unsupported clause: {clause.name}", clause.place)
    table_name, index_name = _source(node.source)
    bindings = Bindings()
    columns = None if node.columns is None else _columns(node.columns)
    where = _where(bindings, node.where)
    order_by = tuple((_sorted_by(term.expression), term.is_descending) for term in node.order_by)
    if order_by and not where:
        raise refusal("Must have WHERE clause in the statement when using ORDER BY clause.")
    return kind(
        table_name=table_name,
        index_name=index_name,
        bindings=bindings,
        columns=columns,
        where=where,
        condition=conjunction(where, bindings.names),
        order_by=order_by,
    )


def _source(source: FromSource | None) -> tuple[str, str | None]:
    """Returns the table, and the index if the source has one."""
    if source is None or source.expression is None:
        raise refusal(SINGLE_SOURCE)
    if source.is_aliased:
        raise refusal(ALIASED)
    if not isinstance(source.expression, (Identifier, PathExpression)):
        raise refusal("Unexpected from source")
    path = elements(source.expression)
    if len(path) > 2:
        raise refusal("A path may contain at most 2 components in the FROM clause")
    names = [element for element in path if isinstance(element, str)]
    if len(names) < len(path):
        raise refusal("Invalid list expression in source.")
    if not all(_TABLE_NAME.fullmatch(name) for name in names):
        raise refusal(TABLE_NAME)
    return names[0], names[1] if len(names) > 1 else None


def _columns(columns: Sequence[SelectColumn]) -> SelectProjection:
    named: dict[str, DocumentPath] = {}
    for column in columns:
        if column.is_aliased:
            raise refusal(ALIASED)
        if column.is_spread:
            raise refusal("Changing item's hierarchy while reading isn't supported")
        path = elements(column.expression)
        name = _column_name(path)
        if name in named:
            raise refusal(f"Duplicate identifiers in select clause: {name}")
        named[name] = path
    disjoint(named.values())
    paths = tuple(named.values())
    return SelectProjection(paths, frozenset(), shape_of(paths), columns=tuple(named.items()))


def _column_name(path: DocumentPath) -> str:
    """Returns the last name of a path with the list indexes after it: `a.b[0]` is `b[0]`."""
    last = max(number for number, element in enumerate(path) if isinstance(element, str))
    return str(path[last]) + "".join(f"[{index}]" for index in path[last + 1 :])


def _sorted_by(node: SyntaxNode) -> str:
    if not isinstance(node, Identifier):
        raise refusal(
            f"Argument to ORDER BY must be of type VariableReference. Type: {shown(node)}"
        )
    return node.text


def _where(bindings: Bindings, node: SyntaxNode | None) -> tuple[ConditionNode, ...]:
    return () if node is None else WhereTranslator(bindings).where(node)


def conjunction(terms: Sequence[ConditionNode], names: dict[str, str]) -> CompiledCondition | None:
    """Compile one condition from terms that must all be true; None without terms."""
    if not terms:
        return None
    node = terms[0] if len(terms) == 1 else JunctionNode("AND", tuple(terms))
    return condition_of(node, names, "")


def _insert(node: InsertSyntax) -> CompiledStatement:
    if node.item is None:
        raise _unsupported("InsertOp")
    if not isinstance(node.target, Identifier):
        raise refusal(SINGLE_TABLE)
    if node.has_position:
        raise refusal("AT is not supported in insert statements.", node.place)
    if node.has_conflict:
        raise refusal("Unsupported clause: ON CONFLICT")
    if node.has_returning:
        raise refusal("RETURNING is not supported in INSERT")
    if not isinstance(node.item, StructLiteral):
        raise refusal(NO_STRUCT, node.item.place)
    bindings = Bindings()
    item: dict[str, ValueNode] = {}
    for name_node, value_node in node.item.members:
        name = member_name(name_node, "root")
        if name in item:
            raise refusal(f"Duplicate keys in tuple. Key: {name} under root", name_node.place)
        if not is_literal(value_node) and not isinstance(value_node, ParameterMarker):
            raise unsupported_type(shown(value_node), "root", value_node)
        value = bindings.value(value_node)
        assert value is not None
        item[name] = value
    return InsertStatement(table_name=node.target.text, bindings=bindings, item=item)


def _update(node: UpdateSyntax) -> CompiledStatement:
    table_name = _table(node.source)
    if any(isinstance(action, InsertSyntax) for action in node.actions):
        raise refusal("Unsupported FROM ... WHERE ... clause in INSERT statement.", node.place)
    bindings = Bindings()
    returning = _returned(node.returning)
    assignments = UpdateTranslator(bindings)
    update = assignments.update(node.actions)
    where = _where(bindings, node.where)
    return UpdateStatement(
        table_name=table_name,
        bindings=bindings,
        where=where,
        condition=conjunction(where, bindings.names),
        update=update_of(update, bindings.names, ""),
        assignments=assignments,
        returning=returning,
    )


def _delete(node: DeleteSyntax) -> CompiledStatement:
    table_name = _table(node.source)
    bindings = Bindings()
    returning = _returned(node.returning)
    if returning not in (None, "ALL_OLD"):
        words = str(returning).replace("_", " ")
        raise refusal(
            f"Invalid returning clause: RETURNING {words} *. Only RETURNING ALL OLD * is allowed "
            "in DELETE statements."
        )
    where = _where(bindings, node.where)
    return DeleteStatement(
        table_name=table_name,
        bindings=bindings,
        where=where,
        condition=conjunction(where, bindings.names),
        returning=returning,
    )


def _table(source: FromSource | None) -> str:
    table_name, index_name = _source(source)
    if index_name is not None:
        raise refusal(ON_INDEX)
    return table_name


def _returned(node: ReturningClause | None) -> str | None:
    """Returns the RETURNING clause as a value of ReturnValues, such as `ALL_OLD`."""
    if node is None:
        return None
    if not node.is_single:
        raise refusal("Invalid syntax with multiple returning elements in RETURNING clause")
    if not node.is_everything:
        raise refusal("Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause")
    return node.mapping.upper()
