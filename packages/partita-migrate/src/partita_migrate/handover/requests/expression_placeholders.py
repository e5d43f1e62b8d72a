"""Builds expressions of the API: conditions with placeholders for names and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.handover.requests.pattern_request import RequestTest

COMPARISONS: dict[str, Callable[[str, list[str]], str]] = {
    "between": lambda name, values: f"{name} BETWEEN {values[0]} AND {values[-1]}",
    "begins_with": lambda name, values: f"begins_with({name}, {values[0]})",
    "in": lambda name, values: f"{name} IN ({', '.join(values)})",
    # In SQL, NULL passes neither NOT IN nor <>. The item of such a row lacks the attribute.
    "not in": lambda name, values: (
        f"(attribute_exists({name}) AND NOT {name} IN ({', '.join(values)}))"
    ),
    "<>": lambda name, values: f"(attribute_exists({name}) AND {name} <> {values[0]})",
    "exists": lambda name, values: f"attribute_exists({name})",
    "not_exists": lambda name, values: f"attribute_not_exists({name})",
}
"""Every other comparison is written between the name and the value."""
WITHOUT_VALUE = ("exists", "not_exists")


class ExpressionPlaceholders:
    """Collects the names and values of an expression. Every name gets a placeholder, because many
    names are reserved words."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def joined(self, tests: list[RequestTest], prefix: str) -> str:
        return " AND ".join(
            self._one(test, f"{prefix}{number}") for number, test in enumerate(tests)
        )

    def _one(self, test: RequestTest, label: str) -> str:
        name = self.name(test.attribute, label)
        labels = _labels(f":{label}", len(test.values))
        self.values |= dict(zip(labels, test.values, strict=True))
        write = COMPARISONS.get(test.comparison)
        return write(name, labels) if write else f"{name} {test.comparison} {labels[0]}"

    def name(self, attribute: str, label: str) -> str:
        for placeholder, name in self.names.items():
            if name == attribute:
                return placeholder
        self.names[f"#{label}"] = attribute
        return f"#{label}"

    def members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if self.names:
            members["ExpressionAttributeNames"] = self.names
        if self.values:
            members["ExpressionAttributeValues"] = self.values
        return members


def _labels(label: str, count: int) -> list[str]:
    if count <= 1:
        return [label][:count]
    return [f"{label}a", f"{label}b"] if count == 2 else [f"{label}_{n}" for n in range(count)]
