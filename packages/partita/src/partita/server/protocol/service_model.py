"""AWS's own descriptions of its services, read from botocore's data folder.

Operations have AWS's names. Some names of Kinesis also exist in DynamoDB or its streams, so the
operations of Kinesis have a prefix: `Kinesis.GetRecords`.

botocore is not imported, because that takes half a second. Reading its data file takes four
milliseconds.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from partita.errors import PartitaError

DYNAMODB, STREAMS, KINESIS = "dynamodb", "dynamodbstreams", "kinesis"
STEP_FUNCTIONS = "stepfunctions"
LAMBDA, SCHEDULER = "lambda", "scheduler"
TARGET_PREFIXES = {
    DYNAMODB: "DynamoDB_20120810.",
    STREAMS: "DynamoDBStreams_20120810.",
    KINESIS: "Kinesis_20131202.",
}
API_VERSIONS = {
    DYNAMODB: "2012-08-10",
    STREAMS: "2012-08-10",
    KINESIS: "2013-12-02",
    STEP_FUNCTIONS: "2016-11-23",
    LAMBDA: "2015-03-31",
    SCHEDULER: "2021-06-30",
}
KINESIS_NAMES = "Kinesis."


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A shape of the description. Attributes that do not apply to its kind are empty."""

    name: str
    kind: str
    members: dict[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    pattern: str | None = None
    least: int | None = None
    most: int | None = None
    member: str = ""
    key: str = ""
    value: str = ""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Members outside the body of a REST request, each with its place ("uri", "querystring" or
    "header") and its name there."""
    payload: str = ""
    """The member that is the whole body, or ""."""


@dataclass(frozen=True, slots=True)
class HttpBinding:
    """The method and path of an operation in the REST protocol, and the status of its response."""

    method: str
    path: str
    status: int


@dataclass(frozen=True, slots=True)
class ServiceModel:
    """The description of a service: its shapes and its operations, by name."""

    shapes: dict[str, ModelShape]
    inputs: dict[str, str | None]
    """The input shape of each operation, or None if it has no input."""
    outputs: dict[str, str | None]
    https: dict[str, HttpBinding]


@cache
def load(service: str = DYNAMODB) -> ServiceModel:
    description = orjson.loads(_description(service))
    return ServiceModel(
        shapes={name: _shape(name, shape) for name, shape in description["shapes"].items()},
        inputs={
            name: operation["input"]["shape"] if "input" in operation else None
            for name, operation in description["operations"].items()
        },
        outputs={
            name: operation["output"]["shape"] if "output" in operation else None
            for name, operation in description["operations"].items()
        },
        https={
            name: HttpBinding(http["method"], http["requestUri"], http.get("responseCode", 200))
            for name, operation in description["operations"].items()
            if (http := operation["http"])
        },
    )


def service_of(operation: str) -> str:
    """Returns the service that an operation of the registry belongs to."""
    if operation.startswith(KINESIS_NAMES):
        return KINESIS
    return STREAMS if operation in load(STREAMS).inputs else DYNAMODB


def plain_name(operation: str) -> str:
    """Returns the name of an operation without Partita's prefix."""
    return operation.rpartition(".")[2]


def target(operation: str) -> str:
    """Returns the X-Amz-Target header of requests for an operation."""
    return TARGET_PREFIXES[service_of(operation)] + plain_name(operation)


def _description(service: str) -> bytes:
    spec = find_spec("botocore")
    if spec is None or spec.origin is None:
        raise PartitaError("botocore, which holds AWS's service description, is not installed.")
    folder = Path(spec.origin).parent / "data" / service / API_VERSIONS[service]
    plain = folder / "service-2.json"
    packed = plain.with_name(plain.name + ".gz")
    if packed.exists():
        return gzip.decompress(packed.read_bytes())
    if plain.exists():
        return plain.read_bytes()
    raise PartitaError(f"This botocore has no service description at {plain}.")


def _shape(name: str, shape: dict[str, Any]) -> ModelShape:
    return ModelShape(
        name=name,
        kind=shape["type"],
        members={member: target["shape"] for member, target in shape.get("members", {}).items()},
        required=tuple(shape.get("required", ())),
        enum=tuple(shape.get("enum", ())),
        pattern=shape.get("pattern"),
        least=shape.get("min"),
        most=shape.get("max"),
        member=shape.get("member", {}).get("shape", ""),
        key=shape.get("key", {}).get("shape", ""),
        value=shape.get("value", {}).get("shape", ""),
        places={
            member: (target["location"], target.get("locationName", member))
            for member, target in shape.get("members", {}).items()
            if "location" in target
        },
        payload=shape.get("payload", ""),
    )
