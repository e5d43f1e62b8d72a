"""Takes key attributes apart into constant texts and the fields between them."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.model.design import Entity, ItemAttribute
from partita_migrate.model.keys.key_templates import (
    SEPARATOR,
    SHARD,
    template_fields,
    template_text,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef, qualified


@dataclass(frozen=True)
class KeyField:
    """A field of a key's template, and the column behind it."""

    name: str
    """As the template writes it."""
    ref: ColumnRef
    format: str

    def written(self, suffix: str = "") -> str:
        """Returns the field for a request's template. The suffix distinguishes the ends of a
        range."""
        shape = f":{self.format}" if self.format else ""
        return f"{{{self.name}{suffix}{shape}}}"


@dataclass(frozen=True)
class KeySegments:
    """Texts and fields alternate: there is one more text than there are fields."""

    texts: tuple[str, ...]
    fields: tuple[KeyField, ...]
    is_plain: bool
    """True for a column as it is, False for a template or a constant."""


def segments(entity: Entity, attribute: ItemAttribute) -> KeySegments:
    if attribute.constant is not None:
        return KeySegments((attribute.constant,), (), is_plain=False)
    if attribute.template is None:
        ref = ColumnRef.parse(attribute.column or "")
        name = str(ColumnRef("", ref.column) if ref.table == entity.source else ref)
        return KeySegments(("", ""), (KeyField(name, ref, ""),), is_plain=True)
    texts = tuple(template_text(attribute.template, "\0").split("\0"))
    fields = tuple(
        KeyField(part.name, qualified(entity.source, part.name), part.format)
        for part in template_fields(attribute.template)
    )
    return KeySegments(texts, fields, is_plain=False)


def is_sharded(parts: KeySegments) -> bool:
    return any(field.name == SHARD for field in parts.fields)


def shape(parts: KeySegments) -> list[str]:
    """Splits a key at its separators, with NUL in place of fields."""
    return "\0".join(parts.texts).split(SEPARATOR)


def may_be_equal(left: KeySegments, right: KeySegments) -> bool:
    """True when two key attributes can have equal values. Escaped fields contain no separator."""
    if left.is_plain or right.is_plain:
        return True
    ours, theirs = shape(left), shape(right)
    return len(ours) == len(theirs) and all(map(_may_match, ours, theirs))


def may_begin_with(parts: KeySegments, start: str) -> bool:
    """True when a key attribute can begin with a text, in which fields stand in braces."""
    if parts.is_plain or not start:
        return True
    start_parts = template_text(start, "\0").split(SEPARATOR)
    key_parts = shape(parts)
    if len(key_parts) < len(start_parts):
        return False
    *whole, last = start_parts
    if not all(map(_may_match, whole, key_parts)):
        return False
    return "\0" in key_parts[len(whole)] or "\0" in last or key_parts[len(whole)].startswith(last)


def _may_match(ours: str, theirs: str) -> bool:
    """True when two parts of keys can be equal; both may contain fields."""
    if "\0" not in ours and "\0" not in theirs:
        return ours == theirs
    first, second = ours.partition("\0")[0], theirs.partition("\0")[0]
    if "\0" not in ours:
        return ours.startswith(second)
    if "\0" not in theirs:
        return theirs.startswith(first)
    return first.startswith(second) or second.startswith(first)
