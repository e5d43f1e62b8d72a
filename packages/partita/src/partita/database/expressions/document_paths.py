"""Document paths such as `a.b[0]`: reading the value at a path, detecting paths that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.database.expressions.syntax.expression_parser import InvalidExpression
from partita.database.item.attribute_values import AttributeValue, Item

Path = tuple[str | int, ...]
Read = Callable[[Item], AttributeValue | None]


def printed(path: Path) -> str:
    """Returns a path as the service's errors show it: `[a, [0], b]`."""
    elements = (f"[{element}]" if isinstance(element, int) else element for element in path)
    return f"[{', '.join(elements)}]"


def reader(path: Path) -> Read:
    """Returns a function that returns an item's value at the path, or None."""
    if len(path) == 1:
        name = path[0]
        assert isinstance(name, str)
        return lambda item: item.get(name)
    return lambda item: find(item, path)


def find(item: Item, path: Path) -> AttributeValue | None:
    value = item.get(str(path[0]))
    for element in path[1:]:
        if value is None:
            return None
        value = child(value, element)
    return value


def child(value: AttributeValue, element: str | int) -> AttributeValue | None:
    """Returns the member of a map or the element of a list: one step of a path."""
    member: AttributeValue | None = None
    if isinstance(element, str):
        members = value.get("M")
        if members is not None:
            member = members.get(element)
    else:
        elements = value.get("L")
        if elements is not None and element < len(elements):
            member = elements[element]
    return member


class _Tree:
    """A prefix tree of paths."""

    __slots__ = ("children", "path")

    def __init__(self) -> None:
        self.path: Path | None = None
        self.children: dict[str | int, _Tree] = {}

    def any_path(self) -> Path:
        tree = self
        while tree.path is None:
            tree = next(iter(tree.children.values()))
        return tree.path


def disjoint(last_to_first: Iterable[Path]) -> tuple[Path, ...]:
    """Returns the paths, first to last, or refuses the first two that overlap or conflict.

    Overlapping paths lead into each other (`a`, `a.b`); conflicting ones use the same value as a
    map and as a list (`a.b`, `a[0]`). Like the service, this looks at paths from the last to the
    first, which decides which pair the error names. The paths must be resolved while they are
    iterated, with `map`, so that an overlap is reported before an unknown name further to the
    front. (Compiled code would evaluate a generator expression before passing it.)
    """
    root = _Tree()
    paths = []
    for path in last_to_first:
        tree = root
        for element in path:
            if tree.path is not None:
                _refuse("overlap", path, tree.path)
            sibling = next(iter(tree.children), element)
            if type(sibling) is not type(element):
                _refuse("conflict", path, tree.children[sibling].any_path())
            tree = tree.children.setdefault(element, _Tree())
        if tree.path is not None or tree.children:
            _refuse("overlap", path, tree.any_path())
        tree.path = path
        paths.append(path)
    return tuple(reversed(paths))


def _refuse(problem: str, first: Path, second: Path) -> None:
    raise InvalidExpression(
        f"Two document paths {problem} with each other; must remove or rewrite one of these "
        f"paths; path one: {printed(first)}, path two: {printed(second)}"
    )
