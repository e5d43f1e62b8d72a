"""A catalogue full of metrics, written directly to MariaDB."""

from __future__ import annotations

import random

from testkit.servers.database_servers import MariaDB

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


def fill(mariadb: MariaDB, database: str, count: int, seed: int = 1) -> list[str]:
    """Inserts metrics m1, m2, ..., of which every third is hybrid. The schema must exist."""
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
