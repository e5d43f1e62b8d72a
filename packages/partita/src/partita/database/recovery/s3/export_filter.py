"""FilterSpecification of an export: which items it contains, and which of their attributes.

"A filter is evaluated against the latest image of each changed item; for a deleted one, against
the old image" (guide, "Filtering a table export").
"""

from __future__ import annotations

from typing import Any

from partita.database.expressions.condition import compile_condition
from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.projection import compile_projection
from partita.database.item.attribute_values import Item, normalize_item
from partita.database.storage.recovery_log import Place
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import Table
from partita.errors import ValidationException


class ExportFilter:
    """The compiled expressions of a FilterSpecification."""

    def __init__(self, specification: dict[str, Any], table: Table) -> None:
        """Raises ValidationException if the key condition does not fit the table's key."""
        names = specification.get("ExpressionAttributeNames", {})
        self._values = normalize_item(specification.get("ExpressionAttributeValues", {}))
        condition = specification.get("FilterExpression")
        self._filter = condition and compile_condition(condition, names, "FilterExpression")
        projection = specification.get("ProjectionExpression")
        self._projection = projection and compile_projection(projection, names)
        self.within: tuple[Place, Place] | None = None
        """The range of places that the key condition selects."""
        key_condition = specification.get("KeyConditionExpression")
        if key_condition is not None:
            compiled = compile_key_condition(key_condition, names)
            keys = compiled.resolve((table.partition,), table.sort_attributes, self._values)
            start, stop = table_layout.table_range(table, keys)
            self.within = table_layout.place_of(start), table_layout.place_of(stop)
            self._refuse_keys_in_filter(table)

    def _refuse_keys_in_filter(self, table: Table) -> None:
        for name in table.key_names:
            if self._filter and name in self._filter.attributes:
                raise ValidationException(
                    "Filter Expression can only contain non-primary key attributes: "
                    f"Primary key attribute: {name}"
                )

    def selects(self, item: Item) -> bool:
        return not self._filter or self._filter.holds(item, self._values)

    def project(self, item: Item) -> Item:
        return self._projection.project(item) if self._projection else item
