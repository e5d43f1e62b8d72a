"""The points at which crash tests kill the process, in all work that lasts longer than a commit.

After a crash at any of them, the operation either completes after the next start or has left no
visible result. `tests/recovery` kills a server at each stage.
"""

from __future__ import annotations

import logging
from enum import StrEnum

logger = logging.getLogger(__name__)


class RecoveryStage(StrEnum):
    BASE_BEGUN = "base: begun"
    BASE_CHUNK_WRITTEN = "base: a chunk is written"
    BASE_CHUNKS_WRITTEN = "base: all chunks and patches are written"
    BASE_MANIFEST_WRITTEN = "base: its manifest is written"
    BACKUP_BEGUN = "backup: begun"
    BACKUP_CHUNK_WRITTEN = "backup: a chunk is written"
    BACKUP_CHUNKS_WRITTEN = "backup: all chunks and patches are written"
    BACKUP_MANIFEST_WRITTEN = "backup: its manifest is written"
    RESTORE_BEGUN = "restore: begun"
    RESTORE_ITEMS_PUT = "restore: some items are put"
    RESTORE_LOADED = "restore: all items are there"
    EXPORT_STARTED = "export: _started is written"
    EXPORT_DATA_WRITTEN = "export: a data file is written"
    EXPORT_FILES_LISTED = "export: manifest-files is written"
    EXPORT_SUMMARIZED = "export: manifest-summary is written"
    IMPORT_BEGUN = "import: begun"
    IMPORT_ITEMS_PUT = "import: some items are put"
    IMPORT_LOADED = "import: all items are there"
    IMPORT_INDEXED = "import: all index entries are there"
    BULK_BEGUN = "bulk: begun"
    BULK_ITEMS_PUT = "bulk: some items are put"
    BULK_OBJECT_DONE = "bulk: an object is done"
    BULK_REPORTED = "bulk: a report is written"
    BULK_SUMMARIZED = "bulk: manifest-summary is written"
    ONLINE_BACKUP_BEGUN = "online backup: begun"
    ONLINE_BACKUP_RUN_READ = "online backup: a run of keys is read"
    ONLINE_BACKUP_COMMITS_READ = "online backup: the commits since its beginning are read"
    ONLINE_BACKUP_FILES_LISTED = "online backup: its files are listed"
    DATABASE_BACKUP_BEGUN = "database backup: begun"
    DATABASE_BACKUP_CHUNK_WRITTEN = "database backup: a chunk is written"
    DATABASE_BACKUP_KEYS_WRITTEN = "database backup: all keys are written"
    DATABASE_BACKUP_COMMITS_WRITTEN = "database backup: the commits since its beginning are written"
    DATABASE_BACKUP_FILE_WRITTEN = "database backup: a file of the archive is written"
    DATABASE_BACKUP_FILES_WRITTEN = "database backup: all files are written"
    DATABASE_BACKUP_NAMED = "database backup: it has its name"
    DATABASE_BACKUP_REMOVED = "database backup: an older one has lost its name"
    DATABASE_RESTORE_BEGUN = "database restore: begun"
    DATABASE_RESTORE_KEYS_PUT = "database restore: some keys are put"
    DATABASE_RESTORE_LOADED = "database restore: all keys are there"
    DATABASE_RESTORE_FILES_WRITTEN = "database restore: all files are written"
    DATABASE_RESTORE_CHECKED = "database restore: its check has no findings"
    DATABASE_RESTORE_NAMED = "database restore: the folder has its name"


def reach_stage(stage: RecoveryStage) -> None:
    """Marks a stage; crash tests watch the log or replace this function."""
    logger.debug("%s", stage)
