"""Describes the HTTP API in OpenAPI 3.1, generated from the types that validate request bodies."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec

from metric_catalogue.data.data_messages import DataQueries, MetricData, NewValues, StoredCount
from metric_catalogue.data.periods import Period
from metric_catalogue.metrics.metric import (
    USER_CHARS_MAX,
    Deprecation,
    Metric,
    MetricChange,
    MetricVersion,
    NewDimension,
    NewGroup,
    NewMetric,
)
from metric_catalogue.stores.catalogue_modes import Mode
from partita import __version__

SHAPES = (
    Metric,
    MetricVersion,
    NewMetric,
    MetricChange,
    Deprecation,
    NewDimension,
    NewGroup,
    DataQueries,
    MetricData,
    NewValues,
    StoredCount,
)
PUBLIC_NAMES = {
    "DataPoint": "Point",
    "MetricChange": "Change",
    "MetricVersion": "Version",
    "StoredCount": "Stored",
}
"""Components whose name in the description is not that of the class: generated clients name their
types after it."""


def _components() -> dict[str, Any]:
    _, shapes = msgspec.json.schema_components(SHAPES, ref_template="#/components/schemas/{name}")
    # \Z is Python's; in the regular expressions of JSON Schema, $ matches only at the end.
    text = json.dumps(shapes).replace(r"\\Z", "$")
    for name, public_name in PUBLIC_NAMES.items():
        text = text.replace(f'"{name}"', f'"{public_name}"')
        text = text.replace(f'/schemas/{name}"', f'/schemas/{public_name}"')
    components: dict[str, Any] = json.loads(text)
    return components


COMPONENTS = _components()
COMPONENTS["Problem"] = {
    "title": "Problem",
    "description": "An error with its reason (RFC 9457).",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
COMPONENTS["DataFailure"] = {
    "title": "DataFailure",
    "description": "A query that was refused, in the place of its answer.",
    "type": "object",
    "properties": {
        "metric": {"type": "string"},
        "status": {"type": "integer"},
        "reason": {"type": "string"},
        "detail": {"type": "string"},
    },
    "required": ["metric", "status", "reason", "detail"],
}
COMPONENTS["Health"] = {
    "title": "Health",
    "type": "object",
    "properties": {
        "mode": {"enum": [str(mode) for mode in Mode]},
        "takesWrites": {"type": "boolean"},
    },
    "required": ["mode", "takesWrites"],
}
COMPONENTS["Migration"] = {
    "title": "Migration",
    "description": "How many metrics are where; without MariaDB, only the mode.",
    "type": "object",
    "properties": {
        "mode": {"enum": [str(mode) for mode in Mode]},
        "metrics": {"type": "integer"},
        "notMigrated": {"type": "integer"},
        "inMigration": {"type": "integer"},
        "migrated": {"type": "integer"},
        "migratedShare": {"type": "number"},
    },
    "required": ["mode"],
}

REFUSALS = {
    400: "A rule is broken, or the request is malformed.",
    404: "There is no such metric or version.",
    409: "It exists already, or conflicts with what exists.",
    412: "The version in If-Match is not the latest.",
    413: "The body is too large.",
    423: "The metric is being migrated; try again after the seconds in Retry-After.",
    503: "A database cannot be reached; try again after the seconds in Retry-After.",
}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameter(
    name: str, place: str, schema: dict[str, Any], description: str, required: bool = False
) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required,
        "schema": schema,
        "description": description,
    }


NAME = _parameter("name", "path", {"type": "string", "minLength": 1}, "A metric.", True)
VERSION = _parameter(
    "version",
    "path",
    {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    "A version, counted from 1.",
    True,
)
USER = _parameter(
    "X-User",
    "header",
    {"type": "string", "pattern": f"^[!-~]{{1,{USER_CHARS_MAX}}}$"},
    "Who makes the change.",
    True,
)
IF_MATCH = _parameter(
    "If-Match", "header", {"type": "string"}, "The ETag of the version that is updated."
)
IF_NONE_MATCH = _parameter(
    "If-None-Match",
    "header",
    {"type": "string"},
    "An ETag; while it is current, the answer is 304 without a body.",
)
DATE = _parameter(
    "date",
    "query",
    {"type": "string"},
    "A date or time in ISO 8601. The answer is the metric to use at that time: before the cutoff "
    "date, the chained metric.",
)
DATA = (
    _parameter("time", "query", {"type": "string"}, "The value at this date or time."),
    _parameter("start", "query", {"type": "string"}, "Values from this date or time on."),
    _parameter("end", "query", {"type": "string"}, "Values before this date or time."),
    _parameter(
        "period",
        "query",
        {"enum": list(get_args(Period))},
        "One value for each period, aggregated in the metric's style.",
    ),
)
LIMIT = _parameter(
    "limit", "query", {"type": "integer", "minimum": 1, "maximum": 100}, "The size of a page."
)
AFTER = _parameter("after", "query", {"type": "string"}, "The last name of the previous page.")


def _operation(
    name: str,
    summary: str,
    answer: dict[str, Any] | None,
    *refusals: int,
    status: int = 200,
    body: str | None = None,
    parameters: tuple[dict[str, Any], ...] = (),
    has_etag: bool = False,
) -> dict[str, Any]:
    success: dict[str, Any] = {"description": summary}
    if answer is not None:
        success["content"] = _content(answer)
    if has_etag:
        success["headers"] = {"ETag": {"schema": {"type": "string"}}}
    responses: dict[str, Any] = {str(status): success}
    for refusal in sorted({*refusals, *([413] if body else [])}):
        responses[str(refusal)] = {
            "description": REFUSALS[refusal],
            "content": {"application/problem+json": {"schema": _reference("Problem")}},
        }
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": responses}
    if parameters:
        operation["parameters"] = list(parameters)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(_reference(body))}
    return operation


def _list(name: str, items: dict[str, Any]) -> dict[str, Any]:
    properties = {name: {"type": "array", "items": items}, "after": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": [name]}


TEXT = {"type": "string"}
METRIC = _reference("Metric")

PATHS: dict[str, Any] = {
    "/dimensions": {
        "get": _operation(
            "ListDimensions",
            "List dimensions",
            _list("dimensions", TEXT),
            400,
            503,
            parameters=(LIMIT, AFTER),
        ),
        "post": _operation(
            "AddDimension",
            "Add a dimension",
            _reference("NewDimension"),
            400,
            409,
            503,
            status=201,
            body="NewDimension",
        ),
    },
    "/metric-groups": {
        "post": _operation(
            "AddMetricGroup",
            "Add a metric group",
            _reference("NewGroup"),
            400,
            409,
            503,
            status=201,
            body="NewGroup",
        ),
    },
    "/metrics": {
        "get": _operation(
            "ListMetrics",
            "List metrics",
            _list("metrics", METRIC),
            400,
            503,
            parameters=(LIMIT, AFTER),
        ),
        "post": _operation(
            "AddMetric",
            "Add a metric",
            METRIC,
            400,
            409,
            503,
            status=201,
            body="NewMetric",
            parameters=(USER,),
            has_etag=True,
        ),
    },
    "/metrics/{name}": {
        "get": _operation(
            "GetMetric",
            "Get a metric by name",
            METRIC,
            400,
            404,
            409,
            503,
            parameters=(NAME, DATE, IF_NONE_MATCH),
            has_etag=True,
        ),
        "put": _operation(
            "UpdateMetric",
            "Update a metric",
            METRIC,
            *REFUSALS,
            body="Change",
            parameters=(NAME, USER, IF_MATCH),
            has_etag=True,
        ),
        "delete": _operation(
            "DeleteMetric",
            "Delete a metric that no other depends on",
            None,
            *(set(REFUSALS) - {413}),
            status=204,
            parameters=(NAME, USER, IF_MATCH),
        ),
    },
    "/metrics/{name}/deprecation": {
        "post": _operation(
            "DeprecateMetric",
            "Deprecate a metric",
            METRIC,
            *REFUSALS,
            body="Deprecation",
            parameters=(NAME, USER, IF_MATCH),
            has_etag=True,
        ),
    },
    "/metrics/{name}/data": {
        "get": _operation(
            "GetMetricData",
            "Get the values of a metric; dimension.NAME=VALUE chooses the dimensions",
            _reference("MetricData"),
            400,
            404,
            503,
            parameters=(NAME, *DATA),
        ),
    },
    "/metric-data/queries": {
        "post": _operation(
            "BatchGetMetricData",
            "Get the values of several metrics",
            {
                "type": "object",
                "properties": {
                    "results": {
                        "type": "array",
                        "items": {"anyOf": [_reference("MetricData"), _reference("DataFailure")]},
                    }
                },
                "required": ["results"],
            },
            400,
            503,
            body="DataQueries",
        ),
    },
    "/metric-data": {
        "post": _operation(
            "PutMetricData",
            "Store values of primitive metrics",
            _reference("Stored"),
            400,
            404,
            503,
            status=201,
            body="NewValues",
        ),
    },
    "/metrics/{name}/versions": {
        "get": _operation(
            "ListMetricVersions",
            "List the versions of a metric",
            _list("versions", _reference("Version")),
            400,
            404,
            503,
            parameters=(NAME,),
        ),
    },
    "/metrics/{name}/versions/{version}": {
        "get": _operation(
            "GetMetricVersion",
            "Get a version of a metric",
            _reference("Version"),
            400,
            404,
            503,
            parameters=(NAME, VERSION),
        ),
    },
    "/metrics/{name}/consumers": {
        "get": _operation(
            "ListMetricConsumers",
            "List the hybrid metrics that consume a metric",
            _list("consumers", TEXT),
            400,
            404,
            503,
            parameters=(NAME,),
        ),
    },
}
PATHS["/health"] = {
    "get": _operation("GetHealth", "Get the mode of the catalogue", _reference("Health"))
}
PATHS["/migration"] = {
    "get": _operation(
        "GetMigration", "Get the progress of the migration", _reference("Migration"), 503
    )
}
PATHS["/alarms"] = {
    "get": _operation("ListAlarms", "List the alarms", _list("alarms", {"type": "object"}))
}
PATHS["/metrics/{name}"]["get"]["responses"]["304"] = {"description": "The ETag is current."}

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "The metric catalogue", "version": __version__},
    "paths": PATHS,
    "components": {"schemas": COMPONENTS},
}
