"""From visits to lists, over HTTP: what is answered, counted, stored and served."""

from __future__ import annotations

import random
import time
from calendar import timegm
from typing import Any

import pytest

from testkit.data.page_hit_pipeline import (
    Pipeline,
    asset_id,
    make_visits,
    recount,
    scan,
    stream_visits,
    wait_for,
)
from testkit.servers import processes

LENGTHS = {"F": 1, "H": 2, "D": 4}
LATENESS = 1
VISIT = {"assetId": asset_id(0), "sectionId": 7, "paidType": "free"}


def hits_of(short: Pipeline, asset: int, query: str) -> int:
    _, _, answer = short.get(f"/?{query}")
    return sum(hit["hits"] for hit in answer["lists"][0]["hits"] if hit["assetId"] == asset)


def test_every_event_is_answered_for_itself(short: Pipeline) -> None:
    status, answer = short.post(
        [
            VISIT,
            {**VISIT, "assetId": "x"},
            {**VISIT, "assetId": 5},
            {**VISIT, "time": time.time() + 900},
            {**VISIT, "time": "2026-05-06T11:05:00Z"},
            {**VISIT, "time": "yesterday"},
            {"assetId": 1},
            7,
            {**VISIT, "assetId": 5, "url": "http://[::1"},
            {**VISIT, "time": 1e300},
            {**VISIT, "time": "9999-12-31T23:59:59-10:00"},
        ]
    )
    assert status == 200
    statuses = [event["status"] for event in answer["events"]]
    assert statuses == [
        *("accepted", "refused", "uncatalogued", "refused", "accepted", "refused", "refused"),
        *("refused", "uncatalogued", "refused", "refused"),
    ]
    assert (answer["accepted"], answer["uncatalogued"], answer["refused"]) == (2, 2, 7)
    reasons = [event.get("reason", "") for event in answer["events"]]
    assert "assetId" in reasons[1]
    assert "ahead of the server's clock" in reasons[3]
    assert "yesterday" in reasons[5]
    assert all("ahead of the server's clock" in reason for reason in reasons[9:])
    assert all(len(reason) < 100 for reason in reasons)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("{", 400, "not a JSON list of events"),
        ('{"a": 1}', 400, "events"),
        ("7", 400, "not a JSON list of events"),
        ("[" + "0," * 1000 + "0]", 413, "at most 1000 events"),
        ('{"events": [], "replay": "x"}', 400, "number"),
        ("[" * 5000 + "]" * 5000, 400, "nested too deeply"),
    ],
)
def test_a_body_that_is_not_a_batch_is_refused_with_the_reason(
    short: Pipeline, body: str, status: int, words: str
) -> None:
    found, _, content = short.request("processor", "POST", "/events", body)
    assert found == status
    assert words in content.decode()


@pytest.mark.parametrize(
    ("brand", "resource_type"),
    [
        ("a b", "article"),
        ("abc#F", "article"),
        ("x" * 33, "article"),
        ("abc", "y" * 51),
        ("abc", "!"),
    ],
)
def test_an_asset_that_no_row_could_hold_counts_as_uncatalogued(
    short: Pipeline, brand: str, resource_type: str
) -> None:
    asset = 1_000 + sum(map(ord, brand + resource_type))
    item = {"brand": {"S": brand}, "resourceType": {"S": resource_type}}
    short.client().put_item(
        TableName="pagehits-assets", Item={"assetId": {"N": str(asset)}, **item}
    )
    assert short.post([{**VISIT, "assetId": asset}])[1]["uncatalogued"] == 1


def test_a_batch_that_is_repeated_with_its_key_counts_once(short: Pipeline) -> None:
    asset = asset_id(1)
    began = time.time()
    for _ in range(3):
        status, _ = short.post([{**VISIT, "assetId": asset}], {"Idempotency-Key": f"k{began}"})
        assert status == 200
    wait_for(lambda: hits_of(short, asset, "brand=def&period=day"))
    assert hits_of(short, asset, "brand=def&period=day") == 1


