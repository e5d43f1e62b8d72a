"""kill -9 at every stage of `partita backup` and `partita restore`, of the command or its server.

A backup or a restored folder is complete, or it does not exist.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from partita.copies.backups.backup_locations import only_writer
from partita.database.recovery.recovery_stages import RecoveryStage
from testkit.servers import processes

from .test_faults import with_recovery
from .test_kill import is_available, items_of, put_many, restored, until
from .test_stages import KILLING

ITEMS = 1500


def stages_of(kind: str) -> list[RecoveryStage]:
    return [stage for stage in RecoveryStage if stage.partition(":")[0] == kind]


class Served(NamedTuple):
    server: Any
    folder: Path
    place: Path
    """Has one backup, which lacks the last writes."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("whole")
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", folder / "data")
        client = server.client()
        with_recovery(client, "source", ITEMS)
        arn = client.create_backup(TableName="source", BackupName="inner")["BackupDetails"][
            "BackupArn"
        ]
        until(lambda: is_available(client, arn))
        back_up(server, folder / "place")
        put_many(client, "source", range(ITEMS, ITEMS + 100))
        yield Served(server, folder, folder / "place")


def back_up(server: Any, place: Path, *options: str) -> None:
    done = processes.run("backup", place, "--endpoint", server.url, *options)
    assert done.returncode == 0, done.stderr


def names(place: Path) -> list[str]:
    return processes.run("restore", place, "--list").stdout.split()


def see_restored(place: Path, folder: Path, expected: dict[str, Any]) -> None:
    done = processes.run("restore", place, "--data", folder)
    assert done.returncode == 0, done.stderr
    see_served(folder, expected)


def see_served(folder: Path, expected: dict[str, Any]) -> None:
    """Serves a folder, and compares the table and its restorable state."""
    with processes.starting() as start:
        client = start("serve", "--port", "0", "--data", folder).client()
        assert items_of(client, "source") == expected
        was = {"SourceTableName": "source", "UseLatestRestorableTime": True}
        assert restored(client, "was", **was) == expected


@pytest.mark.soak
@pytest.mark.parametrize(
    "stage", stages_of("database backup"), ids=lambda stage: stage.name.lower()
)
def test_a_backup_that_is_killed_is_there_or_not(
    served: Served, tmp_path: Path, stage: RecoveryStage
) -> None:
    place = tmp_path / "place"
    shutil.copytree(served.place, place)
    (first,) = names(place)
    command = ("backup", place, "--endpoint", served.server.url, "--keep", "1")
    killed = processes.run(stage.value, *command, command=KILLING)
    assert killed.returncode == -signal.SIGKILL, "the stage was not reached"
    left = names(place)
    assert len(left) == 1 + (stage is RecoveryStage.DATABASE_BACKUP_NAMED)
    assert (first in left) == (stage is not RecoveryStage.DATABASE_BACKUP_REMOVED)
    checked = processes.run("check", place)
    assert checked.returncode == 0, checked.stdout
    back_up(served.server, place, "--keep", "1")
    assert len(names(place)) == 1
    see_restored(place, tmp_path / "new", items_of(served.server.client(), "source"))


@pytest.mark.soak
@pytest.mark.parametrize(
    "stage", stages_of("database restore"), ids=lambda stage: stage.name.lower()
)
def test_a_folder_whose_restore_is_killed_is_there_or_not(
    served: Served, tmp_path: Path, stage: RecoveryStage
) -> None:
    place = tmp_path / "place"
    shutil.copytree(served.place, place)
    back_up(served.server, place)
    folder = tmp_path / "new"
    killed = processes.run(stage.value, "restore", place, "--data", folder, command=KILLING)
    assert killed.returncode == -signal.SIGKILL, "the stage was not reached"
    expected = items_of(served.server.client(), "source")
    if stage is RecoveryStage.DATABASE_RESTORE_NAMED:
        see_served(folder, expected)
    else:
        assert not folder.exists()
        see_restored(place, folder, expected)


@pytest.mark.soak
@pytest.mark.parametrize("stage", stages_of("online backup"), ids=lambda stage: stage.name.lower())
def test_a_server_that_is_killed_while_it_is_copied_leaves_no_backup_and_loses_nothing(
    served: Served, tmp_path: Path, stage: RecoveryStage
) -> None:
    first = tmp_path / "first"
    expected = items_of(served.server.client(), "source")
    back_up(served.server, tmp_path / "source")
    assert processes.run("restore", tmp_path / "source", "--data", first).returncode == 0
    place = tmp_path / "place"
    with processes.starting() as start:
        server = start(stage.value, "serve", "--port", "0", "--data", first, command=KILLING)
        done = processes.run("backup", place, "--endpoint", server.url)
        assert server.ended()[0] == -signal.SIGKILL, "the stage was not reached"
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert names(place) == []
        again = start("serve", "--port", "0", "--data", first)
        back_up(again, place)
        assert again.terminate()[0] == 0
    assert processes.run("check", first).returncode == 0
    see_restored(place, tmp_path / "new", expected)


@pytest.mark.soak
def test_backups_of_a_restored_folder_leave_those_of_its_source_whole(
    served: Served, tmp_path: Path
) -> None:
    """Both are backed up into one place, and their logs begin with the same stamp."""
    place = tmp_path / "place"
    shutil.copytree(served.place, place)
    back_up(served.server, place)
    older, newer = names(place)
    expected = items_of(served.server.client(), "source")
    branch = tmp_path / "branch"
    options = ("--backup", older, "--data", branch)
    assert processes.run("restore", place, *options).returncode == 0
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--data", branch)
        client = server.client()
        client.delete_item(TableName="source", Key={"pk": {"S": "k1"}})
        branched = items_of(client, "source")
        back_up(server, place)
    see_restored(place, tmp_path / "last", branched)
    options = ("--backup", newer, "--data", tmp_path / "new")
    assert processes.run("restore", place, *options).returncode == 0
    see_served(tmp_path / "new", expected)


def test_two_backups_at_once_do_not_share_a_place(tmp_path: Path) -> None:
    with only_writer(str(tmp_path)):
        done = processes.run("backup", tmp_path, "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "Another backup is being written to" in done.stderr
