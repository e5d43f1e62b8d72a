"""A source that is read once, and whose changes nobody follows."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from partita.errors import PartitaError
from partita_migrate.moving.logs.changes import ChangeLog, OpenSession, Session, Transaction
from partita_migrate.moving.logs.origin import BEGIN, Origin
from partita_migrate.understanding.sources.connection import Source


class Unlogged(ChangeLog):
    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    def prepare(self) -> None:
        """Nothing is kept."""

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        yield self._session

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with self.origin.connect() as source, source.errors():
            source.connection.exec_driver_sql(BEGIN[self.origin.family])
            try:
                yield Session(source, 0, "")
            finally:
                if not source.is_lost:
                    source.connection.exec_driver_sql("ROLLBACK")

    def transactions(self, after: int, resume: str) -> Generator[Transaction | None]:
        raise PartitaError(
            f"{self.origin.folder.path} was loaded without noting where the log was, so that its"
            " changes cannot be followed; load anew with --follow."
        )
        yield None

    def end(self, source: Source) -> int:
        return 0

    def bytes_behind(self, position: int, end: int) -> int | None:
        return None

    def remove(self) -> None:
        """Nothing was left behind."""
