"""A catalogue full of metrics, written directly to MariaDB; and the contents of both databases."""

from __future__ import annotations

import random
from typing import Any

from ...migrate.servers import MariaDB
from .conftest import Catalogue

DIMENSIONS = 40
Row = tuple[object, ...]
COLUMNS = {
    "dimensions": "id, name",
    "metric_groups": "id, name",
    "dimensions_metric_groups": "dimension_id, metric_group_id",
    "metrics": "id, name, metric_group_id, created_at, created_by",
    "metric_versions": (
        "metric_id, version, updated_at, updated_by, aggregation_style, aggregation_param, "
        "value_type, chained_metric_id, chain_cutoff_date, hybrid_formula, deprecated_at, "
        "deprecated_by, deprecated_reason"
    ),
    "metric_relationships": "consumer_metric_id, consumed_metric_id",
}
HYBRID_GROUP = 1


def populate(catalogue: Catalogue, count: int) -> list[str]:
    return fill(catalogue.mariadb, catalogue.name, count)


def fill(mariadb: MariaDB, database: str, count: int, seed: int = 1) -> list[str]:
    """Metrics m1, m2, ...; every third one is hybrid. The schema is there already."""
    chance = random.Random(seed)
    connection = mariadb.connect(database)
    cursor = connection.cursor()
    for table, rows in _rows(chance, count).items():
        places = ", ".join(["%s"] * len(rows[0]))
        statement = f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({places})"
        for start in range(0, len(rows), 1000):
            cursor.executemany(statement, rows[start : start + 1000])
    connection.close()
    return [f"m{number}" for number in range(1, count + 1)]


def _rows(chance: random.Random, count: int) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {table: [] for table in COLUMNS}
    tables["dimensions"] = [(number, f"d{number}") for number in range(1, DIMENSIONS + 1)]
    primitives: list[int] = []
    for number in range(1, count + 1):
        is_hybrid = number % 3 == 0
        group = HYBRID_GROUP if is_hybrid else number + HYBRID_GROUP
        created_at = f"2018-02-15 18:23:{number % 60:02}.{number % 1000:03}"
        tables["metrics"].append((number, f"m{number}", group, created_at, "mrcandre"))
        consumed = chance.sample(primitives, min(2, len(primitives))) if is_hybrid else []
        formula = " / ".join(f"m{other}" for other in consumed) if is_hybrid else None
        for other in consumed:
            tables["metric_relationships"].append((number, other))
        if not is_hybrid:
            tables["metric_groups"].append((group, f"m{number}"))
            for dimension in chance.sample(range(1, DIMENSIONS + 1), chance.randint(1, 6)):
                tables["dimensions_metric_groups"].append((dimension, group))
        versions = chance.randint(1, 5)
        for version in range(1, versions + 1):
            tables["metric_versions"].append(
                _version(chance, number, version, formula, primitives, version == versions)
            )
        if not is_hybrid:
            primitives.append(number)
    return tables


def _version(
    chance: random.Random,
    number: int,
    version: int,
    formula: str | None,
    primitives: list[int],
    is_last: bool,
) -> Row:
    chained = chance.choice(primitives) if primitives and chance.random() < 0.1 else None
    is_deprecated = is_last and chance.random() < 0.02
    updated_at = f"20{17 + version}-05-17 09:35:15.{number % 1000:03}"
    return (
        number,
        version,
        updated_at,
        f"user{version}",
        chance.choice(("SUM", "LAST_DAY_OF_PERIOD", "PERCENTILE")),
        chance.choice((None, 95, 99.9)),
        "HYBRID" if formula else chance.choice(("SCALAR", "WEIGHTED_AVERAGE", "PERCENTILE")),
        chained,
        "2019-01-01" if chained else None,
        formula,
        updated_at if is_deprecated else None,
        "mrcandre" if is_deprecated else None,
        "obsolete" if is_deprecated else None,
    )


# The contents, read with other means than the catalogue's own.

Contents = dict[str, dict[int, dict[str, Any]]]
"""By name and version; version 0 is the metric as a whole."""


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
