"""A data folder as the target of a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from partita.copies.storage_copy.snapshot_copy import Pair
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.embedded_engine import EmbeddedEngine
from partita.database.storage.data_folder.keyring_access import folder_archive
from partita.database.storage.engine import Changes, Engine
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import COPYING_FORMAT, FORMAT_VERSION
from partita.errors import StorageError


class FolderTarget:
    """A folder that has no data, or an unfinished copy."""

    def __init__(self, engine: Engine, archive: Archive, folder: Path) -> None:
        self._engine = engine
        self.archive = archive
        if engine.snapshot().get(table_layout.FORMAT_KEY) not in (None, COPYING_FORMAT):
            raise StorageError(f"{folder} has data already: copy into a new folder.")
        self.write({table_layout.FORMAT_KEY: COPYING_FORMAT})

    def pairs(self, start: bytes, stop: bytes) -> list[Pair]:
        return list(self._engine.snapshot().range(start, stop))

    def write(self, changes: Changes) -> None:
        self._engine.commit(changes)
        self._engine.refresh()

    def finish(self) -> None:
        self.write({table_layout.FORMAT_KEY: str(FORMAT_VERSION).encode()})


@contextmanager
def folder_target(folder: Path) -> Iterator[FolderTarget]:
    engine = EmbeddedEngine(folder)
    try:
        yield FolderTarget(engine, folder_archive(folder, None), folder)
    finally:
        engine.close()
