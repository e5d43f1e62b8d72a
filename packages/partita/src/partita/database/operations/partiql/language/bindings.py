"""The names, literals and parameters of a statement, as the placeholders of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from partita.database.expressions.name_resolution import Values, name_problem
from partita.database.expressions.syntax.expression_parser import (
    InvalidExpression,
    PathNode,
    ValueNode,
)
from partita.database.item.attribute_values import AttributeValue, ErrorWording, normalize_value
from partita.database.operations.partiql.language.literals import EMPTY_NAME, is_literal, value_of
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    Identifier,
    Literal,
    ParameterMarker,
    PathExpression,
    SyntaxNode,
    Wildcard,
    refusal,
)
from partita.errors import ValidationException
from partita.foundation.service_limits import DOCUMENT_PATH_ELEMENTS_MAX, LIST_INDEX_MAX

PARAMETER_COUNT = "Number of parameters in request and statement don't match."
UNEXPECTED = "Unexpected path component"


@dataclass(slots=True)
class Bindings:
    """The placeholders of one statement.

    Every name and value gets one, so that an attribute called "#0" is not taken for a placeholder.
    """

    names: dict[str, str] = field(default_factory=dict)
    literals: dict[str, AttributeValue] = field(default_factory=dict)
    parameters: set[int] = field(default_factory=set)

    def path(self, node: SyntaxNode) -> PathNode:
        return PathNode(
            tuple(
                self._name(element) if isinstance(element, str) else element
                for element in elements(node)
            )
        )

    def _name(self, name: str) -> str:
        placeholder = f"#{len(self.names)}"
        self.names[placeholder] = name
        return placeholder

    def value(self, node: SyntaxNode) -> ValueNode | None:
        """Returns the placeholder of a literal or parameter, or None for any other node."""
        if isinstance(node, ParameterMarker):
            self.parameters.add(node.number)
            return ValueNode(f":p{node.number}")
        return self.constant(value_of(node)) if is_literal(node) else None

    def constant(self, value: AttributeValue) -> ValueNode:
        placeholder = f":{len(self.literals)}"
        self.literals[placeholder] = value
        return ValueNode(placeholder)

    def values(self, parameters: Sequence[AttributeValue]) -> Values:
        """Returns the values of all placeholders, given the normalized parameters of a request."""
        if not self.parameters:
            return self.literals
        if max(self.parameters) > len(parameters):
            raise ValidationException(PARAMETER_COUNT)
        bound = {f":p{number}": parameters[number - 1] for number in sorted(self.parameters)}
        return {**self.literals, **bound}


def read_parameters(parameters: Sequence[AttributeValue]) -> list[AttributeValue]:
    """Returns the normalized parameters of a request.

    The service checks all of them before it looks at the statement, with the error texts of the
    older generation (recorded).
    """
    return [normalize_value(parameter, ErrorWording.OLDER) for parameter in parameters]


def elements(node: SyntaxNode) -> tuple[str | int, ...]:
    """Returns the elements of a document path; raises for any other node."""
    if isinstance(node, Identifier):
        return (_checked(node.text),)
    if not isinstance(node, PathExpression):
        raise refusal(UNEXPECTED, node.place)
    path = (*elements(node.root), *(_element(step) for step in node.steps))
    if len(path) > DOCUMENT_PATH_ELEMENTS_MAX:
        raise refusal(f"The document path has too many nesting levels; nesting levels: {len(path)}")
    return path


def _element(step: SyntaxNode) -> str | int:
    if isinstance(step, Identifier):
        return _checked(step.text)
    if isinstance(step, Wildcard):
        kind, example = ("Unpivot", "a.*.b") if step.unpivots else ("Wildcard", "a[*].b")
        raise refusal(f"{kind} path component like {example} are not supported", step.place)
    if isinstance(step, Literal) and step.kind == "S":
        return _checked(step.text)
    if isinstance(step, Literal) and step.text.lstrip("-").isdecimal():
        digits = step.text.lstrip("0") or "0"
        # int() refuses texts of more than 4300 digits.
        if len(digits) > len(str(LIST_INDEX_MAX)) or not 0 <= int(digits) <= LIST_INDEX_MAX:
            raise refusal(
                f"List index is not within the allowable range; index: [{digits}]", step.place
            )
        return int(digits)
    raise refusal(UNEXPECTED, step.place)


def _checked(name: str) -> str:
    if not name:
        raise refusal(EMPTY_NAME)
    if problem := name_problem(name):
        raise InvalidExpression(problem)
    return name
