"""A data folder out of a copy."""

from __future__ import annotations

from collections.abc import Callable

from partita.copies.backups.backup_format import FILES, DatabaseBackup
from partita.database.recovery import recovery_stages
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.table_states import table_state
from partita.database.storage.archive import Archive, MemoryArchive
from partita.database.storage.engine import Engine
from partita.database.storage.recovery_log import LOGS, cut_log, renamed_log_file

COMMIT_BYTES = 16 << 20

Seal = Callable[[Archive], Archive]
Progress = Callable[[int], None]


def write_pairs(engine: Engine, archive: Archive, copy: DatabaseBackup, progress: Progress) -> None:
    """All keys and values, in order, in commits of a bounded size."""
    changes: dict[bytes, bytes | None] = {}
    size = 0
    for pairs in table_state(archive, copy.manifest, ""):
        changes.update(pairs)
        size += sum(len(key) + len(value) for key, value in pairs)
        progress(len(pairs))
        if size > COMMIT_BYTES:
            engine.commit(changes)
            changes, size = {}, 0
            recovery_stages.reach_stage(RecoveryStage.WHOLE_RESTORE_KEYS_PUT)
    engine.commit(changes)
    engine.refresh()


def write_files(plain: Archive, source: Archive, copy: DatabaseBackup, seal: Seal) -> None:
    """The archive, as far as it is not there yet. Logs end with the copy: what came later has not
    happened in the new place.

    They get names of their own. Where there are copies of both, the past of one must not be taken
    for that of the other.
    """
    sealed = seal(plain)
    for name in plain.names(LOGS):
        # Of a restore that was interrupted.
        plain.delete(name)
    for name in copy.files:
        if plain.has(name):
            continue
        content = source.get(FILES + name)
        if not name.startswith(LOGS):
            plain.put(name, content)
            continue
        read = MemoryArchive()
        read.put(name, content)
        kept = cut_log(seal(read).get(name), copy.manifest.stamp)
        if kept:
            sealed.append(renamed_log_file(name), kept)
    plain.sync()
