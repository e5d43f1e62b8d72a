"""What a relational database holds: the words that all later stages share."""

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
    """As the source writes it."""
    kind: ColumnKind
    is_nullable: bool = False
    is_auto_increment: bool = False
    is_generated: bool = False
    """Computed from other columns by the database."""
    is_case_insensitive: bool = False
    """A text whose collation takes "a" and "A" for the same."""
    is_letter_by_letter: bool = False
    """One of MySQL's (`_general_ci`) that takes a letter for another, and never for two."""
    pad: Pad = ""
    """Whether blanks at the end of a text count when it is compared; empty where they do anyway."""
    collation: str = ""
    """By which a text is compared, where that is not by its bytes: of PostgreSQL, and of MySQL all
    but `_bin` and `_general_ci`, whose order keys have without a file."""
    length_max: int | None = None
    default: str | None = None


COMPUTED = (
    "the source computes it from other columns, which nobody does after the move; make it a column"
    " that the application writes"
)
"""Why nothing is found or sorted by a generated column, and no item holds it."""


def is_derived(column: SourceColumn) -> bool:
    """Whether the source makes a column of others: nobody writes it."""
    return column.is_generated or column.type.lower() == "tsvector"


class ForeignKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    columns: list[str]
    referenced_table: str
    referenced_columns: list[str]
    on_delete: str | None = None
    on_update: str | None = None
    """Known of MySQL and MariaDB, whose logs do not tell what it does."""


class SourceIndex(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    columns: list[str]
    is_unique: bool = False
    expressions: list[str] = field(default_factory=list)
    """What an index over expressions computes, as the source writes it."""
    where: str | None = None
    """The condition of a partial index."""
    kind: str | None = None
    """When it is no B-tree: fulltext, spatial, gin, gist, hash ..."""


class SourceTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    """Unique here: "schema.table" outside the default schema."""
    schema: str | None = None
    """When it is not the default one."""
    columns: list[SourceColumn]
    primary_key: list[str] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    indexes: list[SourceIndex] = field(default_factory=list)
    """Unique constraints are unique indexes here."""
    triggers: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    """PostgreSQL: what rewrites a statement into others."""
    partitions: list[str] = field(default_factory=list)
    inherits: list[str] = field(default_factory=list)
    """PostgreSQL: reading those tables reads the rows of this one too."""
    is_inherited: bool = False
    """PostgreSQL: others inherit from it, and only ONLY reads its own rows."""
    is_readable: bool = True
    """False when the user of the connection has no right to select."""
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
    """With a table between them, both are columns of that one."""
    through: str | None = None
    """The intersection table of many-to-many, or the closure table of a hierarchy."""
    is_optional: bool = False


class SkippedObject(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is in the source and not in the inventory, and why."""

    name: str
    reason: str


class Inventory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    dialect: str
    server_version: str
    database: str
    tables: list[SourceTable]
    views: list[str] = field(default_factory=list)
    analytical_views: list[str] = field(default_factory=list)
    """Those of the views that group or aggregate."""
    view_queries: dict[str, str] = field(default_factory=dict)
    """What each view selects, in the words of the source."""
    routines: list[str] = field(default_factory=list)
    skipped: list[SkippedObject] = field(default_factory=list)
    relationships: list[Relationship] = field(default_factory=list)
    keeps_references: bool = True
    """Whether foreign keys are kept; in SQLite, each session of the application decides."""

    def table(self, name: str) -> SourceTable | None:
        return next((table for table in self.tables if table.name == name), None)


def read_inventory(folder: Folder) -> Inventory:
    """Keys are written as the folder's collations say from then on."""
    read_collations(folder)
    return folder.read_json(INVENTORY, Inventory)
