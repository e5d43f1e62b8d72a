"""Visits reach the counter by files: exactly once, in Firehose's layout, whatever is killed."""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page_hit_counter.delivery import arrival_events, delivered_files
from page_hit_counter.pagehits_settings import load
from partita.errors import PartitaError
from testkit.data.page_hit_pipeline import (
    Pipeline,
    asset_id,
    make_visits,
    put_assets,
    recount,
    running,
    scan,
    stream_visits,
    wait_for,
)

from .conftest import ASSETS, SHORT_PERIODS

WEB, COUNTING = "processor,api", "delivery,counter,consumer"
LATENESS_SECONDS = 6
DELIVERY = """
[delivery]
route = "{route}"
buffer_seconds = 0.5
schedule_minutes = 1
"""
KEY = re.compile(
    r"visits/(\d{4}/\d\d/\d\d/\d\d)/pagehits-delivery-1-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9a-f-]{36}\.gz"
)


def settings(route: str, lateness_seconds: int = LATENESS_SECONDS) -> str:
    periods = SHORT_PERIODS.replace(
        "lateness_seconds = 1", f"lateness_seconds = {lateness_seconds}"
    )
    return periods + DELIVERY.format(route=route)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("delivered")
    with running(folder, settings("topic"), parts=(WEB, COUNTING)) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        yield pipeline


def files(pipeline: Pipeline) -> list[Path]:
    return sorted((pipeline.folder / "pagehits-events").rglob("*.gz"))


def visits_in(path: Path) -> list[dict[str, Any]]:
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [visit for line in lines for visit in json.loads(line)["visits"]]


def send(pipeline: Pipeline, count: int, seed: int) -> list[dict[str, Any]]:
    """Sends visits in batches with keys, and repeats batches without an answer."""
    sent = []
    for number in range(count):
        chance = random.Random(seed + number)
        batch = list(make_visits(chance, 20, ASSETS, lambda _: time.time()))
        pipeline.post_until_taken(batch, {"Idempotency-Key": f"{seed}-{number}"})
        sent += batch
    return sent


def assert_counted(pipeline: Pipeline, sent: list[dict[str, Any]]) -> None:
    """Checks that each visit counts once, in the window of its time."""
    since = int(min(visit["time"] for visit in sent)) // 4 * 4
    expected = recount(sent, {"F": 1, "H": 2, "D": 4})

    def found() -> Any:
        windows = {key: rows for key, rows in pipeline.windows().items() if key[2] >= since}
        return windows.keys() >= expected.keys() and windows

    windows = wait_for(found, 150)
    assert {key: windows[key] for key in expected} == expected


def test_visits_come_in_files_of_firehoses_layout_and_count_once(delivered: Pipeline) -> None:
    known = set(files(delivered))
    sent = send(delivered, 10, seed=1)
    assert_counted(delivered, sent)
    written = [path for path in files(delivered) if path not in known]
    assert sum(len(visits_in(path)) for path in written) == len(sent)
    for path in written:
        key = path.relative_to(delivered.folder / "pagehits-events").as_posix()
        found = KEY.fullmatch(key)
        written_at = path.stat().st_mtime
        # A file that is named at the end of an hour may be written in the next.
        hours = [time.strftime("%Y/%m/%d/%H", time.gmtime(written_at - s)) for s in (0, 60)]
        assert found and found[1] in hours


def test_nothing_is_lost_when_delivery_and_server_are_killed(delivered: Pipeline) -> None:
    sent = send(delivered, 5, seed=1_000)
    delivered.kill(COUNTING)
    sent += send(delivered, 5, seed=2_000)
    delivered.kill("database")
    sent += send(delivered, 5, seed=3_000)
    expected = sorted(map(identity, sent))
    wait_for(lambda: len(arrived(delivered, sent)) >= len(sent), 60)
    assert sorted(arrived(delivered, sent)) == expected


def identity(visit: dict[str, Any]) -> tuple[float, int, str]:
    return visit["time"], visit["assetId"], visit["visitor"]


def arrived(pipeline: Pipeline, sent: list[dict[str, Any]]) -> list[tuple[float, int, str]]:
    """Returns the records on the counter's stream, each once, as the counter takes them."""
    since = min(visit["time"] for visit in sent)
    found = stream_visits(pipeline.client("kinesis"))
    return [identity(visit) for visit, _ in found if visit["time"] >= since]


