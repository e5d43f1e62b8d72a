"""The fence of PostgreSQL: statement triggers, which see TRUNCATE and cascades too."""

from __future__ import annotations

from typing import Any

from partita_migrate.moving.logs.postgresql_log import PARTS, PREPARED
from partita_migrate.moving.switching.fences.source_fence import (
    CLOSED,
    FENCE,
    GATE,
    LOCKED,
    OPEN,
    PASSING,
    REFUSAL,
)
from partita_migrate.moving.switching.fences.source_fence import SourceFence as AnyFence
from partita_migrate.moving.switching.fences.source_session import VALUE, SourceSession

TRIGGER = "partita_fence"
FUNCTION = "partita_check_fence"
FENCED = f"SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = {VALUE}"
PARTED = f"{PARTS.format(VALUE)} SELECT number::regclass::text FROM part"
SESSIONS = """
SELECT a.pid, a.usename, a.application_name, a.client_addr, a.xact_start, a.state, left(a.query, 80)
FROM pg_stat_activity a WHERE a.xact_start IS NOT NULL AND
"""
HOLDERS = f"{SESSIONS} a.pid = ANY (pg_blocking_pids({VALUE}))"
OPEN_ONES = f"""
{SESSIONS} a.datname = current_database() AND a.pid <> pg_backend_pid() ORDER BY a.xact_start
"""


class PostgreSQLFence(AnyFence):
    """The fence of PostgreSQL."""

    def install_triggers(self, session: SourceSession) -> None:
        ((schema,),) = session.run("SELECT current_schema()")
        home = session.quote(schema)
        # A transaction with an old snapshot may see the gate open; its locking read then fails,
        # because the row has changed since. A snapshot from before the fence shows no rows at all.
        session.run(
            f"""
            CREATE OR REPLACE FUNCTION {home}.{FUNCTION}() RETURNS trigger LANGUAGE plpgsql
            SECURITY DEFINER SET search_path = {home}, pg_temp AS $$
            DECLARE fence_side text;
            BEGIN
                SELECT side INTO fence_side FROM {home}.{FENCE} WHERE id = {GATE};
                IF fence_side = '{OPEN}' THEN
                    SELECT side INTO fence_side FROM {home}.{FENCE} WHERE id = {LOCKED} FOR SHARE;
                ELSE
                    SELECT side INTO fence_side FROM {home}.{FENCE} WHERE id = {LOCKED};
                    IF fence_side = '{OPEN}' THEN fence_side := '{CLOSED}'; END IF;
                END IF;
                IF coalesce(fence_side, '') NOT IN ('{OPEN}', '{PASSING}') THEN
                    RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'read_only_sql_transaction';
                END IF;
                RETURN NULL;
            END $$
            """
        )
        existing = set(session.run(FENCED, TRIGGER))
        for table in self.origin.tables:
            # A statement calls the triggers of the table that it names, and may name a partition.
            for part in session.run(PARTED, session.relation(table)):
                if part not in existing:
                    session.run(
                        f"CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON"
                        f" {part[0]} FOR EACH STATEMENT EXECUTE FUNCTION {home}.{FUNCTION}()"
                    )

    def remove_triggers(self, session: SourceSession) -> None:
        for (relation,) in session.run(FENCED, TRIGGER):
            session.run(f"DROP TRIGGER IF EXISTS {TRIGGER} ON {relation}")
        session.run(f"DROP FUNCTION IF EXISTS {FUNCTION}()")

    def number(self, session: SourceSession) -> int:
        return int(session.connection.info.backend_pid)

    def holders(self, session: SourceSession, waiting: int) -> list[str]:
        sessions = list(map(_shown, session.run(HOLDERS, waiting)))
        return sessions or [str(name) for (name,) in session.run(PREPARED)]

    def open_transactions(self, session: SourceSession) -> list[str]:
        prepared = [str(name) for (name,) in session.run(PREPARED)]
        return [*map(_shown, session.run(OPEN_ONES)), *prepared]


def _shown(session: tuple[Any, ...]) -> str:
    pid, user, name, address, since, state, query = session
    return (
        f"session {pid} of {user}"
        f"{f' ({name})' if name else ''}{f' at {address}' if address else ''},"
        f" in a transaction since {since:%H:%M:%S}, {state}: {query}"
    )
