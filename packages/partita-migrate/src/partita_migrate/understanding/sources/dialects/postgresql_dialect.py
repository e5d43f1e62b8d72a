"""PostgreSQL: the session, the messages of errors, and what the catalog adds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from partita.errors import PartitaError
from partita_migrate.understanding.schema.inventory import ColumnKind, ForeignKey, SkippedObject
from partita_migrate.understanding.sources.dialects.catalog_facts import (
    CatalogFacts,
    ColumnFacts,
    TableFacts,
    is_analytical,
)
from partita_migrate.understanding.sources.dialects.column_kinds import postgresql_kind
from partita_migrate.workspace.migration_folder import SourceSettings

LOCK_WAIT_MS = 1000

# Advice by SQLSTATE. Failed connections have no SQLSTATE, only a text.
ADVICE = {
    "42501": "grant the user the right to select",
    "42P01": "run `partita migrate plan` again if the schema has changed",
    "55P03": "something holds a lock; try again",
    "57014": "raise statement_seconds_max in [source] if the server can bear it",
    "57P01": "the server went away; run the stage again",
}
ADVICE_BY_WORDS = {
    "password authentication failed": "check the user and the password",
    "no password supplied": "set password_env or password_file in [source]",
    "no pg_hba.conf entry": "the server does not let this user in from here",
    "does not exist": "check the name after the last / of the url, and the user",
    "could not translate host": "check the host",
    "failed to resolve host": "check the host",
    "refused": "check the host and the port, and that the server runs",
    "timeout expired": "check the host and the port, and that the server runs",
    "closed the connection": "the server went away; run the stage again",
    "connection is lost": "the server went away; run the stage again",
    "connection is closed": "the server went away; run the stage again",
}
WANTS_PASSWORD = ("no password supplied", "password authentication failed")


def engine_options(url: URL, connect_seconds_max: float) -> dict[str, Any]:
    return {
        "connect_args": {
            # libpq takes any time-out below two seconds for two.
            "connect_timeout": max(2, round(connect_seconds_max)),
            "application_name": "partita migrate",
        }
    }


def prepare(driver_connection: Any, statement_seconds_max: float) -> None:
    # Outside of a transaction: a rollback would undo the settings.
    was_autocommit = driver_connection.autocommit
    driver_connection.autocommit = True
    for name, value in (
        ("default_transaction_read_only", "on"),
        ("statement_timeout", str(round(statement_seconds_max * 1000))),
        ("lock_timeout", str(LOCK_WAIT_MS)),
        ("TimeZone", "UTC"),
    ):
        driver_connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    driver_connection.autocommit = was_autocommit


def limit_statements(connection: Connection, seconds: float) -> None:
    connection.exec_driver_sql(f"SET statement_timeout = {round(seconds * 1000)}")


def server_version(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SHOW server_version").scalar_one())


def error_text(cause: BaseException) -> str:
    """Returns the first line. libpq repeats the explanation for each address that it tried."""
    text = str(cause).strip() or type(cause).__name__
    return text.splitlines()[0].split("FATAL:")[-1].strip()


def advice(cause: BaseException) -> str | None:
    state = getattr(cause, "sqlstate", None)
    if state in ADVICE:
        return ADVICE[state]
    text = str(cause)
    return next(
        (advice_found for part, advice_found in ADVICE_BY_WORDS.items() if part in text), None
    )


def wants_password(cause: BaseException) -> bool:
    return any(part in str(cause) for part in WANTS_PASSWORD)


def read_catalog(connection: Connection, settings: SourceSettings) -> CatalogFacts:
    schemas = _schemas(connection, settings)
    default = str(_ask(connection, "SELECT coalesce(current_schema(), 'public')")[0][0])
    catalog = CatalogFacts(default_schema=default)
    relations = _relations(connection, schemas)
    _fold_partitions(relations)
    _measure(connection, relations)
    for relation in relations.values():
        _place(catalog, relation, relations)
    _read_columns(connection, catalog, relations)
    _read_foreign_keys(connection, catalog, relations)
    _read_views(connection, catalog, relations)
    for oid, trigger in _ask(connection, _TRIGGERS):
        if facts := _facts(catalog, relations, oid):
            facts.triggers.append(trigger)
    for oid, rule in _ask(connection, _RULES):
        if facts := _facts(catalog, relations, oid):
            facts.rules.append(rule)
    for oid, index, kind in _ask(connection, _INDEX_KINDS):
        if facts := _facts(catalog, relations, oid):
            facts.index_kinds[index] = kind
    catalog.routines = sorted(
        {catalog.name(schema, name) for schema, name in _ask(connection, _ROUTINES, schemas)}
    )
    return catalog


@dataclass
class CatalogRelation:
    """A row of pg_class that can become a table or a view of the inventory."""

    schema: str
    name: str
    kind: str
    """The relkind: r table, p partitioned table, v view, m materialized view, f foreign table."""
    is_partition: bool
    rows: float
    pages_bytes: int
    is_readable: bool
    extension: str | None
    has_own_columns: bool
    parents: list[int] = field(default_factory=list)
    heirs: list[int] = field(default_factory=list)
    folded: list[int] = field(default_factory=list)
    """Partitions of any depth, and inheriting tables without columns of their own: their rows count
    as this table's."""
    is_folded: bool = False
    root: int = 0
    """The relation that it is folded into; itself if it is not folded."""
    data_bytes: int | None = None


