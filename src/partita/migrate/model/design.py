"""The words of a model file: tables, items and indexes, and where each attribute comes from.

A model is read and edited by people, verified by `model --check`, priced by `estimate`, and precise
enough that a loader can make the items of a row and a verifier can find the row of an item.

An attribute has exactly one origin: a `column`, a `constant`, a `template` whose fields are
columns, the members that `collect` gathers from other rows, or the second at which an item
`expires`. A column of another table is reached by `through`, the foreign keys that are followed in
order. An attribute whose columns are all NULL is left out, an item without an index's keys is not
in that index, and a guard is not written for values of which one is NULL.

Inside a template a value is escaped, so that two rows never have one key: # is written %23, %
is %25, and a NULL beside other values is a lone %.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct, field

KeyType = Literal["S", "N", "B"]
AttributeType = Literal["S", "N", "B", "BOOL", "SS", "NS", "BS", "L", "M"]
DesignKind = Literal["denormalized", "single-table"]
RequestName = Literal[
    "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TTL", "none"
]
Comparison = Literal["=", "<", "<=", ">", ">=", "between", "begins_with"]

SHARD = "shard"
"""The field of a template that spreads one key over several, by a checksum of the primary key."""
PATH = "path"
ROOT = "root"
"""Formats of a key's column in a table that refers to itself, by the foreign key in `through`:
the values of all rows above and of the row, the highest first, each followed by a separator; and
the highest alone."""
SEPARATOR = "#"
"""Between the parts of a key that is made of several."""
NULL_IN_TEMPLATE = "%"

_QUOTED = r'"(?:[^"]|"")*"'
_REF = re.compile(rf'(?:({_QUOTED})|(.*))\.(?:({_QUOTED})|([^".]*))', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[",={}:]|^\s|\s$|^$')


class Ref(NamedTuple):
    """A column of the source: `table.column`, with quotes around a name that would not end where
    it does, such as `table."a.b"`."""

    table: str
    column: str

    @classmethod
    def parse(cls, text: str) -> Ref:
        # A PostgreSQL table outside `public` has a dot in its name: the column is the last part.
        found = _REF.fullmatch(text)
        if found is None:
            return cls("", _unquoted(text))
        return cls(_unquoted(found[1] or found[2]), _unquoted(found[3] or found[4]))

    def __str__(self) -> str:
        column = _quoted(self.column, is_column=True)
        return f"{_quoted(self.table)}.{column}" if self.table else column


def _quoted(name: str, *, is_column: bool = False) -> str:
    if _NEEDS_QUOTES.search(name) or (is_column and "." in name):
        return '"' + name.replace('"', '""') + '"'
    return name


def _unquoted(text: str) -> str:
    if re.fullmatch(_QUOTED, text, re.DOTALL):
        return text[1:-1].replace('""', '"')
    return text


class KeyAttribute(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    type: KeyType


class Attribute(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    type: AttributeType
    column: str | None = None
    constant: str | None = None
    template: str | None = None
    """Text with fields: `{column}` of the entity's own row, `{table.column}` of another, `{x:08}`
    padded with zeros, `{x:%Y-%m}` a part of a date, `{x:path}` and `{x:root}` of a tree, and
    `{shard}`."""
    collect: list[str] = field(default_factory=list)
    """One column gives a set of its values, several give a list of maps."""
    expires: str | None = None
    """A date column; the attribute is its second since 1970, and `after_seconds` more."""
    after_seconds: int = 0
    through: list[str] = field(default_factory=list)
    """Foreign keys to follow, each "child.column = parent.column", in either direction."""
    shards: int = 1
    why: str = ""


class Entity(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One type of item: what the rows of one table become."""

    name: str
    source: str
    rows: Literal["each", "latest"] = "each"
    """`latest`: one item for the row with the greatest `latest_by` among those equal in `per`."""
    latest_by: str | None = None
    per: list[str] = field(default_factory=list)
    is_guard: bool = False
    """Keeps a unique constraint: written in one transaction with the item that it guards."""
    attributes: list[Attribute]
    why: str = ""

    def attribute(self, name: str) -> Attribute | None:
        return next((one for one in self.attributes if one.name == name), None)


