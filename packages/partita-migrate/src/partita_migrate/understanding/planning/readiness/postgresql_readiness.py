"""PostgreSQL: pg_dump, and a logical replication slot."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.understanding.planning.readiness.readiness_check import (
    ServerCheck,
    not_ready,
    ready,
    rights,
)
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase, SourceError
from partita_migrate.workspace.readable_lists import first_names

STANDBY_SLOTS_VERSION = 160_000
NAMES_MAX = 5

_UNREADABLE = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
  AND ((c.relkind IN ('r', 'p', 'm') AND NOT has_table_privilege(c.oid, 'SELECT'))
    OR (c.relkind = 'S' AND NOT has_sequence_privilege(c.oid, 'SELECT')))
ORDER BY 1
"""
_ROW_SECURITY = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relrowsecurity AND row_security_active(c.oid) ORDER BY 1
"""
_USED = """
SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication)
"""
_ROLE = """
SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = current_user
"""
_CLOUD_ROLES = """
SELECT count(*) FROM pg_roles
WHERE rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')
  AND pg_has_role(current_user, oid, 'member')
"""
"""Roles by which managed servers grant the right to replicate."""


def _setting(source: SourceDatabase, name: str) -> str:
    return str(source.rows("SELECT current_setting(:name)", name=name)[0][0])


def backup_rights(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    """pg_dump stops at the first table or sequence that it may not read."""
    names = [str(name) for (name,) in source.rows(_UNREADABLE)]
    missing = [f"SELECT on {first_names(names, NAMES_MAX)}"] if names else []
    yield rights(
        "backup",
        missing,
        "Take the backup as their owner, or GRANT SELECT on all tables and sequences to this user"
        " (GRANT pg_read_all_data, from version 14 on).",
    )
    hidden = [str(name) for (name,) in source.rows(_ROW_SECURITY)]
    if hidden:
        yield not_ready(
            "backup",
            "row security",
            f"active for this user on {first_names(hidden, NAMES_MAX)}",
            "Take the backup as the owner or with BYPASSRLS: pg_dump fails on rows that it may not"
            " see.",
        )


def changes_in_wal(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    level = _setting(source, "wal_level")
    if level == "logical":
        yield ready("changes", "wal_level", level)
    else:
        yield not_ready(
            "changes",
            "wal_level",
            level,
            "ALTER SYSTEM SET wal_level = 'logical', and restart the server"
            " (rds.logical_replication = 1 on Amazon RDS).",
        )
    yield from _standby(source)
    slots, senders = source.rows(_USED)[0]
    # Following needs a slot and a WAL sender of its own.
    for name, used in (("max_replication_slots", slots), ("max_wal_senders", senders)):
        most = int(_setting(source, name))
        text = f"{most}, {used} in use"
        if most > int(used):
            yield ready("changes", name, text)
        else:
            yield not_ready(
                "changes",
                name,
                text,
                f"ALTER SYSTEM SET {name} = {int(used) + 2}, and restart the server.",
            )


def _standby(source: SourceDatabase) -> Iterator[ServerCheck]:
    is_standby = bool(source.rows("SELECT pg_is_in_recovery()")[0][0])
    version = int(_setting(source, "server_version_num"))
    if is_standby and version < STANDBY_SLOTS_VERSION:
        yield not_ready(
            "changes",
            "this server",
            "a standby",
            "Create the slot on the primary server: standbys have logical slots from version 16"
            " on.",
        )


def changes_rights(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    is_superuser, may_replicate = source.rows(_ROLE)[0]
    is_granted = bool(source.rows(_CLOUD_ROLES)[0][0])
    missing = [] if is_superuser or may_replicate or is_granted else ["REPLICATION"]
    yield rights(
        "changes",
        missing,
        "ALTER ROLE ... REPLICATION for the user that follows the changes (GRANT"
        " rds_replication on Amazon RDS).",
    )


def changes_identities(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    """Finds tables without a replica identity: once they are published, PostgreSQL refuses their
    updates and deletes."""
    rows = source.rows(
        "SELECT c.oid::regclass::text FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
        " AND n.nspname NOT LIKE 'pg\\_%' AND c.relpersistence = 'p'"
        " AND (c.relreplident = 'n' OR (c.relreplident = 'd' AND NOT EXISTS"
        " (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)))"
        " ORDER BY 1"
    )
    names = [str(name) for (name,) in rows]
    if not names:
        yield ready("changes", "the replica identity", "there for every table")
        return
    yield not_ready(
        "changes",
        "the replica identity",
        f"missing for {first_names(names, NAMES_MAX)}",
        "ALTER TABLE ... REPLICA IDENTITY FULL, or give them a primary key, before they are"
        " published: else their updates and deletes are refused.",
    )


def statistics(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    try:
        source.rows("SELECT count(*) FROM pg_stat_statements")
    except SourceError:
        if source.is_lost:
            raise
        yield not_ready(
            "statistics",
            "pg_stat_statements",
            "not there",
            "Add it to shared_preload_libraries, restart the server, and CREATE EXTENSION"
            " pg_stat_statements; or name a log under logs in [analyze].",
        )
        return
    yield ready("statistics", "pg_stat_statements", "on")
    try:
        track = _setting(source, "pg_stat_statements.track")
    except SourceError:
        if source.is_lost:
            raise
        return
    if track != "top":
        yield not_ready(
            "statistics",
            "pg_stat_statements.track",
            track,
            "ALTER SYSTEM SET pg_stat_statements.track = 'top' and reload, so that statements"
            " inside of functions and triggers are not counted as calls of the application.",
        )


CHECKS = (backup_rights, changes_in_wal, changes_rights, changes_identities, statistics)
