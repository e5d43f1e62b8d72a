"""The syntax tree of a statement, as it is written, before any check of tables or values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from partita.errors import ValidationException


class TokenPlace(NamedTuple):
    """The position of a token: line and column, counted from 1, and its length."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


def refusal(text: str, place: TokenPlace | None = None) -> ValidationException:
    """Returns the error of a well-formed statement, with a position where AWS gives one."""
    return ValidationException(text if place is None else f"{text} at {place}")


class SyntaxNode(msgspec.Struct, frozen=True):
    """The base of all nodes; `place` is where the node begins in the text."""

    place: TokenPlace | None

    def children(self) -> Iterator[SyntaxNode]:
        members: list[object] = [getattr(self, name) for name in self.__struct_fields__]
        while members:
            member = members.pop()
            if isinstance(member, SyntaxNode):
                yield member
            elif isinstance(member, tuple):
                members += member


def depth_of(node: SyntaxNode) -> int:
    """Returns the number of levels of a tree.

    A chain of operators such as `a + b + c` has as many levels as one with brackets.
    """
    depth, level = 0, [node]
    while level:
        level = [child for parent in level for child in parent.children()]
        depth += 1
    return depth


class Identifier(SyntaxNode, frozen=True):
    """The name of an attribute, table or index."""

    text: str


class Literal(SyntaxNode, frozen=True):
    """A string, number, boolean or null, as the type and content of an attribute value.

    Numbers are kept as they are written.
    """

    kind: str
    content: str | bool

    @property
    def text(self) -> str:
        return str(self.content)


class MissingKeyword(SyntaxNode, frozen=True):
    """The keyword MISSING."""


class IonLiteral(SyntaxNode, frozen=True):
    """A literal in backticks. DynamoDB does not support them; its error shows their type."""

    kind: str


class ParameterMarker(SyntaxNode, frozen=True):
    """A question mark, numbered from 1."""

    number: int


class ListLiteral(SyntaxNode, frozen=True):
    """A list: `[a, b]`."""

    members: tuple[SyntaxNode, ...]


class BagLiteral(SyntaxNode, frozen=True):
    """A bag, which becomes a set: `<<a, b>>`."""

    members: tuple[SyntaxNode, ...]


class StructLiteral(SyntaxNode, frozen=True):
    """A struct, which becomes a map: `{'name': value}`."""

    members: tuple[tuple[SyntaxNode, SyntaxNode], ...]


class Wildcard(SyntaxNode, frozen=True):
    """A star in a path: `a.*`, which unpivots, or `a[*]`, which does not."""

    unpivots: bool


class PathExpression(SyntaxNode, frozen=True):
    """A document path: a root and steps, which are names or expressions in brackets.

    It has no position of its own.
    """

    root: SyntaxNode
    steps: tuple[SyntaxNode, ...]
    brackets: tuple[bool, ...]


class FunctionCall(SyntaxNode, frozen=True):
    """A function call; the name is in lower case."""

    function: str
    operands: tuple[SyntaxNode, ...]


class OperatorCall(SyntaxNode, frozen=True):
    """An operator with its operands; AND and OR can have more than two."""

    operator: str
    operands: tuple[SyntaxNode, ...]


class TypeTest(SyntaxNode, frozen=True):
    """`operand IS type`."""

    operand: SyntaxNode
    type_name: str


class UnsupportedSyntax(SyntaxNode, frozen=True):
    """Well-formed PartiQL that DynamoDB does not support."""

    token: str
    """The name in the error for an expression."""
    operation: str
    """The name in the error for a statement."""


class FromSource(SyntaxNode, frozen=True):
    """The source after FROM or UPDATE; the expression is None for a join or an unpivot."""

    expression: SyntaxNode | None
    is_aliased: bool


class SelectColumn(SyntaxNode, frozen=True):
    """One column of a SELECT; `is_spread` is True for `a.*`."""

    expression: SyntaxNode
    is_aliased: bool
    is_spread: bool


class OrderTerm(SyntaxNode, frozen=True):
    expression: SyntaxNode
    is_descending: bool


class UnsupportedClause(SyntaxNode, frozen=True):
    """The name of a clause that DynamoDB does not support, such as GROUP BY."""

    name: str


class SelectSyntax(SyntaxNode, frozen=True):
    columns: tuple[SelectColumn, ...] | None
    """None for `SELECT *`."""
    source: FromSource
    where: SyntaxNode | None
    order_by: tuple[OrderTerm, ...]
    is_distinct: bool
    has_rows: bool
    """True when the projection is a list of columns, not VALUE or PIVOT."""
    unsupported: tuple[UnsupportedClause, ...]


class InsertSyntax(SyntaxNode, frozen=True):
    target: SyntaxNode
    item: SyntaxNode | None
    """None for an INSERT of rows instead of a VALUE."""
    has_position: bool
    has_conflict: bool
    has_returning: bool


class Assignment(SyntaxNode, frozen=True):
    target: SyntaxNode
    value: SyntaxNode


class Removal(SyntaxNode, frozen=True):
    target: SyntaxNode


class ReturningClause(SyntaxNode, frozen=True):
    """`RETURNING mapping *`, where the mapping is for example `modified_old`."""

    mapping: str
    is_everything: bool
    is_single: bool


class UpdateSyntax(SyntaxNode, frozen=True):
    source: FromSource | None
    actions: tuple[SyntaxNode, ...]
    """Assignments and removals; an INSERT among them is refused when the statement is compiled."""
    where: SyntaxNode | None
    returning: ReturningClause | None


class DeleteSyntax(SyntaxNode, frozen=True):
    source: FromSource
    where: SyntaxNode | None
    returning: ReturningClause | None


DML = (InsertSyntax, UpdateSyntax, DeleteSyntax)
