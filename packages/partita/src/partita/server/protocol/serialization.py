"""JSON types: the first check of a request, in the order of its document.

The service parses a request field by field and stops at the first field whose JSON type is wrong,
before it checks any other rule. The texts are those of its parser (recorded by dynalite's tests
against AWS).

The request is changed in place. A null means that a member is absent, so nulls are removed and
later code can use `in`. Members that the description does not list are removed too, so that no
later code sees them. Where the service converts a value (a fraction for an integer, "true" for a
boolean), it is converted here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, Final, NoReturn

from partita.errors import INVALID, SerializationException, ValidationException
from partita.server.protocol.service_model import ModelShape, ServiceModel

Check = Callable[[Any], Any]
"""Takes a value that is not null. Returns it, converted where the service converts it, or raises.
"""

PACKAGE: Final = "com.amazonaws.dynamodb.v20120810."
STRUCTURE: Final = "Start of structure or map found where not expected"
SCALAR_AS_FIELD: Final = "Unexpected field type"
SCALAR_AS_VALUE: Final = "Unexpected value type in payload"
NOT_BASE64: Final = "only base-64-encoded strings are convertible to bytes"
# The spelling is the service's.
LAST_CHARACTER: Final = "Invalid last non-pad Base64 character dectected"
GENERIC: Final = "sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl"
NOT_A_COLLECTION: Final = (
    f"class {GENERIC} cannot be cast to class java.lang.Class "
    f"({GENERIC} and java.lang.Class are in module java.base of loader 'bootstrap')"
)
# Seen in DynamoDB Local. The service's own text has not been recorded.
NULL_IN_SET: Final = f"{INVALID}An {{}} set may not have a null string as a member"

BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
JAVA_SCALARS: Final = {
    "string": "java.lang.String",
    "integer": "java.lang.Integer",
    "long": "java.lang.Long",
    "boolean": "java.lang.Boolean",
    "blob": "java.nio.ByteBuffer",
    "double": "java.lang.Double",
    "timestamp": "java.util.Date",
}
INTEGER_BITS: Final = {"integer": 31, "long": 63}
BASE64_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NO_BASE64: Final = re.compile(f"[^{re.escape(BASE64_ALPHABET)}]")
PADDING_BITS: Final = {1: 0b11, 2: 0b1111}
# A limit of Partita's own, to bound recursion. The service's rule of 32 levels is checked later.
VALUE_LEVELS_MAX: Final = 200


def compile_check(model: ServiceModel, shape_name: str) -> Check:
    """Compiles the check of an operation's input."""
    return _compile(model, model.shapes[shape_name], SCALAR_AS_FIELD)


def _compile(model: ServiceModel, shape: ModelShape, scalar_text: str) -> Check:
    if shape.name == "AttributeValue":
        return _value_as(scalar_text)
    if shape.kind == "structure":
        return _structure(model, shape, scalar_text)
    if shape.kind == "map":
        return _map(model, shape, scalar_text)
    if shape.kind == "list":
        return _list(model, shape, scalar_text)
    return _SCALARS[shape.kind]


def _structure(model: ServiceModel, shape: ModelShape, scalar_text: str) -> Check:
    members = {
        name: _compile(model, model.shapes[target], SCALAR_AS_FIELD)
        for name, target in shape.members.items()
    }
    java_type = f"class {PACKAGE}{shape.name}"

    def check(content: Any) -> Any:
        if type(content) is not dict:
            _refuse_for_object(content, java_type, scalar_text)
        ignored = None
        for name, value in content.items():
            if value is None or name not in members:
                ignored = ignored or []
                ignored.append(name)
            else:
                converted = members[name](value)
                if converted is not value:
                    content[name] = converted
        if ignored is not None:
            for name in ignored:
                del content[name]
        return content

    return check


