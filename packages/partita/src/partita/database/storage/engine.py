"""The interface of an engine: reads from a snapshot, and one atomic commit.

Keys are ordered bytes of any length. A snapshot shows what was committed when it was taken; its
iterators are valid until the next `refresh`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

Changes = Mapping[bytes, bytes | None]


class Reader(Protocol):
    """Point reads: all that deciding a write needs."""

    def get(self, key: bytes) -> bytes | None: ...


class Snapshot(Reader, Protocol):
    """Point and range reads of what is committed."""

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < stop, in key order or against it."""
        ...


class CommitArchive(Protocol):
    """Who keeps commits for longer than the engine does."""

    def stamp(self, changes: dict[bytes, bytes | None]) -> None:
        """Before the commit: give it its time."""
        ...

    def keep(self, changes: Changes) -> None:
        """After the commit, from the thread that made it."""
        ...

    def flush(self) -> None:
        """Returns when all that was kept is safe. From any thread."""
        ...


class Load(Protocol):
    """Pairs on their way into the tree, in one commit past the log: for keys that nobody else
    reads or writes."""

    def put(self, pairs: Sequence[tuple[bytes, bytes]]) -> None: ...

    def finish(self) -> None:
        """Returns when the disk has them; on a thread that may wait."""
        ...

    def stop(self) -> None:
        """Without effect on one that is finished."""
        ...


@runtime_checkable
class Loads(Protocol):
    """An engine that takes loads, one at a time."""

    @property
    def is_loading(self) -> bool: ...

    def begin_load(self) -> Load | None:
        """None while the tree is busy: ask again after `wait_for_load`."""
        ...

    def wait_for_load(self) -> None:
        """Until asking again may help; on a thread that may wait."""
        ...

    def end_load(self, load: Load) -> None:
        """Show what was loaded, or forget it."""
        ...


class Engine(Protocol):
    @property
    def waits_for_disk(self) -> bool:
        """Whether the next commit may take so long that it is left to another thread."""
        ...

    def snapshot(self) -> Snapshot:
        """What is committed now. Used by one thread; `refresh` moves it forward."""
        ...

    def refresh(self) -> None:
        """Let the snapshot show the commits that have happened since it was taken."""
        ...

    def commit(self, changes: Changes) -> None:
        """Make all changes or none; `None` deletes. Returns when they are as safe as configured."""
        ...

    def archive_to(self, archive: CommitArchive) -> None:
        """Let an archive keep what a former process may not have flushed, and from now on flush it
        before a commit is forgotten that would be replayed after a crash."""
        ...

    def close(self) -> None: ...


class Sealed(Protocol):
    """What background work needs of an engine whose values are encrypted."""

    @property
    def is_rotating(self) -> bool:
        """Whether values may be under keys that are to go."""
        ...

    @property
    def generation(self) -> int:
        """Of the keys that seal now."""
        ...

    def retain(self, numbers: set[int], last: int) -> None:
        """Destroy the keys of all but these tables and streams, of those up to the last given."""
        ...

    def outdated(self, start: bytes, stop: bytes) -> tuple[list[bytes], bytes | None]:
        """Some keys of a range whose values are under old keys, and where to look on."""
        ...

    def retire(self) -> None:
        """Destroy the old keys: nothing is under them any more."""
        ...


def prefix_end(prefix: bytes) -> bytes:
    """The first key after every key that starts with `prefix`."""
    stripped = prefix.rstrip(b"\xff")
    assert stripped, "a prefix of 0xff bytes has no end"
    return stripped[:-1] + bytes([stripped[-1] + 1])
