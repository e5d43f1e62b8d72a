"""The items that a rehearsal loads: those that its requests will read."""

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
    """The part of the source's items that the rehearsal has loaded."""

    items: int
    left: int
    """Items under requested keys that were not loaded."""
    total: int
    is_sample: bool

    def __str__(self) -> str:
        if self.is_sample:
            return (
                f"{self.items:,} items of a sample (item collections are smaller than they will be;"
                " --all tests them whole)"
            )
        if self.left:
            return (
                f"{self.items:,} of {self.items + self.left:,} items under the requested keys"
                " (large item collections are smaller than they will be)"
            )
        if self.items == self.total:
            return f"{self.items:,} items"
        return f"{self.items:,} items: all under requested keys, out of {self.total:,}"


@dataclass
class RequestedKeys:
    """The keys that requests have read, and the tables that they have read whole."""

    tables: set[str] = field(default_factory=set)
    keys: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """By table and name of the partition key, the requested values."""

    def has(self, table: str, item: Item) -> bool:
        return table in self.tables or any(
            name in item and plain_text(item[name]) in values
            for name, values in self.keys.get(table, {}).items()
        )


class RecordingClient(DynamoDBClient):
    """A client that records the keys of the requests that it sends."""

    def __init__(self, endpoint: str | None, design: Design, prefix: str) -> None:
        super().__init__(endpoint)
        self.asked = RequestedKeys()
        self.is_sending = True
        """When False, answers are empty; for requests on which no later request depends."""
        self._tables = {prefix + table.name: table for table in design.tables}

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        self._note(self._tables[request["TableName"]], request)
        return super().call(operation, **request) if self.is_sending else {"Items": []}

    def _note(self, table: TableDesign, request: dict[str, Any]) -> None:
        index = request.get("IndexName")
        keys = [candidate.partition_key for candidate in table.indexes if candidate.name == index]
        name = (keys or [table.partition_key])[0].name
        if "Key" in request:
            value = request["Key"][name]
        elif "KeyConditionExpression" in request:
            names = request["ExpressionAttributeNames"]
            (mark,) = [candidate for candidate, requested in names.items() if requested == name]
            match = re.search(rf"{mark} = (:\w+)", request["KeyConditionExpression"])
            assert match is not None
            value = request["ExpressionAttributeValues"][match[1]]
        else:
            self.asked.tables.add(table.name)
            return
        requested = self.asked.keys.setdefault(table.name, {})
        requested.setdefault(name, set()).add(plain_text(value))