def _map(model: ServiceModel, shape: ModelShape, scalar_text: str) -> Check:
    target = model.shapes[shape.value]
    java_type = f"java.util.Map<java.lang.String, {_java_type(model, target)}>"
    if target.name == "AttributeValue":

        def check_values(content: Any) -> Any:
            if type(content) is not dict:
                _refuse_for_object(content, java_type, scalar_text)
            _check_value_map(content, 1)
            return content

        return check_values
    member = _compile(model, target, _scalar_text_inside(target))
    absent = _ABSENT.get(target.kind)

    def check(content: Any) -> Any:
        if type(content) is not dict:
            _refuse_for_object(content, java_type, scalar_text)
        for name, value in list(content.items()):
            if value is not None:
                content[name] = member(value)
            elif absent is not None:
                content[name] = absent()
            else:
                del content[name]
        return content

    return check


def _list(model: ServiceModel, shape: ModelShape, scalar_text: str) -> Check:
    target = model.shapes[shape.member]
    member = _compile(model, target, _scalar_text_inside(target))
    absent = _ABSENT.get(target.kind)

    def check(content: Any) -> Any:
        if type(content) is not list:
            raise SerializationException(STRUCTURE if type(content) is dict else scalar_text)
        checked = []
        for value in content:
            if value is not None:
                checked.append(member(value))
            elif absent is not None:
                checked.append(absent())
        return checked

    return check


# A null in a list or map of structures is not removed: it becomes a structure without members,
# which the constraints then refuse or accept.
_ABSENT: Final[dict[str, Callable[[], Any]]] = {"structure": dict, "list": list, "map": dict}


def _scalar_text_inside(target: ModelShape) -> str:
    """Returns the message for a scalar in place of a list's or a map's member."""
    return SCALAR_AS_VALUE if target.kind == "structure" else NOT_A_COLLECTION


def _java_type(model: ServiceModel, shape: ModelShape) -> str:
    if shape.kind == "list":
        return f"java.util.List<{_java_type(model, model.shapes[shape.member])}>"
    if shape.kind == "map":
        return f"java.util.Map<java.lang.String, {_java_type(model, model.shapes[shape.value])}>"
    return JAVA_SCALARS.get(shape.kind, PACKAGE + shape.name)


def _refuse_for_object(content: Any, java_type: str, scalar_text: str) -> NoReturn:
    if type(content) is list:
        raise SerializationException(f"Unrecognized collection type {java_type}")
    raise SerializationException(scalar_text)


def _refuse_for_scalar(content: Any, java_type: str) -> NoReturn:
    if type(content) is list:
        raise SerializationException(f"Unrecognized collection type class {java_type}")
    if type(content) is dict:
        raise SerializationException(STRUCTURE)
    raise SerializationException(
        f"{_token(content)} cannot be converted to {java_type.rpartition('.')[2]}"
    )


def _token(scalar: Any) -> str:
    if type(scalar) is bool:
        return "TRUE_VALUE" if scalar else "FALSE_VALUE"
    return {int: "NUMBER_VALUE", float: "DECIMAL_VALUE"}.get(type(scalar), "STRING_VALUE")


def _string(content: Any) -> Any:
    if type(content) is not str:
        _refuse_for_scalar(content, JAVA_SCALARS["string"])
    return content


def _integer(kind: str) -> Check:
    bound = 1 << INTEGER_BITS[kind]

    def check(content: Any) -> Any:
        if type(content) is float and abs(content) < bound:
            return int(content)
        if type(content) is not int or not -bound <= content < bound:
            _refuse_for_scalar(content, JAVA_SCALARS[kind])
        return content

    return check


def _boolean(content: Any) -> Any:
    if type(content) is bool:
        return content
    if type(content) is str:
        if content.lower() in BOOLEANS:
            return BOOLEANS[content.lower()]
        raise SerializationException("Unexpected token received from parser")
    _refuse_for_scalar(content, JAVA_SCALARS["boolean"])


def _blob(content: Any) -> Any:
    if type(content) is str:
        try:
            # Canonical base64 survives a round trip. `_base64_fault` finds what else is wrong.
            if b64encode(a2b_base64(content)) == content.encode():
                return content
        except (Base64Error, ValueError):
            pass
        raise SerializationException(_base64_fault(content))
    if type(content) in (list, dict):
        _refuse_for_scalar(content, JAVA_SCALARS["blob"])
    raise SerializationException(NOT_BASE64)


