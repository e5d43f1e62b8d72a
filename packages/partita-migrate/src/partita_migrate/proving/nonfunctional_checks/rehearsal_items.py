"""Items that some requests read: what a rehearsal has to load, to read as much as they will."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, TableDesign
from partita_migrate.model.keys.key_formats import plain_text
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class RehearsalItems:
    """What a rehearsal has of the items of a source."""

    items: int
    left: int
    """Under keys that are asked for, and not loaded."""
    total: int
    is_sample: bool

    def __str__(self) -> str:
        if self.is_sample:
            return (
                f"{self.items:,} items of a sample (collections are smaller than they will be:"
                " --all tries them whole)"
            )
        if self.left:
            return (
                f"{self.items:,} items of {self.items + self.left:,} under the keys that are asked"
                " for (large collections are smaller than they will be)"
            )
        if self.items == self.total:
            return f"{self.items:,} items"
        return f"{self.items:,} items, all of {self.total:,} that are under keys that are asked for"


@dataclass
class RequestedKeys:
    """Keys under which requests have looked for items, and tables that they have read whole."""

    tables: set[str] = field(default_factory=set)
    keys: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """By table and the name of a partition key, its values."""

    def has(self, table: str, item: Item) -> bool:
        return table in self.tables or any(
            name in item and plain_text(item[name]) in values
            for name, values in self.keys.get(table, {}).items()
        )


class RecordingClient(DynamoDBClient):
    """Sends what it is told, and notes under which keys."""

    def __init__(self, endpoint: str | None, design: Design, prefix: str) -> None:
        super().__init__(endpoint)
        self.asked = RequestedKeys()
        self.is_sending = True
        """Else nothing is found: what is asked next does not depend on it."""
        self._tables = {prefix + table.name: table for table in design.tables}

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        self._note(self._tables[request["TableName"]], request)
        return super().call(operation, **request) if self.is_sending else {"Items": []}

    def _note(self, table: TableDesign, request: dict[str, Any]) -> None:
        index = request.get("IndexName")
        keys = [one.partition_key for one in table.indexes if one.name == index]
        name = (keys or [table.partition_key])[0].name
        if "Key" in request:
            value = request["Key"][name]
        elif "KeyConditionExpression" in request:
            names = request["ExpressionAttributeNames"]
            (mark,) = [one for one, known in names.items() if known == name]
            found = re.search(rf"{mark} = (:\w+)", request["KeyConditionExpression"])
            assert found is not None
            value = request["ExpressionAttributeValues"][found[1]]
        else:
            self.asked.tables.add(table.name)
            return
        known = self.asked.keys.setdefault(table.name, {})
        known.setdefault(name, set()).add(plain_text(value))
