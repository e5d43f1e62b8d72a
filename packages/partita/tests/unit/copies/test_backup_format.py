"""What the writer of a backup puts into its location."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.copies.backups.backup_format import FILES, BackupWriter
from partita.database.storage.archive import Archive, FolderArchive, MemoryArchive

LOG = "logs/table/1"


@pytest.fixture(params=["memory", "folder"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    return MemoryArchive() if request.param == "memory" else FolderArchive(tmp_path)


@pytest.mark.parametrize("content", [b"", b"commits"])
def test_every_listed_file_is_written(location: Archive, content: bytes) -> None:
    """An empty log, too: a restore reads each file that the backup lists."""
    BackupWriter(location).put_file(LOG, content)
    assert location.has(FILES + LOG)
    assert location.get(FILES + LOG) == content


def test_a_log_that_has_grown_is_written_again(location: Archive) -> None:
    for content in (b"", b"first", b"first second"):
        BackupWriter(location).put_file(LOG, content)
        assert location.get(FILES + LOG) == content


def test_a_file_of_the_same_size_is_not_written_again(location: Archive) -> None:
    BackupWriter(location).put_file(LOG, b"commits")
    again = BackupWriter(location)
    again.put_file(LOG, b"commits")
    assert not again._bytes_written
