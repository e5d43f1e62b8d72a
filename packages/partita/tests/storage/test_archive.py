"""The archive: after a sync, files are durable that `has` has confirmed, whoever wrote them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partita.database.storage import archive
from partita.database.storage.archive import SYNCED_SECONDS, FolderArchive


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the names of synced files."""
    names: list[str] = []
    monkeypatch.setattr(archive, "sync", lambda path: names.append(path.name))
    return names


def test_a_file_that_a_dead_process_left_is_synced_when_it_is_used(
    tmp_path: Path, synced: list[str]
) -> None:
    FolderArchive(tmp_path).put("chunks/left", b"written, and never synced")
    other = FolderArchive(tmp_path)
    assert other.has("chunks/left")
    other.sync()
    assert "left" in synced


def test_a_file_that_is_old_is_on_disk_already(tmp_path: Path, synced: list[str]) -> None:
    FolderArchive(tmp_path).put("chunks/old", b"")
    path = tmp_path / "chunks" / "old"
    long_ago = path.stat().st_mtime - 2 * SYNCED_SECONDS
    os.utime(path, (long_ago, long_ago))
    other = FolderArchive(tmp_path)
    assert other.has("chunks/old")
    assert not other.has("chunks/other")
    other.sync()
    assert synced == []
