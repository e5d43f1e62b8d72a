"""kill -9 at every named stage: the operation completes after the restart, or has no effect."""

from __future__ import annotations

import ast
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import BotoCoreError

import partita
from partita.database.recovery.recovery_stages import RecoveryStage
from testkit.servers import processes

from .test_bulk import asked, ended
from .test_faults import export_of, import_of, settings, start_export, start_import, with_recovery
from .test_kill import (
    ON,
    create,
    is_active,
    is_available,
    items_of,
    put_many,
    restorable,
    restored,
    until,
)

KILLING = (sys.executable, str(Path(__file__).with_name("killing.py")))
ITEMS = 1500
WHOLE = {"online backup", "database backup", "database restore"}
"""Kinds of stages that test_whole_stages.py covers."""
RECORDS = 3000
"""The number of valid records in the imported file, which has one bad record, too."""

Folder = Path


class Kind(NamedTuple):
    """How to start an operation, and how to see its result on a restarted server."""

    ask: Callable[[Any], Any]
    is_done: Callable[[Any, Folder], None]


def ask_for_backup(client: Any) -> None:
    client.create_backup(TableName="plain", BackupName="asked")


def see_backup(client: Any, folder: Folder) -> None:
    (backup,) = [
        one for one in client.list_backups()["BackupSummaries"] if one["BackupName"] == "asked"
    ]
    until(lambda: is_available(client, backup["BackupArn"]))
    client.restore_table_from_backup(TargetTableName="again", BackupArn=backup["BackupArn"])
    see_copy(client, "again", items_of(client, "plain"))


def ask_for_base(client: Any) -> None:
    client.update_continuous_backups(TableName="plain", PointInTimeRecoverySpecification=ON)


def see_base(client: Any, folder: Folder) -> None:
    until(lambda: restorable(client, "plain"))
    put_many(client, "plain", range(ITEMS, ITEMS + 50))
    found = restored(client, "again", SourceTableName="plain", UseLatestRestorableTime=True)
    assert found == items_of(client, "plain")


def ask_for_restore(client: Any) -> None:
    (backup,) = client.list_backups()["BackupSummaries"]
    client.restore_table_from_backup(TargetTableName="again", BackupArn=backup["BackupArn"])


def see_restore(client: Any, folder: Folder) -> None:
    see_copy(client, "again", items_of(client, "source"))


def ask_for_export(client: Any) -> None:
    start_export(client, "source", "files")


def see_export(client: Any, folder: Folder) -> None:
    (summary,) = client.list_exports()["ExportSummaries"]
    done = export_of(client, summary["ExportArn"])
    assert (done["ExportStatus"], done["ItemCount"]) == ("COMPLETED", ITEMS)
    data = (folder / "bucket" / done["ExportManifest"]).parent / "data"
    # All of the folder, as Spark or Athena reads it: nothing is left of the first attempt.
    prefix = data.relative_to(folder / "bucket").as_posix()
    arn = start_import(client, "again", "files", prefix, InputCompressionType="GZIP")
    assert import_of(client, arn)["ProcessedItemCount"] == ITEMS
    see_copy(client, "again", items_of(client, "source"))


def ask_for_import(client: Any) -> None:
    start_import(client, "again", "files", "in/")


def see_import(client: Any, folder: Folder) -> None:
    (summary,) = client.list_imports()["ImportSummaryList"]
    done = import_of(client, summary["ImportArn"])
    assert (done["ImportStatus"], done["ErrorCount"]) == ("FAILED", 1)
    assert done["FailureCode"] == "ItemValidationError"
    assert (done["ImportedItemCount"], done["ProcessedItemCount"]) == (RECORDS, RECORDS + 1)
    see_copy(client, "again", records())


def ask_for_bulk(client: Any) -> None:
    client.start_bulk_put_items(**asked("plain", "in/"))


def see_bulk(client: Any, folder: Folder) -> None:
    (summary,) = client.list_bulk_operations()["BulkOperationsSummaryList"]
    done = ended(client, summary["BulkOperationArn"])
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (RECORDS + 1, 1)
    found = items_of(client, "plain")
    assert {key: found[key] for key in records()} == records()
    (told,) = (folder / "bucket").rglob("data/000000.json")
    assert len(told.read_text().splitlines()) == 1


KINDS = {
    "base": Kind(ask_for_base, see_base),
    "backup": Kind(ask_for_backup, see_backup),
    "restore": Kind(ask_for_restore, see_restore),
    "export": Kind(ask_for_export, see_export),
    "import": Kind(ask_for_import, see_import),
    "bulk": Kind(ask_for_bulk, see_bulk),
}


