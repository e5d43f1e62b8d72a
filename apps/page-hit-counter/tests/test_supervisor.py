"""`partita pagehits serve` starts all processes, restarts those that die, and stops them all."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest

from page_hit_counter.spam.adjustments import Adjustment, AdjustmentRow
from testkit.data.page_hit_pipeline import asset_id, put_assets, scan, wait_for
from testkit.servers.processes import ENVIRONMENT, Server

from .conftest import SHORT_PERIODS

ELSEWHERE = "http://127.0.0.1:1"
"""The URL of a database that does not exist."""


class Program:
    def __init__(self, folder: Path) -> None:
        config = folder / "pagehits.toml"
        config.write_text(SHORT_PERIODS)
        places = ("--data", folder / "data", "--database-port", "0", "--port", "0")
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            self.server = Server(
                "pagehits",
                "serve",
                "--config",
                config,
                *places,
                stderr=errors,
                env={**ENVIRONMENT, "AWS_ENDPOINT_URL_DYNAMODB": ELSEWHERE},
            )
        self.database = re.findall(r"http://[\d.:]+", self.server.ready_line)[1]

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.database,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def request(self, method: str, target: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, target, json.dumps(body))
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def hits(self, asset: int) -> int:
        answer = self.request("GET", "/?brand=abc&period=week&section=5") or {}
        # While the database is gone there are no lists.
        found = [hit for shown in answer.get("lists", ()) for hit in shown["hits"]]
        return sum(hit["hits"] for hit in found if hit["assetId"] == asset)

    def is_stored(self, window: str, range_key: str) -> bool:
        return any(
            item["hashKey"]["S"].startswith(window) and item["rangeKey"]["S"] == range_key
            for item in scan(self.client("dynamodb"), "pagehits")
        )

    def children(self) -> list[int]:
        task = Path(f"/proc/{self.server.process.pid}/task/{self.server.process.pid}/children")
        return [int(number) for number in task.read_text().split()]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    found = Program(tmp_path_factory.mktemp("program"))
    put_assets(found.client("dynamodb"), 4)
    yield found
    if found.server.process.poll() is None:
        found.server.terminate()


def visit(program: Program, asset: int, times: int, **more: int) -> None:
    visits = [{"assetId": asset, "sectionId": 5, "paidType": "free", **more}] * times
    wait_for(lambda: (program.request("POST", "/events", visits) or {}).get("accepted"))


def test_it_starts_a_database_of_its_own_whatever_the_environment_says(program: Program) -> None:
    assert program.database != ELSEWHERE
    assert f"to use that one, give --endpoint {ELSEWHERE}" in (program.errors.read_text())


def test_a_killed_process_comes_back_and_counts_stay_right(program: Program) -> None:
    visit(program, asset_id(0), 5)
    wait_for(lambda: len(program.children()) == 3)
    for child in program.children():
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: len(program.children()) == 3)
    wait_for(lambda: program.hits(asset_id(0)) == 5)


@pytest.mark.soak
def test_hits_can_be_taken_back_from_windows_that_are_closed_and_stored(program: Program) -> None:
    """Sends an adjustment as the quarantine does, twice; it must count once."""
    # Wait for the beginning of a window, so that the visits are not too late for it.
    wait_for(lambda: time.time() % 4 < 2)
    now = int(time.time())
    visit(program, asset_id(2), 6, time=now)
    wait_for(lambda: program.hits(asset_id(2)) == 6)
    wait_for(lambda: program.is_stored("abc#D#", f"00000006#{asset_id(2)}"))
    windows = partial(scan, program.client("dynamodb"), "pagehits-windows")
    assert all("rows" in item for item in windows() if "amended" not in item)
    row = AdjustmentRow("abc", asset_id(2), 5, "free", "advertorial", now, -2)
    change = Adjustment(f"test-{now}", (row,)).encode()
    for _ in range(2):
        program.client("kinesis").put_record(StreamName="pagehits", Data=change, PartitionKey="abc")
    wait_for(lambda: program.hits(asset_id(2)) == 4)
    wait_for(lambda: (program.request("GET", "/brands") or {}).get("repeated"))
    assert program.hits(asset_id(2)) == 4
    amended = [item for item in windows() if "amended" in item]
    assert amended
    assert not any("rows" in item for item in amended)


def test_it_stops_all_that_it_started(program: Program) -> None:
    children = program.children()
    code, said = program.server.terminate()
    assert code == 0, said
    assert not any(Path(f"/proc/{child}").exists() for child in children)
