"""The fence of SQLite. There is one writer at a time, so closing the fence waits for that one."""

from __future__ import annotations

from partita_migrate.moving.switching.fences.source_fence import CLOSED, FENCE, LOCKED, REFUSAL
from partita_migrate.moving.switching.fences.source_fence import SourceFence as AnyFence
from partita_migrate.moving.switching.fences.source_session import SourceSession

EVENTS = ("INSERT", "UPDATE", "DELETE")


class SQLiteFence(AnyFence):
    """The fence of SQLite."""

    def install_triggers(self, session: SourceSession) -> None:
        for table in self.origin.tables:
            for event in EVENTS:
                session.run(
                    f"CREATE TRIGGER IF NOT EXISTS {self._trigger(session, table.name, event)}"
                    f" BEFORE {event} ON {session.quote(table.name)} BEGIN"
                    f" SELECT RAISE(ABORT, '{REFUSAL}') FROM {FENCE}"
                    f" WHERE id = {LOCKED} AND side = '{CLOSED}'; END"
                )

    def remove_triggers(self, session: SourceSession) -> None:
        for table in self.origin.tables:
            for event in EVENTS:
                name = self._trigger(session, table.name, event)
                session.run(f"DROP TRIGGER IF EXISTS {name}")

    def _trigger(self, session: SourceSession, table: str, event: str) -> str:
        return session.quote(f"{FENCE}_{event.lower()}_{table}")

    def number(self, session: SourceSession) -> int:
        return 0

    def holders(self, session: SourceSession, waiting: int) -> list[str]:
        return []
