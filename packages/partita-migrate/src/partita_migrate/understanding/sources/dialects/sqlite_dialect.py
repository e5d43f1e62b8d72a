"""SQLite: the session, the messages of errors, and what the catalog adds."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from partita.foundation.service_limits import MB
from partita_migrate.understanding.schema.inventory import ForeignKey, SkippedObject, SourceIndex
from partita_migrate.understanding.sources.dialects.catalog_facts import (
    CatalogFacts,
    ColumnFacts,
    TableFacts,
    is_analytical,
)
from partita_migrate.understanding.sources.dialects.column_kinds import sqlite_kind
from partita_migrate.understanding.sources.quoted_names import quoted
from partita_migrate.workspace.migration_folder import SourceSettings

BUSY_SECONDS = 5
STEPS_BETWEEN_CHECKS = 100_000
MEASURED_BYTES_MAX = 128 * MB
GENERATED = (2, 3)
"""Virtual and stored columns, in the numbers of `table_xinfo`."""

ADVICE = {
    "file is not a database": "check the file after sqlite:///",
    "database is locked": "something is writing; try again",
    "interrupted": "raise statement_seconds_max in [source] if it may take longer",
}


def engine_options(url: URL, connect_seconds_max: float) -> dict[str, Any]:
    # mode=ro never creates a file, and never rolls back the journal of another process.
    location = f"{Path(url.database or '').as_uri()}?mode=ro"
    return {"creator": lambda: sqlite3.connect(location, uri=True, timeout=BUSY_SECONDS)}


def prepare(driver_connection: Any, statement_seconds_max: float) -> None:
    driver_connection.execute("PRAGMA query_only = ON")
    _limit(driver_connection, statement_seconds_max)
    # SQLite stores any bytes in a text. A text that is not UTF-8 must not end a stage.
    driver_connection.text_factory = lambda text: text.decode(errors="replace")


def limit_statements(connection: Connection, seconds: float) -> None:
    _limit(connection.connection.driver_connection, seconds)


def _limit(driver_connection: Any, seconds: float) -> None:
    """Limits the duration of statements. SQLite has no timeout; it calls these functions when a
    statement starts and while it runs."""
    end = time.monotonic() + seconds

    def begin(statement: str) -> None:
        nonlocal end
        end = time.monotonic() + seconds

    driver_connection.set_trace_callback(begin)
    driver_connection.set_progress_handler(
        lambda: int(time.monotonic() > end), STEPS_BETWEEN_CHECKS
    )


def server_version(connection: Connection) -> str:
    return sqlite3.sqlite_version


def error_text(cause: BaseException) -> str:
    return str(cause)


def advice(cause: BaseException) -> str | None:
    return next((text for part, text in ADVICE.items() if part in str(cause)), None)


def wants_password(cause: BaseException) -> bool:
    return False


def read_catalog(connection: Connection, settings: SourceSettings) -> CatalogFacts:
    catalog = CatalogFacts()
    objects = _ask(
        connection, "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY 2"
    )
    special = {
        name: (kind, bool(without_rowid))
        for name, kind, without_rowid in _ask(
            connection, "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'"
        )
    }
    sizes = _sizes(connection)
    for kind, name, _, sql in objects:
        table_kind, is_without_rowid = special.get(name, ("table", False))
        if kind == "view":
            catalog.views.append(name)
            catalog.view_queries[name] = sql or ""
            if is_analytical(sql):
                catalog.analytical_views.append(name)
        elif kind != "table" or name.startswith("sqlite_"):
            continue
        elif table_kind == "virtual":
            module = re.search(r"\bUSING\s+(\w+)", sql or "", re.IGNORECASE)
            reason = f"a virtual table of {module.group(1) if module else 'a module'}"
            catalog.skipped.append(SkippedObject(name=name, reason=reason))
        elif table_kind == "shadow":
            catalog.skipped.append(SkippedObject(name=name, reason="kept by a virtual table"))
        else:
            catalog.tables[(None, name)] = _table(connection, name, is_without_rowid, sizes)
    for kind, name, table, _ in objects:
        if kind == "trigger" and (facts := catalog.tables.get((None, table))):
            facts.triggers.append(name)
    return catalog


def _table(
    connection: Connection, name: str, is_without_rowid: bool, sizes: dict[str, int]
) -> TableFacts:
    indexes, insensitive = _indexes(connection, name)
    columns = _ask(
        connection,
        "SELECT name, type, pk, hidden FROM pragma_table_xinfo(:table) ORDER BY cid",
        table=name,
    )
    ((definition,),) = _ask(
        connection, "SELECT sql FROM main.sqlite_schema WHERE name = :table", table=name
    ) or [("",)]
    keys = [column for column in columns if column[2]]
    # SQLite numbers only a column that is declared exactly INTEGER PRIMARY KEY.
    is_rowid_alias = len(keys) == 1 and keys[0][1].upper() == "INTEGER" and not is_without_rowid
    return TableFacts(
        columns={
            column: ColumnFacts(
                type=type_text,
                kind=sqlite_kind(type_text),
                length_max=_length(type_text),
                is_auto_increment=is_rowid_alias and key > 0,
                is_generated=hidden in GENERATED,
                is_case_insensitive=column in insensitive
                or _has_collation(definition, column, "NOCASE"),
                pad="PAD SPACE" if _has_collation(definition, column, "RTRIM") else "",
            )
            for column, type_text, key, hidden in columns
        },
        row_estimate=None if is_without_rowid else _rowid_max(connection, name),
        data_bytes=sizes.get(name),
        indexes=indexes,
        foreign_keys=_foreign_keys(connection, name),
    )


def _has_collation(definition: str | None, column: str, collation: str) -> bool:
    """True when the table's definition gives the column this collation, which no pragma shows."""
    inside = r"(?:\([^()]*\)|[^,()])*?"
    pattern = (
        rf"""[(,]\s*["`\[]?{re.escape(column)}["`\]]?\s{inside}\bCOLLATE\s+["`]?{collation}\b"""
    )
    return re.search(pattern, definition or "", re.IGNORECASE) is not None


