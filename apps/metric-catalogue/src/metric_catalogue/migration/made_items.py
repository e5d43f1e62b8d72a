"""The items that rows of MariaDB make: `design.toml` says how, and the one function of
`partita migrate` makes them. Rows are read with those that the design's foreign keys lead to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from metric_catalogue.mariadb.connections import Row
from partita.database.item.values import AttributeValue, Item
from partita_migrate.model.design import Design
from partita_migrate.model.making import ItemMaker
from partita_migrate.understanding.schema.column_refs import parse_join
from partita_migrate.understanding.sources.values import converter

DESIGN = msgspec.toml.decode(Path(__file__).with_name("design.toml").read_bytes(), type=Design)
AT_ONCE = 1000
"""Values that rows are asked for by."""
SELECT_DIMENSIONS = "SELECT id FROM dimensions"
# Of the others the design makes no items, and most groups are others.
SELECT_GROUPS = (
    "SELECT id FROM metric_groups g WHERE NOT EXISTS "
    "(SELECT 1 FROM metrics m WHERE m.name = g.name)"
)

Read = Callable[..., Awaitable[list[Row]]]
_attribute_value = converter("other")


class Made(NamedTuple):
    """What a metric in MariaDB is in DynamoDB."""

    items: list[Item]
    """Of its versions, and version 0."""
    consumed: dict[str, Item]
    """By kind, its entries in the directory as a consumer."""

    @property
    def versions(self) -> dict[str, Item]:
        return {item["version"]["S"]: item for item in self.items}


async def of_metrics(read: Read, names: Collection[str]) -> dict[str, Made]:
    """By name. A row without versions is a placeholder, and no metric."""
    rows = ReadRows(read)
    ids = [row["id"]["N"] for row in await rows.with_values("metrics", "name", names)]
    found: dict[str, Made] = {}
    for item in await rows.items("metric_versions", "metric_id", ids):
        found.setdefault(item["name"]["S"], Made([], {})).items.append(item)
    for item in await rows.items("metric_relationships", "consumer_metric_id", ids):
        if item["name"]["S"] in found:
            found[item["name"]["S"]].consumed[item["kind"]["S"]] = item
    return found


async def of_directory(read: Read) -> dict[tuple[str, str], Item]:
    """By kind and name: dimensions, and groups whose metric is not added yet."""
    rows = ReadRows(read)
    dimensions = [str(row["id"]) for row in await read(SELECT_DIMENSIONS)]
    groups = [str(row["id"]) for row in await read(SELECT_GROUPS)]
    made = [
        *await rows.items("dimensions", "id", dimensions),
        *await rows.items("dimensions_metric_groups", "metric_group_id", groups),
    ]
    return {(item["kind"]["S"], item["name"]["S"]): item for item in made}


class ReadRows:
    """By table and column, and by value: as an ItemMaker asks for them."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[tuple[str, str], dict[str, list[Item]]] = {}

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        (column,), (value,) = columns, values
        return self._known[table, column][_held(value)]

    async def items(self, table: str, column: str, values: Iterable[str]) -> list[Item]:
        """Those that the rows with one of these values make."""
        own = await self.with_values(table, column, values)
        entities = [entity for _, entity in DESIGN.entities() if entity.source == table]
        for entity in entities:
            for way in entity.ways:
                await self._follow({table: own}, way)
        maker = ItemMaker(self, {})
        made = (maker.item(entity, row) for row in own for entity in entities)
        return [item for item in made if item is not None]

    async def _follow(self, reached: dict[str, list[Item]], way: Sequence[str]) -> None:
        for text in way:
            join = parse_join(text)
            assert join is not None
            (before,), (after,) = join
            rows = reached[before.table]
            values = [_held(row[before.column]) for row in rows if before.column in row]
            reached[after.table] = await self.with_values(after.table, after.column, values)

    async def with_values(self, table: str, column: str, values: Iterable[str]) -> list[Item]:
        known = self._known.setdefault((table, column), {})
        wanted = dict.fromkeys(values)
        missing = [value for value in wanted if value not in known]
        known.update((value, []) for value in missing)
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            places = ", ".join(["%s"] * len(some))
            statement = f"SELECT * FROM {table} WHERE {column} IN ({places})"
            for found in await self._read(statement, *some):
                row = _row(found)
                # MariaDB takes "m " for "m".
                known.setdefault(_held(row[column]), []).append(row)
        return [row for value in wanted for row in known[value]]


def _row(found: Row) -> Item:
    return {
        name: converted
        for name, value in found.items()
        if value is not None and (converted := _attribute_value(value)) is not None
    }


def _held(value: AttributeValue) -> Any:
    return next(iter(value.values()))
