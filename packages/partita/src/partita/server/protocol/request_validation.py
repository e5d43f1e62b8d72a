"""Validation of requests: JSON types, then constraints, in AWS's order and with AWS's messages.

`compile_validators` makes one function per operation. It changes the request in place (see
`serialization`) and raises the error that the service would answer. A valid request takes a few
microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

from partita.database.item.item_limits import nests_too_deep
from partita.errors import ValidationException
from partita.foundation.service_limits import (
    BATCH_GET_KEYS_MAX,
    BATCH_WRITE_REQUESTS_MAX,
    TABLE_NAME_CHARS_MAX,
    TABLE_NAME_CHARS_MIN,
)
from partita.server.protocol import serialization, validation_texts
from partita.server.protocol.model_constraints import (
    compile_satisfied,
    member_violations,
    members_in_order,
)
from partita.server.protocol.service_model import (
    DYNAMODB,
    KINESIS,
    STREAMS,
    ModelShape,
    ServiceModel,
    load,
    plain_name,
    service_of,
)
from partita.server.protocol.shown_values import shown_name
from partita.server.protocol.validation_texts import NewerMessageForm

Request = dict[str, Any]
Validator = Callable[[Request], None]


def compile_validators(operations: Iterable[str]) -> dict[str, Validator]:
    services = {
        DYNAMODB: (load(DYNAMODB), validation_texts.amend(load(DYNAMODB))),
        STREAMS: (load(STREAMS), load(STREAMS)),
        KINESIS: (load(KINESIS), validation_texts.amend_kinesis(load(KINESIS))),
    }
    return {name: _compile(*services[service_of(name)], name) for name in operations}


def compile_service(service: str, operations: Iterable[str]) -> dict[str, Validator]:
    """Compiles validators for a service outside the registry, from its uncorrected model."""
    model = load(service)
    return {name: _compile(model, model, f"{service}.{name}") for name in operations}


def _compile(described: ServiceModel, amended: ServiceModel, operation: str) -> Validator:
    input_shape = described.inputs[plain_name(operation)]
    if input_shape is None:
        return lambda request: None
    check_types = serialization.compile_check(described, input_shape)
    shape = amended.shapes[input_shape]
    satisfied = compile_satisfied(amended, shape)

    def validate(request: Request) -> None:
        check_types(request)
        if satisfied is not None and not satisfied(request):
            _refuse(amended, operation, shape, request)

    if operation in validation_texts.TABLE_CLASS_LAST:
        return _then_table_class(validate, described.shapes["TableClass"])
    return validate


def _then_table_class(validate: Validator, shape: ModelShape) -> Validator:
    def validate_both(request: Request) -> None:
        validate(request)
        if "TableClass" in request and request["TableClass"] not in shape.enum:
            raise ValidationException(validation_texts.TABLE_CLASS)

    return validate_both


def _refuse(model: ServiceModel, operation: str, shape: ModelShape, request: Request) -> NoReturn:
    """Raises the error for a request that is known to be invalid."""
    _refuse_resource(operation, request)
    replaced: dict[str, str] = {}
    order = _first(validation_texts.OLDER_ORDERS.get(operation, ()), members_in_order(shape))
    if _is_for_newer_generation(shape, request):
        replaced = _newer_texts(operation, shape, model, request)
        order = _first(validation_texts.NEWER_ORDERS.get(operation, ()), order)

    def violations_of(names: Iterable[str]) -> Iterator[str]:
        for name in names:
            if name in replaced:
                yield replaced[name]
            else:
                yield from member_violations(model, shape, request, "", name)

    reported_first = validation_texts.REPORTED_FIRST.get(operation, ())
    messages = list(islice(violations_of(reported_first), validation_texts.LISTED_MAX))
    messages = messages or list(islice(violations_of(order), validation_texts.LISTED_MAX))
    assert messages, f"{operation}: a violation without a message"
    raise ValidationException(_listed(messages))


def _first(leading: Iterable[str], names: list[str]) -> list[str]:
    return [*leading, *(name for name in names if name not in leading)]


def _refuse_resource(operation: str, request: Request) -> None:
    member, text = validation_texts.MISSING_FIRST.get(operation, ("", ""))
    if member and member not in request:
        raise ValidationException(text)
    if operation in validation_texts.TABLE_NAME_LENGTH_FIRST:
        name = request["TableName"]
        is_long_enough = TABLE_NAME_CHARS_MIN <= len(name) <= TABLE_NAME_CHARS_MAX
        if not is_long_enough and not name.startswith(validation_texts.ARN_PREFIX):
            raise ValidationException(validation_texts.TABLE_NAME_LENGTH)


def _is_for_newer_generation(shape: ModelShape, request: Request) -> bool:
    return all(name in request for name in shape.required) and not nests_too_deep(request)


def _newer_texts(
    operation: str, shape: ModelShape, model: ServiceModel, request: Request
) -> dict[str, str]:
    """Returns the newer generation's messages for members with violations.

    Raises at once for a violation that is reported alone.
    """
    replaced = {}
    for form in validation_texts.NEWER_FORMS.get(operation, ()):
        target = model.shapes[shape.members[form.member]]
        if form.member not in request or not _applies(form, request[form.member], target):
            continue
        text = form.text.format(least=target.least, most=target.most)
        if form.alone:
            raise ValidationException(_listed([text]) if form.prefixed else text)
        replaced[form.member] = text
    for text in _BATCH_SIZES.get(operation, _no_sizes)(request):
        raise ValidationException(_listed([text]))
    return replaced


def _applies(form: NewerMessageForm, content: Any, shape: ModelShape) -> bool:
    if form.when == "enum":
        return content not in shape.enum
    size = content if type(content) is int else len(content)
    if form.when == "short":
        return shape.least is not None and size < shape.least
    return shape.most is not None and size > shape.most


def _keys_sizes(request: Request) -> Iterator[str]:
    for table, block in request["RequestItems"].items():
        path = f"RequestItems.{shown_name(table)}.member.Keys"
        size = len(block.get("Keys", "?"))
        if size < 1:
            yield validation_texts.value_at(path, validation_texts.LENGTH_LEAST.format(1))
        if size > BATCH_GET_KEYS_MAX:
            yield validation_texts.value_at(
                path, validation_texts.LENGTH_MOST.format(BATCH_GET_KEYS_MAX)
            )


def _write_sizes(request: Request) -> Iterator[str]:
    # An empty list is reported by the older generation (recorded).
    for table, writes in request["RequestItems"].items():
        if len(writes) > BATCH_WRITE_REQUESTS_MAX:
            path = f"RequestItems.{shown_name(table)}.member"
            yield validation_texts.value_at(
                path, validation_texts.LENGTH_MOST.format(BATCH_WRITE_REQUESTS_MAX)
            )


def _no_sizes(request: Request) -> Iterator[str]:
    return iter(())


_BATCH_SIZES: dict[str, Callable[[Request], Iterator[str]]] = {
    "BatchGetItem": _keys_sizes,
    "BatchWriteItem": _write_sizes,
}


def _listed(messages: list[str]) -> str:
    count = "1 validation error" if len(messages) == 1 else f"{len(messages)} validation errors"
    return f"{count} detected: {'; '.join(messages)}"
