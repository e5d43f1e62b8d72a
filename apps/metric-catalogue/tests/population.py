"""A catalogue full of metrics, written directly to MariaDB; and the contents of both databases."""

from __future__ import annotations

from typing import Any

from testkit.data.metric_population import fill

from .conftest import Catalogue


def populate(catalogue: Catalogue, count: int) -> list[str]:
    return fill(catalogue.mariadb, catalogue.name, count)


# The contents, read without the code of the catalogue.

Contents = dict[str, dict[int, dict[str, Any]]]
"""The contents by name and version; version 0 is the metric as a whole."""


def legacy_contents(catalogue: Catalogue) -> Contents:
    connection = catalogue.mariadb.connect(catalogue.name)
    cursor = connection.cursor()
    related = _sets(
        cursor,
        "SELECT m.name, d.name FROM metrics m JOIN dimensions_metric_groups g "
        "ON g.metric_group_id = m.metric_group_id JOIN dimensions d ON d.id = g.dimension_id",
    )
    consumed = _sets(
        cursor,
        "SELECT m.name, c.name FROM metric_relationships r JOIN metrics m "
        "ON m.id = r.consumer_metric_id JOIN metrics c ON c.id = r.consumed_metric_id",
    )
    cursor.execute(
        "SELECT m.name, v.version, m.created_at, m.created_by, v.updated_at, v.updated_by, "
        "v.aggregation_style, v.aggregation_param, v.value_type, c.name, v.chain_cutoff_date, "
        "v.hybrid_formula, v.deprecated_at, v.deprecated_by, v.deprecated_reason "
        "FROM metrics m JOIN metric_versions v ON v.metric_id = m.id "
        "LEFT JOIN metrics c ON c.id = v.chained_metric_id ORDER BY m.name, v.version"
    )
    contents: Contents = {}
    for name, version, created_at, created_by, *values in cursor.fetchall():
        known = contents.setdefault(name, {})
        known[version] = dict(zip(ATTRIBUTES, map(_text, values), strict=True))
        known[0] = {
            **known[version],
            "createdAt": _text(created_at),
            "createdBy": created_by,
            "latestVersion": str(version),
            "relatedDimensions": related.get(name),
            "consumedMetrics": consumed.get(name),
        }
    connection.close()
    return contents


ATTRIBUTES = (
    "updatedAt",
    "updatedBy",
    "aggregationStyle",
    "aggregationParam",
    "valueType",
    "chainedMetric",
    "chainCutoffDate",
    "hybridFormula",
    "deprecatedAt",
    "deprecatedBy",
    "deprecatedReason",
)
WHOLE = (*ATTRIBUTES, "createdAt", "createdBy", "latestVersion")
SETS = ("relatedDimensions", "consumedMetrics")


def _sets(cursor: Any, statement: str) -> dict[str, set[str]]:
    cursor.execute(statement)
    found: dict[str, set[str]] = {}
    for name, member in cursor.fetchall():
        found.setdefault(name, set()).add(member)
    return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if hasattr(value, "isoformat"):
        return f"{value.isoformat(timespec='milliseconds')}Z"
    text = str(value)
    return text.rstrip("0").rstrip(".") if "." in text and text.replace(".", "").isdigit() else text


def dynamodb_contents(catalogue: Catalogue) -> Contents:
    contents: Contents = {}
    pages = catalogue.partita.client().get_paginator("scan").paginate(TableName=catalogue.name)
    for page in pages:
        for item in page["Items"]:
            plain = {key: next(iter(value.values())) for key, value in item.items()}
            name, version = plain.pop("name"), int(plain.pop("version"))
            wanted = WHOLE if version == 0 else ATTRIBUTES
            values: dict[str, Any] = {key: plain.get(key) for key in wanted}
            if version == 0:
                values |= {key: set(plain[key]) if key in plain else None for key in SETS}
            contents.setdefault(name, {})[version] = values
    return contents