_NOT_OURS = """
    n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""
_SCHEMAS = f"SELECT n.nspname FROM pg_namespace n WHERE {_NOT_OURS} ORDER BY 1"
_RELATIONS = """
    SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition, c.reltuples,
           c.relpages * current_setting('block_size')::bigint,
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
           e.extname,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
                   AND a.attislocal AND NOT a.attisdropped)
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass
        AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
    LEFT JOIN pg_extension e ON e.oid = d.refobjid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY(:schemas)
    ORDER BY n.nspname, c.relname
"""
_INHERITANCE = "SELECT inhrelid, inhparent FROM pg_inherits ORDER BY inhrelid, inhseqno"
# The collation of the database itself (provider d) is in a column whose name depends on the
# version: datlocale since 17, daticulocale in 15 and 16. to_jsonb reads whichever exists. A default
# of nextval() marks a serial column.
_COLUMNS = """
    SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid,
           a.attidentity <> '' OR coalesce(pg_get_expr(f.adbin, f.adrelid), '') LIKE 'nextval(%',
           a.attgenerated <> '', NOT coalesce(l.collisdeterministic, true),
           CASE WHEN l.collprovider = 'd' THEN (
               SELECT coalesce(to_jsonb(b) ->> 'datlocale', to_jsonb(b) ->> 'daticulocale',
                               b.datcollate)
               FROM pg_database b WHERE b.datname = current_database()
           ) ELSE coalesce(l.collname, '') END
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = ANY(:schemas)
    LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attrelid, a.attnum
"""
_OWN_TYPES = """
    SELECT oid, typtype::text, typbasetype, format_type(typbasetype, typtypmod)
    FROM pg_type WHERE typtype IN ('d', 'e')
"""
_FOREIGN_KEYS = """
    SELECT c.conrelid, c.confrelid, n.nspname, r.relname, c.confdeltype::text, c.confupdtype::text,
           ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k (number, place)
                 JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number
                 ORDER BY k.place),
           ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY AS k (number, place)
                 JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number
                 ORDER BY k.place)
    FROM pg_constraint c
    JOIN pg_class r ON r.oid = c.confrelid
    JOIN pg_namespace n ON n.oid = r.relnamespace
    WHERE c.contype = 'f'
    ORDER BY c.conrelid, c.conname
"""
_ACTIONS = {"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT", "r": "RESTRICT"}
_SIZES = """
    SELECT c.oid, pg_table_size(c.oid) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = ANY(:schemas)
