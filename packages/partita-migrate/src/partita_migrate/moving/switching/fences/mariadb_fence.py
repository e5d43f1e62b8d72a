"""The fence of MariaDB and MySQL: row triggers, and protection from what row triggers do not see.

Cascades of a foreign key call no triggers, so tables whose rows cascade into moved ones are fenced
too. TRUNCATE calls none either; it is refused for a table that a foreign key refers to, so each
moved table gets an empty helper table with a foreign key to it.
"""

from __future__ import annotations

from collections.abc import Sequence

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

EVENTS = ("INSERT", "UPDATE", "DELETE")
KEEPER = "partita_kept_"
CASCADES = """
SELECT TABLE_NAME, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = DATABASE()
AND (UPDATE_RULE IN ('CASCADE', 'SET NULL') OR DELETE_RULE IN ('CASCADE', 'SET NULL'))
"""
SESSION = "p.ID, p.USER, p.HOST, p.COMMAND, t.trx_started, LEFT(COALESCE(p.INFO, ''), 80)"
OPEN_ONES = (
    f"""
SELECT {SESSION} FROM information_schema.INNODB_TRX t
JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID() ORDER BY t.trx_started
""",
)
HOLDERS = (
    f"""
SELECT {SESSION} FROM information_schema.INNODB_LOCK_WAITS w
JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.INNODB_TRX t ON t.trx_id = w.blocking_trx_id
JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE r.trx_mysql_thread_id = {VALUE}
""",
    f"""
SELECT {SESSION} FROM performance_schema.data_lock_waits w
JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
JOIN information_schema.INNODB_TRX t ON t.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE r.trx_mysql_thread_id = {VALUE}
""",
)
"""The sessions that a session waits for, as MariaDB shows them and as MySQL shows them."""
KEPT = f"""
SELECT TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = DATABASE() AND CONSTRAINT_NAME = {VALUE}
"""


class MariaDBFence(AnyFence):
    """The fence of MariaDB and MySQL."""

    def install_triggers(self, session: SourceSession) -> None:
        existing = set(
            self._own(session, "TRIGGER_NAME", "TRIGGERS", "TRIGGER_SCHEMA", f"{FENCE}_")
        )
        for table in self._fenced(session):
            for event in EVENTS:
                name = _trigger(table, event)
                if name not in existing:
                    session.run(
                        f"CREATE TRIGGER {session.quote(name)} BEFORE {event} ON"
                        f" {session.quote(table)} FOR EACH ROW {_BODY}"
                    )

    def _fenced(self, session: SourceSession) -> list[str]:
        """Returns the moved tables and those whose rows cascade into them."""
        tables = [table.name for table in self.origin.tables]
        cascades = session.run(CASCADES)
        for name in tables:
            tables += [
                str(parent) for child, parent in cascades if child == name and parent not in tables
            ]
        return tables

    def _own(
        self, session: SourceSession, column: str, table: str, schema: str, prefix: str
    ) -> list[str]:
        rows = session.run(
            f"SELECT {column} FROM information_schema.{table} WHERE {schema} = DATABASE()"
            f" AND LEFT({column}, {len(prefix)}) = {VALUE}",
            prefix,
        )
        return [str(name) for (name,) in rows]

    def remove_triggers(self, session: SourceSession) -> None:
        for name in self._own(session, "TRIGGER_NAME", "TRIGGERS", "TRIGGER_SCHEMA", f"{FENCE}_"):
            session.run(f"DROP TRIGGER IF EXISTS {session.quote(name)}")

    def guard(self, session: SourceSession) -> None:
        for place, table in enumerate(self.origin.tables):
            keeper = f"{KEEPER}{place}"
            if not table.primary_key or session.run(KEPT, keeper):
                continue
            keys = ", ".join(map(session.quote, table.primary_key))
            relation = session.quote(table.name)
            try:
                session.run(
                    f"CREATE TABLE IF NOT EXISTS {keeper} (PRIMARY KEY ({keys})) ENGINE=InnoDB"
                    f" AS SELECT {keys} FROM {relation} LIMIT 0"
                )
                session.run(
                    f"ALTER TABLE {keeper} ADD CONSTRAINT {keeper} FOREIGN KEY"
                    f" ({keys}) REFERENCES {relation} ({keys})"
                )
            except session.driver.Error as error:
                if session.is_away(error):
                    raise
                # Foreign keys cannot refer to this table (it is partitioned, or of another engine),
                # or a transaction is using it; TRUNCATE would wait for that transaction too.
                session.run(f"DROP TABLE IF EXISTS {keeper}")

    def unguard(self, session: SourceSession) -> None:
        for name in self._own(session, "TABLE_NAME", "TABLES", "TABLE_SCHEMA", KEEPER):
            session.run(f"DROP TABLE IF EXISTS {session.quote(name)}")

    def number(self, session: SourceSession) -> int:
        return int(session.connection.thread_id())

    def holders(self, session: SourceSession, waiting: int) -> list[str]:
        return _sessions(session, HOLDERS, waiting)

    def open_transactions(self, session: SourceSession) -> list[str]:
        return _sessions(session, OPEN_ONES)


def _sessions(session: SourceSession, statements: Sequence[str], *about: int) -> list[str]:
    """Runs the first statement that the server supports and the user may run."""
    for statement in statements:
        try:
            sessions = session.run(statement, *about)
        except session.driver.Error as error:
            if session.is_away(error):
                raise
            continue
        return [
            f"session {number} of {user} at {host}, in a transaction since {since:%H:%M:%S},"
            f" {str(command).lower()}{f': {query}' if query else ''}"
            for number, user, host, command, since, query in sessions
        ]
    return []


def _trigger(table: str, event: str) -> str:
    """Returns a name of at most 64 characters, MariaDB's limit."""
    import hashlib

    name = f"{FENCE}_{event.lower()}_{table}"
    if len(name) <= 64:
        return name
    return f"{name[:47]}_{hashlib.sha256(table.encode()).hexdigest()[:16]}"


# A transaction whose snapshot is older than the fence does not see the gate row; the locking read
# always sees the current row.
_BODY = f"""
BEGIN
    DECLARE fence_side VARCHAR(10);
    SELECT side INTO fence_side FROM {FENCE} WHERE id = {GATE};
    IF coalesce(fence_side, '{OPEN}') = '{OPEN}' THEN
        SELECT side INTO fence_side FROM {FENCE} WHERE id = {LOCKED} LOCK IN SHARE MODE;
    ELSE
        SELECT side INTO fence_side FROM {FENCE} WHERE id = {LOCKED};
        IF fence_side = '{OPEN}' THEN SET fence_side = '{CLOSED}'; END IF;
    END IF;
    IF coalesce(fence_side, '') NOT IN ('{OPEN}', '{PASSING}') THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{REFUSAL}';
    END IF;
END
"""
