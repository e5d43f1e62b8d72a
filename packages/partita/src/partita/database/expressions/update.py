"""Updates: SET, REMOVE, ADD and DELETE, evaluated on the old item and applied to a copy.

Every right side sees the item as it was before. All values are computed first. Then writes are
applied in the order of their paths (an index beyond the end of a list appends), and removals from
the last list element to the first, so that every index means a position in the old list.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from partita.database.expressions.document_paths import Path, disjoint, find
from partita.database.expressions.name_resolution import (
    UPDATE_FUNCTIONS,
    Check,
    CompileScope,
    Evaluate,
    NameItems,
    Names,
    Values,
    cached,
    check_count,
    check_document_path,
    check_function,
    check_operator_count,
    check_path,
    check_size,
    invalid,
    misused,
    refuser,
    run_checks,
)
from partita.database.expressions.projection import Shape, select, shape_of
from partita.database.expressions.syntax.expression_parser import (
    ActionNode,
    Assigned,
    CallNode,
    InvalidExpression,
    PathNode,
    SumNode,
    UpdateNode,
    ValueNode,
    parse_update,
)
from partita.database.expressions.update_expression_size import (
    UNCOUNTED,
    StatementSize,
    statement_size,
)
from partita.database.item import numbers
from partita.database.item.attribute_values import SET_TYPES, AttributeValue, Item, type_of
from partita.database.item.item_sizes import value_size
from partita.errors import ValidationException
from partita.foundation.service_limits import ITEM_BYTES_MAX

PARAMETER: Final = "UpdateExpression"

INCORRECT_TYPE: Final = "An operand in the update expression has an incorrect data type"
INVALID_PATH: Final = "The document path provided in the update expression is invalid for update"
MISSING_OPERAND: Final = (
    "The provided expression refers to an attribute that does not exist in the item"
)
ITEM_TOO_LARGE: Final = "Item size to update has exceeded the maximum allowed size"

LONG_TYPE_NAMES: Final = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "M": "MAP",
    "L": "LIST",
}
# The sum of two integers with fewer characters is exact and in range: no check is needed.
SHORT_CHARS: Final = 19

ALLOWED_TYPES: Final = {"ADD": SET_TYPES | {"N"}, "DELETE": SET_TYPES}

SET_ORDERS: Final[dict[str, Callable[[str], Any]]] = {"SS": str, "NS": Decimal, "BS": b64decode}

Compute = Callable[[AttributeValue | None, Item, Values], AttributeValue | None]
"""Returns the new value of a target, given its old value; None removes the target."""


KnownType = Callable[[Values], str | None]
"""Returns the type that a target will have, or None if that depends on the item."""


def _unknown_type(values: Values) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class CompiledAction:
    section: str
    path: Path
    compute: Compute
    known_type: KnownType = _unknown_type


@dataclass(frozen=True, slots=True)
class CompiledUpdate:
    """A compiled update of one item, from an expression or from legacy parameters."""

    names_used: frozenset[str]
    values_used: frozenset[str]
    paths: tuple[Path, ...]
    operand_paths: tuple[Path, ...]
    """The paths that right sides read."""
    checks: tuple[Check, ...]
    changes: tuple[CompiledAction, ...]
    shape: Shape
    size: StatementSize = UNCOUNTED
    """The size of the expression; legacy parameters have none."""
    parameter: str = PARAMETER

    @property
    def attributes(self) -> frozenset[str]:
        """The top-level attributes that the update touches."""
        return frozenset(self.shape)

    def check(self, values: Values) -> None:
        """Refuse values that are missing, or of a type that an operator does not accept."""
        run_checks(self.parameter, self.checks, values)

    @property
    def only_removes(self) -> bool:
        """True when the update only removes, so that it never creates an item."""
        return bool(self.changes) and all(
            change.section in ("REMOVE", "DELETE") for change in self.changes
        )

    def apply(self, item: Item, values: Values) -> Item:
        """Returns the new item; the old one is not changed."""
        return applied(item, self.changes, values)

    def known_types(self, values: Values) -> dict[str, str]:
        """Returns the types of top-level attributes that are certain before the item is read."""
        types = {}
        for change in self.changes:
            kind = change.known_type(values) if len(change.path) == 1 else None
            if kind is not None:
                types[str(change.path[0])] = kind
        return types

    def touched(self, item: Item) -> Item:
        """Returns the touched paths of an item, for UPDATED_OLD and UPDATED_NEW."""
        return select(item, self.shape)


def compile_update(text: str, names: Names) -> CompiledUpdate:
    return _compiled(text, tuple(names.items()), PARAMETER)


@cached
def _compiled(text: str, names: NameItems, parameter: str) -> CompiledUpdate:
    try:
        check_size(text, shows_size=False)
        update = parse_update(text)
        check_operator_count(update.operator_count)
        _check_update(update)
        return update_of(update, dict(names), parameter)
    except InvalidExpression as refusal:
        raise invalid(parameter, refusal) from None


def update_of(update: UpdateNode, names: Names, parameter: str) -> CompiledUpdate:
    """Compile a tree whose functions and names have been checked."""
    scope = _UpdateScope(names)
    targets = [action.target for action in reversed(update.actions)]
    paths = disjoint(map(scope.resolve, targets))
    computes = scope.computes(update.actions)
    try:
        size = statement_size(update, scope.resolve)
    except InvalidExpression:
        # An operand is invalid: one of the checks reports that, in the right order.
        size = UNCOUNTED
    changes = tuple(
        CompiledAction(node.section, path, compute, _known_type(node))
        for node, path, compute in zip(update.actions, paths, computes, strict=True)
    )
    return CompiledUpdate(
        frozenset(scope.names_used),
        frozenset(scope.values_used),
        paths,
        tuple(scope.operand_paths),
        tuple(scope.checks),
        changes,
        shape_of(paths),
        size,
        parameter,
    )


def _check_update(update: UpdateNode) -> None:
    for action in update.actions:
        check_path(action.target)
        if action.value is not None:
            _check_assigned(action.value)
    seen: set[str] = set()
    for section in update.sections:
        if section in seen:
            raise InvalidExpression(
                f'The "{section}" section can only be used once in an update expression;'
            )
        seen.add(section)


def _check_assigned(node: Assigned, *, is_outermost: bool = True) -> None:
    if isinstance(node, PathNode):
        check_path(node)
    elif isinstance(node, SumNode):
        for operand in node.operands:
            _check_assigned(operand, is_outermost=False)
    elif isinstance(node, CallNode):
        check_function(node.function, UPDATE_FUNCTIONS, "an update expression")
        if node.function == "list_append" and not is_outermost:
            raise misused(node.function)
        for operand in node.operands:
            _check_assigned(operand, is_outermost=False)


class _UpdateScope(CompileScope):
    """Compiles actions to closures, from the last to the first, as the service checks them."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.operand_paths: list[Path] = []

    def computes(self, actions: Sequence[ActionNode]) -> list[Compute]:
        computes: list[Compute] = []
        try:
            for action in reversed(actions):
                computes.append(_SECTIONS[action.section](self, action))
        except InvalidExpression as refusal:
            refuse = refuser(refusal)
            self.checks.append(refuse)
            computes += [refuse] * (len(actions) - len(computes))
        return computes[::-1]

    def set(self, action: ActionNode) -> Compute:
        assert action.value is not None
        evaluate = self.operand(action.value)
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

    def operand(self, node: Assigned) -> Evaluate:
        if isinstance(node, SumNode):
            return self.sum(node)
        if isinstance(node, PathNode):
            self.operand_paths.append(self.resolve(node))
            return self.path(node)
        if isinstance(node, ValueNode):
            return self.value(node)
        return _FUNCTIONS[node.function](self, node)

    def sum(self, node: SumNode) -> Evaluate:
        left, right = (self.operand(operand) for operand in node.operands)
        self.check_types(node.operator, node.operands, frozenset("N"))
        sign = 1 if node.operator == "+" else -1
        return lambda item, values: _sum(
            _content(left(item, values), "N"), _content(right(item, values), "N"), sign
        )

    def if_not_exists(self, node: CallNode) -> Evaluate:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, 2)
        check_document_path(node)
        self.check_distinct(node.function, node.operands)
        return _first_of(*operands)

    def list_append(self, node: CallNode) -> Evaluate:
        operands = [self.operand(operand) for operand in node.operands]
        check_count(node, 2)
        self.check_types(node.function, node.operands, frozenset("L"))
        first, second = operands
        return lambda item, values: {
            "L": _content(first(item, values), "L") + _content(second(item, values), "L")
        }


