"""Items as in table 6.1 of the thesis, and the function that writes them."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.apps.pagehits import counter, lambdas
from partita.apps.pagehits.catalogue import Asset
from partita.apps.pagehits.closed_windows import Key
from partita.apps.pagehits.consumer import handler
from partita.apps.pagehits.processor import Processor
from partita.apps.pagehits.rows import Row, rows_by_brand
from partita.apps.pagehits.settings import DAY, JUST_NOW, WEEK, Settings, load
from partita.apps.pagehits.spam.settings import SpamSettings
from partita.apps.pagehits.storage import item_of
from partita.apps.pagehits.visits import Received, Visit
from partita.apps.pagehits.windows import Facet, Window, Windows
from partita.client import Client
from partita.errors import PartitaError

from .conftest import SHORT_PERIODS
from .pipeline import TOGETHER, Pipeline, asset_id, put_assets, running, scan, wait_for

TABLE_6_1 = [
    ("abc", JUST_NOW, 1588763100, Row(132141398, 563, "free", "article", 258)),
    ("def", DAY, 1588762800, Row(387294989, 1347, "paid", "recipe", 1187)),
    ("abc", WEEK, 1588723200, Row(983447323, 34, "metered", "advertorial", 12349)),
]
ITEMS = [
    ("abc#F#2020-05-06T11:05", "00000258#132141398", "563", "article", "free", "1588764000"),
    ("def#H#2020-05-06T11:00", "00001187#387294989", "1347", "recipe", "paid", "1588767000"),
    ("abc#D#2020-05-06T00:00", "00012349#983447323", "34", "advertorial", "metered", "1588810200"),
]
NAMES = ("hashKey", "rangeKey", "sectionId", "resourceType", "paidType", "expirationTime")


def plain(item: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    return tuple(next(iter(item[name].values())) for name in NAMES)


def test_items_are_those_of_table_6_1() -> None:
    settings = Settings(expires_after="window")
    found = [item_of(settings, Key(*given[:3]), given[3]) for given in TABLE_6_1]
    assert [plain(item) for item in found] == ITEMS
    assert all(set(item) == set(NAMES) for item in found)


def test_rows_live_as_long_as_a_list_shows_them_and_ten_minutes() -> None:
    """A list of the day at 11:59:59 still begins with the window of 11:00 of the day before."""
    last_shown = 1588762800 + 25 * 3600
    assert Settings().expiration_time(DAY, 1588762800) == last_shown + 600


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    settings = 'expires_after = "window"\nexpiration_grace_seconds = 600'
    with running(tmp_path_factory.mktemp("consumer"), settings, parts=("consumer",)) as found:
        yield found


@pytest.fixture
def call(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The handler as Lambda calls it, in an environment of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", pipeline.endpoint)
    monkeypatch.setenv("PAGEHITS_CONFIG", str(pipeline.config))
    lambdas.forget()
    yield lambda records: {
        record["recordId"]: record["result"] for record in handler({"records": records})["records"]
    }
    lambdas.forget()


def record(name: str, **changes: Any) -> dict[str, Any]:
    data = {
        "brand": "abc",
        "period": "F",
        "assetId": 132141398,
        "sectionId": 563,
        "paidType": "free",
        "resourceType": "article",
        "hitCount": 258,
        "timestamp": "2099-05-06 11:05:00.000",
        **changes,
    }
    return {"recordId": name, "data": b64encode(json.dumps(data).encode()).decode()}


def stored(pipeline: Pipeline, hash_key: str) -> list[str]:
    items = scan(pipeline.client(), "pagehits")
    return sorted(i["rangeKey"]["S"] for i in items if i["hashKey"]["S"] == hash_key)


def test_records_are_stored_and_acknowledged(pipeline: Pipeline, call: Any) -> None:
    assert call([record("1"), record("2", period="D", timestamp="2099-05-06T00:00:00Z")]) == {
        "1": "Ok",
        "2": "Ok",
    }
    assert stored(pipeline, "abc#F#2099-05-06T11:05") == ["00000258#132141398"]
    assert stored(pipeline, "abc#D#2099-05-06T00:00") == ["00000258#132141398"]


def test_malformed_records_are_acknowledged_and_set_aside(pipeline: Pipeline, call: Any) -> None:
    wrong = [
        {"recordId": "a", "data": "%%%"},
        {"recordId": "b", "data": b64encode(b"{").decode()},
        record("c", hitCount=0),
        record("d", period="X"),
        record("e", timestamp="2099-05-06 11:06:00"),
        record("f", brand="a#b"),
        {"recordId": "g"},
        {"recordId": "h", "data": None},
        {"recordId": "i", "data": "A" * 500_000},
    ]
    assert call([*wrong, record("good", timestamp="2099-05-06 11:10:00")]) == {
        **dict.fromkeys("abcdefghi", "Ok"),
        "good": "Ok",
    }
    aside = {i["recordId"]["S"]: i for i in scan(pipeline.client(), "pagehits-malformed")}
    assert set(aside) == set("abcdefghi")
    assert "no window" in aside["e"]["reason"]["S"].lower()
    assert stored(pipeline, "abc#F#2099-05-06T11:10") == ["00000258#132141398"]


def test_a_record_that_comes_again_changes_nothing(pipeline: Pipeline, call: Any) -> None:
    when = {"timestamp": "2099-05-06 11:15:00"}
    for _ in range(2):
        assert call([record("1", **when), record("2", **when, sectionId=9)]) == {
            "1": "Ok",
            "2": "Ok",
        }
    assert len(stored(pipeline, "abc#F#2099-05-06T11:15")) == 2


def test_only_counts_down_to_that_of_the_500th_asset_are_stored(
    pipeline: Pipeline, call: Any
) -> None:
    when = {"timestamp": "2099-05-06 11:20:00"}
    records = [record(str(n), assetId=1000 + n, hitCount=1000 - n, **when) for n in range(600)]
    assert set(call(records).values()) == {"Ok"}
    kept = stored(pipeline, "abc#F#2099-05-06T11:20")
    assert len(kept) == 500
    assert kept[0] == "00000501#1499"


def test_a_record_that_cannot_be_stored_is_asked_for_again(pipeline: Pipeline, call: Any) -> None:
    client = pipeline.client()
    client.delete_table(TableName="pagehits")
    assert call([record("1")]) == {"1": "DeliveryFailed"}
    client.create_table(
        TableName="pagehits",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("hashKey", "rangeKey")
        ],
        KeySchema=[
            {"AttributeName": "hashKey", "KeyType": "HASH"},
            {"AttributeName": "rangeKey", "KeyType": "RANGE"},
        ],
    )
    assert call([record("1")]) == {"1": "Ok"}


# What a counter keeps.


def test_segments_of_a_window_are_merged_when_they_are_many(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "SEGMENTS_PER_WINDOW_MAX", 2)
    settings, now = Settings(spam=SpamSettings(mode="off")), time.time()

    async def kept_and_read_again() -> None:
        client = Client(pipeline.endpoint)
        processor = Processor(client, settings)
        await processor.add_assets({7: Asset("abc", "article")})
        first = counter.Counter(client, settings)
        await first._start()
        await first._list_shards()
        for number in range(6):
            visit = Visit(7, number % 2, "free", time=now)
            await processor.process(Received([visit]), None)
            await first._read_all()
            await first._keep()
        named = [segment for segment in first._manifest.segments if segment.level == 0]
        assert len(named) <= 2
        second = counter.Counter(client, settings)
        await second._start()
        (window,) = second._windows.open_windows()
        counts = second._windows.spell_out(second._windows.kept[window])
        assert sorted((facet.section_id, hits) for (_, facet), hits in counts.items()) == [
            (0, 3),
            (1, 3),
        ]
        await client.close()

    asyncio.run(kept_and_read_again())


# What is kept of a window.


def closed_rows(hits: list[tuple[int, int, int]], kept: int, rows_max: int = 100) -> list[Row]:
    """Hits are asset, section and count."""
    windows = Windows(Settings().periods)
    for asset, section, count in hits:
        windows.add(Window(0, 0), asset, Facet("abc", section, "free", "article"), count)
    windows.keep_fresh()
    return rows_by_brand(windows, windows.kept[Window(0, 0)], kept, rows_max)["abc"].rows


def test_an_asset_counts_by_all_its_rows() -> None:
    rows = closed_rows([(1, 1, 3), (1, 2, 3), (2, 1, 5), (3, 1, 4)], kept=2)
    assert [(row.asset_id, row.hits) for row in rows] == [(2, 5), (1, 3), (1, 3)]


def test_assets_that_share_the_lowest_count_are_all_kept_up_to_a_bound() -> None:
    hits = [(asset, 1, 2) for asset in range(1, 11)]
    assert len(closed_rows(hits, kept=3)) == 10
    assert [row.asset_id for row in closed_rows(hits, kept=3, rows_max=4)] == [1, 2, 3, 4]


def test_a_sum_that_is_not_positive_is_not_kept() -> None:
    assert [row.asset_id for row in closed_rows([(1, 1, 2), (2, 1, 1), (2, 1, -1)], 5)] == [1]


# Settings.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lateness_seconds = 'x'", "lateness_seconds"),
        ("unknown = 1", "unknown"),
        (
            '[[periods]]\nname="a"\ncode="A"\nseconds=7\ncount=1\nmax_age_seconds=1\n'
            '[[periods]]\nname="b"\ncode="B"\nseconds=10\ncount=1\nmax_age_seconds=1\n',
            "no multiple",
        ),
        ("[spam]\nmode='filter'\ninterval_seconds=7", "no multiple of interval_seconds"),
        ("[[urls]]\npattern='('", "pattern"),
        ("[[urls]]\npattern='a'", "assetId"),
    ],
)
def test_settings_that_are_wrong_are_told_in_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "pagehits.toml"
    path.write_text(text)
    with pytest.raises(PartitaError, match=words):
        load(path)


def test_with_compression_a_window_is_one_item(tmp_path: Path) -> None:
    with running(tmp_path, f"compression = true\n{SHORT_PERIODS}", parts=TOGETHER) as pipeline:
        put_assets(pipeline.client(), 4)
        visits = [{"assetId": asset_id(0), "sectionId": s, "paidType": "free"} for s in (1, 1, 2)]
        assert pipeline.post(visits)[0] == 200
        items = wait_for(lambda: scan(pipeline.client(), "pagehits"))
        assert {item["rangeKey"]["S"] for item in items} == {"compressed"}
        query = "/?brand=abc&period=day"
        wait_for(lambda: pipeline.get(query)[2]["lists"][0]["hits"])
        (hit,) = pipeline.get(query)[2]["lists"][0]["hits"]
        assert (hit["assetId"], hit["hits"], hit["sectionId"]) == (asset_id(0), 3, 1)
