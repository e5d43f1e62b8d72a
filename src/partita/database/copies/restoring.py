"""A data folder out of a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from partita.database.copies.copies import FILES, Copy
from partita.database.recovery.states import state
from partita.database.storage.archive import Archive, FolderArchive, MemoryArchive
from partita.database.storage.engine import Engine
from partita.database.storage.recovery_log import LOGS, cut_log

COMMIT_BYTES: Final = 16 << 20

Seal = Callable[[Archive], Archive]
Progress = Callable[[int], None]


def write_pairs(engine: Engine, archive: Archive, copy: Copy, progress: Progress) -> None:
    """All keys and values, in order, in commits of a bounded size."""
    changes: dict[bytes, bytes | None] = {}
    size = 0
    for pairs in state(archive, copy.manifest, ""):
        changes.update(pairs)
        size += sum(len(key) + len(value) for key, value in pairs)
        progress(len(pairs))
        if size > COMMIT_BYTES:
            engine.commit(changes)
            changes, size = {}, 0
    engine.commit(changes)
    engine.refresh()


def write_files(folder: Path, source: Archive, copy: Copy, seal: Seal) -> None:
    """The archive. Logs end with the copy: what came later has not happened in the new folder."""
    plain = FolderArchive(folder)
    sealed = seal(plain)
    for name in copy.files:
        content = source.get(FILES + name)
        if not name.startswith(LOGS):
            plain.put(name, content)
            continue
        read = MemoryArchive()
        read.put(name, content)
        kept = cut_log(seal(read).get(name), copy.manifest.stamp)
        if kept:
            sealed.append(name, kept)
    plain.sync()
