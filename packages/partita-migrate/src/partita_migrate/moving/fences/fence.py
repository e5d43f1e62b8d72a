"""The fence: the source refuses writes itself, for programs that skip every library.

A helper table has two rows. Triggers of every moved table read the first with a shared lock that is
held until commit: whoever wants to close the fence waits for those that have written, and nobody
who has seen it open can commit after it was closed. The second row is read without a lock and is
closed first, so that new writers are refused and do not queue before those that are waited for.

The way back opens the fence in its own transaction and closes it again before the commit: nobody
else ever sees it open, and the change of the row marks the transaction in the source's log.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from partita.errors import PartitaError
from partita_migrate.moving.fences.session import VALUE, Session, open_session
from partita_migrate.moving.logs.origin import Origin
from partita_migrate.progress import Progress, silent
from partita_migrate.switch import ALL, CREATE, FLAG, IN_MIGRATION, MIGRATED
from partita_migrate.switch import SOURCE as SOURCE
from partita_migrate.switch import TABLE as SWITCH
from partita_migrate.switch import TARGET as TARGET

FENCE = "partita_fence"
LOCKED, GATE = 1, 2
OPEN, CLOSED, PASSING = "open", "closed", "passing"
REFUSAL = "partita: this database was moved, and writes go to its new place"
POLL_SECONDS = 0.1
PAUSE_SECONDS = 1.0


class Fence(ABC):
    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    # What each kind of source does in its own way.

    @abstractmethod
    def install_triggers(self, session: Session) -> None:
        """Run again it changes nothing."""

    @abstractmethod
    def remove_triggers(self, session: Session) -> None: ...

    @abstractmethod
    def holders(self, session: Session, waiting: int) -> list[str]:
        """Who keeps the session of a number waiting, in words."""

    def open_transactions(self, session: Session) -> list[str]:
        """What a table may be in use by, in words."""
        return []

    @abstractmethod
    def number(self, session: Session) -> int:
        """Of a session, as others see it."""

    def guard(self, session: Session) -> None:  # noqa: B027 - only MariaDB and MySQL need it
        """Against what skips triggers. Run again it adds what could not be made before."""

    def unguard(self, session: Session) -> None:  # noqa: B027
        """What `guard` did is undone."""

    # What is the same for all.

    def install(self, wait_seconds: float) -> None:
        """The helper tables and triggers; the fence is as it was, or open."""
        end = time.monotonic() + wait_seconds
        while True:
            with open_session(self.origin) as session:
                try:
                    self._create_tables(session)
                    self.install_triggers(session)
                    return
                except session.driver.Error as error:
                    if not session.is_busy(error) or time.monotonic() > end:
                        open_ones = "; ".join(self.open_transactions(session))
                        raise PartitaError(
                            f"{self.origin.address} cannot be given its triggers:"
                            f" {session.said(error)}"
                            f"{f' (open: {open_ones})' if open_ones else ''}. Nothing has changed."
                        ) from error
            time.sleep(PAUSE_SECONDS)

    def _create_tables(self, session: Session) -> None:
        session.run(
            f"CREATE TABLE IF NOT EXISTS {FENCE} (id INTEGER PRIMARY KEY, side VARCHAR(10) NOT"
            " NULL)"
        )
        session.run(CREATE)
        for row in (LOCKED, GATE):
            if not session.run(f"SELECT 1 FROM {FENCE} WHERE id = {VALUE}", row):
                session.run(f"INSERT INTO {FENCE} VALUES ({VALUE}, {VALUE})", row, OPEN)
        if not session.run(f"SELECT 1 FROM {SWITCH} WHERE scope = {VALUE}", ALL):
            marks = ", ".join([VALUE] * 5)
            session.run(f"INSERT INTO {SWITCH} VALUES ({marks})", ALL, SOURCE, IN_MIGRATION, 0, 0)

    @property
    def is_installed(self) -> bool:
        with open_session(self.origin) as session:
            try:
                return bool(session.run(f"SELECT 1 FROM {FENCE} WHERE id = {LOCKED}"))
            except session.driver.Error as error:
                if session.is_away(error):
                    raise
                return False

    @property
    def is_closed(self) -> bool:
        """Or half closed, as a kill may have left it: writes are refused then too."""
        return self.is_installed and CLOSED in (
            self._read(FENCE, "id", LOCKED),
            self._read(FENCE, "id", GATE),
        )

    @property
    def side(self) -> str:
        """Which side the switch says is authoritative."""
        return self._read(SWITCH, "scope", ALL) if self.is_installed else SOURCE

    def _read(self, table: str, column: str, key: int | str) -> str:
        with open_session(self.origin) as session:
            ((side,),) = session.run(f"SELECT side FROM {table} WHERE {column} = {VALUE}", key)
            return str(side)

    def close(self, wait_seconds: float, progress: Progress = silent) -> None:
        """From now on the source refuses writes, and nobody has one that is not committed."""
        end = time.monotonic() + wait_seconds
        with open_session(self.origin) as session:
            self.guard(session)
            while True:
                self._set(session, GATE, CLOSED)
                holders = self._try_to_close(session, progress)
                if holders is None:
                    return
                self._set(session, GATE, OPEN)
                if time.monotonic() > end:
                    self.unguard(session)
                    named = "; ".join(holders) or "a session that the server does not name"
                    raise PartitaError(
                        f"{self.origin.address} has transactions that have written and do not end:"
                        f" {named}. End them, or wait longer with --wait. Nothing has changed."
                    )
                time.sleep(PAUSE_SECONDS)

    def _try_to_close(self, session: Session, progress: Progress) -> list[str] | None:
        """None when it is closed; else who holds it."""
        failed: list[BaseException] = []
        number: list[int] = []
        begun = threading.Event()

        def run() -> None:
            try:
                with open_session(self.origin) as own:
                    number.append(self.number(own))
                    begun.set()
                    try:
                        self._set(own, LOCKED, CLOSED)
                    except own.driver.Error as error:
                        failed.append(error)
            except BaseException as error:
                failed.append(error)
            finally:
                begun.set()

        closing = threading.Thread(target=run, name="fence")
        closing.start()
        begun.wait()
        holders: list[str] = []
        try:
            while True:
                closing.join(POLL_SECONDS)
                if not closing.is_alive():
                    break
                found = self.holders(session, number[0]) if number else []
                if found:
                    holders = found
                    progress(f"Waiting for {found[0]}", 0, 0)
        finally:
            # It must not close the fence behind somebody who opens it again.
            closing.join()
        if not failed:
            return None
        error = failed[0]
        if isinstance(error, session.driver.Error) and session.is_busy(error):
            return holders
        raise error

    def _set(self, session: Session, row: int, side: str) -> None:
        session.change(f"UPDATE {FENCE} SET side = {VALUE} WHERE id = {VALUE}", side, row)

    def turn(self, side: str) -> None:
        """What applications read: who is authoritative. Towards the source the fence opens with
        it, in one transaction."""
        state = MIGRATED if side == TARGET else IN_MIGRATION
        percent = 100 if side == TARGET else 0
        with open_session(self.origin) as session:
            with session.transaction():
                session.change(
                    f"UPDATE {SWITCH} SET side = {VALUE}, state = {VALUE}, read_percent = {VALUE}"
                    f" WHERE scope NOT LIKE {VALUE}",
                    side,
                    state,
                    percent,
                    f"{FLAG}%",
                )
                if side == SOURCE:
                    self._set(session, LOCKED, OPEN)
                    self._set(session, GATE, OPEN)
            if side == SOURCE:
                self.unguard(session)
            else:
                # Of tables that were in use when the fence was closed.
                self.guard(session)

    @contextmanager
    def passing(self, session: Session) -> Iterator[None]:
        """A transaction of the way back, which is let through and marked."""
        with session.transaction():
            self._set(session, LOCKED, PASSING)
            yield
            self._set(session, LOCKED, CLOSED)

    def remove(self) -> None:
        """Nothing of it is left."""
        with open_session(self.origin) as session:
            self.unguard(session)
            self.remove_triggers(session)
            session.run(f"DROP TABLE IF EXISTS {FENCE}")
            session.run(f"DROP TABLE IF EXISTS {SWITCH}")
