"""The engine of a data folder: a journal in front of the tree.

A commit of LMDB writes every page that it touches and waits for the disk twice. So a commit goes to
a journal first, in one write and one sync, and is safe then. Its changes are kept in memory over
the tree until there are enough of them to be *folded* into it in one commit of LMDB; only then is
their journal cleared. Two journals take turns: one is written while the other is folded.

After a crash the journals say what the tree may lack. Folding twice does no harm.

`commit` may run on another thread than the rest; `refresh` follows before the next one. The pairs
of a fold are put into the tree by `refresh`, some after every commit, and LMDB's commit waits for
the disk on a thread of its own. (py-lmdb lets go of Python's lock at every put: beside a busy
thread, each put of another one would wait for its turn.)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Final

from partita.database.storage.engine import Changes, Snapshot
from partita.database.storage.lmdb import LmdbEngine, cannot_open, cannot_write, opened_tree
from partita.database.storage.overlay import Overlay, Pair
from partita.database.storage.write_ahead_log import Contents, WriteAheadLog, read_log
from partita.errors import StorageError

logger = logging.getLogger(__name__)

LOG_FILES: Final = ("journal.0", "journal.1")
FOLD_BYTES: Final = 8 << 20
FOLDS_BEHIND_MAX: Final = 8
"""How many times as much is kept in memory while a fold does not come to its end."""
PUTS_MIN, PUTS_PER_CHANGE = 64, 4
"""How much of a fold follows a commit: it is ready long before the next one is due."""
QUICK_SECONDS: Final = 0.001
COMMITS_AFTER_A_SLOW_ONE: Final = 16
"""So many are taken to wait for the disk too. Handing a commit to another thread and back costs
more than a quick disk takes."""


class EmbeddedSnapshot:
    """The tree, what is being folded into it, and over both what came later."""

    def __init__(self, tree: Snapshot) -> None:
        self._tree = tree
        self.folding = Overlay({})
        self.newest = Overlay({})

    def get(self, key: bytes) -> bytes | None:
        newest = self.newest.values
        return newest[key] if key in newest else self.folding.get_over(self._tree, key)

    def range(self, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        pairs = self._tree.range(start, stop, reverse=reverse)
        pairs = self.folding.range_over(pairs, start, stop, reverse=reverse)
        return self.newest.range_over(pairs, start, stop, reverse=reverse)


class Checkpoint:
    """Changes on their way into the tree: first their pairs, then on its own thread the commit."""

    def __init__(self, tree: LmdbEngine, overlay: Overlay, journal: WriteAheadLog) -> None:
        self._commit = tree.begin_commit()
        self._journal = journal
        self._values = overlay.values
        self._keys = overlay.keys()
        self._place = 0
        self._finishing: Thread | None = None
        self.failure: Exception | None = None

    def go_on(self, puts: int) -> bool:
        """Do a part of the work; whether the fold has come to its end."""
        if self._finishing is not None:
            return not self._finishing.is_alive()
        keys = self._keys[self._place : self._place + puts]
        self._commit.put([(key, self._values[key]) for key in keys])
        self._place += puts
        if self._place >= len(self._keys):
            self._finishing = self._start_finishing()
        return False

    def wait(self) -> None:
        """Until the disk has it, if all pairs are put."""
        if self._finishing is not None:
            self._finishing.join()

    def stop(self) -> None:
        """Come to an end now, by giving up or by waiting for the disk."""
        if self._finishing is None:
            self._commit.abort()
        self.wait()

    def _start_finishing(self) -> Thread:
        finishing = Thread(target=self._finish, name="partita-fold", daemon=True)
        try:
            finishing.start()
        except RuntimeError as error:
            raise StorageError(f"The commit could not be written: {error}.") from error
        return finishing

    def _finish(self) -> None:
        try:
            self._commit.finish()
            self._journal.clear()
        except Exception as error:
            # Whatever it was: only what has come to its end may be forgotten.
            self.failure = error


class EmbeddedEngine:
    """One data folder; if it is `durable`, a commit is on disk when `commit` returns."""

    def __init__(self, folder: Path, *, durable: bool = True, fold_bytes: int = FOLD_BYTES) -> None:
        self._folder = folder
        self._tree = LmdbEngine(folder, durable=durable)
        try:
            contents = _read_journals(folder)
            self._journals = [
                WriteAheadLog(folder / name, content, durable=durable)
                for name, content in zip(LOG_FILES, contents, strict=True)
            ]
            if durable:
                _sync_folder(folder)
        except (StorageError, OSError) as error:
            self._tree.close()
            raise cannot_open(folder, error) from error
        older, newer = sorted(contents)
        self._snapshot = EmbeddedSnapshot(self._tree.snapshot())
        self._snapshot.folding.update(_changes(older))
        self._newest_bytes = self._snapshot.newest.update(_changes(newer))
        self._generation = newer.generation or 1
        self._journal = self._journals[self._generation % 2]
        if not newer.commits:
            # Never in the older one: the tree may lack what it has.
            self._journal.begin(self._generation)
        self._unseen: list[Changes] = []
        self._fold: Checkpoint | None = None
        self._fold_bytes = fold_bytes
        """How much is folded at a time."""
        self._next_fold_bytes = fold_bytes
        self._failure: Exception | None = None
        """Why the last fold did not come to its end, if it did not."""
        self._is_tree_ahead = False
        self._is_settled = False
        self._slow_commits_ahead = 0

    @property
    def waits_for_disk(self) -> bool:
        return self._slow_commits_ahead > 0

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def commit(self, changes: Changes) -> None:
        if not changes:
            return
        started = perf_counter()
        try:
            if self._journal.is_in_doubt:
                self.settle()
            if self._newest_bytes > FOLDS_BEHIND_MAX * self._fold_bytes:
                self._wait_for_fold()
            self._journal.append(changes)
        except OSError as error:
            raise cannot_write(self._folder, error) from error
        self._unseen.append(changes)
        if self._slow_commits_ahead:
            self._slow_commits_ahead -= 1
        elif perf_counter() - started > QUICK_SECONDS:
            self._slow_commits_ahead = COMMITS_AFTER_A_SLOW_ONE

    def refresh(self) -> None:
        snapshot = self._snapshot
        if self._is_tree_ahead:
            self._tree.refresh()
            self._is_tree_ahead = False
        if self._is_settled:
            snapshot.folding, snapshot.newest = Overlay({}), Overlay({})
            self._newest_bytes, self._next_fold_bytes = 0, self._fold_bytes
            self._failure = None
            self._is_settled = False
        count = 0
        for changes in self._unseen:
            count += len(changes)
            self._newest_bytes += snapshot.newest.update(changes)
        self._unseen.clear()
        self._go_on_folding(count)

    def settle(self) -> None:
        """Put everything into the tree at once, and clear the journals."""
        if self._fold is not None:
            self._fold.stop()
            self._fold = None
        changes = {**self._snapshot.folding.values, **self._snapshot.newest.values}
        for unseen in self._unseen:
            changes.update(unseen)
        self._is_tree_ahead = True
        self._tree.commit(changes)
        try:
            # The older one first: its commits must not come back over those of the newer.
            for turn in (self._generation + 1, self._generation):
                self._journals[turn % 2].clear()
        except OSError as error:
            raise cannot_write(self._folder, error) from error
        self._turn_journals()
        self._is_settled = True

    def close(self) -> None:
        try:
            self.settle()
        except StorageError as error:
            logger.error("%s The journal keeps what is not in the tree.", error)
        for journal in self._journals:
            journal.close()
        self._tree.close()

    def _turn_journals(self) -> None:
        self._generation += 1
        self._journal = self._journals[self._generation % 2]
        self._journal.begin(self._generation)

    def _go_on_folding(self, count: int) -> None:
        failure: Exception | None = None
        try:
            fold = self._fold
            if fold is None:
                if self._newest_bytes < self._next_fold_bytes or self._journal.is_in_doubt:
                    return
                fold = self._begin_fold()
            if not fold.go_on(max(PUTS_MIN, PUTS_PER_CHANGE * count)):
                return
            failure = fold.failure
        except StorageError as error:
            failure = error
        self._end_fold(failure)

    def _begin_fold(self) -> Checkpoint:
        snapshot = self._snapshot
        if not snapshot.folding.values:
            snapshot.folding, snapshot.newest = snapshot.newest, Overlay({})
            self._newest_bytes = 0
            self._turn_journals()
        full = self._journals[1 - self._generation % 2]
        self._fold = Checkpoint(self._tree, snapshot.folding, full)
        return self._fold

    def _end_fold(self, failure: Exception | None) -> None:
        self._failure = failure
        if self._fold is not None:
            self._fold.stop()
            self._fold = None
        self._tree.refresh()
        if failure is None:
            self._snapshot.folding = Overlay({})
            self._next_fold_bytes = self._fold_bytes
        else:
            if isinstance(failure, OSError):
                failure = cannot_write(self._folder, failure)
            logger.error("%s The journal keeps what is not in the tree.", failure)
            self._next_fold_bytes = self._newest_bytes + self._fold_bytes

    def _wait_for_fold(self) -> None:
        if self._fold is not None:
            self._fold.wait()
        elif self._failure is not None:
            self._next_fold_bytes = 0
            raise StorageError(
                "The commit could not be written: what was written before does not get into the "
                f"tree of {self._folder}; the server's log says why."
            )


@contextmanager
def opened_for_reading(folder: Path) -> Iterator[Snapshot]:
    """What a folder holds, all of its pages looked at first; nothing in it is changed or made."""
    with opened_tree(folder) as tree:
        try:
            older, newer = sorted(_read_journals(folder))
        except StorageError as error:
            raise cannot_open(folder, error) from error
        snapshot = EmbeddedSnapshot(tree)
        snapshot.folding.update(_changes(older))
        snapshot.newest.update(_changes(newer))
        yield snapshot


def _read_journals(folder: Path) -> list[Contents]:
    contents = [read_log(folder / name) for name in LOG_FILES]
    for number, content in enumerate(contents):
        if content.commits and content.generation % 2 != number:
            raise StorageError(f"{LOG_FILES[number]} has the contents of {LOG_FILES[1 - number]}")
    return contents


def _sync_folder(folder: Path) -> None:
    """A file that is new is only safe when its folder knows of it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _changes(contents: Contents) -> dict[bytes, bytes | None]:
    """What all commits of a journal come to."""
    changes: dict[bytes, bytes | None] = {}
    for commit in contents.commits:
        changes.update(commit)
    return changes
