"""A checkpoint: moves the changes of a full write-ahead log into LMDB's tree.

Meanwhile new commits go to the other log. The log is cleared only when the tree is on disk, so a
crash at any time loses nothing: the changes are replayed and checkpointed once more.
"""

from __future__ import annotations

from threading import Thread

from partita.database.storage.data_folder.lmdb_tree import LmdbEngine
from partita.database.storage.data_folder.overlay import Overlay
from partita.database.storage.data_folder.write_ahead_log import WriteAheadLog
from partita.database.storage.engine import CommitArchive
from partita.errors import StorageError


class Checkpoint:
    """Moves the changes of an overlay into the tree.

    `advance` puts their pairs, some at a time; then a thread commits and clears the log.
    """

    def __init__(
        self,
        tree: LmdbEngine,
        overlay: Overlay,
        log: WriteAheadLog,
        archive: CommitArchive | None,
    ) -> None:
        self._commit = tree.begin_commit()
        self._log = log
        self._archive = archive
        self._values = overlay.values
        self._keys = overlay.ordered_keys()
        self._place = 0
        self._finishing: Thread | None = None
        self.failure: Exception | None = None

    def advance(self, puts: int) -> bool:
        """Puts the next pairs; returns True when the checkpoint has ended."""
        if self._finishing is not None:
            return not self._finishing.is_alive()
        keys = self._keys[self._place : self._place + puts]
        self._commit.put([(key, self._values[key]) for key in keys])
        self._place += puts
        if self._place >= len(self._keys):
            self._finishing = self._start_finishing()
        return False

    def wait(self) -> None:
        """Waits for the disk, if all pairs are put."""
        if self._finishing is not None:
            self._finishing.join()

    def stop(self) -> None:
        """Ends the checkpoint now: aborts it, or waits for the disk if all pairs are put."""
        if self._finishing is None:
            self._commit.abort()
        self.wait()

    def _start_finishing(self) -> Thread:
        finishing = Thread(target=self._finish, name="partita-checkpoint", daemon=True)
        try:
            finishing.start()
        except RuntimeError as error:
            raise StorageError(f"The commit could not be written: {error}.") from error
        return finishing

    def _finish(self) -> None:
        try:
            self._commit.finish()
            # The recovery log must have the commits before the write-ahead log loses them.
            if self._archive is not None:
                self._archive.flush()
            self._log.clear()
        except Exception as error:
            # After any error the overlay has to stay in memory.
            self.failure = error