_FUNCTIONS: Final[dict[str, Callable[[_UpdateScope, CallNode], Evaluate]]] = {
    "if_not_exists": _UpdateScope.if_not_exists,
    "list_append": _UpdateScope.list_append,
}
_SECTIONS: Final[dict[str, Callable[[_UpdateScope, ActionNode], Compute]]] = {
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


def _check_delta(section: str, kind: str) -> None:
    if kind not in ALLOWED_TYPES[section]:
        raise InvalidExpression(
            f"Incorrect operand type for operator or function; operator: {section}, "
            f"operand type: {LONG_TYPE_NAMES[kind]}, typeSet: ALLOWED_FOR_{section}_OPERAND"
        )


def _required(value: AttributeValue | None) -> AttributeValue:
    if value is None:
        raise ValidationException(MISSING_OPERAND)
    return value


def _content(value: AttributeValue | None, kind: str) -> Any:
    """Returns the content of a value that must have the type `kind`."""
    content = _required(value).get(kind)
    if content is None:
        raise ValidationException(INCORRECT_TYPE)
    return content


def _sum(left: str, right: str, sign: int) -> AttributeValue:
    """Returns the exact sum or difference of two numbers.

    Short integers are computed without Decimal, which is far slower.
    """
    if len(left) < SHORT_CHARS and len(right) < SHORT_CHARS and "." not in left + right:
        return {"N": str(int(left) + sign * int(right))}
    # Not with operators, not even a unary minus: they round in Python's default context.
    combine = numbers.EXACT.add if sign > 0 else numbers.EXACT.subtract
    total = combine(Decimal(left), Decimal(right))
    # The service reports a sum of more than 38 digits as an overflow (ScyllaDB Alternator's tests,
    # run on AWS).
    checked = numbers.check_range(total, too_precise=numbers.OVERFLOW)
    return {"N": numbers.canonical(checked)}


def _first_of(value: Evaluate, default: Evaluate) -> Evaluate:
    """Returns the evaluation of if_not_exists.

    The default must exist even where it is not needed (observed on DynamoDB Local).
    """

    def evaluate(item: Item, values: Values) -> AttributeValue | None:
        fallback = _required(default(item, values))
        current = value(item, values)
        return fallback if current is None else current

    return evaluate


def added(old: AttributeValue | None, delta: AttributeValue) -> AttributeValue:
    """Returns the result of ADD: the sum of two numbers or the union of two sets."""
    if old is None:
        return delta
    kind = type_of(delta)
    content = _content(old, kind)
    if kind == "N":
        return _sum(content, delta[kind], 1)
    old_members = set(content)
    # These are two sorted runs, which Python's sort merges in linear time.
    both = content + [member for member in delta[kind] if member not in old_members]
    return {kind: sorted(both, key=SET_ORDERS[kind])}


def without(old: AttributeValue | None, delta: AttributeValue) -> AttributeValue | None:
    """Returns the result of DELETE: the set without some members, or None if none are left."""
    if old is None:
        return None
    kind = type_of(delta)
    removed = set(delta[kind])
    left = [member for member in _content(old, kind) if member not in removed]
    return {kind: left} if left else None


def applied(item: Item, changes: Sequence[CompiledAction], values: Values) -> Item:
    """Returns the item with all changes applied.

    Invalid paths are refused before anything is computed.
    """
    copy = _Copy(item)
    for change in changes:
        copy.container(change.path)
    writes: list[tuple[Path, AttributeValue]] = []
    removals: list[Path] = []
    written_bytes = 0
    for change in reversed(changes):
        old = find(item, change.path)
        new = change.compute(old, item, values)
        if new is None:
            # If nothing was there, nothing is removed: not even an element that another action
            # appends at that index.
            if old is not None:
                removals.append(change.path)
            continue
        writes.append((change.path, new))
        # Each value may be as large as an item, so a thousand of them must not be computed before
        # the size is checked.
        written_bytes += value_size(new)
        if written_bytes > ITEM_BYTES_MAX:
            raise ValidationException(ITEM_TOO_LARGE)
    for path, new in sorted(writes, key=_path_of):
        copy.write(path, new)
    for path in sorted(removals, reverse=True):
        copy.remove(path)
    return copy.item


def _path_of(write: tuple[Path, AttributeValue]) -> Path:
    return write[0]


class _Copy:
    """A copy of an item that shares all containers with it except those that are changed."""

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
        del self.container(path)[path[-1]]

    def container(self, path: Path) -> Any:
        """Returns a copy of the map or list that a path ends in, which may be changed."""
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