def records() -> dict[str, Any]:
    return {
        f"r{number}": {"pk": {"S": f"r{number}"}, "g": {"S": "g"}, "v": {"S": "x" * 100}}
        for number in range(RECORDS)
    }


def see_copy(client: Any, name: str, expected: dict[str, Any]) -> None:
    until(lambda: is_active(client, name))
    assert items_of(client, name) == expected
    in_index = {key for key, item in expected.items() if "g" in item}
    assert items_of(client, name, IndexName="by_g").keys() == in_index
    assert client.describe_table(TableName=name)["Table"]["ItemCount"] == len(expected)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a table with recovery and a backup, a table without, and a file to import."""
    folder = tmp_path_factory.mktemp("stages")
    (folder / "bucket" / "in").mkdir(parents=True)
    lines = [json.dumps({"Item": item}) for item in records().values()]
    (folder / "bucket" / "in" / "a.json").write_text("\n".join([*lines, "nothing"]))
    with processes.starting() as start:
        server = start("serve", *options(folder))
        client = server.client()
        with_recovery(client, "source", ITEMS)
        arn = client.create_backup(TableName="source", BackupName="first")["BackupDetails"][
            "BackupArn"
        ]
        create(client, "plain")
        put_many(client, "plain", range(ITEMS))
        until(lambda: is_available(client, arn))
    yield folder


def options(folder: Path) -> tuple[str, ...]:
    config = settings(folder, files=folder / "bucket")
    return ("--port", "0", "--data", str(folder / "data"), "--config", str(config))


@pytest.mark.soak
@pytest.mark.parametrize(
    "stage",
    [stage for stage in RecoveryStage if stage.partition(":")[0] in KINDS],
    ids=lambda stage: stage.name.lower(),
)
def test_what_is_killed_at_a_stage_is_done_after_the_restart(
    prepared: Path, tmp_path: Path, stage: RecoveryStage
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(prepared, folder)
    kind = KINDS[stage.partition(":")[0]]
    with processes.starting() as start:
        server = start(stage.value, "serve", *options(folder), command=KILLING)
        with suppress(BotoCoreError):
            # The answer may be lost with the server.
            kind.ask(server.client())
        assert server.ended()[0] == -signal.SIGKILL, "the stage was not reached"
        again = start("serve", *options(folder))
        kind.is_done(again.client(), folder)
        assert again.terminate()[0] == 0
    checked = processes.run("check", folder / "data")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.soak
def test_an_import_that_is_killed_again_and_again_counts_each_record_once(tmp_path: Path) -> None:
    """Keys occur twice, so a repeated import replaces items, and their index entries."""
    lines = [
        {
            "Item": {
                "pk": {"S": f"r{number % 2000}"},
                "g": {"S": f"g{number}"},
                "v": {"S": "x" * 100},
            }
        }
        for number in range(RECORDS)
    ]
    (tmp_path / "bucket" / "in").mkdir(parents=True)
    put = RecoveryStage.IMPORT_ITEMS_PUT
    text = "\n".join([*map(json.dumps, lines), "nothing"])
    (tmp_path / "bucket" / "in" / "a.json").write_text(text)
    with processes.starting() as start:
        for number, stage in enumerate(
            (put, RecoveryStage.IMPORT_LOADED, put, RecoveryStage.IMPORT_INDEXED, put)
        ):
            server = start(stage.value, "serve", *options(tmp_path), command=KILLING)
            if number == 0:
                with suppress(BotoCoreError):
                    ask_for_import(server.client())
            assert server.ended()[0] == -signal.SIGKILL, "the stage was not reached"
        again = start("serve", *options(tmp_path))
        client = again.client()
        (summary,) = client.list_imports()["ImportSummaryList"]
        done = import_of(client, summary["ImportArn"])
        assert (done["ErrorCount"], done["ImportedItemCount"]) == (1, RECORDS)
        assert done["ProcessedItemCount"] == RECORDS + 1
        see_copy(client, "again", {one["Item"]["pk"]["S"]: one["Item"] for one in lines})
        assert again.terminate()[0] == 0
    checked = processes.run("check", tmp_path / "data")
    assert checked.returncode == 0, checked.stdout


def test_every_stage_is_named_where_it_is_reached() -> None:
    """Crash tests run over all members of RecoveryStage, so each must be reached somewhere."""
    source = [path.read_text() for path in Path(partita.__path__[0]).rglob("*.py")]
    named = {
        node.attr
        for text in source
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "RecoveryStage"
    }
    assert named == {stage.name for stage in RecoveryStage}
    assert {stage.partition(":")[0] for stage in RecoveryStage} == KINDS.keys() | WHOLE
