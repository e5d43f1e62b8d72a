"""Constraints of the service description: required members, lengths, ranges, patterns, enums.

`compile_satisfied` returns a fast function that only says whether a request is valid. For the few
that are not, `violations` finds the messages afterwards. Both use the description as corrected by
`wording.amend`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, Final, TypeVar

from partita.foundation.service_limits import REQUEST_BODY_BYTES_MAX
from partita.server.protocol import validation_texts
from partita.server.protocol.service_model import ModelShape, ServiceModel
from partita.server.protocol.shown_values import hash_order, member_name, shown_name, shown_value

Satisfied = Callable[[Any], bool]
Place = TypeVar("Place", str, int)


def compile_satisfied(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    """Compiles a check of a value whose JSON types are right.

    Returns None if the shape has no constraints.
    """
    if shape.name == "AttributeValue":
        return None
    compiler = _COMPILERS.get(shape.kind)
    return compiler(model, shape) if compiler else None


def _structure(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    members = {
        name: rule
        for name, target in shape.members.items()
        if (rule := compile_satisfied(model, model.shapes[target])) is not None
    }
    required = shape.required
    if not members and not required:
        return None

    def satisfied(content: dict[str, Any]) -> bool:
        for name in required:
            if name not in content:
                return False
        for name, value in content.items():
            if name in members and not members[name](value):
                return False
        return True

    return satisfied


def _map(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    size = _size(shape)
    keys = _keys(model, model.shapes[shape.key])
    member = compile_satisfied(model, model.shapes[shape.value])
    if member is None and size is None:
        return keys

    def satisfied(content: dict[str, Any]) -> bool:
        if size is not None and not size(content):
            return False
        if keys is not None and not keys(content):
            return False
        return member is None or all(map(member, content.values()))

    return satisfied


def _keys(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    """Compiles the check of a map's keys, with a faster form if only their length is limited."""
    most = shape.most
    if shape.kind == "string" and most is not None and not shape.least:
        return lambda content: all(len(name) <= most for name in content)
    rule = compile_satisfied(model, shape)
    return None if rule is None else lambda content: all(map(rule, content))


