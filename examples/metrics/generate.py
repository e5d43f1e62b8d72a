"""Prints the schema and rows of a metric catalogue as SQL. The same every time."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
Row = tuple[object, ...]
DIMENSIONS = 40
PRIMITIVES = 700
HYBRIDS = 300
HYBRID_GROUP = PRIMITIVES + 1


def statements(seed: int = 1) -> Iterator[str]:
    chance = random.Random(seed)
    yield (HERE / "schema.sql").read_text()
    yield _insert("dimensions", [(n, f"dimension{n}") for n in range(1, DIMENSIONS + 1)])
    groups = [(n, f"primitive{n}") for n in range(1, PRIMITIVES + 1)]
    yield _insert("metric_groups", [*groups, (HYBRID_GROUP, "hybrid metrics")])
    yield _insert("dimensions_metric_groups", _related(chance))
    yield _insert("metrics", _metrics())
    yield _insert("metric_versions", _versions(chance))
    yield _insert("metric_relationships", _relationships(chance))


def _related(chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    for group in range(1, PRIMITIVES + 1):
        for dimension in chance.sample(range(1, DIMENSIONS + 1), chance.randint(1, 6)):
            rows.append((dimension, group))
    return rows


def _metrics() -> list[Row]:
    rows: list[Row] = []
    for metric in range(1, PRIMITIVES + HYBRIDS + 1):
        is_primitive = metric <= PRIMITIVES
        name = f"primitive{metric}" if is_primitive else f"hybrid{metric - PRIMITIVES}"
        group = metric if is_primitive else HYBRID_GROUP
        rows.append((metric, name, group, "2018-02-15 18:23:45", "mrcandre"))
    return rows


def _versions(chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    for metric in range(1, PRIMITIVES + HYBRIDS + 1):
        is_hybrid = metric > PRIMITIVES
        for version in range(1, chance.randint(1, 5) + 1):
            chained = chance.randint(1, PRIMITIVES) if chance.random() < 0.1 else None
            rows.append(
                (
                    metric,
                    version,
                    f"20{17 + version}-05-17 09:35:15",
                    "mrcandre",
                    None,
                    None,
                    None,
                    chance.choice(("SUM", "LAST_DAY_OF_PERIOD", "PERCENTILE")),
                    None,
                    "HYBRID" if is_hybrid else chance.choice(("SCALAR", "WEIGHTED_AVERAGE")),
                    chained,
                    "2019-01-01 00:00:00" if chained else None,
                    "a / b" if is_hybrid else None,
                )
            )
    return rows


def _relationships(chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    for hybrid in range(PRIMITIVES + 1, PRIMITIVES + HYBRIDS + 1):
        for consumed in chance.sample(range(1, PRIMITIVES + 1), 2):
            rows.append((hybrid, consumed))
    return rows


def _insert(table: str, rows: list[Row]) -> str:
    values = ",\n".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO {table} VALUES\n{values};\n"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


if __name__ == "__main__":
    sys.stdout.writelines(statements())
