"""What all expressions share: placeholders, reserved words, and checks that need the values.

An expression is checked in two steps, in the service's order. What the text alone decides is
refused when it is compiled. The rest depends on the values of a request: it becomes a list of
checks, kept with the compiled expression and run before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from partita.errors import ValidationException
from partita.expressions.parse import CallNode, PathNode, Refusal, ValueNode
from partita.expressions.paths import Path, reader
from partita.expressions.reserved import RESERVED_WORDS
from partita.item.values import AttributeValue, Item
from partita.limits import (
    DOCUMENT_PATH_ELEMENTS_MAX,
    EXPRESSION_BYTES_MAX,
    EXPRESSION_OPERATORS_MAX,
)

Names = Mapping[str, str]
Values = Mapping[str, AttributeValue]
Check = Callable[[Values], None]
Evaluate = Callable[[Item, Values], AttributeValue | None]

COMPILED_EXPRESSIONS_MAX = 2048
"""How many compiled expressions of each kind are kept."""

# Seen on DynamoDB Local: the range of a 32-bit integer.
LIST_INDEX_MAX = 2_147_483_647

FUNCTIONS = frozenset(
    (
        "attribute_exists",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "contains",
        "size",
        "if_not_exists",
        "list_append",
    )
)


class Scope:
    """What is known and gathered while one expression is compiled."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.names_used: set[str] = set()
        self.values_used: set[str] = set()
        self.checks: list[Check] = []

    def resolve(self, node: PathNode) -> Path:
        if len(node.elements) > DOCUMENT_PATH_ELEMENTS_MAX:
            raise Refusal(
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
            raise Refusal(
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


def check_defined(name: str, values: Values) -> None:
    if name not in values:
        raise Refusal(
            "An expression attribute value used in expression is not defined; "
            f"attribute value: {name}"
        )


def check_size(text: str, *, is_told: bool) -> None:
    """Some parameters tell how long the expression was, some do not (recorded)."""
    if not text:
        raise Refusal("The expression can not be empty;")
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > EXPRESSION_BYTES_MAX:
        told = f" expression size: {size}" if is_told else ""
        raise Refusal(f"Expression size has exceeded the maximum allowed size;{told}")


def check_path(node: PathNode) -> None:
    """What is wrong with a path whatever its placeholders stand for."""
    for element in node.elements:
        if isinstance(element, int):
            if element > LIST_INDEX_MAX:
                raise Refusal(f"List index is not within the allowable range; index: [{element}]")
        elif element.upper() in RESERVED_WORDS:
            raise Refusal(f"Attribute name is a reserved keyword; reserved keyword: {element}")


def check_function_name(name: str) -> None:
    if name not in FUNCTIONS:
        raise Refusal(f"Invalid function name; function: {name}")


def check_operator_count(count: int) -> None:
    """The service gives up at the first operator too many, so it always tells the same count."""
    if count > EXPRESSION_OPERATORS_MAX:
        raise Refusal(
            "The expression contains too many operators; "
            f"operator count: {EXPRESSION_OPERATORS_MAX + 1}"
        )


def misused(function: str) -> Refusal:
    return Refusal(
        f"The function is not allowed to be used this way in an expression; function: {function}"
    )


def check_count(node: CallNode, count: int) -> None:
    if len(node.operands) != count:
        raise Refusal(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {node.function}, number of operands: {len(node.operands)}"
        )


def check_document_path(node: CallNode) -> None:
    if not isinstance(node.operands[0], PathNode):
        raise Refusal(
            f"Operator or function requires a document path; operator or function: {node.function}"
        )


def incorrect_type(operator: str, kind: str) -> Refusal:
    return Refusal(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {kind}"
    )


def refuser(refusal: Refusal) -> Callable[..., NoReturn]:
    """A check, or an evaluation, that can only fail."""

    def refuse(*ignored: object) -> NoReturn:
        raise refusal

    return refuse


def run_checks(parameter: str, checks: Iterable[Check], values: Values) -> None:
    try:
        for check in checks:
            check(values)
    except Refusal as refusal:
        raise invalid(parameter, refusal) from None


def invalid(parameter: str, refusal: Refusal) -> ValidationException:
    return ValidationException(f"Invalid {parameter}: {refusal}")
