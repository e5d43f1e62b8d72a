"""The content of a model file: tables, indexes, items, and where each attribute comes from.

People read and edit a model, `model --check` verifies it, and `estimate` prices it. It is also
precise enough to make the items of a row, and to find the row of an item.

An attribute has exactly one origin: a `column`, a `constant`, a `template` with columns as fields,
the members that `collect` gathers from other rows, or the time at which an item `expires`. A column
of another table is reached by `through`, a list of foreign keys that are followed in order. An
attribute whose columns are all NULL is left out. An item without an index's key attributes is not
in that index. A guard is not written when one of its columns is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct, field

from partita_migrate.model.items.row_conditions import parse_condition
from partita_migrate.model.keys.key_templates import SHARD, template_fields, template_text
from partita_migrate.understanding.schema.column_refs import ColumnRef, qualified

KeyType = Literal["S", "N", "B"]
AttributeType = Literal["S", "N", "B", "BOOL", "SS", "NS", "BS", "L", "M"]
DesignKind = Literal["denormalized", "single-table"]
DESIGN_KINDS: tuple[DesignKind, ...] = get_args(DesignKind)
"""In the order in which proposals are shown."""
LATEST = "latest"
"""The value of `rows` of an entity, and of `when` of an attribute, for the latest row only."""
RequestName = Literal[
    "GetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TTL",
    "none",
]  # fmt: skip
OnDelete = Literal["RESTRICT", "CASCADE", "SET NULL"]
KeptBy = Literal["fan-out", "condition", "nothing deletes", "lost"]
READS: tuple[RequestName, ...] = ("GetItem", "Query", "Scan")
Comparison = Literal[
    "=", "<", "<=", ">", ">=", "between", "begins_with", "<>", "in", "not in", "exists",
    "not_exists",
]  # fmt: skip


class KeyAttribute(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    type: KeyType


class ItemAttribute(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An attribute of an item, and the origin of its values."""

    name: str
    type: AttributeType
    column: str | None = None
    constant: str | None = None
    template: str | None = None
    """A text with fields, such as `ORDER#{id:08}`.

    `{column}` is a column of the entity's own row, `{table.column}` one of another table. `{x:08}`
    is padded with zeros, `{x:%Y-%m}` is a part of a date, `{x:path}` and `{x:root}` are the way
    through a tree, and `{shard}` is the number of the write shard.
    """
    collect: list[str] = field(default_factory=list)
    """A single column makes a set of its values; several columns make a list of maps."""
    expires: str | None = None
    """A date column. The attribute holds that time in seconds since 1970, plus `after_seconds`."""
    after_seconds: int = 0
    through: list[str] = field(default_factory=list)
    """Foreign keys to follow, each as "child.column = parent.column", in either direction."""
    shards: int = 1
    when: str = ""
    """A condition on the entity's own row, such as `returned_on is null`.

    Items of rows that do not meet it lack the attribute, which keeps them out of a sparse index.
    `latest` stands for the row with the greatest `latest_by` of its entity.
    """
    first: str = ""
    last: str = ""
    """For a key by year, month or day: the first and the last date that was found in the rows. An
    application reads on to today's bucket."""
    why: str = ""


