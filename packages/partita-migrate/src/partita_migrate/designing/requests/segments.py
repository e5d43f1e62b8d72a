"""Key attributes taken apart: constant texts, and the fields between them."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.model.design import Attribute, Entity
from partita_migrate.model.templates import SEPARATOR, SHARD, template_fields, template_text
from partita_migrate.understanding.schema.column_refs import Ref, qualified


@dataclass(frozen=True)
class Field:
    name: str
    """As the template writes it."""
    ref: Ref
    format: str

    def written(self, suffix: str = "") -> str:
        """In a request's template; `suffix` tells the ends of a range apart."""
        shape = f":{self.format}" if self.format else ""
        return f"{{{self.name}{suffix}{shape}}}"


@dataclass(frozen=True)
class Segments:
    """Texts and fields in turn: there is one text more than fields."""

    texts: tuple[str, ...]
    fields: tuple[Field, ...]
    is_plain: bool
    """A column as it is, and not a text that is made of some."""


def segments(entity: Entity, attribute: Attribute) -> Segments:
    if attribute.constant is not None:
        return Segments((attribute.constant,), (), is_plain=False)
    if attribute.template is None:
        ref = Ref.parse(attribute.column or "")
        name = str(Ref("", ref.column) if ref.table == entity.source else ref)
        return Segments(("", ""), (Field(name, ref, ""),), is_plain=True)
    texts = tuple(template_text(attribute.template, "\0").split("\0"))
    fields = tuple(
        Field(part.name, qualified(entity.source, part.name), part.format)
        for part in template_fields(attribute.template)
    )
    return Segments(texts, fields, is_plain=False)


def is_sharded(parts: Segments) -> bool:
    return any(field.name == SHARD for field in parts.fields)


def shape(parts: Segments) -> list[str]:
    """The parts between separators, with a mark in place of fields."""
    return "\0".join(parts.texts).split(SEPARATOR)


def may_be_equal(left: Segments, right: Segments) -> bool:
    """Whether two key attributes can have the same value: escaped fields hold no separator."""
    if left.is_plain or right.is_plain:
        return True
    ours, theirs = shape(left), shape(right)
    return len(ours) == len(theirs) and all(map(_may_match, ours, theirs))


def may_begin_with(parts: Segments, start: str) -> bool:
    """Whether a key attribute can begin with a text, in which fields stand in braces."""
    if parts.is_plain or not start:
        return True
    wanted = template_text(start, "\0").split(SEPARATOR)
    found = shape(parts)
    if len(found) < len(wanted):
        return False
    *whole, last = wanted
    if not all(map(_may_match, whole, found)):
        return False
    return "\0" in found[len(whole)] or "\0" in last or found[len(whole)].startswith(last)


def _may_match(ours: str, theirs: str) -> bool:
    """Of two parts, one of which may hold fields."""
    if "\0" not in ours and "\0" not in theirs:
        return ours == theirs
    first, second = ours.partition("\0")[0], theirs.partition("\0")[0]
    if "\0" not in ours:
        return ours.startswith(second)
    if "\0" not in theirs:
        return theirs.startswith(first)
    return first.startswith(second) or second.startswith(first)
