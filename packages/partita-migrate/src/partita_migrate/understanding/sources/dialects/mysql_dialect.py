"""MySQL and MariaDB: the session, the messages of errors, and what the catalog adds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.dialects.mysql import VARBINARY
from sqlalchemy.dialects.mysql.base import ischema_names
from sqlalchemy.engine import URL

from partita_migrate.understanding.schema.collations import Pad
from partita_migrate.understanding.schema.inventory import SkippedObject
from partita_migrate.understanding.sources.dialects.catalog_facts import (
    CatalogFacts,
    ColumnFacts,
    Place,
    TableFacts,
    is_analytical,
)
from partita_migrate.understanding.sources.dialects.column_kinds import mysql_kind
from partita_migrate.workspace.migration_folder import SourceSettings

# SQLAlchemy fails on a table with an unknown type that has a length.
ischema_names.setdefault("vector", VARBINARY)

VECTOR = 242
"""The type's number in the protocol. PyMySQL does not know it and would decode its bytes as
text."""
ACCESS_DENIED = 1045
LOCK_WAIT_SECONDS = 1

ADVICE = {
    1044: "this user has no right to the database",
    1045: "check the user and the password",
    1049: "check the name after the last / of the url",
    1146: "run `partita migrate plan` again if the schema has changed",
    1205: "something holds a lock; try again",
    1142: "grant the user the right to select",
    1969: "raise statement_seconds_max in [source] if the server can bear it",
    2002: "check the host and the port, and that the server runs",
    2003: "check the host and the port, and that the server runs",
    2006: "the server went away; run the stage again",
    2013: "the server went away; run the stage again",
    3024: "raise statement_seconds_max in [source] if the server can bear it",
}


def engine_options(url: URL, connect_seconds_max: float) -> dict[str, Any]:
    from pymysql.connections import TEXT_TYPES

    TEXT_TYPES.add(VECTOR)
    charset = {} if "charset" in url.query else {"charset": "utf8mb4"}
    return {"connect_args": {"connect_timeout": max(1, round(connect_seconds_max)), **charset}}


def prepare(driver_connection: Any, statement_seconds_max: float) -> None:
    """Sets the session's variables. Variables that this server does not have are left out."""
    with driver_connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ ONLY")
        cursor.execute("SET SESSION time_zone = '+00:00'")
        for name, value in (
            # The default is a day or a year: a stage would hang behind an ALTER TABLE.
            ("lock_wait_timeout", LOCK_WAIT_SECONDS),
            ("max_statement_time", statement_seconds_max),  # MariaDB
            ("max_execution_time", round(statement_seconds_max * 1000)),  # MySQL
            ("information_schema_stats_expiry", 0),  # MySQL 8 caches for a day
        ):
            _set_if_known(cursor, name, value)


def _set_if_known(cursor: Any, name: str, value: float) -> None:
    cursor.execute("SHOW SESSION VARIABLES LIKE %s", (name,))
    if cursor.fetchone() is not None:
        cursor.execute(f"SET SESSION {name} = {value}")


def limit_statements(connection: Connection, seconds: float) -> None:
    if getattr(connection.dialect, "is_mariadb", False):
        connection.exec_driver_sql(f"SET SESSION max_statement_time = {seconds}")
    else:
        connection.exec_driver_sql(f"SET SESSION max_execution_time = {round(seconds * 1000)}")


