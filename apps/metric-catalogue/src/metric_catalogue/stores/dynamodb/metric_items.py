"""Turns versions of metrics into items of the table of figure 5.3, and back.

The key is (name, version), both strings. Version "0" is a copy of the latest version, and the only
item with latestVersion, createdAt and createdBy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from metric_catalogue.metrics.metric import Metric, MetricVersion

Item = dict[str, dict[str, Any]]
LATEST = "0"


def _number(text: str) -> float:
    return float(text) if "." in text or "E" in text else int(text)


def _from_set(values: list[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


SET_ATTRIBUTES = {"consumedMetrics", "relatedDimensions"}
NUMBER_ATTRIBUTES = {"aggregationParam", "latestVersion"}
Write = Callable[[Any], Any]
Read = Callable[[Any], Any]


def _kind(attribute: str) -> tuple[str, Write, Read]:
    if attribute in SET_ATTRIBUTES:
        return "SS", list, _from_set
    if attribute in NUMBER_ATTRIBUTES:
        return "N", str, _number
    return "S", str, str


# For each field: the name and type of its attribute, and functions that write and read its value.
ATTRIBUTES = {
    field.name: (field.encode_name, *_kind(field.encode_name))
    for field in msgspec.structs.fields(Metric)
    if field.name != "version"
}
FIELDS = {attribute: (name, kind, read) for name, (attribute, kind, _, read) in ATTRIBUTES.items()}


def version_item(version: MetricVersion) -> Item:
    return {**_attributes(version, MetricVersion), "version": {"S": str(version.version)}}


def latest_item(metric: Metric) -> Item:
    return {**_attributes(metric, Metric), "version": {"S": LATEST}}


def _attributes(version: MetricVersion, shape: type[MetricVersion]) -> Item:
    item: Item = {}
    for field in shape.__struct_fields__:
        value = getattr(version, field)
        if value is not None and field in ATTRIBUTES:
            attribute, kind, write, _ = ATTRIBUTES[field]
            item[attribute] = {kind: write(value)}
    return item


def version_of(item: Item) -> MetricVersion:
    return MetricVersion(**_fields(item), version=int(item["version"]["S"]))


def metric_of(item: Item) -> Metric:
    """Returns the metric of which this is the item of version 0."""
    fields = _fields(item)
    return Metric(**fields, version=fields["latest_version"])


def _fields(item: Item) -> dict[str, Any]:
    fields = {}
    for attribute, value in item.items():
        if attribute in FIELDS:
            name, kind, read = FIELDS[attribute]
            fields[name] = read(value[kind])
    return fields
