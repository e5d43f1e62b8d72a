"""Converts literals to attribute values, with AWS's errors for those that cannot be converted."""

from __future__ import annotations

from collections.abc import Callable, Sized
from decimal import Decimal

from partita.database.item import numbers
from partita.database.item.attribute_values import AttributeValue, ErrorWording, normalize_value
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    BagLiteral,
    DeleteSyntax,
    FunctionCall,
    Identifier,
    InsertSyntax,
    IonLiteral,
    ListLiteral,
    Literal,
    MissingKeyword,
    OperatorCall,
    ParameterMarker,
    PathExpression,
    SelectSyntax,
    StructLiteral,
    SyntaxNode,
    TypeTest,
    UnsupportedSyntax,
    UpdateSyntax,
    refusal,
)
from partita.errors import INVALID, ValidationException
from partita.foundation.service_limits import NESTING_LEVELS_MAX

ROOT = "root"
EMPTY_NAME = "Path component cannot be an empty string"
EMPTY_BAG = "Empty bags are not supported"
TOO_DEEP = "Nesting Levels have exceeded supported limits"
BAG_TYPES = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"

# The service's name of a node, in the error for a node inside of a literal that is not a value.
_NODE_NAMES: dict[type[SyntaxNode], str] = {
    Identifier: "VariableReference",
    PathExpression: "Path",
    ParameterMarker: "Parameter",
    MissingKeyword: "LiteralMissing",
    FunctionCall: "NAry",
    OperatorCall: "NAry",
    TypeTest: "IsType",
    SelectSyntax: "Select",
    BagLiteral: "Seq",
    ListLiteral: "Seq",
    StructLiteral: "Struct",
    Literal: "Literal",
    IonLiteral: "Literal",
    InsertSyntax: "Insert",
    UpdateSyntax: "Update",
    DeleteSyntax: "Delete",
}


def is_literal(node: SyntaxNode) -> bool:
    return isinstance(node, (Literal, IonLiteral, ListLiteral, BagLiteral, StructLiteral))


def value_of(node: SyntaxNode) -> AttributeValue:
    """Returns the attribute value of a whole literal."""
    return _value(node, ROOT, 1)


def node_name(node: SyntaxNode) -> str:
    """Returns the service's name of a node, in the place of a statement or inside of a literal."""
    if isinstance(node, UnsupportedSyntax):
        return node.operation
    return _NODE_NAMES.get(type(node), type(node).__name__)


def shown(node: SyntaxNode) -> str:
    """Returns how the service shows a node that is in the place of a value."""
    if isinstance(node, (Identifier, Literal)):
        return node.text
    if isinstance(node, OperatorCall):
        return node.operator
    if isinstance(node, FunctionCall):
        return node.function
    if isinstance(node, UnsupportedSyntax):
        return node.token
    fixed: dict[type[SyntaxNode], str] = {
        PathExpression: "PATH",
        MissingKeyword: "MISSING",
        TypeTest: "is",
        SelectSyntax: "SELECT",
    }
    return fixed.get(type(node), node_name(node))


def unsupported_type(name: str, key: str, node: SyntaxNode) -> ValidationException:
    return refusal(f"Unsupported data type: {name} under key {key}", node.place)


def _value(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    _check_level(level, key)
    read = _READERS.get(type(node))
    if read is None:
        raise unsupported_type(node_name(node), key, node)
    return read(node, key, level)


def _scalar(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    assert isinstance(node, Literal)
    return {"N": _number(node, key)} if node.kind == "N" else {node.kind: node.content}


def _number(node: Literal, key: str) -> str:
    """Returns the canonical text of a number; errors contain the path to it (recorded)."""
    if _is_negative_zero(node.text):
        raise refusal(f"Negative zero decimal is not supported under key {key}", node.place)
    try:
        return numbers.normalize_older(node.text)
    except ValidationException as error:
        raise refusal(f"{error.message} under {key}") from None


def _is_negative_zero(text: str) -> bool:
    """True for "-0.0" and the like; "-0" is an integer, for which the service ignores the sign."""
    if text[0] != "-" or text[1:].isdecimal():
        return False
    digits, _ = numbers.big_decimal(text)
    return not digits


def _ion(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    assert isinstance(node, IonLiteral)
    raise refusal(f"Ion Literals are not supported: {node.kind} under key {key}", node.place)


def _list(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    assert isinstance(node, ListLiteral)
    _check_room(node.members, key, level)
    return {
        "L": [
            _value(member, f"{key}[{position}]", level + 1)
            for position, member in enumerate(node.members)
        ]
    }


def _struct(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    assert isinstance(node, StructLiteral)
    _check_room(node.members, key, level)
    members: dict[str, AttributeValue] = {}
    for name_node, member in node.members:
        name = member_name(name_node, key)
        if name in members:
            raise refusal(f"Duplicate keys in tuple. Key: {name} under {key}", node.place)
        members[name] = _value(member, f"{key}.{name}", level + 1)
    return {"M": members}


def member_name(node: SyntaxNode, key: str) -> str:
    if isinstance(node, Literal) and node.kind == "S":
        if not node.text:
            raise refusal(EMPTY_NAME)
        return node.text
    kind = _literal_type(node) if isinstance(node, Literal) else node_name(node)
    raise refusal(f"Tuple keys must be of type String. Actual type: {kind} under {key}", node.place)


def _literal_type(node: Literal) -> str:
    """Returns Ion's name of a literal's type."""
    if node.kind != "N":
        return node.kind
    return "INT" if node.text.lstrip("-").isdecimal() else "DECIMAL"


def _bag(node: SyntaxNode, key: str, level: int) -> AttributeValue:
    """Returns a set of strings or of numbers, depending on the first member."""
    assert isinstance(node, BagLiteral)
    if not node.members:
        raise refusal(EMPTY_BAG)
    members: list[Literal] = []
    for member in node.members:
        if not is_literal(member) and not isinstance(member, ParameterMarker):
            raise unsupported_type(node_name(member), key, member)
        kinds = (members[0].kind,) if members else ("S", "N")
        if not isinstance(member, Literal) or member.kind not in kinds:
            # After a number, the error has no position (observed on DynamoDB Local).
            raise refusal(BAG_TYPES, None if kinds == ("N",) else member.place)
        members.append(member)
    if members[0].kind == "S":
        return normalize_value({"SS": [member.text for member in members]}, ErrorWording.OLDER)
    texts = [_number(member, key) for member in members]
    if len(set(texts)) < len(texts):
        shown = ", ".join(str(Decimal(member.text)) for member in members)
        raise refusal(f"{INVALID}Input collection [{shown}] contains duplicates! under {key}")
    return normalize_value({"NS": texts})


def _check_room(members: Sized, key: str, level: int) -> None:
    """Refuse an empty list or map that is nested too deep.

    It counts as a level even though it has no members (observed on DynamoDB Local).
    """
    if not members:
        _check_level(level + 1, key)


def _check_level(level: int, key: str) -> None:
    if level > NESTING_LEVELS_MAX:
        raise refusal(f"{TOO_DEEP} under {key}")


_READERS: dict[type[SyntaxNode], Callable[[SyntaxNode, str, int], AttributeValue]] = {
    Literal: _scalar,
    IonLiteral: _ion,
    ListLiteral: _list,
    StructLiteral: _struct,
    BagLiteral: _bag,
}
