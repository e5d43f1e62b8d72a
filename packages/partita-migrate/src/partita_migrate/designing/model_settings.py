"""The section `[model]` of `migration.toml`: what people decide about the design."""

from __future__ import annotations

from msgspec import Struct, field

from partita_migrate.designing.attribute_naming import Style
from partita_migrate.model.design import DesignKind


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    choose: DesignKind | None = None
    """The design for the later stages. By default the one that serves the most patterns and costs
    the least."""
    names: Style = "source"
    """The style of attribute names."""
    table_name: str | None = None
    """The name of the single table; by default the database's name."""
    key_names: list[str] = field(default_factory=list)
    """Names for partition and sort keys that are made of several columns."""
    exclude: list[str] = field(default_factory=list)
    """Tables that are not migrated."""
    rename: dict[str, str] = field(default_factory=dict)
    """Attribute names by "table.column", or by "table.set" for a collected set or list."""
    natural_keys: dict[str, list[str]] = field(default_factory=dict)
    """Columns that identify a row, even if the source does not declare them unique."""
    constants: dict[str, dict[str, str]] = field(default_factory=dict)
    """Constant values by table, which become part of its partition key."""
    expire: dict[str, int] = field(default_factory=dict)
    """Seconds after which a row expires, by "table.column" of its date."""
    expire_name: str = "expirationTime"
    formats: dict[str, str] = field(default_factory=dict)
    """Formats of dates in keys by "table.column", as in strftime."""
    unique_by_application: list[str] = field(default_factory=list)
    """Unique constraints that need no guard item, each as "table(column, column)"."""
    collect_rows_max: int = 100
    """The number of child rows up to which they may become a set or list in the parent's item."""


def unique_name(table: str, columns: list[str]) -> str:
    return f"{table}({', '.join(columns)})"
