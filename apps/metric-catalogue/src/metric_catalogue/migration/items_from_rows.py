"""Makes the DynamoDB items of a metric from its rows in MariaDB, as `design.toml` says.

The ItemMaker of `partita migrate` makes them. The general move gives it a state store, which it
keeps up to date from the binary log. No log is read here, so the rows of some metrics are read when
they are needed, together with the rows that the design's foreign keys lead to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from metric_catalogue.stores.mariadb.mariadb_connections import Row
from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.design import Design
from partita_migrate.model.items.item_maker import ItemMaker
from partita_migrate.understanding.schema.column_refs import parse_join
from partita_migrate.understanding.sources.value_mapping import converter

DESIGN = msgspec.toml.decode(Path(__file__).with_name("design.toml").read_bytes(), type=Design)
AT_ONCE = 1000
"""How many values a statement has in its IN list."""
SELECT_DIMENSIONS = "SELECT id FROM dimensions"
# The design makes no items of groups whose metric is added, which are nearly all.
SELECT_GROUPS = (
    "SELECT id FROM metric_groups g WHERE NOT EXISTS "
    "(SELECT 1 FROM metrics m WHERE m.name = g.name)"
)

Read = Callable[..., Awaitable[list[Row]]]
_attribute_value = converter("other")


class MetricItems(NamedTuple):
    """The items that DynamoDB must have for a metric in MariaDB."""

    items: list[Item]
    """One for each version, and version 0."""
    consumed: dict[str, Item]
    """Its entries in the directory as a consumer, by kind: {"consumer of late": {...}}."""

    @property
    def versions(self) -> dict[str, Item]:
        return {item["version"]["S"]: item for item in self.items}


async def of_metrics(read: Read, names: Collection[str]) -> dict[str, MetricItems]:
    """Returns the items of metrics, by name. A metric without versions is only a placeholder and
    has no items."""
    rows = RelatedRows(read)
    ids = [row["id"]["N"] for row in await rows.with_values("metrics", "name", names)]
    metrics: dict[str, MetricItems] = {}
    for item in await rows.items("metric_versions", "metric_id", ids):
        metrics.setdefault(item["name"]["S"], MetricItems([], {})).items.append(item)
    for item in await rows.items("metric_relationships", "consumer_metric_id", ids):
        if item["name"]["S"] in metrics:
            metrics[item["name"]["S"]].consumed[item["kind"]["S"]] = item
    return metrics


async def of_directory(read: Read) -> dict[tuple[str, str], Item]:
    """Returns the entries of dimensions, and of groups whose metric is not added yet, by kind and
    name."""
    rows = RelatedRows(read)
    dimensions = [str(row["id"]) for row in await read(SELECT_DIMENSIONS)]
    groups = [str(row["id"]) for row in await read(SELECT_GROUPS)]
    made = [
        *await rows.items("dimensions", "id", dimensions),
        *await rows.items("dimensions_metric_groups", "metric_group_id", groups),
    ]
    return {(item["kind"]["S"], item["name"]["S"]): item for item in made}


class RelatedRows:
    """The rows that an ItemMaker asks for, read in batches before it asks."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._rows: dict[tuple[str, str], dict[str, list[Item]]] = {}
        """The rows by table and column, and then by the value of the column."""

    def matching(
        self, table: str, columns: Sequence[str], values: Sequence[AttributeValue]
    ) -> Iterable[Item]:
        (column,), (value,) = columns, values
        return self._rows[table, column][_content(value)]

    async def items(self, table: str, column: str, values: Iterable[str]) -> list[Item]:
        """Returns the items made from the rows that have one of these values in the column."""
        own = await self.with_values(table, column, values)
        entities = [entity for _, entity in DESIGN.entities() if entity.source == table]
        for entity in entities:
            for way in entity.ways:
                await self._follow({table: own}, way)
        maker = ItemMaker(self, {})
        made = (maker.item(entity, row) for row in own for entity in entities)
        return [item for item in made if item is not None]

    async def _follow(self, reached: dict[str, list[Item]], way: Sequence[str]) -> None:
        """Reads the rows that a chain of joins leads to, such as
        ["metric_versions.metric_id = metrics.id", "metrics.metric_group_id = ..."]."""
        for text in way:
            join = parse_join(text)
            assert join is not None
            (before,), (after,) = join
            rows = reached[before.table]
            values = [_content(row[before.column]) for row in rows if before.column in row]
            reached[after.table] = await self.with_values(after.table, after.column, values)

    async def with_values(self, table: str, column: str, values: Iterable[str]) -> list[Item]:
        """Returns the rows that have one of these values in the column; reads those that are not
        read yet."""
        rows = self._rows.setdefault((table, column), {})
        distinct = dict.fromkeys(values)
        missing = [value for value in distinct if value not in rows]
        rows.update((value, []) for value in missing)
        for start in range(0, len(missing), AT_ONCE):
            batch = missing[start : start + AT_ONCE]
            places = ", ".join(["%s"] * len(batch))
            statement = f"SELECT * FROM {table} WHERE {column} IN ({places})"
            for columns in await self._read(statement, *batch):
                row = _row(columns)
                # For MariaDB "m " equals "m", so a row's own value is not always one of `batch`.
                rows.setdefault(_content(row[column]), []).append(row)
        return [row for value in distinct for row in rows[value]]


def _row(columns: Row) -> Item:
    return {
        name: converted
        for name, value in columns.items()
        if value is not None and (converted := _attribute_value(value)) is not None
    }


def _content(value: AttributeValue) -> Any:
    """Returns what is inside an attribute value: "m" for {"S": "m"}."""
    return next(iter(value.values()))
