"""AWS's REST protocol: finds the operation of a request, and translates parameters and responses.

The members of a request are spread over path, query, headers and body, those of a response over
status, headers and body. The service's description says where each member is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlencode

import orjson

from partita.errors import DynamoDBError, UnknownRoute, ValidationException
from partita.server.http.http_messages import JSON, HttpRequest, HttpResponse
from partita.server.protocol import json_codec
from partita.server.protocol.request_validation import Validator, compile_service
from partita.server.protocol.service_model import LAMBDA, SCHEDULER, ModelShape, load

TRUTHS = {"true": True, "false": False}
_DATED = re.compile(rb"/\d{4}-\d\d-\d\d/")
_LOCATION = re.compile(rb"/\d{4}-\d\d-\d\d/functions/[^/?]+/code\?")
_SCHEDULER_ROOTS = (b"/schedules", b"/schedule-groups", b"/tags/")
BODILESS = 204


def service_at(target: bytes) -> str | None:
    """Returns the REST service that a path belongs to, or None."""
    if _DATED.match(target):
        return LAMBDA
    return SCHEDULER if target.startswith(_SCHEDULER_ROOTS) else None


def is_location(target: bytes) -> bool:
    """True for a presigned URL of a function's code, which is requested without an Authorization
    header."""
    return _LOCATION.match(target) is not None and b"X-Amz-Signature=" in target


def function_at(location: bytes) -> str:
    """Returns the name of the function in the URL of its code."""
    return unquote(location.split(b"/", 4)[3].decode("latin-1"))


class RestCall(NamedTuple):
    """An operation and the members of a request for it, which have not been validated."""

    name: str
    members: dict[str, Any]


class RestRoutes:
    """Finds the operation of a request, among those of a service that the server implements."""

    def __init__(self, service: str, names: Collection[str]) -> None:
        self._service = service
        self._names = tuple(names)

    @cached_property
    def _described(self) -> RestService:
        # Loaded on first use: descriptions are large, and most servers never get such a request.
        return RestService(self._service, self._names, is_checking=False)

    def find(self, method: str, target: str, body: bytes) -> RestCall | None:
        """Returns the operation and its members, or None if no operation matches."""
        try:
            operation, members = self._described.parse(method, target, {}, body)
        except UnknownRoute:
            return None
        return RestCall(operation.name, members)


class RestOperation(NamedTuple):
    name: str
    method: str
    segments: tuple[str, ...]
    status: int
    validate: Validator
    input: ModelShape
    output: ModelShape | None


class RestService:
    """The operations of one service that Partita implements."""

    def __init__(self, service: str, names: Collection[str], *, is_checking: bool = True) -> None:
        """Requests are only validated if `is_checking`."""
        self._model = load(service)
        validators = compile_service(service, names) if is_checking else {}
        self._operations = [
            self._operation(name, validators.get(name, _unchecked)) for name in sorted(names)
        ]

    def _operation(self, name: str, validate: Validator) -> RestOperation:
        model = self._model
        http, output = model.https[name], model.outputs[name]
        return RestOperation(
            name,
            http.method,
            tuple(http.path.rstrip("/").split("/")[1:]),
            http.status,
            validate,
            model.shapes[model.inputs[name] or ""],
            None if output is None else model.shapes[output],
        )

    def parse(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[RestOperation, dict[str, Any]]:
        """Returns the operation and its request, with the members of the service's description."""
        path, _, query = target.partition("?")
        segments = [unquote(segment) for segment in path.rstrip("/").split("/")[1:]]
        for operation in self._operations:
            in_path = _matched(operation, method, segments)
            if in_path is not None:
                return operation, self._request(operation, in_path, query, headers, body)
        raise UnknownRoute

    def _request(
        self,
        operation: RestOperation,
        in_path: dict[str, str],
        query: str,
        headers: dict[str, str],
        body: bytes,
    ) -> dict[str, Any]:
        shape = operation.input
        request: dict[str, Any] = {}
        if body and not shape.payload:
            request = json_codec.decode(body)
        queried = parse_qs(query, keep_blank_values=True)
        for member, (place, name) in shape.places.items():
            target = self._model.shapes[shape.members[member]]
            # A member that belongs elsewhere is ignored in the body.
            request.pop(member, None)
            if place == "uri":
                request[member] = in_path[name]
            elif place == "querystring" and name in queried:
                request[member] = _converted(target, queried[name], name)
            elif place == "header" and name.lower() in headers:
                request[member] = _converted(target, [headers[name.lower()]], name)
        operation.validate(request)
        if shape.payload:
            request[shape.payload] = body
        return request

    def response(self, operation: RestOperation, answer: dict[str, Any]) -> HttpResponse:
        shape, status, lines = operation.output, operation.status, b""
        content = dict(answer)
        for member, (place, name) in shape.places.items() if shape else ():
            if member not in content:
                continue
            value = content.pop(member)
            if place == "statusCode":
                status = int(value)
            else:
                lines += f"{name}: {value}\r\n".encode()
        if shape is not None and shape.payload:
            return HttpResponse(status, content.get(shape.payload, b""), JSON, lines)
        body = b"" if status == BODILESS else orjson.dumps(content)
        return HttpResponse(status, body, JSON, lines)


