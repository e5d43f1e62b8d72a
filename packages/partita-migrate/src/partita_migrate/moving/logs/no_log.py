"""The log of a source that is read once and not followed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from partita.errors import PartitaError
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.logs.source_changes import (
    LogSession,
    OpenSession,
    SourceLog,
    SourceTransaction,
)
from partita_migrate.proving.sandbox.source_snapshot import consistent_read
from partita_migrate.understanding.sources.source_connection import SourceDatabase


class NoLog(SourceLog):
    """A log without changes."""

    def __init__(self, origin: MoveSource) -> None:
        self.origin = origin

    def prepare(self) -> None:
        """Does nothing: no changes are kept."""

    @contextmanager
    def sessions(self, shared: str = "") -> Iterator[OpenSession]:
        yield self._session

    @contextmanager
    def _session(self) -> Iterator[LogSession]:
        with self.origin.connect() as source, source.errors(), consistent_read(source):
            yield LogSession(source, 0, "")

    def transactions(self, after: int, resume: str) -> Generator[SourceTransaction | None]:
        raise PartitaError(
            f"{self.origin.folder.path} was loaded without a position in the log, so its changes"
            " cannot be followed; start over with `load --follow`."
        )
        yield None

    def end(self, source: SourceDatabase) -> int:
        return 0

    def bytes_behind(self, position: int, end: int) -> int | None:
        return None

    def remove(self) -> None:
        """Does nothing: nothing was left behind."""
