"""The syntax tree of a statement, as it is written, before any check of tables or values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from partita.errors import ValidationException


class Place(NamedTuple):
    """The position of a token: line and column, counted from 1, and its length."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


def refusal(text: str, place: Place | None = None) -> ValidationException:
    """Returns the error of a well-formed statement, with a position where AWS gives one."""
    return ValidationException(text if place is None else f"{text} at {place}")


class Node(msgspec.Struct, frozen=True):
    place: Place | None

    def children(self) -> Iterator[Node]:
        members: list[object] = [getattr(self, name) for name in self.__struct_fields__]
        while members:
            member = members.pop()
            if isinstance(member, Node):
                yield member
            elif isinstance(member, tuple):
                members += member


def depth_of(node: Node) -> int:
    """Returns the number of levels of a tree.

    A chain of operators such as `a + b + c` has as many levels as one with brackets.
    """
    depth, level = 0, [node]
    while level:
        level = [child for parent in level for child in parent.children()]
        depth += 1
    return depth


class Name(Node, frozen=True):
    """The name of an attribute, table or index."""

    text: str


class Literal(Node, frozen=True):
    """A string, number, boolean or null, as the type and content of an attribute value.

    Numbers are kept as they are written.
    """

    kind: str
    content: str | bool

    @property
    def text(self) -> str:
        return str(self.content)


class Missing(Node, frozen=True):
    """The keyword MISSING."""


class IonLiteral(Node, frozen=True):
    """A literal in backticks. DynamoDB does not support them; its error shows their type."""

    kind: str


class Parameter(Node, frozen=True):
    """A question mark, numbered from 1."""

    number: int


class ListLiteral(Node, frozen=True):
    members: tuple[Node, ...]


class BagLiteral(Node, frozen=True):
    members: tuple[Node, ...]


class StructLiteral(Node, frozen=True):
    members: tuple[tuple[Node, Node], ...]


class Wildcard(Node, frozen=True):
    """A star in a path: `a.*`, which unpivots, or `a[*]`, which does not."""

    unpivots: bool


class Path(Node, frozen=True):
    """A document path: a root and steps, which are names or expressions in brackets.

    It has no position of its own.
    """

    root: Node
    steps: tuple[Node, ...]
    brackets: tuple[bool, ...]


class Call(Node, frozen=True):
    """A function call; the name is in lower case."""

    function: str
    operands: tuple[Node, ...]


class Operation(Node, frozen=True):
    """An operator with its operands; AND and OR can have more than two."""

    operator: str
    operands: tuple[Node, ...]


class TypeTest(Node, frozen=True):
    """`operand IS type`."""

    operand: Node
    type_name: str


class Unsupported(Node, frozen=True):
    """Well-formed PartiQL that DynamoDB does not support."""

    token: str
    """Its name in the error for an expression."""
    operation: str
    """Its name in the error for a statement."""


class Source(Node, frozen=True):
    """The source after FROM or UPDATE; the expression is None for a join or an unpivot."""

    expression: Node | None
    is_aliased: bool


class Column(Node, frozen=True):
    """One column of a SELECT; `is_spread` is True for `a.*`."""

    expression: Node
    is_aliased: bool
    is_spread: bool


class Sorting(Node, frozen=True):
    expression: Node
    is_descending: bool


class Clause(Node, frozen=True):
    """The name of a clause that DynamoDB does not support, such as GROUP BY."""

    name: str


class Select(Node, frozen=True):
    columns: tuple[Column, ...] | None
    """None for `SELECT *`."""
    source: Source
    where: Node | None
    order_by: tuple[Sorting, ...]
    is_distinct: bool
    has_rows: bool
    """True when the projection is a list of columns, not VALUE or PIVOT."""
    unsupported: tuple[Clause, ...]


class Insert(Node, frozen=True):
    target: Node
    item: Node | None
    """None for an INSERT of rows instead of a VALUE."""
    has_position: bool
    has_conflict: bool
    has_returning: bool


class Assignment(Node, frozen=True):
    target: Node
    value: Node


class Removal(Node, frozen=True):
    target: Node


class Returning(Node, frozen=True):
    """`RETURNING mapping *`, where the mapping is for example `modified_old`."""

    mapping: str
    is_everything: bool
    is_single: bool


class Update(Node, frozen=True):
    source: Source | None
    actions: tuple[Node, ...]
    """Assignments and removals; an INSERT among them is refused when the statement is compiled."""
    where: Node | None
    returning: Returning | None


class Delete(Node, frozen=True):
    source: Source
    where: Node | None
    returning: Returning | None


DML = (Insert, Update, Delete)