"""
_TRIGGERS = """
    SELECT tgrelid, tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'
    ORDER BY tgrelid, tgname
"""
_RULES = """
    SELECT ev_class, rulename FROM pg_rewrite WHERE rulename <> '_RETURN' ORDER BY 1, 2
"""
_INDEX_KINDS = """
    SELECT i.indrelid, c.relname, m.amname
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    WHERE m.amname <> 'btree' ORDER BY 1, 2
"""
_VIEWS = """
    SELECT c.oid, pg_get_viewdef(c.oid) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('v', 'm') AND n.nspname = ANY(:schemas)
"""
_ROUTINES = """
    SELECT n.nspname, p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = ANY(:schemas) AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass
        AND d.deptype = 'e')
"""


def _schemas(connection: Connection, settings: SourceSettings) -> list[str]:
    existing = [name for (name,) in _ask(connection, _SCHEMAS)]
    missing = [name for name in settings.schemas if name not in existing]
    if missing:
        raise PartitaError(
            f"The source has no schema {missing[0]!r}; schemas in [source] may name "
            + ", ".join(existing)
            + "."
        )
    return settings.schemas or existing


def _relations(connection: Connection, schemas: list[str]) -> dict[int, CatalogRelation]:
    relations = {row[0]: CatalogRelation(*row[1:]) for row in _ask(connection, _RELATIONS, schemas)}
    for child, parent in _ask(connection, _INHERITANCE):
        if child in relations and parent in relations:
            relations[child].parents.append(parent)
            relations[parent].heirs.append(child)
    return relations


def _fold_partitions(relations: dict[int, CatalogRelation]) -> None:
    for relation in relations.values():
        relation.is_folded = relation.is_partition or (
            len(relation.parents) == 1 and not relation.has_own_columns
        )
    for oid in relations:
        root = oid
        while relations[root].is_folded and relations[root].parents:
            root = relations[root].parents[0]
        relations[oid].root = root
        if root != oid:
            relations[root].folded.append(oid)


def _measure(connection: Connection, relations: dict[int, CatalogRelation]) -> None:
    schemas = sorted({relation.schema for relation in relations.values()})
    try:
        sizes = dict(map(tuple, _ask(connection, _SIZES, schemas)))
    except DBAPIError:
        # pg_table_size waits for an exclusive lock on a table; the statistics do not.
        sizes = {}
    for oid, relation in relations.items():
        size = sizes.get(oid)
        relation.data_bytes = relation.pages_bytes if size is None else size


def _place(
    catalog: CatalogFacts, relation: CatalogRelation, relations: dict[int, CatalogRelation]
) -> None:
    """Adds a relation to the tables, the views, or the skipped objects with the reason."""
    name = catalog.name(relation.schema, relation.name)
    if relation.extension:
        reason = f"belongs to the extension {relation.extension}"
        catalog.skipped.append(SkippedObject(name=name, reason=reason))
    elif relation.kind == "f":
        reason = "a foreign table: its rows are in another database"
        catalog.skipped.append(SkippedObject(name=name, reason=reason))
    elif relation.kind in "vm":
        catalog.views.append(name)
    elif not relation.is_folded:
        parts = [relations[oid] for oid in relation.folded]
        rows = [part.rows for part in (relation, *parts) if part.kind == "r"]
        catalog.tables[catalog.place(relation.schema, relation.name)] = TableFacts(
            # -1 means that the table was never analyzed.
            row_estimate=None if min(rows, default=0) < 0 else round(sum(rows)),
            data_bytes=sum(part.data_bytes or 0 for part in (relation, *parts)),
            partitions=[catalog.name(part.schema, part.name) for part in parts],
            inherits=[
                catalog.name(relations[oid].schema, relations[oid].name) for oid in relation.parents
            ],
            is_inherited=any(not relations[oid].is_folded for oid in relation.heirs),
            is_readable=relation.is_readable,
        )


_BLANK_PADDED = r"character(\(\d+\))?|bpchar"


def _read_columns(
    connection: Connection, catalog: CatalogFacts, relations: dict[int, CatalogRelation]
) -> None:
    schemas = sorted({relation.schema for relation in relations.values()})
    own_types = {row[0]: tuple(row[1:]) for row in _ask(connection, _OWN_TYPES)}
    for oid, name, type_text, type_oid, is_auto, is_generated, is_insensitive, collation in _ask(
        connection, _COLUMNS, schemas
    ):
        facts = _facts(catalog, relations, oid)
        if facts is None:
            continue
        kind, plain = _resolve(type_text, type_oid, own_types)
        length = re.fullmatch(r"character(?: varying)?\((\d+)\)", plain)
        facts.columns[name] = ColumnFacts(
            type=type_text if plain == type_text else f"{type_text} ({plain})",
            kind=kind,
            length_max=int(length.group(1)) if length else None,
            is_auto_increment=is_auto,
            is_generated=is_generated,
            is_case_insensitive=is_insensitive or plain.endswith("citext"),
            pad="PAD SPACE" if re.fullmatch(_BLANK_PADDED, plain) else "",
            collation="" if _is_by_bytes(collation) or kind != "string" else collation,
        )


def _is_by_bytes(collation: str) -> bool:
    plain = collation.lower()
    return plain in ("", "c", "posix", "ucs_basic") or plain.startswith("c.utf")


def _resolve(
    type_text: str, type_oid: int, own_types: dict[int, tuple[str, int, str]]
) -> tuple[ColumnKind, str]:
    """Returns the kind of a type, and the plain type behind a domain."""
    kind, base, base_text = own_types.get(type_oid, ("", 0, ""))
    if kind == "e":
        return "enum", type_text
    if kind == "d":
        return _resolve(base_text, base, own_types)
    return postgresql_kind(type_text), type_text


def _read_foreign_keys(
    connection: Connection, catalog: CatalogFacts, relations: dict[int, CatalogRelation]
) -> None:
    """Reads the foreign keys of tables and of their partitions, which can have them when the table
    has none.

    SQLAlchemy would take a table of the default schema for one in the schema of the referring
    table.
    """
    for oid, target, schema, name, on_delete, on_update, columns, referenced in _ask(
        connection, _FOREIGN_KEYS
    ):
        facts = _facts(catalog, relations, relations[oid].root) if oid in relations else None
        if facts is None:
            continue
        if target in relations:
            root = relations[relations[target].root]
            schema, name = root.schema, root.name
        key = ForeignKey(
            columns=columns,
            referenced_table=catalog.name(schema, name),
            referenced_columns=referenced,
            on_delete=_ACTIONS.get(on_delete),
            on_update=_ACTIONS.get(on_update),
        )
        facts.foreign_keys = [*(facts.foreign_keys or []), key]


def _read_views(
    connection: Connection, catalog: CatalogFacts, relations: dict[int, CatalogRelation]
) -> None:
    schemas = sorted({relation.schema for relation in relations.values()})
    for oid, definition in _ask(connection, _VIEWS, schemas):
        relation = relations.get(oid)
        if relation is None or relation.extension:
            continue
        name = catalog.name(relation.schema, relation.name)
        catalog.view_queries[name] = definition or ""
        if is_analytical(definition):
            catalog.analytical_views.append(name)
    catalog.analytical_views.sort()


def _facts(
    catalog: CatalogFacts, relations: dict[int, CatalogRelation], oid: int
) -> TableFacts | None:
    relation = relations.get(oid)
    if relation is None:
        return None
    return catalog.tables.get(catalog.place(relation.schema, relation.name))


def _ask(connection: Connection, statement: str, schemas: list[str] | None = None) -> Sequence[Any]:
    parameters = {} if schemas is None else {"schemas": schemas}
    return connection.execute(text(statement), parameters).all()
