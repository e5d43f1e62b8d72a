"""Updates: SET, REMOVE, ADD and DELETE, decided on the old item and applied to a copy.

Every right-hand side sees the item as it was. What an update writes or removes is gathered first;
then writes are made in the order of their paths (an index beyond the end of a list appends), and
removals from the last list element to the first, so that all indexes mean the old positions.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from partita.errors import ValidationException
from partita.expressions.parse import (
    ActionNode,
    Assigned,
    CallNode,
    Operand,
    PathNode,
    Refusal,
    SumNode,
    UpdateNode,
    ValueNode,
    parse_update,
)
from partita.expressions.paths import Path, disjoint, find, printed
from partita.expressions.projection import Shape, select, shape_of
from partita.expressions.resolution import (
    COMPILED_EXPRESSIONS_MAX,
    Check,
    Evaluate,
    Names,
    Scope,
    Values,
    check_count,
    check_document_path,
    check_function_name,
    check_operator_count,
    check_path,
    check_size,
    incorrect_type,
    invalid,
    misused,
    refuser,
    run_checks,
)
from partita.item import numbers
from partita.item.values import SET_TYPES, AttributeValue, Item, type_of

PARAMETER = "UpdateExpression"

INCORRECT_TYPE = "An operand in the update expression has an incorrect data type"
INVALID_PATH = "The document path provided in the update expression is invalid for update"
MISSING_OPERAND = "The provided expression refers to an attribute that does not exist in the item"

LONG_TYPE_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "M": "MAP",
    "L": "LIST",
}
# Shorter texts without a point are integers whose sum cannot leave the range of numbers.
SHORT_CHARS = 19

ALLOWED_TYPES = {"ADD": SET_TYPES | {"N"}, "DELETE": SET_TYPES}

SET_ORDERS: dict[str, Callable[[str], Any]] = {"SS": str, "NS": Decimal, "BS": b64decode}

Compute = Callable[[AttributeValue | None, Item, Values], AttributeValue | None]
"""The new value of a target from its old one; None removes it."""


KnownType = Callable[[Values], str | None]
"""The type that a target will have, where that is known before an item is read."""


def _unknown_type(values: Values) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Action:
    section: str
    path: Path
    compute: Compute
    known_type: KnownType = _unknown_type


@dataclass(frozen=True, slots=True)
class Update:
    """A change of one item, compiled from an expression or from legacy parameters."""

    names_used: frozenset[str]
    values_used: frozenset[str]
    paths: tuple[Path, ...]
    operand_paths: tuple[Path, ...]
    """The paths that right-hand sides read."""
    checks: tuple[Check, ...]
    actions: tuple[Action, ...]
    shape: Shape

    @property
    def attributes(self) -> frozenset[str]:
        """The top-level attributes that it touches."""
        return frozenset(self.shape)

    def check(self, values: Values) -> None:
        """Refuses values that are missing or of a type that an operator cannot take."""
        run_checks(PARAMETER, self.checks, values)

    @property
    def only_removes(self) -> bool:
        """Whether nothing is written, so that no item comes into being by it."""
        return bool(self.actions) and all(
            action.section in ("REMOVE", "DELETE") for action in self.actions
        )

    def apply(self, item: Item, values: Values, *, exists: bool = True) -> Item:
        """The new item; the old one stays as it is.

        An item that does not exist is given as its key. Nothing can be removed from it, so a path
        of REMOVE may lead anywhere (Alternator's tests, on AWS).
        """
        actions: Sequence[Action] = self.actions
        if not exists:
            actions = [action for action in actions if action.section != "REMOVE"]
        return applied(item, actions, values)

    def known_types(self, values: Values) -> dict[str, str]:
        """Types of top-level attributes as far as the expression and its values tell."""
        types = {}
        for action in self.actions:
            kind = action.known_type(values) if len(action.path) == 1 else None
            if kind is not None:
                types[str(action.path[0])] = kind
        return types

    def touched(self, item: Item) -> Item:
        """What UPDATED_OLD and UPDATED_NEW show of an item: the touched paths only."""
        return select(item, self.shape)


def compile_update(text: str, names: Names) -> Update:
    return _compiled(text, tuple(names.items()) if names else ())


@lru_cache(COMPILED_EXPRESSIONS_MAX)
def _compiled(text: str, names: tuple[tuple[str, str], ...]) -> Update:
    scope = _UpdateScope(dict(names))
    try:
        check_size(text, is_told=False)
        update = parse_update(text)
        check_operator_count(update.operator_count)
        _check_update(update)
        paths = disjoint(scope.resolve(action.target) for action in reversed(update.actions))
    except Refusal as refusal:
        raise invalid(PARAMETER, refusal) from None
    computes = scope.computes(update.actions)
    actions = tuple(
        Action(node.section, path, compute, _known_type(node))
        for node, path, compute in zip(update.actions, paths, computes, strict=True)
    )
    return Update(
        frozenset(scope.names_used),
        frozenset(scope.values_used),
        paths,
        tuple(scope.operand_paths),
        tuple(scope.checks),
        actions,
        shape_of(paths),
    )


def _check_update(update: UpdateNode) -> None:
    for action in update.actions:
        check_path(action.target)
        if action.value is not None:
            _check_assigned(action.value)
    for position, section in enumerate(update.sections):
        if section in update.sections[:position]:
            raise Refusal(f'The "{section}" section can only be used once in an update expression;')


def _check_assigned(node: Assigned, *, is_whole: bool = True) -> None:
    if isinstance(node, PathNode):
        check_path(node)
    elif isinstance(node, SumNode):
        for operand in node.operands:
            _check_assigned(operand, is_whole=False)
    elif isinstance(node, CallNode):
        check_function_name(node.function)
        if node.function not in _FUNCTIONS:
            raise Refusal(
                f"The function is not allowed in an update expression; function: {node.function}"
            )
        if node.function == "list_append" and not is_whole:
            raise misused(node.function)
        for operand in node.operands:
            _check_assigned(operand, is_whole=False)


class _UpdateScope(Scope):
    """Turns actions into closures, from the last to the first, as the service checks them."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.operand_paths: list[Path] = []

    def computes(self, actions: Sequence[ActionNode]) -> list[Compute]:
        computes: list[Compute] = []
        try:
            for action in reversed(actions):
                computes.append(_SECTIONS[action.section](self, action))
        except Refusal as refusal:
            refuse = refuser(refusal)
            self.checks.append(refuse)
            computes += [refuse] * (len(actions) - len(computes))
        return computes[::-1]

    def set(self, action: ActionNode) -> Compute:
        assert action.value is not None
        evaluate = self.assigned(action.value)
        return lambda old, item, values: _required(evaluate(item, values))

    def remove(self, action: ActionNode) -> Compute:
        return lambda old, item, values: None

    def add(self, action: ActionNode) -> Compute:
        value = self.delta(action)
        return lambda old, item, values: added(old, values[value])

    def delete(self, action: ActionNode) -> Compute:
        value = self.delta(action)
        return lambda old, item, values: without(old, values[value])

    def delta(self, action: ActionNode) -> str:
        assert isinstance(action.value, ValueNode)
        name, section = action.value.name, action.section
        self.value(action.value)
        self.checks.append(lambda values: _check_delta(section, type_of(values[name])))
        return name

    def assigned(self, node: Assigned) -> Evaluate:
        if isinstance(node, SumNode):
            return self.sum(node)
        return self.operand(node)

    def operand(self, node: Operand) -> Evaluate:
        if isinstance(node, PathNode):
            self.operand_paths.append(self.resolve(node))
            return self.path(node)
        if isinstance(node, ValueNode):
            return self.value(node)
        return _FUNCTIONS[node.function](self, node)

    def sum(self, node: SumNode) -> Evaluate:
        left, right = (self.operand(operand) for operand in node.operands)
        self.check_types(node.operator, node.operands, "N")
        sign = 1 if node.operator == "+" else -1
        return lambda item, values: _sum(
            _content(left(item, values), "N"), _content(right(item, values), "N"), sign
        )

    def check_types(self, operator: str, operands: Sequence[Operand], allowed: str) -> None:
        for node in operands:
            if isinstance(node, ValueNode):
                self.checks.append(_type_check(operator, node.name, allowed))

    def if_not_exists(self, node: CallNode) -> Evaluate:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, 2)
        check_document_path(node)
        path, default = node.operands
        if isinstance(path, PathNode) and isinstance(default, PathNode):
            resolved = self.resolve(path)
            if resolved == self.resolve(default):
                raise Refusal(
                    "The first operand must be distinct from the remaining operands for this "
                    f"operator or function; operator: if_not_exists, "
                    f"first operand: {printed(resolved)}"
                )
        return _first_of(*operands)

    def list_append(self, node: CallNode) -> Evaluate:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, 2)
        self.check_types(node.function, node.operands, "L")
        first, second = operands
        return lambda item, values: {
            "L": _content(first(item, values), "L") + _content(second(item, values), "L")
        }


