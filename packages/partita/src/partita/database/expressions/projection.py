"""Projections: the parts of an item at a list of document paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from partita.database.expressions.document_paths import Path, disjoint, find
from partita.database.expressions.name_resolution import (
    CompileScope,
    NameItems,
    Names,
    cached,
    check_path,
    check_size,
    invalid,
)
from partita.database.expressions.syntax.expression_parser import (
    InvalidExpression,
    parse_projection,
)
from partita.database.item.attribute_values import AttributeValue, Item

PARAMETER: Final = "ProjectionExpression"

Shape = dict[Any, Any]
"""Paths as nested dicts: `a.b, a.c` is `{"a": {"b": {}, "c": {}}}`. An empty dict is a leaf, and
selects the whole value."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A compiled projection: the document paths to return, as a list and as a tree."""

    paths: tuple[Path, ...]
    names_used: frozenset[str]
    shape: Shape
    values_used: frozenset[str] = frozenset()

    def project(self, item: Item) -> Item:
        return select(item, self.shape)


@dataclass(frozen=True, slots=True)
class SelectProjection(Projection):
    """The columns of a SELECT, each named after the last name of its path."""

    columns: tuple[tuple[str, Path], ...] = ()

    def as_documents(self) -> Projection:
        """Returns the projection of the same paths, which keeps parts inside their documents."""
        return Projection(self.paths, self.names_used, self.shape)

    def project(self, item: Item) -> Item:
        columns = ((name, find(item, path)) for name, path in self.columns)
        return {name: value for name, value in columns if value is not None}


def compile_projection(text: str, names: Names) -> Projection:
    return _compiled(text, tuple(names.items()), PARAMETER)


def attributes_projection(attributes: Sequence[str]) -> Projection:
    """Returns the projection of whole attributes, for AttributesToGet."""
    paths = tuple((name,) for name in attributes)
    return Projection(paths, frozenset(), shape_of(paths))


@cached
def _compiled(text: str, names: NameItems, parameter: str) -> Projection:
    scope = CompileScope(dict(names))
    try:
        check_size(text, shows_size=False)
        nodes = parse_projection(text)
        for node in nodes:
            check_path(node)
        paths = disjoint(map(scope.resolve, reversed(nodes)))
    except InvalidExpression as refusal:
        raise invalid(parameter, refusal) from None
    return Projection(paths, frozenset(scope.names_used), shape_of(paths))


def shape_of(paths: Iterable[Path]) -> Shape:
    """Returns paths as nested dicts, list indexes in ascending order."""
    shape: Shape = {}
    for path in sorted(paths):
        inner = shape
        for element in path:
            inner = inner.setdefault(element, {})
    return shape


def select(item: Item, shape: Shape) -> Item:
    """Returns the selected members of an item or map that exist."""
    selected = {}
    for name, inner in shape.items():
        value = item.get(name)
        if value is not None:
            part = _narrowed(value, inner) if inner else value
            if part is not None:
                selected[name] = part
    return selected


def _narrowed(value: AttributeValue, shape: Shape) -> AttributeValue | None:
    """Returns the selected part of a map or list, or None if nothing of it exists.

    Selected list elements follow each other in the order of their indexes, without gaps.
    """
    if "M" in value and isinstance(next(iter(shape)), str):
        members = select(value["M"], shape)
        return {"M": members} if members else None
    if "L" in value and isinstance(next(iter(shape)), int):
        elements = value["L"]
        parts = [
            _narrowed(elements[index], inner) if inner else elements[index]
            for index, inner in shape.items()
            if index < len(elements)
        ]
        kept = [part for part in parts if part is not None]
        return {"L": kept} if kept else None
    return None
