"""No key leads out of the folder of a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.database.recovery.s3.object_buckets import BucketError, FolderBucket
from partita.foundation.server_settings import BucketSettings
from partita_services.workflows.language.language_errors import StateError
from partita_services.workflows.running.tasks.services.s3_objects import S3Buckets

KEYS = ("../outside", "a/../../outside", "/etc/passwd", "link/outside", "", ".", "..", "a\0b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_text("secret")
    inside = tmp_path / "bucket"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    return inside


@pytest.mark.parametrize("key", KEYS)
def test_no_key_leads_out_of_the_folder(folder: Path, key: str) -> None:
    bucket = FolderBucket(folder)
    with pytest.raises(BucketError, match="is not a key"):
        bucket.get(key)
    with pytest.raises(BucketError, match="is not a key"):
        bucket.put(key, b"x")
    assert (folder.parent / "outside").read_text() == "secret"


@pytest.mark.parametrize("key", KEYS)
def test_no_key_of_a_workflow_does_either(folder: Path, key: str) -> None:
    buckets = S3Buckets([BucketSettings(name="files", folder="bucket")], folder.parent)
    with pytest.raises(StateError, match="not a valid key"):
        buckets.read("files", key)
    with pytest.raises(StateError, match="not a valid key"):
        buckets.write("files", key, b"x")
    assert (folder.parent / "outside").read_text() == "secret"
