"""Backups and data folders in the formats of earlier versions can still be read.

The archives in `formats/` have a table of 259 items with a table backup inside. The data folders
were taken after a kill, so that most of their items are in the write-ahead log only.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes

from .test_kill import is_active, items_of, until

FORMATS = Path(__file__).parent / "formats"
ENVIRONMENT = {**processes.ENVIRONMENT, "PARTITA_TEST_KEY": "ab" * 32}
KEY = ("--encryption-key", "env:PARTITA_TEST_KEY")
OPTIONS = {"plain": (), "encrypted": KEY}


@pytest.fixture
def start() -> Iterator[Any]:
    with processes.starting() as starting:
        yield starting


def unpack(name: str, folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    with tarfile.open(FORMATS / f"{name}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def run(*arguments: str | Path) -> str:
    done = processes.run(*arguments, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_served(start: Any, folder: Path, options: tuple[str, ...]) -> None:
    server = start(*("serve", "--port", "0", "--data", str(folder), *options), env=ENVIRONMENT)
    client = server.client()
    items = items_of(client, "music")
    assert items.keys() == {f"k{number}" for number in range(260) if number != 7}
    assert items_of(client, "music", IndexName="by_g") == items
    [backup] = client.list_backups()["BackupSummaries"]
    client.restore_table_from_backup(TargetTableName="again", BackupArn=backup["BackupArn"])
    until(lambda: is_active(client, "again"))
    assert items_of(client, "again").keys() == {f"k{number}" for number in range(250)}
    server.terminate()


@pytest.mark.parametrize("kind", OPTIONS)
def test_an_older_backup_is_restored(start: Any, tmp_path: Path, kind: str) -> None:
    place = unpack(f"{kind}-backup", tmp_path / "place")
    assert "no findings" in run("restore", place, "--check", *OPTIONS[kind])
    run("restore", place, "--data", tmp_path / "data", *OPTIONS[kind])
    assert_served(start, tmp_path / "data", OPTIONS[kind])


@pytest.mark.parametrize("kind", OPTIONS)
def test_an_older_folder_is_served(start: Any, tmp_path: Path, kind: str) -> None:
    folder = unpack(f"{kind}-folder", tmp_path / "data")
    assert "no findings" in run("check", folder, *OPTIONS[kind])
    assert_served(start, folder, OPTIONS[kind])


def test_a_new_backup_shares_chunks_with_an_older_one(start: Any, tmp_path: Path) -> None:
    place = unpack("plain-backup", tmp_path / "place")
    run("restore", place, "--data", tmp_path / "data")
    before = {path for path in (place / "chunks").rglob("*") if path.is_file()}
    server = start("serve", "--port", "0", "--data", str(tmp_path / "data"), env=ENVIRONMENT)
    run("backup", place, "--endpoint", server.url)
    after = {path for path in (place / "chunks").rglob("*") if path.is_file()}
    assert before < after or before == after
    assert len(after - before) < len(before)
    assert len(run("restore", place, "--list").split()) == 2
