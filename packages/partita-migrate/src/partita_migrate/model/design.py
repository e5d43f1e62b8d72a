"""The words of a model file: tables, items and indexes, and where each attribute comes from.

A model is read and edited by people, verified by `model --check`, priced by `estimate`, and precise
enough that a loader can make the items of a row and a verifier can find the row of an item.

An attribute has exactly one origin: a `column`, a `constant`, a `template` whose fields are
columns, the members that `collect` gathers from other rows, or the second at which an item
`expires`. A column of another table is reached by `through`, the foreign keys that are followed in
order. An attribute whose columns are all NULL is left out, an item without an index's keys is not
in that index, and a guard is not written for values of which one is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct, field

from partita_migrate.model.row_conditions import parse_condition
from partita_migrate.model.templates import SHARD, template_fields, template_text
from partita_migrate.understanding.schema.column_refs import Ref, qualified

KeyType = Literal["S", "N", "B"]
AttributeType = Literal["S", "N", "B", "BOOL", "SS", "NS", "BS", "L", "M"]
DesignKind = Literal["denormalized", "single-table"]
DESIGN_KINDS: tuple[DesignKind, ...] = get_args(DesignKind)
"""In the order in which proposals are shown."""
LATEST = "latest"
"""As `rows` of an entity, and as `when` of an attribute."""
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
    when: str = ""
    """A condition on the entity's own row, such as `returned_on is null`, or `latest`, for the row
    with the greatest `latest_by` of the entity: without it, the item does not have the
    attribute."""
    first: str = ""
    last: str = ""
    """Of a key by a part of a date: the dates between which rows were found. An application reads
    on to today."""
    why: str = ""


class Entity(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One type of item: what the rows of one table become."""

    name: str
    source: str
    rows: Literal["each", "latest"] = "each"
    """`latest`: one item for the row with the greatest `latest_by` among those equal in `per`."""
    latest_by: str | None = None
    per: list[str] = field(default_factory=list)
    unless: list[list[str]] = field(default_factory=list)
    """Ways to other rows, each as in `through`: the item is there only while none of them leads to
    a row."""
    is_guard: bool = False
    """Keeps a unique constraint: written in one transaction with the item that it guards."""
    attributes: list[Attribute]
    why: str = ""

    def attribute(self, name: str) -> Attribute | None:
        return next((attribute for attribute in self.attributes if attribute.name == name), None)

    @property
    def holds_rows(self) -> bool:
        """Whether its items come and go with the rows of its table."""
        return self.rows == "each" and not self.is_guard and not self.unless

    @property
    def tells_latest(self) -> bool:
        """Whether its items depend on which row is the latest of its kind."""
        return self.rows == LATEST or any(attribute.when == LATEST for attribute in self.attributes)

    @property
    def ways(self) -> list[list[str]]:
        """All foreign keys that its items are made by."""
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
    """The attribute with the second at which an item expires."""
    is_scanned: bool = False
    """Whether it is small enough to be read whole, where no key leads to what is asked for."""
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


class Condition(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    attribute: str
    comparison: Comparison = "="
    value: str = ""
    """A template over what the caller passes, or the text itself; "A and B" of between, "A or B"
    of in."""


class Access(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How one access pattern is served."""

    pattern: str
    request: RequestName
    table: str
    index: str | None = None
    entity: str
    key: list[Condition] = field(default_factory=list)
    filter: list[Condition] = field(default_factory=list)
    """Applied after reading: what is filtered out is paid for. Of a write, its condition."""
    adds: list[str] = field(default_factory=list)
    """Sums of an UpdateItem that the service makes: "hits + 1", "balance - {balance}"."""
    tested: list[Condition] = field(default_factory=list)
    """What the application tests itself, where neither keys nor filters can."""
    is_descending: bool = False
    limit: int | None = None
    first: int | None = None
    """Rows that the application takes: it reads pages until it has them."""
    skips: int = 0
    """Rows that it skips before them."""
    for_each: bool = False
    """Sent for what the items of the pattern's first request lack, once for each different key."""
    keeps: Literal["", "some", "none"] = ""
    """Sent for each item (EXISTS, IN): the row stays while it brings some item, or while none."""
    is_distinct: bool = False
    """The application keeps one of the rows that come several times."""
    forbids: bool = False
    """While it brings an item, the write that follows is not sent: others refer to its row."""
    alternative: int = 0
    """Of an OR: which of the alternatives it finds. The application puts the rows of all together,
    each once, in the order that is asked for."""
    sorts: list[str] = field(default_factory=list)
    """Attributes that the application sorts by once it has all rows, "name desc" backwards."""
    requests: float = 1
    transaction: str = ""
    """Sent in one TransactWriteItems with all that has the same name."""
    why: str = ""


class Unique(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What becomes of a unique constraint."""

    table: str
    columns: list[str]
    kept_by: Literal["key", "item", "generated", "application"]
    why: str = ""


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What becomes of a foreign key."""

    table: str
    columns: list[str]
    to: str
    on_delete: OnDelete
    kept_by: KeptBy
    why: str = ""


class Unserved(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A pattern that no request of the design answers."""

    pattern: str
    why: str


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    column: str
    """ "table.column", or "table.*" for all of a table."""
    why: str


class Technique(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the design does for some patterns beyond keys of rows, and what that costs."""

    name: str
    patterns: list[str] = field(default_factory=list)
    place: str = ""
    """The table or index; empty for what lies beside the database."""
    why: str
    cost: str
    limit: str
    next_best: str = ""
    """What it was chosen over, with its cost."""


class Design(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    kind: DesignKind
    choices: list[str] = field(default_factory=list)
    """What was decided about the whole, a sentence each."""
    risks: list[str] = field(default_factory=list)
    tables: list[TableDesign] = field(default_factory=list)
    access: list[Access] = field(default_factory=list)
    unique: list[Unique] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    unserved: list[Unserved] = field(default_factory=list)
    techniques: list[Technique] = field(default_factory=list)

    def table(self, name: str) -> TableDesign | None:
        return next((table for table in self.tables if table.name == name), None)

    def entities(self) -> Iterator[tuple[TableDesign, Entity]]:
        for table in self.tables:
            for entity in table.entities:
                yield table, entity


def type_attribute(table: TableDesign) -> str | None:
    """The attribute of all items of a table that says what they are."""
    found: set[str] | None = None
    for entity in table.entities:
        own = {
            attribute.name for attribute in entity.attributes if attribute.constant == entity.name
        }
        found = own if found is None else found & own
    return min(found, default=None) if found else None


def template_shape(attribute: Attribute) -> str:
    """What two values of an attribute have in common, with a mark where they differ."""
    if attribute.constant is not None:
        return attribute.constant
    return template_text(attribute.template, "\0") if attribute.template else "\0"


def columns_of(entity: Entity, attribute: Attribute) -> list[Ref]:
    """The columns that an attribute is made of."""
    named = [attribute.column, attribute.expires, *attribute.collect]
    refs = [Ref.parse(name) for name in named if name]
    for part in template_fields(attribute.template or ""):
        if part.name != SHARD:
            refs.append(qualified(entity.source, part.name))
    condition = parse_condition(attribute.when)
    if condition is not None:
        refs.append(Ref(entity.source, condition.column))
    return refs