def packed(name: str, count: int) -> bytes:
    visits = [
        {
            "assetId": asset_id(0),
            "sectionId": 1,
            "paidType": "free",
            "time": time.time(),
            "visitor": name,
            "brand": "abc",
            "resourceType": "article",
        }
    ] * count
    return json.dumps({"id": name, "visits": visits}).encode()


@pytest.mark.parametrize("route", ["direct", "bucket", "topic"])
def test_the_function_takes_what_each_route_sends(delivered: Pipeline, route: str) -> None:
    name = f"{route}-record"
    now = time.time()
    if route == "direct":
        event = arrival_events.of_records("any", [packed(name, 3)], now)
    else:
        key = delivered_files.object_key("visits/", "by hand", now)
        size = delivered_files.write(delivered.folder / "pagehits-events", key, [packed(name, 3)])
        event = arrival_events.of_object("pagehits-events", key, size, now)
        if route == "topic":
            event = arrival_events.of_topic("any", event, now)
    assert invoke(delivered, event)["records"] == 1
    # Sent again, it has the same id, and counts once.
    assert invoke(delivered, event)["records"] == 1
    on_stream = list(stream_visits(delivered.client("kinesis")))
    assert [visit["visitor"] for visit, _ in on_stream].count(name) == 3


def test_a_schedule_finds_new_files_once(delivered: Pipeline) -> None:
    folder = delivered.folder / "pagehits-events"
    invoke(delivered, {})
    key = delivered_files.object_key("visits/", "by-hand", time.time())
    delivered_files.write(folder, key, [packed("scheduled", 2)])
    assert invoke(delivered, {}) == {"records": 1, "files": 1}
    assert invoke(delivered, {}) == {"records": 0, "files": 0}


def test_lines_that_are_not_records_are_set_aside(delivered: Pipeline) -> None:
    event = arrival_events.of_records(
        "any", [b"no JSON", b'{"id": 1}', packed("beside", 1)], time.time()
    )
    assert invoke(delivered, event)["records"] == 1
    kept = [item["data"]["S"] for item in scan(delivered.client(), "pagehits-malformed")]
    assert {"no JSON", '{"id": 1}'} <= set(kept)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"Records": [{"s3": {}}]}, "not one of a delivery stream"),
        ({"records": [{"data": 17}]}, "not one of a delivery stream"),
        ({"Records": [{"s3": {"object": {"key": "../pagehits.toml"}}}]}, "is not an object"),
        ({"Records": [{"s3": {"object": {"key": "visits/none.gz"}}}]}, "cannot be read"),
    ],
)
def test_the_function_says_what_is_wrong_with_an_event(
    delivered: Pipeline, event: dict[str, Any], reason: str
) -> None:
    answer = delivered.client("lambda").invoke(
        FunctionName="page-hit-delivery", Payload=json.dumps(event)
    )
    assert answer["FunctionError"] == "Unhandled"
    assert reason in json.load(answer["Payload"])["errorMessage"]


def invoke(pipeline: Pipeline, event: dict[str, Any]) -> dict[str, Any]:
    answer = pipeline.client("lambda").invoke(
        FunctionName="page-hit-delivery", Payload=json.dumps(event)
    )
    content: dict[str, Any] = json.load(answer["Payload"])
    assert "FunctionError" not in answer, content
    return content


def test_lateness_must_be_as_long_as_delivery_takes(tmp_path: Path) -> None:
    path = tmp_path / "pagehits.toml"
    path.write_text(settings("topic", lateness_seconds=2))
    with pytest.raises(PartitaError, match=r"lateness_seconds to at least 5\.5"):
        load(path)
    path.write_text(settings("schedule", lateness_seconds=60))
    with pytest.raises(PartitaError, match=r"lateness_seconds to at least 65\.5"):
        load(path)


@pytest.mark.soak
@pytest.mark.parametrize("route", ["direct", "bucket", "topic", "schedule"])
def test_every_route_counts_each_visit_once(tmp_path: Path, route: str) -> None:
    lateness = 70 if route == "schedule" else LATENESS_SECONDS
    with running(tmp_path, settings(route, lateness), parts=(WEB, COUNTING)) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        sent = send(pipeline, 20, seed=5_000)
        wait_for(lambda: len(arrived(pipeline, sent)) >= len(sent), 120)
        assert sorted(arrived(pipeline, sent)) == sorted(map(identity, sent))
        assert_counted(pipeline, sent)
