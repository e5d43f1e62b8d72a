"""Decodes the requests of the API, and encodes its responses and errors."""

from __future__ import annotations

import logging
from typing import Any, TypeVar, get_args

import msgspec

from metric_catalogue.metrics.catalogue_errors import (
    CatalogueError,
    CatalogueUnavailable,
    DatabaseUnavailable,
    MetricInMigration,
    RequestRefused,
    no_metric,
)
from metric_catalogue.metrics.metric import NAME, NAME_CHARS_MAX, AggregationStyle, ValueType
from partita.server.http.web.web_service import WebRequest, WebResponse, problem

logger = logging.getLogger(__name__)

RETRY_SECONDS = {MetricInMigration.status: "1", CatalogueUnavailable.status: "1"}
READABLE = {
    f"`str` matching regex {NAME!r}": "a letter or _, then letters, digits, _ and .",
    "`$.valueType`": f"`$.valueType`, which is one of {', '.join(get_args(ValueType))}",
    "`$.aggregationStyle`": (
        f"`$.aggregationStyle`, which is one of {', '.join(get_args(AggregationStyle))}"
    ),
}
"""Parts of the decoder's messages, and clearer words to replace them with."""

T = TypeVar("T")


def refusal(error: CatalogueError) -> WebResponse:
    """Returns the response to a request that failed with this error."""
    headers = {}
    if error.status in RETRY_SECONDS:
        headers["retry-after"] = RETRY_SECONDS[error.status]
    if isinstance(error, DatabaseUnavailable):
        logger.warning("%s", error)
    return problem(error.status, error.client_message, headers, reason=error.reason)


def body(request: WebRequest, shape: type[T]) -> T:
    if not request.body:
        raise RequestRefused("The body is empty: send a JSON object.")
    try:
        return msgspec.json.decode(request.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise invalid("body", error) from error


def invalid(what: str, error: Exception) -> RequestRefused:
    text = str(error)
    for machine, human in READABLE.items():
        text = text.replace(machine, human)
    return RequestRefused(f"The {what} is not valid: {text}.")


def metric_name(request: WebRequest) -> str:
    """Returns the name in the path. A name that cannot be one is refused here, because MariaDB
    ignores spaces at its end, and DynamoDB answers a key that is too long with another error."""
    name = request.parameters["name"]
    if len(name) > NAME_CHARS_MAX or name.endswith(" "):
        raise no_metric(name)
    return name


_encode = msgspec.json.Encoder().encode


def encoded(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> WebResponse:
    return WebResponse(status, _encode(value), headers=headers)