def request_for(
    service: str, name: str, parameters: dict[str, Any]
) -> tuple[str, str, dict[str, str], bytes]:
    """Returns method, target, headers and body of a request for an operation."""
    model = load(service)
    http, shape = model.https[name], model.shapes[model.inputs[name] or ""]
    content = dict(parameters)
    path, query, headers = http.path, dict[str, Any](), dict[str, str]()
    for member, (place, place_name) in shape.places.items():
        if member not in content:
            continue
        value = content.pop(member)
        if place == "uri":
            path = re.sub(rf"{{{place_name}\+?}}", quote(str(value), safe=""), path)
        elif place == "querystring":
            query[place_name] = value if isinstance(value, list) else _shown(value)
        else:
            headers[place_name] = str(value)
    target = f"{path}?{urlencode(query, doseq=True)}" if query else path
    return http.method, target, headers, orjson.dumps(content) if content else b""


def rest_operation(request: HttpRequest) -> bytes:
    """Returns the bytes by which a REST request is forwarded: its first line and AWS's headers."""
    headers = [
        b"%b: %b\n" % (name, value)
        for name, value in request.headers.items()
        if name.startswith(b"x-amz-")
    ]
    return b"%b %b\n%b" % (request.method, request.target, b"".join(headers))


def rest_request(operation: str) -> tuple[str, str, dict[str, str]]:
    """Returns method, target and headers from the result of `rest_operation`."""
    # Not splitlines: it also splits at other characters that a header may contain.
    first, *lines = operation.rstrip("\n").split("\n")
    method, _, target = first.partition(" ")
    headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
    return method, target, headers


def _unchecked(request: dict[str, Any]) -> None:
    pass


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _matched(operation: RestOperation, method: str, segments: list[str]) -> dict[str, str] | None:
    if operation.method != method or len(operation.segments) != len(segments):
        return None
    parameters: dict[str, str] = {}
    for expected, segment in zip(operation.segments, segments, strict=True):
        if expected.startswith("{"):
            parameters[expected.strip("{}+")] = segment
        elif expected != segment:
            return None
    return parameters


def _converted(shape: ModelShape, texts: list[str], name: str) -> Any:
    """Converts the text of a member to the type that it would have in a JSON body."""
    text = texts[-1]
    if shape.kind == "list":
        return texts
    if shape.kind in ("integer", "long"):
        try:
            return int(text)
        except ValueError:
            raise ValidationException(f"{text!r} at {name!r} is not an integer.") from None
    if shape.kind == "boolean":
        if text.lower() not in TRUTHS:
            raise ValidationException(f"{text!r} at {name!r} is neither true nor false.")
        return TRUTHS[text.lower()]
    return text


def rest_error(error: DynamoDBError) -> HttpResponse:
    """Returns an error in the form of AWS's REST protocol, which has the type in a header."""
    whose = "User" if error.status < 500 else "Service"
    content = {"Type": whose, "Message": error.message or "", "message": error.message or ""}
    header = f"x-amzn-errortype: {error.wire_code}\r\n".encode()
    return HttpResponse(error.status, orjson.dumps({**content, **error.members}), JSON, header)
