"""Finds tables and columns by the names in a statement, as loosely as servers match names."""

from __future__ import annotations

from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.schema.join_paths import JoinPaths

SYSTEM_SCHEMAS = frozenset(
    ("information_schema", "pg_catalog", "pg_toast", "performance_schema", "mysql", "sys")
)
SYSTEM_PREFIXES = ("pg_", "sqlite_")

SQLGLOT_DIALECTS = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgres",
    "sqlite": "sqlite",
}

DIGEST_SPELLINGS = {
    "system_user": "user",
    "schema": "database",
    "fields": "columns",
    "some": "any",
    "slave": "replica",
    "slaves": "replicas",
}
"""MariaDB's digests print names that are also keywords as other keywords."""


class SchemaLookup:
    """An inventory by name. Case is ignored, because MariaDB's digests may print ID for id."""

    def __init__(self, inventory: Inventory) -> None:
        self.dialect = SQLGLOT_DIALECTS.get(inventory.dialect, "sqlite")
        self._database = inventory.database.lower()
        self._tables = {table.name.lower(): table for table in inventory.tables}
        self._views = {view.lower() for view in inventory.views}
        self._view_queries = {name.lower(): query for name, query in inventory.view_queries.items()}
        self._by_last_name: dict[str, list[SourceTable]] = {}
        for table in inventory.tables:
            last = table.name.rpartition(".")[2].lower()
            self._by_last_name.setdefault(last, []).append(table)
        self.join_paths = JoinPaths(inventory)
        self._columns = {
            table.name: {column.name.lower(): column for column in table.columns}
            for table in inventory.tables
        }

    @property
    def table_names(self) -> list[str]:
        return [table.name for table in self._tables.values()]

    def table(self, name: str, qualifier: str = "") -> SourceTable | None:
        """Finds a table by its name and qualifier: a schema, or MySQL's database."""
        name, qualifier = name.lower(), qualifier.lower()
        if qualifier and f"{qualifier}.{name}" in self._tables:
            return self._tables[f"{qualifier}.{name}"]
        if qualifier in ("", "public", "main", self._database):
            for spelling in (name, DIGEST_SPELLINGS.get(name, name)):
                if spelling in self._tables:
                    return self._tables[spelling]
            others = self._by_last_name.get(name, [])
            # The application's search_path is unknown; if only one schema has the table, it is
            # meant.
            if not qualifier and len(others) == 1:
                return others[0]
        return None

    def is_view(self, name: str, qualifier: str = "") -> bool:
        name = name.lower()
        return name in self._views or f"{qualifier.lower()}.{name}" in self._views

    def columns_by_table(self) -> dict[str, object]:
        """Returns the columns in the form of sqlglot's schemas; all have the type text, which is
        not used."""
        return {
            name.rpartition(".")[2]: dict.fromkeys(columns, "text")
            for name, columns in self._columns.items()
        }

    def view_query(self, name: str, qualifier: str = "") -> str:
        """Returns the SELECT of a view; empty for anything else, or if the definition
        is unknown."""
        full = f"{qualifier}.{name}".lower()
        return self._view_queries.get(full) or (
            self._view_queries.get(name.lower(), "")
            if qualifier.lower() in ("", "public", "main", self._database)
            else ""
        )

    def is_system(self, name: str, qualifier: str = "") -> bool:
        if qualifier:
            return qualifier.lower() in SYSTEM_SCHEMAS
        return name.lower().startswith(SYSTEM_PREFIXES)

    def column(self, table: SourceTable, name: str) -> SourceColumn | None:
        columns, name = self._columns[table.name], name.lower()
        return columns.get(name) or columns.get(DIGEST_SPELLINGS.get(name, name))


def spelled_in_digests(name: str) -> str:
    """Returns the name as a digest prints it in FROM; in `user`.`id` the digest keeps the original
    name."""
    spellings = (spelling for spelling, own in DIGEST_SPELLINGS.items() if own == name.lower())
    return next(spellings, name.lower())