class Entity(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One type of item: what the rows of one table become."""

    name: str
    source: str
    rows: Literal["each", "latest"] = "each"
    """`latest` makes one item for the row with the greatest `latest_by` among those with equal
    `per`."""
    latest_by: str | None = None
    per: list[str] = field(default_factory=list)
    unless: list[list[str]] = field(default_factory=list)
    """Foreign keys to other rows, each as in `through`. The item exists only while none of them
    leads to a row."""
    is_guard: bool = False
    """True for an item that keeps a unique constraint. It is written in one transaction with the
    item that it guards."""
    attributes: list[ItemAttribute]
    why: str = ""

    def attribute(self, name: str) -> ItemAttribute | None:
        return next((attribute for attribute in self.attributes if attribute.name == name), None)

    @property
    def holds_rows(self) -> bool:
        """True when every row of the table has exactly one item."""
        return self.rows == "each" and not self.is_guard and not self.unless

    @property
    def tells_latest(self) -> bool:
        """True when the items depend on which row is the latest of its kind."""
        return self.rows == LATEST or any(attribute.when == LATEST for attribute in self.attributes)

    @property
    def ways(self) -> list[list[str]]:
        """Returns every list of foreign keys that is followed to make the items."""
        return [
            *(attribute.through for attribute in self.attributes if attribute.through),
            *self.unless,
        ]


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
    """The TTL attribute: the time at which an item expires, in seconds since 1970."""
    is_scanned: bool = False
    """True for a table that is small enough to be scanned for patterns that no key serves."""
    why: str = ""
    indexes: list[SecondaryIndex] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    @property
    def keys(self) -> list[KeyAttribute]:
        return [self.partition_key, *([self.sort_key] if self.sort_key else [])]

    def index(self, name: str) -> SecondaryIndex | None:
        return next((index for index in self.indexes if index.name == name), None)

    def entity(self, name: str) -> Entity | None:
        return next((entity for entity in self.entities if entity.name == name), None)


class AccessCondition(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A condition on one attribute: of a key, a filter, or a test in the application."""

    attribute: str
    comparison: Comparison = "="
    value: str = ""
    """A template over the caller's parameters, or a literal. `between` takes "A and B", `in` takes
    "A or B"."""


class PatternAccess(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A request that serves an access pattern; a pattern can need several."""

    pattern: str
    request: RequestName
    table: str
    index: str | None = None
    entity: str
    key: list[AccessCondition] = field(default_factory=list)
    filter: list[AccessCondition] = field(default_factory=list)
    """Of a read: applied after reading, so filtered items are charged as well. Of a write: its
    condition expression."""
    adds: list[str] = field(default_factory=list)
    """Arithmetic that an UpdateItem leaves to DynamoDB: "hits + 1", "balance - {balance}"."""
    tested: list[AccessCondition] = field(default_factory=list)
    """Tests that the application makes, because neither a key nor a filter expression can."""
    is_descending: bool = False
    limit: int | None = None
    first: int | None = None
    """The number of rows that the application takes. It reads pages until it has them."""
    skips: int = 0
    """The number of rows that the application skips before those (OFFSET)."""
    for_each: bool = False
    """True for a lookup of columns that the items of the first request lack. It is sent once for
    each different key."""
    keeps: Literal["", "some", "none"] = ""
    """An existence test (EXISTS, IN) that is sent for each item. With `some` the row stays if the
    request returns an item, with `none` if it returns nothing."""
    is_distinct: bool = False
    """True when the application keeps one of several equal rows."""
    forbids: bool = False
    """True for a check before a write: if it returns an item, other rows refer to the row, and the
    write is not sent."""
    alternative: int = 0
    """The number of the OR's alternative that the request reads. The application merges the rows of
    all alternatives, drops duplicates, and sorts them as the statement asks."""
    sorts: list[str] = field(default_factory=list)
    """Attributes by which the application sorts once it has all rows; "name desc" for
    descending."""
    requests: float = 1
    transaction: str = ""
    """Requests with the same name here go into one TransactWriteItems."""
    why: str = ""


class UniqueOutcome(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The way in which the design keeps a unique constraint."""

    table: str
    columns: list[str]
    kept_by: Literal["key", "item", "generated", "application"]
    why: str = ""


class ForeignKeyOutcome(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The way in which the design keeps a foreign key, or the reason why it cannot."""

    table: str
    columns: list[str]
    to: str
    on_delete: OnDelete
    kept_by: KeptBy
    why: str = ""


class UnservedPattern(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A pattern that no request of the design can serve."""

    pattern: str
    why: str


class LeftOutColumn(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A column that no item of the design holds."""

    column: str
    """ "table.column", or "table.*" for all of a table."""
    why: str


class Technique(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that the design adds for certain patterns, such as an index of a list, and its
    price."""

    name: str
    patterns: list[str] = field(default_factory=list)
    place: str = ""
    """The table or index; empty for something outside the database, such as a cache."""
    why: str
    cost: str
    limit: str
    next_best: str = ""
    """The alternative that was not chosen, with its cost."""


class Design(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A complete design, as a model file holds it."""

    name: str
    kind: DesignKind
    choices: list[str] = field(default_factory=list)
    """The decisions about the design as a whole, one sentence each."""
    risks: list[str] = field(default_factory=list)
    tables: list[TableDesign] = field(default_factory=list)
    access: list[PatternAccess] = field(default_factory=list)
    unique: list[UniqueOutcome] = field(default_factory=list)
    references: list[ForeignKeyOutcome] = field(default_factory=list)
    left_out: list[LeftOutColumn] = field(default_factory=list)
    unserved: list[UnservedPattern] = field(default_factory=list)
    techniques: list[Technique] = field(default_factory=list)

    def table(self, name: str) -> TableDesign | None:
        return next((table for table in self.tables if table.name == name), None)

    def entities(self) -> Iterator[tuple[TableDesign, Entity]]:
        for table in self.tables:
            for entity in table.entities:
                yield table, entity


def type_attribute(table: TableDesign) -> str | None:
    """Returns the attribute that holds the entity's name in every item of a table, if there is
    one."""
    shared: set[str] | None = None
    for entity in table.entities:
        own = {
            attribute.name for attribute in entity.attributes if attribute.constant == entity.name
        }
        shared = own if shared is None else shared & own
    return min(shared, default=None) if shared else None


def template_shape(attribute: ItemAttribute) -> str:
    r"""Returns the fixed part of an attribute's values, with NUL in place of every field.

    Two attributes with the same shape can have equal values, for example `ORDER#\0`.
    """
    if attribute.constant is not None:
        return attribute.constant
    return template_text(attribute.template, "\0") if attribute.template else "\0"


def columns_of(entity: Entity, attribute: ItemAttribute) -> list[ColumnRef]:
    """Returns the columns that an attribute is made of."""
    named = [attribute.column, attribute.expires, *attribute.collect]
    refs = [ColumnRef.parse(name) for name in named if name]
    for part in template_fields(attribute.template or ""):
        if part.name != SHARD:
            refs.append(qualified(entity.source, part.name))
    condition = parse_condition(attribute.when)
    if condition is not None:
        refs.append(ColumnRef(entity.source, condition.column))
    return refs