class SecondaryIndex(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    name: str
    kind: Literal["global", "local"] = "global"
    partition_key: KeyAttribute
    sort_key: KeyAttribute | None = None
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    include: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def keys(self) -> list[KeyAttribute]:
        return [self.partition_key, *([self.sort_key] if self.sort_key else [])]


class TableDesign(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    name: str
    partition_key: KeyAttribute
    sort_key: KeyAttribute | None = None
    ttl: str | None = None
    """The attribute with the second at which an item expires."""
    why: str = ""
    indexes: list[SecondaryIndex] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    @property
    def keys(self) -> list[KeyAttribute]:
        return [self.partition_key, *([self.sort_key] if self.sort_key else [])]

    def index(self, name: str) -> SecondaryIndex | None:
        return next((one for one in self.indexes if one.name == name), None)

    def entity(self, name: str) -> Entity | None:
        return next((one for one in self.entities if one.name == name), None)


class Condition(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    attribute: str
    comparison: Comparison = "="
    value: str = ""
    """A template over what the caller passes, or the text itself."""


class Access(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How one access pattern is served."""

    pattern: str
    request: RequestName
    table: str
    index: str | None = None
    entity: str
    key: list[Condition] = field(default_factory=list)
    filter: list[Condition] = field(default_factory=list)
    """Applied after reading: what is filtered out is paid for."""
    is_descending: bool = False
    limit: int | None = None
    requests: float = 1
    why: str = ""


class Unique(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What becomes of a unique constraint."""

    table: str
    columns: list[str]
    kept_by: Literal["key", "item", "generated", "application"]
    why: str = ""


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    column: str
    """ "table.column", or "table.*" for all of a table."""
    why: str


class Design(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    kind: DesignKind
    choices: list[str] = field(default_factory=list)
    """What was decided about the whole, a sentence each."""
    risks: list[str] = field(default_factory=list)
    tables: list[TableDesign] = field(default_factory=list)
    access: list[Access] = field(default_factory=list)
    unique: list[Unique] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def table(self, name: str) -> TableDesign | None:
        return next((one for one in self.tables if one.name == name), None)

    def entities(self) -> Iterator[tuple[TableDesign, Entity]]:
        for table in self.tables:
            for entity in table.entities:
                yield table, entity


class TemplateField(NamedTuple):
    name: str
    format: str


_FIELD = re.compile(rf'\{{((?:{_QUOTED}|[^{{}}:"])+)(?::([^{{}}]*))?\}}')


def template_fields(template: str) -> list[TemplateField]:
    return [TemplateField(match[1], match[2] or "") for match in _FIELD.finditer(template)]


def filled(template: str, value: Callable[[TemplateField], str]) -> str:
    """A template with a text for each of its fields."""
    return _FIELD.sub(lambda match: value(TemplateField(match[1], match[2] or "")), template)


def escaped(text: str) -> str:
    """A value inside a template: it holds no separator, and other values give other texts."""
    return text.replace("%", "%25").replace(SEPARATOR, "%23")


def template_text(template: str) -> str:
    """What is left of a template without its fields."""
    return _FIELD.sub("", template)


def template_shape(attribute: Attribute) -> str:
    """What two values of an attribute have in common, with a mark where they differ."""
    if attribute.constant is not None:
        return attribute.constant
    return _FIELD.sub("\0", attribute.template) if attribute.template else "\0"


def columns_of(entity: Entity, attribute: Attribute) -> list[Ref]:
    """The columns that an attribute is made of."""
    named = [attribute.column, attribute.expires, *attribute.collect]
    refs = [Ref.parse(name) for name in named if name]
    for part in template_fields(attribute.template or ""):
        if part.name != SHARD:
            refs.append(qualified(entity.source, part.name))
    return refs


def qualified(table: str, name: str) -> Ref:
    ref = Ref.parse(name)
    return ref if ref.table else Ref(table, ref.column)


class Step(NamedTuple):
    """One foreign key followed: the rows of `after` that match a row of `before`."""

    before: list[Ref]
    after: list[Ref]


def parse_step(text: str) -> Step | None:
    """ "a.x = b.y"; the columns of a longer key are separated by commas."""
    sides = _outside_quotes(" = ", text)
    if len(sides) != 2:
        return None
    before, after = ([Ref.parse(one) for one in _outside_quotes(", *", side)] for side in sides)
    return Step(before, after) if len(before) == len(after) else None


def _outside_quotes(separator: str, text: str) -> list[str]:
    return re.split(rf'{separator}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def format_step(before: list[Ref], after: list[Ref]) -> str:
    return f"{', '.join(map(str, before))} = {', '.join(map(str, after))}"
