"""What a log says, whatever source it is of: committed transactions, and the rows that changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from partita.database.item.values import Item
from partita.errors import PartitaError
from partita_migrate.understanding.sources.connection import Source


class SchemaChanged(PartitaError):
    """A followed table is no longer what the inventory says."""


class LogLost(PartitaError):
    """The log does not reach back to where following would go on."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row, before and after.

    `old` may be its primary key alone, and is None when the key is that of `new`. Without `new`
    the row is gone; with neither, all rows of the table are.
    """

    table: str
    old: Item | None
    new: Item | None
    unsent: frozenset[str] = frozenset()
    """Columns of `new` that are as they were, and that the log does not repeat."""
    has_cascades: bool = False
    """The source carried it on to rows of other tables, and its log does not say so."""


@dataclass(frozen=True, slots=True)
class Transaction:
    position: int
    """Greater than those of all transactions before it."""
    resume: str
    """Where the log goes on behind it, in the words of the source."""
    committed_at: float
    """Seconds since 1970, by the source's clock."""
    changes: Sequence[Change] = ()


class Session(NamedTuple):
    """A transaction on the source, and its place in the log."""

    source: Source
    position: int
    """All that was committed up to here is in its rows, and nothing after it."""
    resume: str
    is_exact: bool = True
    """Or something after it may be: MySQL does not tell where a snapshot is while it commits."""


OpenSession = Callable[[], AbstractContextManager[Session]]


class ChangeLog(ABC):
    """The log of one source. Positions are numbers that grow with each commit."""

    tell: Callable[[str], None] = staticmethod(lambda sentence: None)
    """Who is told what is waited for."""
    is_repeatable = True
    """Whether the log, read again, tells the same transactions."""

    @abstractmethod
    def prepare(self) -> None:
        """Make sure that changes are kept from now on; run again it changes nothing."""

    shared = ""
    """By what other processes open sessions on the same rows while the block runs; empty where
    each session has those of the moment at which it is opened."""

    @abstractmethod
    def sessions(self, shared: str = "") -> AbstractContextManager[OpenSession]:
        """Opens sessions on the rows as they are now, while the block runs; or on those that
        another process shares."""

    @abstractmethod
    def transactions(self, after: int, resume: str) -> Generator[Transaction | None]:
        """Those after a position, in the order of their commits; None whenever there is none yet.

        A transaction without changes may come too: it says how far the log has been read.
        """

    @abstractmethod
    def end(self, source: Source) -> int:
        """Where the log ends now."""

    @abstractmethod
    def bytes_behind(self, position: int, end: int) -> int | None:
        """What lies between, where the source can tell."""

    @abstractmethod
    def remove(self) -> None:
        """Leave nothing behind in the source."""

    def storage(self, source: Source) -> str:
        """What tables lie in, where rows may go or come with it and the log does not tell."""
        return ""

    def confirm(self, position: int) -> None:  # noqa: B027 - only a slot waits for it
        """What is up to here need not be kept for us."""
