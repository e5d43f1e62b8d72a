"""One request: what the API takes, and the same in parts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from partita.database.item.attribute_values import AttributeValue, Item
from partita_migrate.model.keys.key_templates import template_fields
from partita_migrate.understanding.schema.collations import FOLDINGS, collation_file


class RequestTest(Struct, frozen=True, kw_only=True):
    """A condition with its values."""

    attribute: str
    comparison: str
    values: list[AttributeValue]
    template: str = ""


class PatternRequest(Struct, frozen=True, kw_only=True):
    """One request: what the API takes, and the same in parts, from which PartiQL is written."""

    operation: str
    input: dict[str, Any]
    table: str
    index: str | None = None
    key: list[RequestTest] = field(default_factory=list)
    filter: list[RequestTest] = field(default_factory=list)
    item: Item = field(default_factory=dict)
    """What is put or set."""
    added: dict[str, str] = field(default_factory=dict)
    """Attributes to which that is added, "+", or from which it is taken off, "-"."""
    removed: list[str] = field(default_factory=list)
    """Attributes that go, because their condition no longer holds."""
    must: str = ""
    """Whether the item must, or must not, be there before: exists, not_exists."""
    descending_by: str = ""
    """The sort key, where the last come first."""
    rows_max: int | None = None
    """How many the caller wants, over all pages."""
    afterwards: str = ""
    """What is left to the application."""
    parts: list[PatternRequest] = field(default_factory=list)
    """Of a transaction."""

    @property
    def made_of(self) -> list[tuple[str, str]]:
        """Attributes whose values the application makes of what it knows, with the template.

        In one line, as a comment needs it: a column may be called anything.
        """
        return [
            (one.attribute, " ".join(one.template.split()))
            for one in [*self.key, *self.filter]
            if "{" in one.template
        ]

    @property
    def comments(self) -> list[str]:
        made = [f"{name} is made as {text}" for name, text in self.made_of]
        fields = [part for _, text in self.made_of for part in template_fields(text)]
        folds = dict.fromkeys(part.format for part in fields if part.format in FOLDINGS)
        made += [
            f"{fold}: each letter becomes what {collation_file(fold)} has for it" for fold in folds
        ]
        return [*made, *([" ".join(self.afterwards.split())] if self.afterwards else [])]