def test_a_key_that_was_used_with_another_body_is_refused(short: Pipeline) -> None:
    key = {"Idempotency-Key": f"reused{time.time()}"}
    first, other = ([{**VISIT, "assetId": asset_id(number)}] for number in (3, 4))
    assert short.post(first, key)[0] == 200
    status, answer = short.post(other, key)
    assert (status, key["Idempotency-Key"] in answer["detail"]) == (409, True)
    assert short.post(first, key)[0] == 200
    assert short.post(other, {"Idempotency-Key": f"own{time.time()}"})[0] == 200


def test_windows_equal_a_recount_and_are_served(short: Pipeline) -> None:
    chance = random.Random(7)
    visits = list(make_visits(chance, 1_500, 50, lambda number: 0))
    for first in range(0, len(visits), 100):
        batch = [{**visit, "time": time.time() - chance.random()} for visit in visits[first:][:100]]
        assert short.post(batch)[0] == 200
        time.sleep(0.1)
    last = batch[-1]["time"]
    end = int(last) // LENGTHS["H"] * LENGTHS["H"] + LENGTHS["H"]
    wait_for(lambda: short.get("/brands")[2]["closedUntil"] >= end + LATENESS)
    wait_for(lambda: _until(short) >= end)
    raw = [
        {**visit, "arrived": arrived} for visit, arrived in stream_visits(short.client("kinesis"))
    ]
    expected = recount(
        [visit for visit in raw if visit.get("resourceType")],
        LENGTHS,
        lambda visit, window_end: visit["arrived"] < window_end + LATENESS,
    )
    found = short.windows()
    assert len(found) > 5
    for (brand, code, start), rows in found.items():
        if rows:
            assert rows == expected[brand, code, start]
    closed = {key for key in expected if key[2] + LENGTHS[key[1]] <= end}
    assert closed <= found.keys()


def _until(short: Pipeline) -> float:
    """Returns the end of the newest window in the list of a day."""
    _, _, answer = short.get("/?brand=abc&period=day")
    stamp = answer["lists"][0]["until"]
    shape = "%Y-%m-%dT%H:%M:%S" if stamp.count(":") == 2 else "%Y-%m-%dT%H:%M"
    return timegm(time.strptime(stamp, shape))


def test_rows_reach_the_table_in_the_form_of_the_document(short: Pipeline) -> None:
    # More hits than in any other test: rows with the same count would have longer keys.
    short.post([{**VISIT, "assetId": asset_id(4), "sectionId": 70}] * 997)

    def stored() -> list[dict[str, Any]]:
        items = scan(short.client(), "pagehits")
        return [item for item in items if item["sectionId"] == {"N": "70"}]

    item = wait_for(stored)[0]
    assert item["rangeKey"] == {"S": f"00000997#{asset_id(4)}"}
    brand, code, stamp = item["hashKey"]["S"].split("#")
    assert (brand, code in LENGTHS) == ("abc", True)
    assert len(stamp) == len("2020-05-06T11:05:00")
    assert item["resourceType"] == {"S": "recipe"}
    assert item["paidType"] == {"S": "free"}
    assert set(item) == {
        "hashKey",
        "rangeKey",
        "sectionId",
        "resourceType",
        "paidType",
        "expirationTime",
    }


def test_lists_are_filtered_and_ordered(short: Pipeline) -> None:
    batch = []
    for number, hits in ((10, 5), (12, 9), (14, 2)):
        batch += [{**VISIT, "assetId": asset_id(number), "sectionId": number}] * hits
    short.post(batch)
    query = "brand=abc&period=day&section=10&section=12&section=14"
    wait_for(lambda: len(short.get(f"/?{query}")[2]["lists"][0]["hits"]) == 3)
    hits = short.get(f"/?{query}")[2]["lists"][0]["hits"]
    assert [(hit["assetId"], hit["hits"]) for hit in hits] == [
        (asset_id(12), 9),
        (asset_id(10), 5),
        (asset_id(14), 2),
    ]
    assert hits[0] == {
        "assetId": asset_id(12),
        "brand": "abc",
        "hits": 9,
        "sectionId": 12,
        "resourceType": "article",
        "paidType": "free",
    }
    of_type = short.get(f"/?{query}&resourceType=recipe")[2]["lists"][0]["hits"]
    assert [hit["assetId"] for hit in of_type] == [asset_id(10)]
    assert short.get(f"/?{query}&paidType=paid")[2]["lists"][0]["hits"] == []


