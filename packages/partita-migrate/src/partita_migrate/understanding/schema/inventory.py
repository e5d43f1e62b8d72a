"""The inventory of a relational database, which all later stages share."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita_migrate.understanding.schema.collations import Pad, read_collations
from partita_migrate.workspace.migration_folder import INVENTORY, Folder

ColumnKind = Literal[
    "string",
    "integer",
    "decimal",
    "float",
    "boolean",
    "date",
    "time",
    "datetime",
    "binary",
    "json",
    "enum",
    "set",
    "uuid",
    "array",
    "geometry",
    "other",
]

RelationshipKind = Literal[
    "one-to-one",
    "one-to-many",
    "many-to-many",
    "hierarchy",
    "lookup",
    "entity-attribute-value",
]


class SourceColumn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    type: str
    """The type in the source's own words."""
    kind: ColumnKind
    is_nullable: bool = False
    is_auto_increment: bool = False
    is_generated: bool = False
    """True for a column that the database computes from other columns."""
    is_case_insensitive: bool = False
    """True for a text whose collation treats "a" and "A" as equal."""
    is_letter_by_letter: bool = False
    """True for MySQL's `_general_ci`, which compares letter by letter and never treats one letter
    as two."""
    pad: Pad = ""
    """Whether trailing blanks count in comparisons; empty where they do anyway."""
    collation: str = ""
    """The collation of a text that is not compared by its bytes. Left out for MySQL's `_bin` and
    `_general_ci`, which keys can express without a file."""
    length_max: int | None = None
    default: str | None = None


COMPUTED = (
    "the source computes it from other columns, which nobody does after the move; make it a column"
    " that the application writes"
)
"""The reason why no key or item can hold a generated column."""


def is_derived(column: SourceColumn) -> bool:
    """True for columns that the source makes of others and nobody writes."""
    return column.is_generated or column.type.lower() == "tsvector"


class ForeignKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    columns: list[str]
    referenced_table: str
    referenced_columns: list[str]
    on_delete: str | None = None
    on_update: str | None = None
    """Filled for MySQL and MariaDB, whose binary logs do not contain what the rule does."""


class SourceIndex(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    columns: list[str]
    is_unique: bool = False
    expressions: list[str] = field(default_factory=list)
    """The expressions of an expression index, in the source's own words."""
    where: str | None = None
    """The condition of a partial index."""
    kind: str | None = None
    """The kind of an index that is not a B-tree: fulltext, spatial, gin, gist, hash."""


class SourceTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    """A unique name: "schema.table" outside the default schema."""
    schema: str | None = None
    """The schema, unless it is the default one."""
    columns: list[SourceColumn]
    primary_key: list[str] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    indexes: list[SourceIndex] = field(default_factory=list)
    """All indexes. A unique constraint is a unique index here."""
    triggers: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    """PostgreSQL's rules, which rewrite a statement into others."""
    partitions: list[str] = field(default_factory=list)
    inherits: list[str] = field(default_factory=list)
    """PostgreSQL: the tables that this one inherits from; reading them also reads its rows."""
    is_inherited: bool = False
    """PostgreSQL: True if other tables inherit from this one, so that only ONLY reads its own
    rows."""
    is_readable: bool = True
    """False if the user of the connection may not SELECT from the table."""
    row_count: int = 0
    is_row_count_exact: bool = False
    data_bytes: int | None = None


class Relationship(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: RelationshipKind
    parent: str
    child: str
    """The other side of a many-to-many relationship; the same table in a hierarchy."""
    parent_columns: list[str]
    child_columns: list[str]
    """If there is a table between them, both are columns of that table."""
    through: str | None = None
    """The intersection table of a many-to-many relationship, or the closure table of a
    hierarchy."""
    is_optional: bool = False


class SkippedObject(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something in the source that the inventory leaves out, with the reason."""

    name: str
    reason: str


class Inventory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    dialect: str
    server_version: str
    database: str
    tables: list[SourceTable]
    views: list[str] = field(default_factory=list)
    analytical_views: list[str] = field(default_factory=list)
    """The views that group or aggregate."""
    view_queries: dict[str, str] = field(default_factory=dict)
    """The query of each view, in the source's own words."""
    routines: list[str] = field(default_factory=list)
    skipped: list[SkippedObject] = field(default_factory=list)
    relationships: list[Relationship] = field(default_factory=list)
    keeps_references: bool = True
    """True if foreign keys are enforced. In SQLite, each session of the application decides
    that."""

    def table(self, name: str) -> SourceTable | None:
        return next((table for table in self.tables if table.name == name), None)


def read_inventory(folder: Folder) -> Inventory:
    """Reads the inventory, and registers the folder's collations, so that keys are written by
    them."""
    read_collations(folder)
    return folder.read_json(INVENTORY, Inventory)