def _list(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    size = _size(shape)
    member = compile_satisfied(model, model.shapes[shape.member])
    if member is None:
        return size
    return lambda content: (size is None or size(content)) and all(map(member, content))


def _string(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    if shape.enum:
        return frozenset(shape.enum).__contains__
    if shape.pattern is None:
        return _size(shape)
    least, most = shape.least or 0, REQUEST_BODY_BYTES_MAX if shape.most is None else shape.most
    matches = _compiled(shape.pattern).fullmatch
    return lambda text: least <= len(text) <= most and matches(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern of the description, translating Java's syntax to Python's."""
    for java, python in _JAVA_PATTERNS.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


_JAVA_PATTERNS: Final = {
    r"\p{Print}": r"[ -~]",
    r"\p{ASCII}": r"[\x00-\x7F]",
    # These only occur inside character classes.
    r"\p{L}": r"\w",
    r"\p{Z}": r"\s",
    r"\p{N}": r"\d",
    r"\uD800\uDC00-\uDBFF\uDFFF": r"\U00010000-\U0010FFFF",
}


def _table(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    is_name = _string(model, shape)
    assert is_name is not None
    return lambda text: is_name(text) or text.startswith(validation_texts.ARN_PREFIX)


def _number(model: ServiceModel, shape: ModelShape) -> Satisfied | None:
    least, most = shape.least, shape.most
    if least is None and most is None:
        return None
    return lambda number: (least is None or number >= least) and (most is None or number <= most)


def _size(shape: ModelShape) -> Satisfied | None:
    least, most = shape.least or 0, shape.most
    if not least and most is None:
        return None
    if most is None:
        return lambda content: len(content) >= least
    return lambda content: least <= len(content) <= most


_COMPILERS: Final[dict[str, Callable[[ServiceModel, ModelShape], Satisfied | None]]] = {
    "structure": _structure,
    "map": _map,
    "list": _list,
    "string": _string,
    "table": _table,
    "integer": _number,
    "long": _number,
}


def violations(model: ServiceModel, shape: ModelShape, content: Any, path: str) -> Iterator[str]:
    """Yields every violation inside a value, in the order in which the service lists them."""
    finder = _FINDERS.get(shape.kind)
    if finder is not None and shape.name != "AttributeValue":
        yield from finder(model, shape, content, path)


def member_violations(
    model: ServiceModel, shape: ModelShape, content: dict[str, Any], path: str, name: str
) -> Iterator[str]:
    """Yields the violations of one member of a structure, or that it is missing."""
    inner = f"{path}.{member_name(name)}" if path else member_name(name)
    if name in content:
        yield from violations(model, model.shapes[shape.members[name]], content[name], inner)
    elif name in shape.required:
        yield f"Value null at '{inner}' {validation_texts.FAILED}{validation_texts.NOT_NULL}"


def members_in_order(shape: ModelShape) -> list[str]:
    names = {member_name(name): name for name in shape.members}
    return [names[name] for name in hash_order(tuple(names))]


def size_constraints(shape: ModelShape) -> Iterator[str]:
    if shape.most is not None:
        yield validation_texts.LENGTH_MOST.format(shape.most)
    if shape.least is not None:
        yield validation_texts.LENGTH_LEAST.format(shape.least)
    elif shape.most is not None:
        yield validation_texts.LENGTH_LEAST.format(0)


def _structure_violations(
    model: ServiceModel, shape: ModelShape, content: dict[str, Any], path: str
) -> Iterator[str]:
    for name in members_in_order(shape):
        yield from member_violations(model, shape, content, path, name)


def _map_violations(
    model: ServiceModel, shape: ModelShape, content: dict[str, Any], path: str
) -> Iterator[str]:
    key, target = model.shapes[shape.key], model.shapes[shape.value]
    refused = partial(_refused, model, shape, content, path)
    yield from map(refused, _size_violations(shape, len(content)))
    keys = _keys(model, key)
    if keys is not None and not keys(content):
        patterns = [validation_texts.PATTERN.format(key.pattern)] if key.pattern else []
        yield refused(
            validation_texts.MAP_KEYS.format(", ".join([*size_constraints(key), *patterns]))
        )
    size = _size(target) if target.kind == "list" else None
    for name, value in _violating(model, target, content.items()):
        if size is not None and not size(value):
            yield refused(validation_texts.MAP_VALUE.format(", ".join(size_constraints(target))))
            continue
        yield from violations(model, target, value, f"{path}.{shown_name(name)}.member")


def _list_violations(
    model: ServiceModel, shape: ModelShape, content: list[Any], path: str
) -> Iterator[str]:
    for constraint in _size_violations(shape, len(content)):
        yield _refused(model, shape, content, path, constraint)
    target = model.shapes[shape.member]
    for position, value in _violating(model, target, enumerate(content, 1)):
        yield from violations(model, target, value, f"{path}.{position}.member")


def _violating(
    model: ServiceModel, shape: ModelShape, members: Iterable[tuple[Place, Any]]
) -> Iterator[tuple[Place, Any]]:
    """Yields the members that have a violation. Valid ones, maybe a million, are skipped fast."""
    satisfied = compile_satisfied(model, shape)
    if satisfied is not None:
        for member in members:
            if not satisfied(member[1]):
                yield member


def _string_violations(
    model: ServiceModel, shape: ModelShape, content: str, path: str
) -> Iterator[str]:
    if shape.enum:
        if content not in shape.enum:
            order = validation_texts.ENUM_ORDERS.get(shape.name) or hash_order(shape.enum)
            constraint = validation_texts.ENUM.format(", ".join(order))
            yield _refused(model, shape, content, path, constraint)
        return
    if shape.pattern and not _compiled(shape.pattern).fullmatch(content):
        yield _refused(model, shape, content, path, validation_texts.PATTERN.format(shape.pattern))
    for constraint in _size_violations(shape, len(content)):
        yield _refused(model, shape, content, path, constraint)


def _table_violations(
    model: ServiceModel, shape: ModelShape, content: str, path: str
) -> Iterator[str]:
    if content.startswith(validation_texts.ARN_PREFIX):
        return
    if not content:
        # No pattern is reported for an empty name (recorded).
        constraint = validation_texts.LENGTH_LEAST.format(shape.least)
        yield _refused(model, shape, content, path, constraint)
        return
    yield from _string_violations(model, shape, content, path)


def _number_violations(
    model: ServiceModel, shape: ModelShape, content: int, path: str
) -> Iterator[str]:
    if shape.least is not None and content < shape.least:
        yield _refused(
            model, shape, content, path, validation_texts.VALUE_LEAST.format(shape.least)
        )
    if shape.most is not None and content > shape.most:
        yield _refused(model, shape, content, path, validation_texts.VALUE_MOST.format(shape.most))


def _size_violations(shape: ModelShape, size: int) -> Iterator[str]:
    if shape.least is not None and size < shape.least:
        yield validation_texts.LENGTH_LEAST.format(shape.least)
    if shape.most is not None and size > shape.most:
        yield validation_texts.LENGTH_MOST.format(shape.most)


def _refused(
    model: ServiceModel, shape: ModelShape, content: Any, path: str, constraint: str
) -> str:
    value = shown_value(model, shape, content)
    return f"Value '{value}' at '{path}' {validation_texts.FAILED}{constraint}"


_FINDERS: Final[dict[str, Callable[[ServiceModel, ModelShape, Any, str], Iterator[str]]]] = {
    "structure": _structure_violations,
    "map": _map_violations,
    "list": _list_violations,
    "string": _string_violations,
    "table": _table_violations,
    "integer": _number_violations,
    "long": _number_violations,
}
