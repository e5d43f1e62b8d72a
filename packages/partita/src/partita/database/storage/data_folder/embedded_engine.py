"""The engine of a data folder: a write-ahead log in front of LMDB's tree.

An LMDB commit writes every page that it touches and waits for the disk twice. So a commit goes to a
write-ahead log first, with one write and one sync, and is durable then. Its changes stay in memory,
in an overlay over the tree, until there are enough of them for a *checkpoint*, which puts them into
the tree in one LMDB commit; only then is their log cleared. There are two logs and two overlays:
while the older ones are checkpointed, the newer ones take new commits.

After a crash the logs are replayed into the overlays. They may contain changes that the tree has
already; checkpointing these twice does no harm.

`commit` may run on another thread than everything else; `refresh` follows before the next commit.
`refresh` puts the pairs of a checkpoint into the tree, some after every commit; LMDB's own commit
then waits for the disk on a separate thread. (The puts are not on that thread because py-lmdb
releases the interpreter lock at every put, and each put would wait for a busy event loop.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Final

from partita.database.storage.archive import sync
from partita.database.storage.data_folder.checkpoint import Checkpoint
from partita.database.storage.data_folder.lmdb_tree import (
    LmdbEngine,
    cannot_open,
    cannot_write,
    open_tree,
)
from partita.database.storage.data_folder.overlay import Overlay, Pair
from partita.database.storage.data_folder.write_ahead_log import (
    LogContents,
    WriteAheadLog,
    read_log,
)
from partita.database.storage.engine import BulkTreeLoad, Changes, CommitArchive, Snapshot
from partita.errors import StorageError
from partita.foundation.clock import Stopwatch, system_stopwatch

logger = logging.getLogger(__name__)

LOG_FILES: Final = ("journal.0", "journal.1")
CHECKPOINT_BYTES: Final = 8 << 20
CHECKPOINTS_BEHIND_MAX: Final = 8
"""Commits wait if the overlay grows to this many times `CHECKPOINT_BYTES` during a checkpoint."""
PUTS_MIN, PUTS_PER_CHANGE = 64, 4
"""How many pairs of a checkpoint are put after a commit, so that it ends long before the next one
is due."""
CHANGES_BEFORE_A_LOAD: Final = 256
"""A bulk load that waits for a checkpoint advances it as a commit of this many changes would."""
LOAD_WAIT_SECONDS: Final = 0.002
"""The interval at which a bulk load looks whether another one has ended."""
QUICK_SECONDS: Final = 0.001
COMMITS_AFTER_A_SLOW_ONE: Final = 16
"""How many commits after a slow one are made on another thread too. With a quick disk, handing a
commit to another thread and back takes longer than the commit."""
LOAD_ABORTED: Final = (
    "The bulk load was aborted, because all other changes had to be moved into the tree; try again."
)
LOG_KEEPS_IT: Final = "%s The changes are still in the write-ahead log."


class EmbeddedSnapshot:
    """The tree, above it the frozen overlay that is being checkpointed, and the active overlay."""

    def __init__(self, tree: Snapshot) -> None:
        self._tree = tree
        self.frozen = Overlay({})
        self.active = Overlay({})

    def get(self, key: bytes) -> bytes | None:
        active = self.active.values
        return active[key] if key in active else self.frozen.get_over(self._tree, key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        pairs = self._tree.range(start, stop, reverse=reverse)
        pairs = self.frozen.range_over(pairs, start, stop, reverse=reverse)
        return self.active.range_over(pairs, start, stop, reverse=reverse)


class TreeLoad:
    """A bulk load straight into the tree; no checkpoint begins while it lasts."""

    def __init__(self, tree: LmdbEngine) -> None:
        self._commit = tree.begin_commit()
        self._lock = Lock()
        self._is_over = False

    def put(self, pairs: Sequence[Pair]) -> None:
        with self._lock:
            if self._is_over:
                raise StorageError(LOAD_ABORTED)
            self._commit.put_many(pairs)

    def finish(self) -> None:
        with self._lock:
            if self._is_over:
                raise StorageError(LOAD_ABORTED)
            self._is_over = True
            self._commit.finish()

    def stop(self) -> None:
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._commit.abort()


class EmbeddedEngine:
    """The engine of one data folder; if `durable`, commits are on disk when `commit` returns."""

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = True,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        stopwatch: Stopwatch = system_stopwatch,
    ) -> None:
        self._folder = folder
        self._stopwatch = stopwatch
        self._tree = LmdbEngine(folder, durable=durable)
        try:
            contents = _read_logs(folder)
            self._logs = [
                WriteAheadLog(folder / name, content, durable=durable)
                for name, content in zip(LOG_FILES, contents, strict=True)
            ]
            if durable:
                # A new log file is durable only with its directory entry.
                sync(folder)
        except (StorageError, OSError) as error:
            self._tree.close()
            raise cannot_open(folder, error) from error
        older, newer = sorted(contents)
        self._snapshot = EmbeddedSnapshot(self._tree.snapshot())
        self._snapshot.frozen.update(_changes(older))
        self._active_bytes = self._snapshot.active.update(_changes(newer))
        self._generation = newer.generation or 1
        self._log = self._logs[self._generation % 2]
        if not newer.commits:
            # The older log must not be overwritten: the tree may lack its commits.
            self._log.begin(self._generation)
        self._replayed = [*older.commits, *newer.commits]
        """Commits of a former process, until `archive_to` hands them to an archive."""
        self._archive: CommitArchive | None = None
        self._unseen: list[Changes] = []
        """Commits since the last refresh."""
        self._checkpoint: Checkpoint | None = None
        self._load: TreeLoad | None = None
        self._checkpoint_bytes = checkpoint_bytes
        self._next_checkpoint_bytes = checkpoint_bytes
        """The size of the active overlay at which the next checkpoint begins."""
        self._failure: Exception | None = None
        """The error of the last checkpoint, if it failed."""
        self._is_tree_ahead = False
        """True when the tree has commits that its snapshot does not show yet."""
        self._is_tree_complete = False
        """True when the tree has all changes, and `refresh` should empty the overlays."""
        self._slow_commits_ahead = 0

    @property
    def waits_for_disk(self) -> bool:
        return self._slow_commits_ahead > 0

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def commit(self, changes: Changes) -> None:
        if not changes:
            return
        started = self._stopwatch()
        try:
            if self._log.is_in_doubt:
                # A refused commit may be in the log, and must not be replayed before this one. So
                # the tree takes everything, and both logs start over.
                self._checkpoint_everything()
            if self._active_bytes > CHECKPOINTS_BEHIND_MAX * self._checkpoint_bytes:
                self._wait_for_checkpoint()
            self._log.append(changes)
        except OSError as error:
            raise cannot_write(self._folder, error) from error
        self._unseen.append(changes)
        if self._slow_commits_ahead:
            self._slow_commits_ahead -= 1
        elif self._stopwatch() - started > QUICK_SECONDS:
            self._slow_commits_ahead = COMMITS_AFTER_A_SLOW_ONE

    def refresh(self) -> None:
        snapshot = self._snapshot
        if self._is_tree_ahead:
            self._tree.refresh()
            self._is_tree_ahead = False
        if self._is_tree_complete:
            snapshot.frozen, snapshot.active = Overlay({}), Overlay({})
            self._active_bytes, self._next_checkpoint_bytes = 0, self._checkpoint_bytes
            self._failure = None
            self._is_tree_complete = False
        count = 0
        for changes in self._unseen:
            count += len(changes)
            self._active_bytes += snapshot.active.update(changes)
        self._unseen.clear()
        self._advance_checkpoint(count)

    def archive_to(self, archive: CommitArchive) -> None:
        for changes in self._replayed:
            archive.keep(changes)
        self._replayed = []
        self._archive = archive

    @property
    def is_loading(self) -> bool:
        return self._load is not None

    def begin_load(self) -> TreeLoad | None:
        if self._load is not None:
            return None
        # LMDB has one write transaction at a time, so a load and a checkpoint exclude each other.
        self._advance_checkpoint(CHANGES_BEFORE_A_LOAD)
        if self._checkpoint is not None or self._active_bytes >= self._next_checkpoint_bytes:
            return None
        self._load = TreeLoad(self._tree)
        return self._load

    def wait_for_load(self) -> None:
        checkpoint = self._checkpoint
        if self._load is not None:
            sleep(LOAD_WAIT_SECONDS)
        elif checkpoint is not None:
            checkpoint.wait()

    def end_load(self, load: BulkTreeLoad) -> None:
        if load is self._load:
            self._load = None
            self._tree.refresh()

    def close(self) -> None:
        try:
            self._checkpoint_everything()
        except StorageError as error:
            logger.error(LOG_KEEPS_IT, error)
        for log in self._logs:
            log.close()
        self._tree.close()

    def _checkpoint_everything(self) -> None:
        """Puts both overlays into the tree in one commit, and clears both logs."""
        if self._load is not None:
            self._load.stop()
        if self._checkpoint is not None:
            self._checkpoint.stop()
            self._checkpoint = None
        changes = {**self._snapshot.frozen.values, **self._snapshot.active.values}
        for unseen in self._unseen:
            changes.update(unseen)
        self._is_tree_ahead = True
        self._tree.commit(changes)
        if self._archive is not None:
            self._archive.flush()
        try:
            # The older log is cleared first: after a crash in between, replaying it alone would
            # put its commits over the newer ones in the tree.
            for generation in (self._generation + 1, self._generation):
                self._logs[generation % 2].clear()
        except OSError as error:
            raise cannot_write(self._folder, error) from error
        self._switch_logs()
        self._is_tree_complete = True

    def _switch_logs(self) -> None:
        self._generation += 1
        self._log = self._logs[self._generation % 2]
        self._log.begin(self._generation)

    def _advance_checkpoint(self, count: int) -> None:
        failure: Exception | None = None
        try:
            checkpoint = self._checkpoint
            if checkpoint is None:
                is_due = self._active_bytes >= self._next_checkpoint_bytes
                if not is_due or self._log.is_in_doubt or self._load is not None:
                    return
                checkpoint = self._begin_checkpoint()
            if not checkpoint.advance(max(PUTS_MIN, PUTS_PER_CHANGE * count)):
                return
            failure = checkpoint.failure
        except StorageError as error:
            failure = error
        self._end_checkpoint(failure)

    def _begin_checkpoint(self) -> Checkpoint:
        snapshot = self._snapshot
        # A frozen overlay with values is left from a failed checkpoint or an earlier process. The
        # other log has its changes, so it goes into the tree before the active one.
        if not snapshot.frozen.values:
            snapshot.frozen, snapshot.active = snapshot.active, Overlay({})
            self._active_bytes = 0
            self._switch_logs()
        full = self._logs[1 - self._generation % 2]
        self._checkpoint = Checkpoint(self._tree, snapshot.frozen, full, self._archive)
        return self._checkpoint

    def _end_checkpoint(self, failure: Exception | None) -> None:
        self._failure = failure
        if self._checkpoint is not None:
            self._checkpoint.stop()
            self._checkpoint = None
        self._tree.refresh()
        if failure is None:
            self._snapshot.frozen = Overlay({})
            self._next_checkpoint_bytes = self._checkpoint_bytes
        else:
            if isinstance(failure, OSError):
                failure = cannot_write(self._folder, failure)
            logger.error(LOG_KEEPS_IT, failure)
            # On a full disk, not every commit should try again.
            self._next_checkpoint_bytes = self._active_bytes + self._checkpoint_bytes

    def _wait_for_checkpoint(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.wait()
        elif self._failure is not None:
            self._next_checkpoint_bytes = 0
            raise StorageError(
                "The commit could not be written: earlier commits cannot be moved from the "
                f"write-ahead log into the tree of {self._folder}; see the server's log."
            )


@contextmanager
def open_for_reading(folder: Path) -> Iterator[Snapshot]:
    """Opens a data folder for reading only, after all pages of its tree were checked."""
    with open_tree(folder) as tree:
        try:
            older, newer = sorted(_read_logs(folder))
        except StorageError as error:
            raise cannot_open(folder, error) from error
        snapshot = EmbeddedSnapshot(tree)
        snapshot.frozen.update(_changes(older))
        snapshot.active.update(_changes(newer))
        yield snapshot


def _read_logs(folder: Path) -> list[LogContents]:
    contents = [read_log(folder / name) for name in LOG_FILES]
    for number, content in enumerate(contents):
        if content.commits and content.generation % 2 != number:
            raise StorageError(f"{LOG_FILES[number]} has the contents of {LOG_FILES[1 - number]}")
    return contents


def _changes(contents: LogContents) -> dict[bytes, bytes | None]:
    """All commits of a log, merged."""
    changes: dict[bytes, bytes | None] = {}
    for commit in contents.commits:
        changes.update(commit)
    return changes