@pytest.mark.parametrize(("period", "seconds"), [("justnow", 30), ("day", 120), ("week", 300)])
def test_lists_may_be_kept_by_caches(short: Pipeline, period: str, seconds: int) -> None:
    status, headers, _ = short.get(f"/?period={period}&brand=def&brand=abc")
    assert status == 200
    assert headers["cache-control"] == f"max-age={seconds}"
    assert headers["content-location"] == f"/?brand=abc&brand=def&period={period}"


def test_a_list_that_has_not_changed_is_not_sent_again(short: Pipeline) -> None:
    target = "/?brand=abc&period=week&paidType=nobody&section=999"
    _, headers, _ = short.get(target)
    other_order = "/?section=999&paidType=nobody&period=week&brand=abc"
    status, again, content = short.request(
        "api", "GET", other_order, headers={"If-None-Match": headers["etag"]}
    )
    if status == 200:  # A window has closed between the two requests.
        assert again["etag"] != headers["etag"]
    else:
        assert (status, content) == (304, b"")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "brand is missing"),
        ("brand=xyz", "no brand 'xyz': use abc, def"),
        ("brand=abc&period=year", "no period 'year': use justnow, day, week"),
        ("brand=abc&section=sport", "section takes a number"),
        ("brand=abc&sections=1", "no parameter 'sections'"),
        ("brand=abc&paidType=", "paidType is empty"),
    ],
)
def test_invalid_parameters_are_refused_in_words(short: Pipeline, query: str, words: str) -> None:
    status, _, answer = short.get(f"/?{query}")
    assert status == 400
    assert words in answer["detail"]


def test_visits_without_resource_type_are_dropped_and_counted(short: Pipeline) -> None:
    visit = {**VISIT, "assetId": 77, "url": "https://www.abc.example/77"}
    short.post([visit] * 4)

    def dropped() -> bool:
        windows = short.get("/traffic?brand=abc")[2]["windows"]
        return any(window["filtered"].get("no resource type") == 4 for window in windows)

    wait_for(dropped)


def test_counting_goes_on_when_a_shard_of_the_stream_is_split(short: Pipeline) -> None:
    kinesis, asset = short.client("kinesis"), asset_id(30)
    visit = {**VISIT, "assetId": asset, "sectionId": 30}
    short.post([visit] * 3)
    shard = kinesis.list_shards(StreamName="pagehits")["Shards"][0]
    lowest, highest = (int(n) for n in shard["HashKeyRange"].values())
    kinesis.split_shard(
        StreamName="pagehits",
        ShardToSplit=shard["ShardId"],
        NewStartingHashKey=str((lowest + highest) // 2),
    )
    for number in range(8):
        short.post([visit], {"Idempotency-Key": f"split-{number}-{time.time()}"})
    target = "brand=abc&period=day&section=30"
    wait_for(lambda: hits_of(short, asset, target) == 11)


def test_a_second_counter_stands_by_and_nothing_counts_twice(short: Pipeline) -> None:
    visit = {**VISIT, "assetId": asset_id(32), "sectionId": 32}
    short.post([visit] * 3)
    with processes.starting() as start:
        start(
            *("pagehits", "serve", "--parts", "counter", "--port", "0"),
            *("--endpoint", short.endpoint, "--config", short.config),
        )
        for _ in range(4):
            short.post([visit] * 2)
            time.sleep(0.5)
        target = "brand=abc&period=day&section=32"
        wait_for(lambda: hits_of(short, asset_id(32), target) == 11)
