"""The interface of a storage engine: reads from a snapshot, and atomic commits.

Keys are ordered bytes of any length. A snapshot shows the commits up to the last `refresh`; its
iterators are valid until the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

Changes = Mapping[bytes, bytes | None]
"""New values by key; None deletes."""


class ConflictDetected(Exception):
    """Raised when keys have changed since a write that is to be committed has read them."""

    def __init__(self, keys: set[bytes]) -> None:
        super().__init__(f"{len(keys)} keys have changed")
        self.keys = keys


class Reader(Protocol):
    """Point reads, which suffice for deciding a write."""

    def get(self, key: bytes) -> bytes | None: ...


class Snapshot(Reader, Protocol):
    """Point and range reads of committed data."""

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < stop in ascending or descending key order."""
        ...


class CommitArchive(Protocol):
    """Keeps commits for longer than the engine does, for recovery."""

    def stamp(self, changes: dict[bytes, bytes | None]) -> None:
        """Adds a time stamp to a commit. Called before the commit."""
        ...

    def keep(self, changes: Changes) -> None:
        """Keeps the changes of a commit. Called after it, by the thread that made it."""
        ...

    def flush(self) -> None:
        """Returns when everything that was kept is durable. Any thread may call it."""
        ...


class BulkTreeLoad(Protocol):
    """A bulk load: pairs that go into the tree in one commit, past the write-ahead log.

    Only for keys that nobody else reads or writes meanwhile.
    """

    def put(self, pairs: Sequence[tuple[bytes, bytes]]) -> None: ...

    def finish(self) -> None:
        """Returns when the pairs are on disk. Called on the background thread."""
        ...

    def stop(self) -> None:
        """Abandons the load, unless it is finished."""
        ...


@runtime_checkable
class BulkLoadable(Protocol):
    """An engine with bulk loads, one at a time."""

    @property
    def is_loading(self) -> bool: ...

    def begin_load(self) -> BulkTreeLoad | None:
        """Begins a load; None while the tree is busy: call `wait_for_load` and try again."""
        ...

    def wait_for_load(self) -> None:
        """Waits until another `begin_load` may succeed. Called on the background thread."""
        ...

    def end_load(self, load: BulkTreeLoad) -> None:
        """Ends a load: a finished one becomes visible in the snapshot."""
        ...


class Engine(Protocol):
    """An ordered map of bytes with atomic commits."""

    @property
    def waits_for_disk(self) -> bool:
        """True if the next commit may be so slow that another thread should make it."""
        ...

    def snapshot(self) -> Snapshot:
        """The engine's only snapshot, for one thread; `refresh` moves it forward."""
        ...

    def refresh(self) -> None:
        """Makes the commits since the last refresh visible in the snapshot."""
        ...

    def commit(self, changes: Changes) -> None:
        """Applies all changes or none; returns when they are as durable as configured."""
        ...

    def archive_to(self, archive: CommitArchive) -> None:
        """Hands the replayed commits of a former process to an archive, which may lack them.

        From now on the engine flushes the archive before it clears commits from its log.
        """
        ...

    def close(self) -> None: ...


class ReencryptableEngine(Protocol):
    """An engine with encrypted values, as the background job that re-encrypts them sees it."""

    @property
    def is_rotating(self) -> bool:
        """True while values may be encrypted with keys that are being replaced."""
        ...

    @property
    def generation(self) -> int:
        """The generation of the keys that encrypt now."""
        ...

    def retain(self, numbers: set[int], last: int) -> None:
        """Destroys the keys of deleted tables and streams: of all numbers up to `last` except
        `numbers`."""
        ...

    def outdated(self, start: bytes, stop: bytes) -> tuple[list[bytes], bytes | None]:
        """Returns some keys of a range whose values are encrypted with old keys, and the position
        at which to continue, None at the end."""
        ...

    def retire(self) -> None:
        """Destroys the old keys once no value is encrypted with them."""
        ...


def prefix_end(prefix: bytes) -> bytes:
    """The first key after every key that starts with `prefix`."""
    stripped = prefix.rstrip(b"\xff")
    assert stripped, "a prefix of 0xff bytes has no end"
    return stripped[:-1] + bytes([stripped[-1] + 1])