def _base64_fault(text: str) -> str:
    if len(text) % 4:
        return f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(text)}"
    digits = text.removesuffix("=").removesuffix("=")
    mask = PADDING_BITS.get(len(text) - len(digits), 0)
    if BASE64_ALPHABET.find(digits[-1:]) & mask:
        return LAST_CHARACTER
    strange = _NO_BASE64.search(digits)
    return f"Invalid base 64 character: '{strange[0] if strange else '='}'"


def _number(content: Any) -> Any:
    if type(content) not in (int, float):
        _refuse_for_scalar(content, JAVA_SCALARS["double"])
    return content


_SCALARS: Final[dict[str, Check]] = {
    "string": _string,
    "integer": _integer("integer"),
    "long": _integer("long"),
    "boolean": _boolean,
    "blob": _blob,
    "double": _number,
    "float": _number,
    "timestamp": _number,
}


# Attribute values are by far the most frequent shape, and the only one that contains itself.

VALUE_TYPE: Final = f"class {PACKAGE}AttributeValue"
VALUE_MAP_TYPE: Final = f"java.util.Map<java.lang.String, {PACKAGE}AttributeValue>"
_AT_ONCE: Final[dict[str, type]] = {"S": str, "N": str, "BOOL": bool, "NULL": bool}


def _value_as(scalar_text: str) -> Check:
    def check(content: Any) -> Any:
        if type(content) is not dict:
            _refuse_for_object(content, VALUE_TYPE, scalar_text)
        _check_value(content, 1)
        return content

    return check


def _check_value_map(members: dict[str, Any], level: int) -> None:
    for name, value in members.items():
        if type(value) is dict:
            for kind, content in value.items():
                if type(content) is str and (kind == "S" or kind == "N"):
                    continue
                if type(content) is not _AT_ONCE.get(kind):
                    _check_value(value, level)
                    break
        elif value is None:
            members[name] = {}
        else:
            _refuse_for_object(value, VALUE_TYPE, SCALAR_AS_VALUE)


def _check_value(value: dict[str, Any], level: int) -> None:
    if level > VALUE_LEVELS_MAX:
        raise SerializationException
    for kind, content in list(value.items()):
        if content is None or kind not in _CONTENTS:
            del value[kind]
        elif type(content) is not _AT_ONCE.get(kind):
            value[kind] = _CONTENTS[kind](content, level)


def _value_list(content: Any, level: int) -> Any:
    if type(content) is not list:
        raise SerializationException(STRUCTURE if type(content) is dict else SCALAR_AS_FIELD)
    for position, value in enumerate(content):
        if value is None:
            content[position] = {}
        elif type(value) is dict:
            _check_value(value, level + 1)
        else:
            _refuse_for_object(value, VALUE_TYPE, SCALAR_AS_VALUE)
    return content


def _value_map(content: Any, level: int) -> Any:
    if type(content) is not dict:
        _refuse_for_object(content, VALUE_MAP_TYPE, SCALAR_AS_FIELD)
    _check_value_map(content, level + 1)
    return content


def _set_of(member: Check, described: str) -> Callable[[Any, int], Any]:
    def check(content: Any, level: int) -> Any:
        if type(content) is not list:
            raise SerializationException(STRUCTURE if type(content) is dict else SCALAR_AS_FIELD)
        if None in content:
            raise ValidationException(NULL_IN_SET.format(described))
        return [member(scalar) for scalar in content]

    return check


_CONTENTS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "S": lambda content, level: _string(content),
    "N": lambda content, level: _string(content),
    "B": lambda content, level: _blob(content),
    "BOOL": lambda content, level: _boolean(content),
    "NULL": lambda content, level: _boolean(content),
    "SS": _set_of(_string, "string"),
    "NS": _set_of(_string, "number"),
    "BS": _set_of(_blob, "binary"),
    "L": _value_list,
    "M": _value_map,
}
