"""The inventory of a source database: tables, columns, keys and relationships, for all stages."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from partita_migrate.understanding.schema.collations import Pad, read_collations
from partita_migrate.workspace.migration_folder import INVENTORY, Folder

MYSQL_FAMILY = ("mysql", "mariadb")
"""The dialects that the MySQL client and most of its catalog are common to."""

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
    """The type as the source writes it."""
    kind: ColumnKind
    is_nullable: bool = False
    is_auto_increment: bool = False
    is_generated: bool = False
    """True when the database computes the column from others."""
    is_case_insensitive: bool = False
    """True when the collation treats "a" and "A" as equal."""
    is_letter_by_letter: bool = False
    """True for MySQL's `_general_ci` collations, which compare letter by letter and never treat two
    letters as equal to one."""
    pad: Pad = ""
    """Whether trailing blanks count in comparisons; empty where that question does not arise."""
    collation: str = ""
    """The collation of a text that is not compared by its bytes. Empty for MySQL's `_bin` and
    `_general_ci`, whose order keys can express without a file."""
    length_max: int | None = None
    default: str | None = None


COMPUTED = (
    "the source computes it from other columns, and nothing will after the move; make it a column"
    " that the application writes"
)
"""The reason why a generated column is in no item and no key."""


def is_derived(column: SourceColumn) -> bool:
    """True when the source fills the column itself: generated columns and tsvectors."""
    return column.is_generated or column.type.lower() == "tsvector"


class ForeignKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    columns: list[str]
    referenced_table: str
    referenced_columns: list[str]
    on_delete: str | None = None
    on_update: str | None = None
    """Only read from MySQL and MariaDB, whose logs do not show the rows that it changes."""


class SourceIndex(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    columns: list[str]
    is_unique: bool = False
    expressions: list[str] = field(default_factory=list)
    """The expressions of an index, as the source writes them."""
    where: str | None = None
    """The condition of a partial index."""
    kind: str | None = None
    """The access method unless it is a B-tree: fulltext, spatial, gin, gist, hash, ..."""


class SourceTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    """Unique in the inventory: "schema.table" outside the default schema."""
    schema: str | None = None
    """None for the default schema."""
    columns: list[SourceColumn]
    primary_key: list[str] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    indexes: list[SourceIndex] = field(default_factory=list)
    """All indexes; a unique constraint is listed as a unique index."""
    triggers: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    """PostgreSQL: rules that rewrite a statement into others."""
    partitions: list[str] = field(default_factory=list)
    inherits: list[str] = field(default_factory=list)
    """PostgreSQL: parents of this table; reading them returns its rows too."""
    is_inherited: bool = False
    """PostgreSQL: True when other tables inherit from it, so that its own rows need ONLY."""
    is_readable: bool = True
    """False when the user of the connection may not select from the table."""
    row_count: int = 0
    is_row_count_exact: bool = False
    data_bytes: int | None = None


class Relationship(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: RelationshipKind
    parent: str
    child: str
    """For many-to-many the other side; for a hierarchy the same table."""
    parent_columns: list[str]
    child_columns: list[str]
    """When a table is in between, both lists are columns of that table."""
    through: str | None = None
    """The intersection table of a many-to-many, or the closure table of a hierarchy."""
    is_optional: bool = False


class SkippedObject(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of the source that is not in the inventory, with the reason."""

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
    """The SELECT of each view, as the source prints it."""
    routines: list[str] = field(default_factory=list)
    skipped: list[SkippedObject] = field(default_factory=list)
    relationships: list[Relationship] = field(default_factory=list)
    keeps_references: bool = True
    """True when foreign keys are enforced; in SQLite each session of the application decides."""

    def table(self, name: str) -> SourceTable | None:
        return next((table for table in self.tables if table.name == name), None)


def read_inventory(folder: Folder) -> Inventory:
    """Reads the inventory, and registers the folder's collations for everything that makes keys."""
    read_collations(folder)
    return folder.read_json(INVENTORY, Inventory)
