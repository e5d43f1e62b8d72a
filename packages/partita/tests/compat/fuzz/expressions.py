"""Expressions of all parameters, with the placeholders that they use."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..notation import Body, Value
from .dice import Dice
from .paths import Path, kind_at, path, value_at
from .tables import Table
from .values import KINDS, SETS, needle, value

PLAIN = frozenset(("q", "n", "s", "t", "b", "ss", "ns", "bs", "m", "x", "pk", "sk", "a", "nil"))
"""Names that can be written in an expression; all others need placeholders."""

COMPARATORS = ("=", "=", "<>", "<", "<=", ">", ">=")
SORTABLE = ("S", "N", "B")
MISTAKE = 0.01
"""The share of operands whose type their operator does not accept."""


class Expressions:
    """The expressions of one request: they share their placeholders."""

    def __init__(self, dice: Dice, table: Table, avoid: Collection[str] = ()) -> None:
        self.dice = dice
        self.table = table
        self.avoid = avoid
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def placeholders(self) -> Body:
        """The members of a request that go with its expressions."""
        body: Body = {}
        if self.names:
            body["ExpressionAttributeNames"] = dict(self.names)
        if self.values:
            body["ExpressionAttributeValues"] = dict(self.values)
        return body

    # Leaves.

    def name(self, name: str) -> str:
        if name in PLAIN and not self.dice.chance(0.2):
            return name
        for placeholder, meant in self.names.items():
            if meant == name:
                return placeholder
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder

    def written(self, path: Path) -> str:
        text = ""
        for element in path:
            if isinstance(element, int):
                text += f"[{element}]"
            else:
                text += f".{self.name(element)}" if text else self.name(element)
        return text

    def value(self, value: Value) -> str:
        for placeholder, given in self.values.items():
            if given == value and self.dice.chance(0.8):
                return placeholder
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def literal(self, *kinds: str) -> str:
        return self.value(value(self.dice, self.kind(*kinds)))

    def kind(self, *kinds: str) -> str:
        """Returns one of the kinds, or any kind to make a mistake."""
        return self.dice.choice(KINDS if self.dice.chance(MISTAKE) else kinds)

    def path(self, kind: str | None = None) -> Path:
        return path(self.dice, self.table, kind, self.avoid)

    def path_text(self, kind: str | None = None) -> str:
        return self.written(self.path(kind))

    # Conditions.

    def condition(self, depth: int = 2) -> str:
        dice = self.dice
        if depth == 0 or dice.chance(0.55):
            return dice.weighted(self._tests)()
        joined = self.condition(depth - 1)
        for _ in range(dice.randint(1, 2)):
            joined += f" {dice.choice(('AND', 'OR', 'and'))} {self.condition(depth - 1)}"
        if dice.chance(0.3):
            return f"NOT ({joined})"
        return f"({joined})" if dice.chance(0.3) else joined

    @property
    def _tests(self) -> list[tuple[int, Callable[[], str]]]:
        return [
            (8, self._comparison),
            (3, self._size_comparison),
            (3, self._between),
            (3, self._in),
            (4, self._existence),
            (2, self._type_test),
            (3, self._begins_with),
            (4, self._contains),
            (1, lambda: f"NOT {self._comparison()}"),
        ]

    def _comparison(self) -> str:
        dice = self.dice
        target = self.path()
        comparator = dice.choice(COMPARATORS)
        if comparator in ("=", "<>"):
            other = self._equal_operand(target)
        else:
            target = self.path(dice.choice(SORTABLE))
            other = self._sortable_operand(target)
        sides = [self.written(target), other]
        if dice.chance(0.15):
            sides.reverse()
        return f" {comparator} ".join(sides)

    def _equal_operand(self, target: Path) -> str:
        if self.dice.chance(0.15):
            return self.path_text(kind_at(self.table, target))
        return self.value(value_at(self.dice, self.table, target))

    def _sortable_operand(self, target: Path) -> str:
        kind = kind_at(self.table, target)
        kind = kind if kind in SORTABLE else self.dice.choice(SORTABLE)
        return self.path_text(kind) if self.dice.chance(0.15) else self.literal(kind)

    def _size_comparison(self) -> str:
        sized = self.path_text(self.dice.choice(KINDS))
        limit = self.value({"N": str(self.dice.randint(0, 4))})
        if self.dice.chance(0.1):
            limit = f"size({self.path_text()})"
        return f"size({sized}) {self.dice.choice(COMPARATORS)} {limit}"

    def _between(self) -> str:
        kind = self.dice.choice(SORTABLE)
        operand = self.path_text(kind)
        if self.dice.chance(0.1):
            operand, kind = f"size({self.path_text()})", "N"
        elif self.dice.chance(0.1):
            operand = self.literal(kind)
        return f"{operand} BETWEEN {self._bound(kind)} AND {self._bound(kind)}"

    def _bound(self, kind: str) -> str:
        if self.dice.chance(0.4):
            return self.path_text(kind)
        return self.literal(kind)

    def _in(self) -> str:
        target = self.path()
        operand = self.written(target)
        if self.dice.chance(0.1):
            operand = self.value(value_at(self.dice, self.table, target))
        candidates = self.dice.times(1, 4, lambda: self._equal_operand(target))
        return f"{operand} IN ({', '.join(candidates)})"

    def _existence(self) -> str:
        return f"attribute_{self.dice.choice(('exists', 'not_exists'))}({self.path_text()})"

    def _type_test(self) -> str:
        target = self.path()
        kind = kind_at(self.table, target) if self.dice.chance(0.6) else None
        type_name = self.value({"S": kind or self.dice.choice(KINDS)})
        return f"attribute_type({self.written(target)}, {type_name})"

    def _begins_with(self) -> str:
        kind = self.dice.choice(("S", "S", "B"))
        prefix = self.path_text(kind) if self.dice.chance(0.1) else self.literal(kind)
        text = self.literal(kind) if self.dice.chance(0.1) else self.path_text(kind)
        return f"begins_with({text}, {prefix})"

    def _contains(self) -> str:
        kind = self.dice.choice((*SETS, "S", "B", "L"))
        member = {"SS": "S", "NS": "N", "BS": "B", "L": self.dice.choice(KINDS)}.get(kind, kind)
        operand = self.value(needle(self.dice, self.kind(member)))
        if member != "B" and self.dice.chance(0.1):
            operand = self.path_text(member)
        container = self.literal(kind) if self.dice.chance(0.1) else self.path_text(kind)
        return f"contains({container}, {operand})"

    # Projections.

    def projection(self) -> str:
        paths = self.disjoint(1, 4)
        return ", ".join(map(self.written, paths))

    def disjoint(self, least: int, most: int) -> list[Path]:
        """Paths of which none goes through another; a few times they are as they come."""
        paths: list[Path] = []
        for one in self.dice.times(least, most, self.path):
            if self.dice.chance(MISTAKE) or not any(meets(one, other) for other in paths):
                paths.append(one)
        return paths

    # Updates.

    def update(self) -> str:
        if self.dice.chance(0.08):
            return self._elements()
        sections: dict[str, list[str]] = {}
        taken: list[Path] = []
        for _ in range(self.dice.randint(1, 4)):
            section, make = self.dice.weighted(self._actions)
            names, values = dict(self.names), dict(self.values)
            target, text = make()
            if self.dice.chance(MISTAKE) or not any(meets(target, other) for other in taken):
                taken.append(target)
                sections.setdefault(section, []).append(text)
            else:
                self.names, self.values = names, values
        return self._sections(sections)

    def _sections(self, sections: dict[str, list[str]]) -> str:
        written = [f"{section} {', '.join(actions)}" for section, actions in sections.items()]
        self.dice.shuffle(written)
        return " ".join(written)

    def _elements(self) -> str:
        """Several elements of one list, within it and beyond its end."""
        array = self.dice.choice((("l",), ("m", "l"), ("l", 0)))
        sections: dict[str, list[str]] = {}
        for index in self.dice.sample(range(6), self.dice.randint(2, 4)):
            element = self.written((*array, index))
            section = self.dice.choice(("SET", "SET", "REMOVE", "ADD"))
            if section == "SET":
                element += f" = {self.value(value(self.dice, depth=1))}"
            elif section == "ADD":
                element += f" {self.literal('N')}"
            sections.setdefault(section, []).append(element)
        return self._sections(sections)

    @property
    def _actions(self) -> list[tuple[int, tuple[str, Callable[[], tuple[Path, str]]]]]:
        return [
            (8, ("SET", self._set)),
            (3, ("REMOVE", self._remove)),
            (3, ("ADD", self._add)),
            (2, ("DELETE", self._delete)),
        ]

    def _set(self) -> tuple[Path, str]:
        make = self.dice.weighted(
            [
                (4, self._set_value),
                (2, self._set_path),
                (5, self._set_sum),
                (3, self._set_if_not_exists),
                (3, self._set_list),
            ]
        )
        return make()

    def _target(self, kind: str | None = None) -> Path:
        """Returns a path that an update writes to; it leads to the key only to make a mistake."""
        if self.dice.chance(0.005):
            return (self.dice.choice(list(self.table.key_kinds)),)
        return path(self.dice, self.table, kind, self.table.key_kinds)

    def _set_value(self) -> tuple[Path, str]:
        target = self._target()
        new = self.value(value_at(self.dice, self.table, target))
        return target, f"{self.written(target)} = {new}"

    def _set_path(self) -> tuple[Path, str]:
        target = self._target()
        return target, f"{self.written(target)} = {self.path_text(kind_at(self.table, target))}"

    def _set_sum(self) -> tuple[Path, str]:
        target = self._target("N")
        operator = self.dice.choice(("+", "-"))
        return target, f"{self.written(target)} = {self._number()} {operator} {self._number()}"

    def _number(self) -> str:
        if self.dice.chance(0.45):
            return self.literal("N")
        operand = self.path("N")
        if self.dice.chance(0.25):
            return self._if_not_exists(operand, self.literal("N"))
        return self.written(operand)

    def _set_if_not_exists(self) -> tuple[Path, str]:
        target = self._target()
        kind = kind_at(self.table, target)
        source = target if self.dice.chance(0.6) else self.path(kind)
        default = self.path_text(kind)
        if self.dice.chance(0.6):
            default = self.value(value_at(self.dice, self.table, target))
        return target, f"{self.written(target)} = {self._if_not_exists(source, default)}"

    def _if_not_exists(self, source: Path, default: str) -> str:
        return f"if_not_exists({self.written(source)}, {default})"

    def _set_list(self) -> tuple[Path, str]:
        target = self._target("L")
        operands = [self._list(target), self._list(target)]
        return target, f"{self.written(target)} = list_append({', '.join(operands)})"

    def _list(self, target: Path) -> str:
        if self.dice.chance(0.5):
            return self.literal("L")
        if self.dice.chance(0.3):
            return self._if_not_exists(target, self.literal("L"))
        return self.written(target) if self.dice.chance(0.7) else self.path_text("L")

    def _remove(self) -> tuple[Path, str]:
        target = self._target()
        return target, self.written(target)

    def _add(self) -> tuple[Path, str]:
        kind = self.dice.choice(("N", "N", *SETS))
        target = self._target(kind)
        return target, f"{self.written(target)} {self.literal(kind)}"

    def _delete(self) -> tuple[Path, str]:
        kind = self.dice.choice(SETS)
        target = self._target(kind)
        return target, f"{self.written(target)} {self.literal(kind)}"


def meets(one: Path, other: Path) -> bool:
    """True when two paths overlap or conflict."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return isinstance(left, int) != isinstance(right, int)
    return True
