"""Committed transactions and the rows that they changed: the form in which every log delivers
them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.understanding.sources.source_connection import SourceDatabase


class SchemaChanged(PartitaError):
    """Raised when a followed table differs from the inventory."""


class LogLost(PartitaError):
    """Raised when the log no longer reaches back to where following would go on."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row, before and after.

    `old` may contain the primary key only, and is None when `new` has the same key. `new` is None
    for a deleted row. With neither, the whole table was emptied.
    """

    table: str
    old: Item | None
    new: Item | None
    unsent: frozenset[str] = frozenset()
    """Columns of `new` that did not change and that the log therefore leaves out."""
    has_cascades: bool = False
    """True when the source cascaded the change to other tables without logging it."""


@dataclass(frozen=True, slots=True)
class SourceTransaction:
    """One committed transaction of the source."""

    position: int
    """Greater than the positions of all transactions before it."""
    resume: str
    """Where the log goes on behind it, in the source's own words."""
    committed_at: float
    """Seconds since 1970 by the source's clock."""
    changes: Sequence[RowChange] = ()


class LogSession(NamedTuple):
    """A transaction on the source, with its place in the log."""

    source: SourceDatabase
    position: int
    """Its rows contain everything that was committed up to here, and nothing after it."""
    resume: str
    is_exact: bool = True
    """False when rows may contain something after `position`: MySQL does not say where a snapshot
    begins while others commit."""


OpenSession = Callable[[], AbstractContextManager[LogSession]]


class SourceLog(ABC):
    """The log of one source. Positions are numbers that grow with each commit."""

    tell: Callable[[str], None] = staticmethod(lambda sentence: None)
    """Called with a sentence that says what the log is waiting for."""
    is_repeatable = True
    """True when the log delivers the same transactions whenever it is read."""

    @abstractmethod
    def prepare(self) -> None:
        """Makes the source keep its changes from now on; a second call changes nothing."""

    shared = ""
    """How other processes open sessions on the same rows, while `sessions` runs; empty where each
    session has its own snapshot."""

    @abstractmethod
    def sessions(self, shared: str = "") -> AbstractContextManager[OpenSession]:
        """Opens sessions while the block runs: on the rows as they are now, or on those that
        another process shares."""

    @abstractmethod
    def transactions(self, after: int, resume: str) -> Generator[SourceTransaction | None]:
        """Yields the transactions after a position in commit order, and None when there is nothing
        to read yet.

        A transaction without changes only says how far the log has been read.
        """

    @abstractmethod
    def end(self, source: SourceDatabase) -> int:
        """Returns the current end of the log."""

    @abstractmethod
    def bytes_behind(self, position: int, end: int) -> int | None:
        """Returns the bytes of log between two positions; None where the source cannot tell."""

    @abstractmethod
    def remove(self) -> None:
        """Removes everything that following needs from the source."""

    def storage(self, source: SourceDatabase) -> str:
        """Identifies the storage of the tables, when rows may change with it without a log
        entry."""
        return ""

    def confirm(self, position: int) -> None:  # noqa: B027 - only a slot waits for it
        """Tells the source that it need not keep the log up to here."""
