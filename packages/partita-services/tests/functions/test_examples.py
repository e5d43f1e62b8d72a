"""The examples with functions do what their pages say."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testkit import ROOT
from testkit.packaging.function_packages import wait_for
from testkit.requirements import needs_page_hit_counter
from testkit.servers.processes import Server

EXAMPLES = ROOT / "examples"


def begun(serve: Any, folder: Path, example: str) -> Server:
    """A server with the settings of an example, after its tables were created."""
    home = folder / example
    shutil.copytree(EXAMPLES / example, home)
    server: Server = serve(
        *("serve", "--port", "0", "--in-memory", "--time-scale", "60"),
        *("--config", home / "partita.toml"),
    )
    own = {"AWS_ENDPOINT_URL": server.url, "AWS_DEFAULT_REGION": "us-east-1"}
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    subprocess.run(
        [sys.executable, home / "create.py"], check=True, env={**os.environ, **own, **keys}
    )
    return server


def test_expired_items_are_archived_and_no_others(serve: Any, tmp_path: Path) -> None:
    begun(serve, tmp_path, "expired-items")
    archive = tmp_path / "expired-items" / "archive"

    def archived() -> set[str]:
        objects = archive.glob("sessions/*/*/*/*/*.jsonl.gz")
        lines = [line for one in objects for line in gzip.decompress(one.read_bytes()).splitlines()]
        return {json.loads(line)["id"]["S"] for line in lines}

    wait_for(archived, lambda found: len(found) >= 20)
    assert archived() == {str(number) for number in range(20)}


def test_the_leaders_of_all_shards_are_published(serve: Any, tmp_path: Path) -> None:
    client = begun(serve, tmp_path, "leaderboard").client()

    def leaders() -> list[str]:
        answer = client.get_item(TableName="results", Key={"name": {"S": "leaders"}})
        listed = answer.get("Item", {}).get("candidates", {"L": []})["L"]
        return [one["M"]["votes"]["N"] for one in listed]

    wait_for(leaders, lambda found: found == ["99", "98", "97"])


@needs_page_hit_counter
def test_the_page_hit_consumer_runs_as_a_function(serve: Any, tmp_path: Path) -> None:
    server = begun(serve, tmp_path, "pagehits-functions")
    counts = [
        {
            "brand": "abc",
            "period": "F",
            "assetId": asset,
            "sectionId": 563,
            "paidType": "free",
            "resourceType": "article",
            "hitCount": 100 + asset,
            "timestamp": "2099-05-06 11:05:00",
        }
        for asset in range(1, 51)
    ]
    records = [
        {"Data": json.dumps(count).encode(), "PartitionKey": str(count["assetId"])}
        for count in counts
    ]
    server.client("kinesis").put_records(StreamName="pagehits-counts", Records=records)
    client = server.client()

    def stored() -> set[str]:
        return {item["rangeKey"]["S"] for item in client.scan(TableName="pagehits")["Items"]}

    wanted = {f"{100 + asset:08d}#{asset}" for asset in range(1, 51)}
    wait_for(stored, lambda found: found == wanted)
    request = (EXAMPLES / "pagehits-functions" / "request.json").read_bytes()
    answer = server.client("lambda").invoke(FunctionName="page-hit-api", Payload=request)
    assert "FunctionError" not in answer, answer["Payload"].read()
    lists = json.load(answer["Payload"])
    assert lists["statusCode"] == 200, lists


@pytest.mark.parametrize("example", ["expired-items", "leaderboard", "pagehits-functions"])
def test_the_page_of_an_example_names_its_files(example: str) -> None:
    page = (EXAMPLES / example / "README.md").read_text()
    assert "partita.toml" in page
    assert "create.py" in page
