"""Mock results of tasks (TestState): checks whether the service could give that answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.errors import ValidationException
from partita.server.protocol import service_model
from partita.server.protocol.service_model import ModelShape
from partita_services.workflows.running.tasks import integrations
from partita_services.workflows.running.tasks.integrations import Integration

STRICT, NONE = "STRICT", "NONE"

_KINDS: dict[str, tuple[Any, str]] = {
    "structure": (dict, "an object"),
    "map": (dict, "an object"),
    "list": (list, "an array"),
    "string": (str, "a string"),
    "blob": (str, "a string"),
    "timestamp": (str, "a string"),
    "boolean": (bool, "a boolean"),
    **dict.fromkeys(("integer", "long", "float", "double"), ((int, float), "a number")),
}
_INVOKED = {
    "InvokeOutput": ModelShape(
        "InvokeOutput",
        "structure",
        {
            "ExecutedVersion": "Text",
            "FunctionError": "Text",
            "LogResult": "Text",
            "StatusCode": "N",
        },
    ),
    "Text": ModelShape("Text", "string"),
    "N": ModelShape("N", "integer"),
}
"""The output of lambda:invoke, without Payload, which may be anything."""


def check_mock(integration: Integration | None, result: Any, mode: str) -> None:
    """Raises ValidationException for a result that the service could not give, if its shape is
    known."""
    if integration is None or integration.pattern or mode == NONE:
        return
    shapes, name = _described(integration)
    if name in shapes:
        for problem in _problems(shapes, shapes[name], "", result, is_strict=mode == STRICT):
            raise ValidationException(f"Mock result schema validation error: {problem}")


def _described(integration: Integration) -> tuple[dict[str, ModelShape], str]:
    output = f"{integration.operation}Output"
    if integration.kind == integrations.INVOKE:
        return _INVOKED, output
    if integration.kind == integrations.START:
        return service_model.load(service_model.STEP_FUNCTIONS).shapes, output
    service = integration.service or integration.kind
    if service not in integrations.SDK_SERVICES:
        return {}, ""
    return service_model.load(integrations.SDK_SERVICES[service].model).shapes, output


def _problems(
    shapes: dict[str, ModelShape], shape: ModelShape, field: str, value: Any, *, is_strict: bool
) -> Iterator[str]:
    kind, words = _KINDS[shape.kind]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        subject = f"Field '{field}'" if field else "Mocked result"
        yield f"{subject} must be {words}"
        return
    if shape.enum and value not in shape.enum:
        yield f"Field '{field}' is not an expected value"
    yield from _bounds(shape, field, value)
    if shape.kind == "structure":
        # Tasks spell members with a capital letter, even if the service's API does not.
        members = {name[:1].upper() + name[1:]: target for name, target in shape.members.items()}
        if is_strict:
            for name in shape.required:
                capital = name[:1].upper() + name[1:]
                if capital not in value:
                    yield f"Required field '{capital}' is missing"
        inner = [(name, members[name], item) for name, item in value.items() if name in members]
    elif shape.kind == "map":
        inner = [(name, shape.value, item) for name, item in value.items()]
    elif shape.kind == "list":
        inner = [(field, shape.member, item) for item in value]
    else:
        return
    for name, target, item in inner:
        yield from _problems(shapes, shapes[target], name, item, is_strict=is_strict)


def _bounds(shape: ModelShape, field: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        few, many = "smaller than the minimum length", "maximum length"
    elif isinstance(value, int | float):
        few, many = "less than the minimum value", "maximum value"
    else:
        return
    size = len(value) if isinstance(value, str) else value
    if shape.least is not None and size < shape.least:
        yield f"Field '{field}' is {few}"
    if shape.most is not None and size > shape.most:
        yield f"Field '{field}' exceeds the {many}"
