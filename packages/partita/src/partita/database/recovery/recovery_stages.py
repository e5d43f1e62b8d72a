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
    COPIED_BEGUN = "copied: begun"
    COPIED_RUN_READ = "copied: a run of keys is read"
    COPIED_COMMITS_READ = "copied: the commits since its beginning are read"
    COPIED_FILES_LISTED = "copied: its files are listed"
    WHOLE_BACKUP_BEGUN = "whole backup: begun"
    WHOLE_BACKUP_CHUNK_WRITTEN = "whole backup: a chunk is written"
    WHOLE_BACKUP_KEYS_WRITTEN = "whole backup: all keys are written"
    WHOLE_BACKUP_COMMITS_WRITTEN = "whole backup: the commits since its beginning are written"
    WHOLE_BACKUP_FILE_WRITTEN = "whole backup: a file of the archive is written"
    WHOLE_BACKUP_FILES_WRITTEN = "whole backup: all files are written"
    WHOLE_BACKUP_NAMED = "whole backup: it has its name"
    WHOLE_BACKUP_REMOVED = "whole backup: an older one has lost its name"
    WHOLE_RESTORE_BEGUN = "whole restore: begun"
    WHOLE_RESTORE_KEYS_PUT = "whole restore: some keys are put"
    WHOLE_RESTORE_LOADED = "whole restore: all keys are there"
    WHOLE_RESTORE_FILES_WRITTEN = "whole restore: all files are written"
    WHOLE_RESTORE_CHECKED = "whole restore: it is found to be well"
    WHOLE_RESTORE_NAMED = "whole restore: the folder has its name"


def reach_stage(stage: RecoveryStage) -> None:
    """Marks a stage; crash tests watch the log or replace this function."""
    logger.debug("%s", stage)
