"""The fence: the source itself refuses writes, so that programs without our library are stopped
too.

A helper table has two rows. Triggers of every moved table read the first row (the lock) with a
shared lock that lasts until commit. Closing the fence updates that row, so it waits for every
transaction that has written, and nobody who saw the fence open can commit afterwards. The second
row (the gate) is read without a lock and is closed first, so that new writers are refused at once
instead of queueing before the update.

The way back opens the fence inside its own transaction and closes it before the commit: no other
session ever sees it open, and the update of the row marks the transaction in the source's log.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.switching.fences.source_session import (
    VALUE,
    SourceSession,
    open_session,
)
from partita_migrate.switch import ALL, CREATE, FLAG, IN_MIGRATION, MIGRATED
from partita_migrate.switch import SOURCE as SOURCE
from partita_migrate.switch import TABLE as SWITCH
from partita_migrate.switch import TARGET as TARGET
from partita_migrate.workspace.stage_progress import Progress, silent

FENCE = "partita_fence"
LOCKED, GATE = 1, 2
OPEN, CLOSED, PASSING = "open", "closed", "passing"
REFUSAL = "partita: this database was moved, and writes go to its new place"
POLL_SECONDS = 0.1
PAUSE_SECONDS = 1.0


class SourceFence(ABC):
    """Installs, closes, opens and removes the fence of one source."""

    def __init__(self, origin: MoveSource) -> None:
        self.origin = origin

    # What differs between the kinds of sources.

    @abstractmethod
    def install_triggers(self, session: SourceSession) -> None:
        """Creates the triggers; a second call changes nothing."""

    @abstractmethod
    def remove_triggers(self, session: SourceSession) -> None: ...

    @abstractmethod
    def holders(self, session: SourceSession, waiting: int) -> list[str]:
        """Describes the sessions that the session with this number is waiting for."""

    def open_transactions(self, session: SourceSession) -> list[str]:
        """Describes open transactions that may keep a table in use."""
        return []

    @abstractmethod
    def number(self, session: SourceSession) -> int:
        """Returns the number by which other sessions know this one."""

    def guard(self, session: SourceSession) -> None:  # noqa: B027 - only MariaDB and MySQL need it
        """Protects against statements that skip triggers; a second call adds what failed before."""

    def unguard(self, session: SourceSession) -> None:  # noqa: B027
        """Undoes `guard`."""

    # What is the same for all sources.

    def install(self, wait_seconds: float) -> None:
        """Creates the helper tables and triggers; an existing fence stays as it is, a new one is
        open."""
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
                            f"The triggers cannot be created at {self.origin.address}:"
                            f" {session.message_of(error)}"
                            f"{f' (open: {open_ones})' if open_ones else ''}. Nothing has changed."
                        ) from error
            time.sleep(PAUSE_SECONDS)

    def _create_tables(self, session: SourceSession) -> None:
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
        """True when the fence is closed, or half closed by a kill: writes are refused then too."""
        return self.is_installed and CLOSED in (
            self._read(FENCE, "id", LOCKED),
            self._read(FENCE, "id", GATE),
        )

    @property
    def side(self) -> str:
        """The side that the switch calls authoritative."""
        return self._read(SWITCH, "scope", ALL) if self.is_installed else SOURCE

    def _read(self, table: str, column: str, key: int | str) -> str:
        with open_session(self.origin) as session:
            ((side,),) = session.run(f"SELECT side FROM {table} WHERE {column} = {VALUE}", key)
            return str(side)

    def close(self, wait_seconds: float, progress: Progress = silent) -> None:
        """Makes the source refuse writes, and waits until no uncommitted write is left."""
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
                        f"{self.origin.address} has open transactions with writes that do not end:"
                        f" {named}. End them, or wait longer with --wait. Nothing has changed."
                    )
                time.sleep(PAUSE_SECONDS)

    def _try_to_close(self, session: SourceSession, progress: Progress) -> list[str] | None:
        """Closes the lock row; returns None on success, otherwise who holds it."""
        failed: list[BaseException] = []
        number: list[int] = []
        started = threading.Event()

        def run() -> None:
            try:
                with open_session(self.origin) as own_session:
                    number.append(self.number(own_session))
                    started.set()
                    try:
                        self._set(own_session, LOCKED, CLOSED)
                    except own_session.driver.Error as error:
                        failed.append(error)
            except BaseException as error:
                failed.append(error)
            finally:
                started.set()

        # The UPDATE waits for open transactions in a session and thread of its own; meanwhile this
        # session asks the server which ones they are.
        closing = threading.Thread(target=run, name="fence")
        closing.start()
        started.wait()
        holders: list[str] = []
        try:
            while True:
                closing.join(POLL_SECONDS)
                if not closing.is_alive():
                    break
                named_holders = self.holders(session, number[0]) if number else []
                if named_holders:
                    holders = named_holders
                    progress(f"Waiting for {named_holders[0]}", 0, 0)
        finally:
            # The thread must not close the fence after the caller has opened it again.
            closing.join()
        if not failed:
            return None
        error = failed[0]
        if isinstance(error, session.driver.Error) and session.is_busy(error):
            return holders
        raise error

    def _set(self, session: SourceSession, row: int, side: str) -> None:
        session.change(f"UPDATE {FENCE} SET side = {VALUE} WHERE id = {VALUE}", side, row)

    def turn(self, side: str) -> None:
        """Tells applications which side is authoritative; towards the source, opens the fence in
        the same transaction."""
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
                # Tables that were in use when the fence was closed get their guard now.
                self.guard(session)

    @contextmanager
    def passing(self, session: SourceSession) -> Iterator[None]:
        """Runs a transaction of the way back, which the fence lets through and which is marked by
        it."""
        with session.transaction():
            self._set(session, LOCKED, PASSING)
            yield
            self._set(session, LOCKED, CLOSED)

    def remove(self) -> None:
        """Removes everything that belongs to the fence."""
        with open_session(self.origin) as session:
            self.unguard(session)
            self.remove_triggers(session)
            session.run(f"DROP TABLE IF EXISTS {FENCE}")
            session.run(f"DROP TABLE IF EXISTS {SWITCH}")
