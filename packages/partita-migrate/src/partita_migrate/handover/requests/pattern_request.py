"""A request for an access pattern: the input of the API, and its parts."""

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
    """One request. Its parts repeat the API's input in a form from which PartiQL is written."""

    operation: str
    input: dict[str, Any]
    table: str
    index: str | None = None
    key: list[RequestTest] = field(default_factory=list)
    filter: list[RequestTest] = field(default_factory=list)
    item: Item = field(default_factory=dict)
    """The item that is put, or the attributes that are set."""
    added: dict[str, str] = field(default_factory=dict)
    """Numeric attributes that an update adds to ("+") or subtracts from ("-")."""
    removed: list[str] = field(default_factory=list)
    """Attributes that are removed, because their condition no longer holds."""
    must: str = ""
    """The condition on the item as a whole: "exists" or "not_exists"."""
    descending_by: str = ""
    """The sort key of a descending query."""
    rows_max: int | None = None
    """The number of rows that the caller wants, over all pages."""
    afterwards: str = ""
    """The work that is left to the application, as sentences."""
    parts: list[PatternRequest] = field(default_factory=list)
    """The requests of a transaction."""

    @property
    def made_of(self) -> list[tuple[str, str]]:
        """Returns attributes whose values the application has to compose, with their templates.

        Templates are on one line, for use in a comment: a column's name may contain a line break.
        """
        return [
            (test.attribute, " ".join(test.template.split()))
            for test in [*self.key, *self.filter]
            if "{" in test.template
        ]

    @property
    def comments(self) -> list[str]:
        made = [f"{name} has the form {text}" for name, text in self.made_of]
        fields = [part for _, text in self.made_of for part in template_fields(text)]
        folds = dict.fromkeys(part.format for part in fields if part.format in FOLDINGS)
        made += [f"{fold}: {collation_file(fold)} says what each letter becomes" for fold in folds]
        return [*made, *([" ".join(self.afterwards.split())] if self.afterwards else [])]
