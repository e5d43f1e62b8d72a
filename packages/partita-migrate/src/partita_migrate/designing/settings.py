"""What people decide about a model in `[model]` of `migration.toml`."""

from __future__ import annotations

from msgspec import Struct, field

from partita_migrate.designing.naming import Style
from partita_migrate.model.design import DesignKind


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    choose: DesignKind | None = None
    """The design for the later stages; without it, the one that serves most and costs least."""
    names: Style = "source"
    """How attributes are written."""
    table_name: str | None = None
    """Of the single table; the database's name without it."""
    key_names: list[str] = field(default_factory=list)
    """Of partition and sort keys that are made of several columns."""
    exclude: list[str] = field(default_factory=list)
    """Tables that stay where they are."""
    rename: dict[str, str] = field(default_factory=dict)
    """ "table.column", or "table.set" for what is collected, to an attribute's name."""
    natural_keys: dict[str, list[str]] = field(default_factory=dict)
    """Columns that are known to identify a row, whatever the source declares."""
    constants: dict[str, dict[str, str]] = field(default_factory=dict)
    """Values that are the same for all rows of a table, and part of its partition key."""
    expire: dict[str, int] = field(default_factory=dict)
    """ "table.column" to the seconds after which a row is deleted."""
    expire_name: str = "expirationTime"
    formats: dict[str, str] = field(default_factory=dict)
    """How a date is written in keys, in strftime's letters."""
    unique_by_application: list[str] = field(default_factory=list)
    """Unique constraints that need no item of their own: "table(column, column)"."""
    collect_rows_max: int = 100
    """Rows of a child that may become a set or list in its parent's item."""


def unique_name(table: str, columns: list[str]) -> str:
    return f"{table}({', '.join(columns)})"
