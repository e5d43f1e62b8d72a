"""The common parts of all expressions: placeholders, reserved words, the cache, value checks.

An expression is checked in two steps, in the service's order. Errors in the text are raised when
it is compiled. Errors that depend on the values of a request are found by a list of checks, which
is kept with the compiled expression and run before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NoReturn, TypeVar

from partita.database.expressions.document_paths import Path, printed, reader
from partita.database.expressions.syntax.expression_parser import (
    Assigned,
    CallNode,
    InvalidExpression,
    Operand,
    PathNode,
    ValueNode,
)
from partita.database.expressions.syntax.reserved_words import RESERVED_WORDS
from partita.database.item.attribute_values import EMPTY_NAME, AttributeValue, Item, type_of
from partita.database.item.item_sizes import string_size
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    ATTRIBUTE_NAME_BYTES_MAX,
    DOCUMENT_PATH_ELEMENTS_MAX,
    EXPRESSION_BYTES_MAX,
    EXPRESSION_OPERATORS_MAX,
    KB,
    LIST_INDEX_MAX,
)

Names = Mapping[str, str]
Values = Mapping[str, AttributeValue]
Check = Callable[[Values], None]
Evaluate = Callable[[Item, Values], AttributeValue | None]

NameItems = tuple[tuple[str, str], ...]
Compiled = TypeVar("Compiled")
Compile = Callable[[str, NameItems, str], Compiled]
"""Compiles an expression's text, with the request's names, for a parameter of the API."""

CACHED_CHARS_MAX: Final = 256 * KB
"""The characters that all cached expressions of one kind may have. In memory, they take about
100 times as much."""
CACHED_CHARS_EACH: Final = 100
CACHED_CHARS_ONE_MAX: Final = 8 * KB

LONG_NAME: Final = (
    f"Attribute name is too large, must be less than {ATTRIBUTE_NAME_BYTES_MAX + 1} bytes"
)

UPDATE_FUNCTIONS: Final = frozenset(("if_not_exists", "list_append"))
CONDITION_FUNCTIONS: Final = frozenset(
    (
        "attribute_exists",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "contains",
        "size",
    )
)


def cached(compile_one: Compile[Compiled]) -> Compile[Compiled]:
    """Returns a compiler with a cache, which evicts the oldest expressions when it is full."""
    expressions: dict[tuple[str, NameItems, str], Compiled] = {}
    chars = 0

    def compiled(text: str, names: NameItems, parameter: str) -> Compiled:
        nonlocal chars
        key = (text, names, parameter)
        expression = expressions.get(key)
        if expression is None:
            expression = compile_one(text, names, parameter)
            size = _cached_chars(text, names)
            if size <= CACHED_CHARS_ONE_MAX:
                expressions[key] = expression
                chars += size
            while chars > CACHED_CHARS_MAX:
                oldest = next(iter(expressions))
                del expressions[oldest]
                chars -= _cached_chars(oldest[0], oldest[1])
        return expression

    return compiled


def _cached_chars(text: str, names: NameItems) -> int:
    return CACHED_CHARS_EACH + len(text) + sum(len(key) + len(name) for key, name in names)


class CompileScope:
    """The state of compiling one expression: its names, those it used, and its checks."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.names_used: set[str] = set()
        self.values_used: set[str] = set()
        self.checks: list[Check] = []

    def resolve(self, node: PathNode) -> Path:
        if len(node.elements) > DOCUMENT_PATH_ELEMENTS_MAX:
            raise InvalidExpression(
                "The document path has too many nesting levels; "
                f"nesting levels: {len(node.elements)}"
            )
        return tuple(
            self._name(element) if isinstance(element, str) and element[0] in "#:" else element
            for element in node.elements
        )

    def _name(self, placeholder: str) -> str:
        name = self.names.get(placeholder)
        if name is None:
            raise InvalidExpression(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {placeholder}"
            )
        self.names_used.add(placeholder)
        return name

    def path(self, node: PathNode) -> Evaluate:
        read = reader(self.resolve(node))
        return lambda item, values: read(item)

    def value(self, node: ValueNode) -> Evaluate:
        name = node.name
        self.values_used.add(name)
        self.checks.append(lambda values: check_defined(name, values))
        return lambda item, values: values[name]

    def check_types(
        self, operator: str, operands: Iterable[Assigned], allowed: frozenset[str]
    ) -> None:
        for node in operands:
            if isinstance(node, CallNode):
                # size() is a number. The types of an update's functions are only known when the
                # update is applied.
                if node.function == "size" and "N" not in allowed:
                    raise incorrect_type(operator, "N")
            elif isinstance(node, ValueNode):
                self.checks.append(_type_check(operator, node.name, allowed))

    def check_distinct(self, operator: str, operands: Sequence[Operand]) -> None:
        paths = [self.resolve(node) for node in operands if isinstance(node, PathNode)]
        if isinstance(operands[0], PathNode) and paths[0] in paths[1:]:
            raise InvalidExpression(
                "The first operand must be distinct from the remaining operands for this operator "
                f"or function; operator: {operator}, first operand: {printed(paths[0])}"
            )


