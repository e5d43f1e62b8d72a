"""Document paths: finding what they lead to, and telling which of them cannot stand together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.database.expressions.parse import Refusal
from partita.database.item.values import AttributeValue, Item

Path = tuple[str | int, ...]
Read = Callable[[Item], AttributeValue | None]


def printed(path: Path) -> str:
    """A path as the service's errors show it: `[a, [0], b]`."""
    elements = (f"[{element}]" if isinstance(element, int) else element for element in path)
    return f"[{', '.join(elements)}]"


def reader(path: Path) -> Read:
    """A function that finds in an item what the path leads to, or None."""
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
    """One step of a path: a member of a map or an element of a list."""
    found: AttributeValue | None = None
    if isinstance(element, str):
        members = value.get("M")
        if members is not None:
            found = members.get(element)
    else:
        elements = value.get("L")
        if elements is not None and element < len(elements):
            found = elements[element]
    return found


class _Tree:
    """Paths seen so far, by their elements."""

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
    """The paths, first to last; none leads into another or uses as a list what is a map to another.

    They are taken from the last to the first, which decides the error and the pair that it names.
    What is resolved on the way must be resolved lazily, by `map`: an error further to the front
    comes later. (Compiled, a generator expression is made whole before it is passed.)
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


def _refuse(problem: str, one: Path, two: Path) -> None:
    raise Refusal(
        f"Two document paths {problem} with each other; must remove or rewrite one of these "
        f"paths; path one: {printed(one)}, path two: {printed(two)}"
    )