_FUNCTIONS: dict[str, Callable[[_UpdateScope, CallNode], Evaluate]] = {
    "if_not_exists": _UpdateScope.if_not_exists,
    "list_append": _UpdateScope.list_append,
}
_SECTIONS: dict[str, Callable[[_UpdateScope, ActionNode], Compute]] = {
    "SET": _UpdateScope.set,
    "REMOVE": _UpdateScope.remove,
    "ADD": _UpdateScope.add,
    "DELETE": _UpdateScope.delete,
}


def _known_type(action: ActionNode) -> KnownType:
    node = action.value
    if action.section in ("SET", "ADD") and isinstance(node, ValueNode):
        name = node.name
        return lambda values: type_of(values[name])
    if isinstance(node, SumNode):
        return lambda values: "N"
    if isinstance(node, CallNode) and node.function == "list_append":
        return lambda values: "L"
    return _unknown_type


def _type_check(operator: str, name: str, allowed: str) -> Check:
    def check(values: Values) -> None:
        kind = type_of(values[name])
        if kind != allowed:
            raise incorrect_type(operator, kind)

    return check


def _check_delta(section: str, kind: str) -> None:
    if kind not in ALLOWED_TYPES[section]:
        raise Refusal(
            f"Incorrect operand type for operator or function; operator: {section}, "
            f"operand type: {LONG_TYPE_NAMES[kind]}, typeSet: ALLOWED_FOR_{section}_OPERAND"
        )


