"""Tests that the writes of requests.md lose no concurrent writes of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita_migrate.handover.create_stage import create
from partita_migrate.model.model_files import read_design
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import QUICK, designed, sqlite_database
from testkit.servers.processes import Server

from .test_requests import Run, load, run, written

__all__ = ["run"]

WORK = """
CREATE TABLE jobs (id INTEGER PRIMARY KEY, title TEXT NOT NULL, code TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL, hits INTEGER NOT NULL, closed_on DATE);
INSERT INTO jobs VALUES (1, 'dig', 'D1', 4, 7, NULL);
"""
PATTERNS = {
    "job": "SELECT * FROM jobs WHERE id = ?",
    "count": "UPDATE jobs SET hits = hits + 1 WHERE id = ?",
    "take off": "UPDATE jobs SET hits = hits - ? WHERE id = ?",
    "rename": "UPDATE jobs SET title = ?, version = version + 1 WHERE id = ? AND version = ?",
    "close": "UPDATE jobs SET closed_on = ? WHERE id = ? AND closed_on IS NULL",
    "drop": "DELETE FROM jobs WHERE id = ? AND closed_on IS NULL",
    "recode": "UPDATE jobs SET code = ? WHERE id = ?",
    "add once": "INSERT INTO jobs (id, title, code, version, hits) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING",
}
SETTINGS = f"""
[model]
choose = "denormalized"
[analyze]
examples = "whole"
[create]
capacity = "on-demand"
{QUICK}"""
TABLE = "jobs"


@pytest.fixture
def jobs(tmp_path: Path, server: Server, dynamodb: Any) -> Folder:
    url = sqlite_database(tmp_path / "source.db", WORK)
    folder = designed(tmp_path / "folder", url, PATTERNS, SETTINGS)
    create(folder, server.url)
    load(dynamodb, folder, read_design(folder))
    return folder


def job(dynamodb: Any) -> dict[str, Any]:
    found = dynamodb.get_item(TableName=TABLE, Key={"id": {"N": "1"}}, ConsistentRead=True)
    item: dict[str, Any] = found["Item"]
    return item


def change(dynamodb: Any, name: str, value: dict[str, str]) -> None:
    """Changes an attribute of the item, as another client would."""
    dynamodb.update_item(
        TableName=TABLE,
        Key={"id": {"N": "1"}},
        UpdateExpression="SET #n = :v",
        ExpressionAttributeNames={"#n": name},
        ExpressionAttributeValues={":v": value},
    )


def test_sums_are_made_by_the_service(jobs: Folder, dynamodb: Any, run: Run) -> None:
    found = written(jobs)
    run(found["count"])
    change(dynamodb, "hits", {"N": "100"})
    run(found["count"])
    assert job(dynamodb)["hits"] == {"N": "101"}
    run(found["take off"])
    assert int(job(dynamodb)["hits"]["N"]) < 101


@pytest.mark.parametrize(
    ("pattern", "name", "value"),
    [
        ("rename", "version", {"N": "5"}),
        ("close", "closed_on", {"S": "2026-01-01"}),
        ("drop", "closed_on", {"S": "2026-01-01"}),
        ("recode", "code", {"S": "D2"}),
    ],
)
def test_a_row_that_somebody_has_changed_stays(
    jobs: Folder, dynamodb: Any, run: Run, pattern: str, name: str, value: dict[str, str]
) -> None:
    change(dynamodb, name, value)
    before = job(dynamodb)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        run(written(jobs)[pattern])
    assert job(dynamodb) == before


def test_what_is_added_once_is_not_overwritten(jobs: Folder, dynamodb: Any, run: Run) -> None:
    change(dynamodb, "title", {"S": "mow"})
    with pytest.raises(ClientError, match=r"ConditionalCheckFailed|Duplicate"):
        run(written(jobs)["add once"])
    assert job(dynamodb)["title"] == {"S": "mow"}