def _type_check(operator: str, name: str, allowed: frozenset[str]) -> Check:
    def check(values: Values) -> None:
        kind = type_of(values[name])
        if kind not in allowed:
            raise incorrect_type(operator, kind)

    return check


def name_problem(name: str) -> str | None:
    """Returns the error text for an invalid attribute name, or None."""
    if not name:
        return EMPTY_NAME
    return LONG_NAME if string_size(name) > ATTRIBUTE_NAME_BYTES_MAX else None


def check_defined(name: str, values: Values) -> None:
    if name not in values:
        raise InvalidExpression(
            "An expression attribute value used in expression is not defined; "
            f"attribute value: {name}"
        )


def check_size(text: str, *, shows_size: bool) -> None:
    """Refuse an empty or too long expression; only some errors show its size (recorded)."""
    if not text:
        raise InvalidExpression("The expression can not be empty;")
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > EXPRESSION_BYTES_MAX:
        shown_size = f" expression size: {size}" if shows_size else ""
        raise InvalidExpression(
            f"Expression size has exceeded the maximum allowed size;{shown_size}"
        )


def check_path(node: PathNode) -> None:
    """Refuse a path with a reserved word or an index that is too large."""
    for element in node.elements:
        if isinstance(element, int):
            if element > LIST_INDEX_MAX:
                raise InvalidExpression(
                    f"List index is not within the allowable range; index: [{element}]"
                )
        elif element.upper() in RESERVED_WORDS:
            raise InvalidExpression(
                f"Attribute name is a reserved keyword; reserved keyword: {element}"
            )


def check_function(name: str, allowed: frozenset[str], expression: str) -> None:
    if name not in CONDITION_FUNCTIONS and name not in UPDATE_FUNCTIONS:
        raise InvalidExpression(f"Invalid function name; function: {name}")
    if name not in allowed:
        raise InvalidExpression(f"The function is not allowed in {expression}; function: {name}")


def check_operator_count(count: int) -> None:
    """Refuse too many operators.

    The service stops counting at the first one too many, so its error always has the same number.
    """
    if count > EXPRESSION_OPERATORS_MAX:
        raise InvalidExpression(
            "The expression contains too many operators; "
            f"operator count: {EXPRESSION_OPERATORS_MAX + 1}"
        )


def misused(function: str) -> InvalidExpression:
    return InvalidExpression(
        f"The function is not allowed to be used this way in an expression; function: {function}"
    )


def check_count(node: CallNode, count: int) -> None:
    if len(node.operands) != count:
        raise InvalidExpression(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {node.function}, number of operands: {len(node.operands)}"
        )


def check_document_path(node: CallNode) -> None:
    if not isinstance(node.operands[0], PathNode):
        raise InvalidExpression(
            f"Operator or function requires a document path; operator or function: {node.function}"
        )


def incorrect_type(operator: str, kind: str) -> InvalidExpression:
    return InvalidExpression(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {kind}"
    )


def refuser(refusal: InvalidExpression) -> Callable[..., NoReturn]:
    """Returns a check, or an evaluation, that always raises the error."""
    text = str(refusal)

    def refuse(*ignored: object) -> NoReturn:
        # A new exception each time: raising the same one again would grow its traceback forever,
        # and keep the frames of every request alive.
        raise InvalidExpression(text)

    return refuse


def run_checks(parameter: str, checks: Iterable[Check], values: Values) -> None:
    try:
        for check in checks:
            check(values)
    except InvalidExpression as refusal:
        raise invalid(parameter, refusal) from None


def invalid(parameter: str, refusal: InvalidExpression) -> ValidationException:
    """Returns the error of an invalid parameter; `parameter` is "" for a PartiQL statement."""
    return ValidationException(f"Invalid {parameter}: {refusal}" if parameter else str(refusal))