def _required(value: AttributeValue | None) -> AttributeValue:
    if value is None:
        raise ValidationException(MISSING_OPERAND)
    return value


def _content(value: AttributeValue | None, kind: str) -> Any:
    """What a value of the one possible type contains."""
    content = _required(value).get(kind)
    if content is None:
        raise ValidationException(INCORRECT_TYPE)
    return content


def _sum(left: str, right: str, sign: int) -> AttributeValue:
    """The exact sum or difference; short integers need no decimals, which are far slower."""
    if len(left) < SHORT_CHARS and len(right) < SHORT_CHARS and "." not in left + right:
        return {"N": str(int(left) + sign * int(right))}
    other = Decimal(right) if sign > 0 else -Decimal(right)
    total = numbers.EXACT.add(Decimal(left), other)
    try:
        return {"N": numbers.canonical(numbers.check_range(total))}
    except ValidationException as refusal:
        # A sum of more than 38 digits is an overflow to the service (Alternator's tests, on AWS).
        if refusal.message == numbers.PRECISION:
            raise ValidationException(numbers.OVERFLOW) from None
        raise


def _first_of(value: Evaluate, default: Evaluate) -> Evaluate:
    def evaluate(item: Item, values: Values) -> AttributeValue | None:
        found = value(item, values)
        return default(item, values) if found is None else found

    return evaluate


def added(old: AttributeValue | None, delta: AttributeValue) -> AttributeValue:
    """What ADD makes of an attribute: a sum of numbers or a union of sets."""
    if old is None:
        return delta
    kind = type_of(delta)
    content = _content(old, kind)
    if kind == "N":
        return _sum(content, delta[kind], 1)
    return {kind: sorted({*content, *delta[kind]}, key=SET_ORDERS[kind])}


def without(old: AttributeValue | None, delta: AttributeValue) -> AttributeValue | None:
    """What DELETE leaves of a set; of an emptied one, nothing."""
    if old is None:
        return None
    kind = type_of(delta)
    left = [member for member in _content(old, kind) if member not in delta[kind]]
    return {kind: left} if left else None


def applied(item: Item, actions: Sequence[Action], values: Values) -> Item:
    """The item with all actions done; paths that lead nowhere are refused before any is."""
    draft = _Draft(item)
    for action in actions:
        draft.container(action.path)
    writes: list[tuple[Path, AttributeValue]] = []
    removals: list[Path] = []
    for action in reversed(actions):
        new = action.compute(find(item, action.path), item, values)
        if new is None:
            removals.append(action.path)
        else:
            writes.append((action.path, new))
    for path, new in sorted(writes, key=_path_of):
        draft.write(path, new)
    for path in sorted(removals, reverse=True):
        draft.remove(path)
    return draft.item


def _path_of(write: tuple[Path, AttributeValue]) -> Path:
    return write[0]


class _Draft:
    """A copy of an item in which only the containers on the way to a change are copied, once."""

    def __init__(self, item: Item) -> None:
        self.item = dict(item)
        self.copies: dict[Path, Any] = {(): self.item}

    def write(self, path: Path, value: AttributeValue) -> None:
        container, last = self.container(path), path[-1]
        if isinstance(container, list):
            assert isinstance(last, int)
            if last >= len(container):
                container.append(value)
                return
        container[last] = value

    def remove(self, path: Path) -> None:
        container, last = self.container(path), path[-1]
        if isinstance(container, list):
            assert isinstance(last, int)
            if last < len(container):
                del container[last]
        else:
            container.pop(last, None)

    def container(self, path: Path) -> Any:
        """The map or list that a path ends in, ours to change."""
        parent = path[:-1]
        container = self.copies.get(parent)
        if container is None:
            outer = self.container(parent)
            kind = "M" if isinstance(path[-1], str) else "L"
            content = self._content(outer, parent[-1], kind)
            container = self.copies[parent] = content.copy()
            outer[parent[-1]] = {kind: container}
        elif isinstance(container, list) is isinstance(path[-1], str):
            raise ValidationException(INVALID_PATH)
        return container

    def _content(self, outer: Any, element: str | int, kind: str) -> Any:
        if isinstance(outer, list):
            value = outer[element] if isinstance(element, int) and element < len(outer) else None
        else:
            value = outer.get(element)
        content = None if value is None else value.get(kind)
        if content is None:
            raise ValidationException(INVALID_PATH)
        return content