def server_version(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SELECT VERSION()").scalar_one())


def error_text(cause: BaseException) -> str:
    """Returns the text of PyMySQL's errors, which are a number and a text."""
    return str(cause.args[-1]) if cause.args else type(cause).__name__


def advice(cause: BaseException) -> str | None:
    code = cause.args[0] if cause.args else None
    return ADVICE.get(code) if isinstance(code, int) else None


def wants_password(cause: BaseException) -> bool:
    return cause.args[:1] == (ACCESS_DENIED,)


def read_catalog(connection: Connection, settings: SourceSettings) -> CatalogFacts:
    catalog = CatalogFacts()
    _read_tables(connection, catalog)
    _read_columns(connection, catalog)
    for table, index, kind in _ask(connection, _INDEX_KINDS):
        if facts := catalog.tables.get((None, table)):
            facts.index_kinds[index] = kind.lower()
    for table, trigger in _ask(connection, _TRIGGERS):
        if facts := catalog.tables.get((None, table)):
            facts.triggers.append(trigger)
    for table, partition in _ask(connection, _PARTITIONS):
        if facts := catalog.tables.get((None, table)):
            facts.partitions.append(partition)
    for view, definition in _ask(connection, _VIEWS):
        catalog.views.append(view)
        catalog.view_queries[view] = definition or ""
        if is_analytical(definition):
            catalog.analytical_views.append(view)
    catalog.routines = [name for (name,) in _ask(connection, _ROUTINES)]
    return catalog


_TABLES = """
    SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, TABLE_COMMENT
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME
"""
_COLUMNS = """
    SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, EXTRA,
           GENERATION_EXPRESSION, COLLATION_NAME
    FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
"""
_PAD_COLUMN = """
    SELECT 1 FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'COLLATIONS'
      AND COLUMN_NAME = 'PAD_ATTRIBUTE'
"""
_PADS = "SELECT COLLATION_NAME, PAD_ATTRIBUTE FROM information_schema.COLLATIONS"
_JSON_CHECKS = """
    SELECT TABLE_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS
    WHERE CONSTRAINT_SCHEMA = DATABASE() AND CHECK_CLAUSE LIKE 'json_valid(%'
"""
_INDEX_KINDS = """
    SELECT DISTINCT TABLE_NAME, INDEX_NAME, INDEX_TYPE FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = DATABASE() AND INDEX_TYPE <> 'BTREE'
"""
_TRIGGERS = """
    SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME FROM information_schema.TRIGGERS
    WHERE EVENT_OBJECT_SCHEMA = DATABASE() ORDER BY 1, 2
"""
_PARTITIONS = """
    SELECT DISTINCT TABLE_NAME, PARTITION_NAME FROM information_schema.PARTITIONS
    WHERE TABLE_SCHEMA = DATABASE() AND PARTITION_NAME IS NOT NULL ORDER BY 1, 2
"""
_VIEWS = """
    SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS
    WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1
"""
_ROUTINES = """
    SELECT DISTINCT ROUTINE_NAME FROM information_schema.ROUTINES
    WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1
"""

# System-versioned tables hold their current rows like other tables; sequences have no rows.
_ROWS = ("BASE TABLE", "SYSTEM VERSIONED")


def _read_tables(connection: Connection, catalog: CatalogFacts) -> None:
    for name, kind, engine, rows, data_bytes, comment in _ask(connection, _TABLES):
        if kind in _ROWS and engine is not None:
            catalog.tables[(None, name)] = TableFacts(row_estimate=rows, data_bytes=data_bytes)
        elif kind in _ROWS:
            catalog.skipped.append(SkippedObject(name=name, reason=f"cannot be opened: {comment}"))
        elif kind == "SEQUENCE":
            catalog.skipped.append(SkippedObject(name=name, reason="a sequence, not a table"))


# These collations have no contractions or expansions, so keys fold them without weights.
_LETTER_BY_LETTER = re.compile(r"utf8(mb3|mb4)?_general_(nopad_)?ci")


def _read_columns(connection: Connection, catalog: CatalogFacts) -> None:
    json_columns = _json_columns(connection)
    pads = _pads(connection)
    for table, name, type_text, length, extra, generation, collation in _ask(connection, _COLUMNS):
        facts = catalog.tables.get((None, table))
        if facts is None:
            continue
        is_json = name in json_columns[(None, table)]
        compared = "" if is_json else (collation or "")
        is_letter_by_letter = _LETTER_BY_LETTER.fullmatch(compared) is not None
        facts.columns[name] = ColumnFacts(
            type=type_text,
            kind="json" if is_json else mysql_kind(type_text),
            length_max=length,
            is_auto_increment="auto_increment" in extra.lower(),
            is_generated=bool(generation),
            # Not a suffix: MariaDB has names such as utf8mb4_uca1400_ai_ci and ..._nopad_ci.
            is_case_insensitive="_ci" in compared,
            is_letter_by_letter=is_letter_by_letter,
            pad=pads.get(compared, _pad_of(compared)),
            collation="" if is_letter_by_letter or compared.endswith("_bin") else compared,
        )


def _pads(connection: Connection) -> dict[str, Pad]:
    """Returns the padding by collation. MySQL 8 has a column for that, MariaDB has none."""
    if not _ask(connection, _PAD_COLUMN):
        return {}
    return dict(map(tuple, _ask(connection, _PADS)))


def _pad_of(collation: str) -> Pad:
    if not collation:
        return ""
    return "NO PAD" if "_nopad_" in collation else "PAD SPACE"


def _json_columns(connection: Connection) -> dict[Place, set[str]]:
    """Returns MariaDB's JSON columns, which are LONGTEXT with a check."""
    json_columns: dict[Place, set[str]] = defaultdict(set)
    if getattr(connection.dialect, "is_mariadb", False):
        for table, clause in _ask(connection, _JSON_CHECKS):
            if match := re.fullmatch(r"json_valid\(`(.+)`\)", clause):
                json_columns[(None, table)].add(match.group(1))
    return json_columns


def _ask(connection: Connection, statement: str) -> Sequence[Any]:
    return connection.execute(text(statement)).all()