def _foreign_keys(connection: Connection, table: str) -> list[ForeignKey]:
    """Reads the foreign keys. Each column has a row; a key that names no columns of the other table
    has nulls there."""
    keys: dict[int, ForeignKey] = {}
    for number, target, column, referenced, on_delete in _ask(
        connection,
        'SELECT id, "table", "from", "to", on_delete FROM pragma_foreign_key_list(:table)'
        " ORDER BY id, seq",
        table=table,
    ):
        key = keys.setdefault(
            number,
            ForeignKey(
                columns=[],
                referenced_table=target,
                referenced_columns=[],
                on_delete=None if on_delete == "NO ACTION" else on_delete,
            ),
        )
        key.columns.append(column)
        if referenced is not None:
            key.referenced_columns.append(referenced)
    return list(keys.values())


def _length(type_text: str) -> int | None:
    """Returns the length of VARCHAR(30) and the like. It is only an intention: SQLite stores longer
    texts too."""
    match = re.search(r"CHAR\w*\s*\((\d+)\)", type_text, re.IGNORECASE)
    return int(match.group(1)) if match else None


def _indexes(connection: Connection, table: str) -> tuple[list[SourceIndex], set[str]]:
    """Returns all indexes, including those of UNIQUE in a column's definition, which have no SQL.

    The second result has the columns that one of the indexes compares without case.
    """
    indexes = []
    insensitive = set()
    for name, is_unique, origin, is_partial in _ask(
        connection,
        'SELECT name, "unique", origin, partial FROM pragma_index_list(:table) ORDER BY name',
        table=table,
    ):
        members = _ask(
            connection,
            "SELECT name, coll FROM pragma_index_xinfo(:name) WHERE key ORDER BY seqno",
            name=name,
        )
        insensitive |= {column for column, collation in members if collation == "NOCASE"}
        if origin == "pk":
            continue
        sql = _ask(connection, "SELECT sql FROM main.sqlite_schema WHERE name = :name", name=name)
        where = re.search(r"\bWHERE\b(.*)$", sql[0][0] or "", re.IGNORECASE | re.DOTALL)
        is_computed = any(column is None for column, _ in members)
        indexes.append(
            SourceIndex(
                name=name,
                columns=[column for column, _ in members if column is not None],
                is_unique=bool(is_unique),
                expressions=[sql[0][0]] if is_computed else [],
                where=where.group(1).strip() if is_partial and where else None,
            )
        )
    return indexes, insensitive


def _rowid_max(connection: Connection, table: str) -> int | None:
    """Returns the greatest rowid, which is fast, unlike a count. It is too high if rows were
    deleted."""
    (rowid,) = _ask(connection, f"SELECT max(rowid) FROM {quoted(connection, table)}")[0]
    return int(rowid or 0)


def _sizes(connection: Connection) -> dict[str, int]:
    """Returns the size of each table in bytes, if the file is small enough to be read through."""
    path = connection.engine.url.database or ""
    if os.path.getsize(path) > MEASURED_BYTES_MAX:
        return {}
    try:
        return dict(
            map(tuple, _ask(connection, "SELECT name, pgsize FROM dbstat WHERE aggregate = 1"))
        )
    except DBAPIError:
        # dbstat is optional when SQLite is built.
        return {}


def _ask(connection: Connection, statement: str, **parameters: Any) -> Sequence[Any]:
    return connection.execute(text(statement), parameters).all()
