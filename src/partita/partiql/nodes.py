"""The tree of a statement, as it is written: nothing here knows a table or a value's rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True)
class Node:
    place: Place | None

    def children(self) -> Iterator[Node]:
        members: list[object] = [getattr(self, one.name) for one in fields(self)]
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


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An attribute, a table or an index."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A string, a number as it is written, a boolean or null, as type and content of a value."""

    kind: str
    content: str | bool

    @property
    def text(self) -> str:
        return str(self.content)


@dataclass(frozen=True, slots=True)
class Missing(Node):
    """The keyword MISSING."""


@dataclass(frozen=True, slots=True)
class IonLiteral(Node):
    """A literal in backticks, of which DynamoDB only tells the type."""

    kind: str


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A question mark; the first has number 1."""

    number: int


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    members: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class BagLiteral(Node):
    members: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class StructLiteral(Node):
    members: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Wildcard(Node):
    """A star in a path: `a.*` is one that unpivots, `a[*]` is not."""

    unpivots: bool


@dataclass(frozen=True, slots=True)
class Path(Node):
    """A root and its steps: names, and what stands in brackets. It has no place of its own."""

    root: Node
    steps: tuple[Node, ...]
    brackets: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function with its operands; its name is in lower case."""

    function: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Operation(Node):
    """An operator over one operand or more; AND and OR have all that they join."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class TypeTest(Node):
    """`operand IS type`."""

    operand: Node
    type_name: str


@dataclass(frozen=True, slots=True)
class Unsupported(Node):
    """Well formed PartiQL that DynamoDB has no use for."""

    token: str
    """How an error names it in an expression."""
    operation: str
    """How an error names it as a statement."""


@dataclass(frozen=True, slots=True)
class Source(Node):
    """What stands behind FROM or UPDATE; a join or an unpivot has no single one."""

    expression: Node | None
    is_aliased: bool


@dataclass(frozen=True, slots=True)
class Column(Node):
    """One column of a SELECT; `a.*` changes an item's hierarchy."""

    expression: Node
    is_aliased: bool
    is_spread: bool


@dataclass(frozen=True, slots=True)
class Sorting(Node):
    expression: Node
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """A clause that DynamoDB does not support, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    columns: tuple[Column, ...] | None
    """None for a star."""
    source: Source
    where: Node | None
    order_by: tuple[Sorting, ...]
    is_distinct: bool
    has_rows: bool
    """Whether the projection is a list of columns, not VALUE or PIVOT."""
    unsupported: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Insert(Node):
    target: Node
    item: Node | None
    """None when rows are inserted instead of a VALUE."""
    has_position: bool
    has_conflict: bool
    has_returning: bool


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    target: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Removal(Node):
    target: Node


@dataclass(frozen=True, slots=True)
class Returning(Node):
    """`RETURNING mapping *`: the mapping is as in ReturnValues but for MODIFIED."""

    mapping: str
    is_everything: bool
    is_single: bool


@dataclass(frozen=True, slots=True)
class Update(Node):
    source: Source | None
    actions: tuple[Node, ...]
    """Assignments and removals; an insertion is parsed and then refused."""
    where: Node | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class Delete(Node):
    source: Source
    where: Node | None
    returning: Returning | None


DML = (Insert, Update, Delete)
