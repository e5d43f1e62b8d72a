"""The tree of a statement, as it is written: nothing here knows a table or a value's rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from partita.errors import ValidationException


class Place(NamedTuple):
    """Where a token stands: line and column from 1, and its length."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


def refusal(text: str, place: Place | None = None) -> ValidationException:
    """What is wrong with a well formed statement, with its place where AWS tells it."""
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
    """How many levels a tree has; operators in a row make as many as brackets do."""
    depth, level = 0, [node]
    while level:
        level = [child for one in level for child in one.children()]
        depth += 1
    return depth


class Name(Node, frozen=True):
    """An attribute, a table or an index."""

    text: str


class Literal(Node, frozen=True):
    """A string, a number as it is written, a boolean or null, as type and content of a value."""

    kind: str
    content: str | bool

    @property
    def text(self) -> str:
        return str(self.content)


class Missing(Node, frozen=True):
    """The keyword MISSING."""


class IonLiteral(Node, frozen=True):
    """A literal in backticks, of which DynamoDB only tells the type."""

    kind: str


class Parameter(Node, frozen=True):
    """A question mark; the first has number 1."""

    number: int


class ListLiteral(Node, frozen=True):
    members: tuple[Node, ...]


class BagLiteral(Node, frozen=True):
    members: tuple[Node, ...]


class StructLiteral(Node, frozen=True):
    members: tuple[tuple[Node, Node], ...]


class Wildcard(Node, frozen=True):
    """A star in a path: `a.*` is one that unpivots, `a[*]` is not."""

    unpivots: bool


class Path(Node, frozen=True):
    """A root and its steps: names, and what stands in brackets. It has no place of its own."""

    root: Node
    steps: tuple[Node, ...]
    brackets: tuple[bool, ...]


class Call(Node, frozen=True):
    """A function with its operands; its name is in lower case."""

    function: str
    operands: tuple[Node, ...]


class Operation(Node, frozen=True):
    """An operator over one operand or more; AND and OR have all that they join."""

    operator: str
    operands: tuple[Node, ...]


class TypeTest(Node, frozen=True):
    """`operand IS type`."""

    operand: Node
    type_name: str


class Unsupported(Node, frozen=True):
    """Well formed PartiQL that DynamoDB has no use for."""

    token: str
    """How an error names it in an expression."""
    operation: str
    """How an error names it as a statement."""


class Source(Node, frozen=True):
    """What stands behind FROM or UPDATE; a join or an unpivot has no single one."""

    expression: Node | None
    is_aliased: bool


class Column(Node, frozen=True):
    """One column of a SELECT; `a.*` changes an item's hierarchy."""

    expression: Node
    is_aliased: bool
    is_spread: bool


class Sorting(Node, frozen=True):
    expression: Node
    is_descending: bool


class Clause(Node, frozen=True):
    """A clause that DynamoDB does not support, by its name."""

    name: str


class Select(Node, frozen=True):
    columns: tuple[Column, ...] | None
    """None for a star."""
    source: Source
    where: Node | None
    order_by: tuple[Sorting, ...]
    is_distinct: bool
    has_rows: bool
    """Whether the projection is a list of columns, not VALUE or PIVOT."""
    unsupported: tuple[Clause, ...]


class Insert(Node, frozen=True):
    target: Node
    item: Node | None
    """None when rows are inserted instead of a VALUE."""
    has_position: bool
    has_conflict: bool
    has_returning: bool


class Assignment(Node, frozen=True):
    target: Node
    value: Node


class Removal(Node, frozen=True):
    target: Node


class Returning(Node, frozen=True):
    """`RETURNING mapping *`: the mapping is as in ReturnValues but for MODIFIED."""

    mapping: str
    is_everything: bool
    is_single: bool


class Update(Node, frozen=True):
    source: Source | None
    actions: tuple[Node, ...]
    """Assignments and removals; an insertion is parsed and then refused."""
    where: Node | None
    returning: Returning | None


class Delete(Node, frozen=True):
    source: Source
    where: Node | None
    returning: Returning | None


DML = (Insert, Update, Delete)
