"""Items as in table 6.1 of the thesis, the consumer that writes them, and checkpoints."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page_hit_counter.aws import lambda_functions
from page_hit_counter.counting import counter
from page_hit_counter.counting.tumbling_windows import Facet, TumblingWindow, TumblingWindows
from page_hit_counter.pagehits_settings import DAY, JUST_NOW, WEEK, PageHitSettings, load
from page_hit_counter.processing.asset_catalogue import Asset
from page_hit_counter.processing.page_visits import PageVisit, ReceivedEvents
from page_hit_counter.processing.processor import Processor
from page_hit_counter.spam.spam_settings import SpamSettings
from page_hit_counter.storing.closed_windows import ClosedWindows, WindowKey
from page_hit_counter.storing.late_adjustments import LateAdjustment, apply_all
from page_hit_counter.storing.list_sums import ListSums
from page_hit_counter.storing.page_hits_table import item_of, put_row
from page_hit_counter.storing.window_rows import (
    ClosedRows,
    RowColumns,
    WindowRow,
    in_order,
    rows_by_brand,
)
from partita.client import Client
from partita.errors import PartitaError
from testkit.data.page_hit_pipeline import (
    ONE_PROCESS,
    Pipeline,
    asset_id,
    put_assets,
    running,
    scan,
    wait_for,
)

from .conftest import SHORT_PERIODS

TABLE_6_1 = [
    ("abc", JUST_NOW, 1588763100, WindowRow(132141398, 563, "free", "article", 258)),
    ("def", DAY, 1588762800, WindowRow(387294989, 1347, "paid", "recipe", 1187)),
    ("abc", WEEK, 1588723200, WindowRow(983447323, 34, "metered", "advertorial", 12349)),
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
    settings = PageHitSettings(expires_after="window")
    found = [item_of(settings, WindowKey(*given[:3]), given[3]) for given in TABLE_6_1]
    assert [plain(item) for item in found] == ITEMS
    assert all(set(item) == set(NAMES) for item in found)


def test_rows_live_as_long_as_a_list_shows_them_and_ten_minutes() -> None:
    """A list of the day at 11:59:59 still begins with the window of 11:00 of the day before."""
    last_shown = 1588762800 + 25 * 3600
    assert PageHitSettings().expiration_time(DAY, 1588762800) == last_shown + 600


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    settings = 'expires_after = "window"\nexpiration_grace_seconds = 600'
    with running(tmp_path_factory.mktemp("consumer"), settings, parts=("consumer",)) as found:
        yield found


@pytest.fixture
def call(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yields the handler as Lambda calls it, in an environment of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", pipeline.endpoint)
    monkeypatch.setenv("PAGEHITS_CONFIG", str(pipeline.config))
    lambda_functions.forget()
    yield lambda records: {
        record["recordId"]: record["result"]
        for record in lambda_functions.consumer({"records": records})["records"]
    }
    lambda_functions.forget()


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


# Checkpoints of the counter.


def test_segments_of_a_window_are_merged_when_they_are_many(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "SEGMENTS_PER_WINDOW_MAX", 2)
    settings, now = PageHitSettings(spam=SpamSettings(mode="off")), time.time()

    async def saved_and_read_again() -> None:
        client = Client(pipeline.endpoint)
        processor = Processor(client, settings)
        await processor.add_assets({7: Asset("abc", "article")})
        first = counter.VisitCounter(client, settings)
        await first._start()
        for number in range(6):
            visit = PageVisit(7, number % 2, "free", time=now)
            await processor.process(ReceivedEvents([visit]), None)
            await first._read()
            await first._checkpoint()
        named = [segment for segment in first._manifest.segments if segment.level == 0]
        assert len(named) <= 2
        second = counter.VisitCounter(client, settings)
        await second._start()
        (window,) = second._windows.open_windows()
        counts = second._windows.spell_out(second._windows.saved[window])
        assert sorted((facet.section_id, hits) for (_, facet), hits in counts.items()) == [
            (0, 3),
            (1, 3),
        ]
        await client.close()

    asyncio.run(saved_and_read_again())


# Rows of a closed window.


def closed_rows(
    hits: list[tuple[int, int, int]], kept: int, rows_max: int = 100
) -> list[WindowRow]:
    """Makes rows; hits are asset, section and count."""
    windows = TumblingWindows(PageHitSettings().periods)
    for asset, section, count in hits:
        windows.add(TumblingWindow(0, 0), asset, Facet("abc", section, "free", "article"), count)
    windows.mark_saved()
    return rows_by_brand(windows, windows.saved[TumblingWindow(0, 0)], kept, rows_max)["abc"].rows


def test_an_asset_counts_by_all_its_rows() -> None:
    rows = closed_rows([(1, 1, 3), (1, 2, 3), (2, 1, 5), (3, 1, 4)], kept=2)
    assert [(row.asset_id, row.hits) for row in rows] == [(2, 5), (1, 3), (1, 3)]


def test_assets_that_share_the_lowest_count_are_all_kept_up_to_a_bound() -> None:
    hits = [(asset, 1, 2) for asset in range(1, 11)]
    assert len(closed_rows(hits, kept=3)) == 10
    assert [row.asset_id for row in closed_rows(hits, kept=3, rows_max=4)] == [1, 2, 3, 4]


def test_a_sum_that_is_not_positive_is_not_kept() -> None:
    assert [row.asset_id for row in closed_rows([(1, 1, 2), (2, 1, 1), (2, 1, -1)], 5)] == [1]


# Sums of the windows that a list shows.

NEWEST = 4_070_908_800


def day(hours_before: int, brand: str) -> WindowKey:
    return WindowKey(brand, DAY, NEWEST - 3600 * hours_before)


def closed_window(*hits: int) -> ClosedRows:
    rows = [WindowRow(7 + n, 1, "free", "article", count) for n, count in enumerate(hits)]
    return ClosedRows(in_order(rows), sum(hits), {})


def hits_of(rows: RowColumns) -> dict[int, int]:
    return dict(zip(rows.assets, rows.hits, strict=True))


async def is_kept(sums: ListSums, brand: str) -> bool:
    return "rows" in await sums._item((brand, DAY))


def test_a_list_reads_the_sum_of_its_windows(pipeline: Pipeline) -> None:
    async def closed_and_read() -> None:
        client, settings = Client(pipeline.endpoint), PageHitSettings()
        sums = ListSums(client, settings)
        windows = [(day(23, "sum"), closed_window(1)), (day(0, "sum"), closed_window(2, 9))]
        await sums.put_all([(day(24, "sum"), closed_window(100)), *windows], time.time())
        assert hits_of(await sums.read(day(0, "sum"))) == {8: 9, 7: 3}
        for key, _ in windows:
            request = {"TableName": settings.windows_table, "Key": key.item_key}
            await client.call("dynamodb", "DeleteItem", request)
        assert hits_of(await sums.read(day(0, "sum"))) == {8: 9, 7: 3}, "from one item"
        assert hits_of(await sums.read(day(1, "sum"))) == {7: 100}, "another list"
        await client.close()

    asyncio.run(closed_and_read())


def test_an_adjustment_of_a_window_changes_the_sum_at_once(pipeline: Pipeline) -> None:
    async def adjusted_and_read() -> None:
        client, settings = Client(pipeline.endpoint), PageHitSettings()
        sums, key = ListSums(client, settings), day(3, "late")
        windows = [(key, closed_window(5)), (day(0, "late"), closed_window(2))]
        await sums.put_all(windows, time.time())
        for row in windows[0][1].rows:
            await put_row(client, settings, key, row)
        await ClosedWindows(client, settings).mark_stored(key)
        facet = Facet("late", 1, "free", "article")
        adjustment = LateAdjustment("x", TumblingWindow(1, key.start), 7, facet, -4)
        assert await is_kept(sums, "late")
        assert await apply_all(client, settings, [adjustment]) == []
        assert not await is_kept(sums, "late")
        assert hits_of(await sums.read(day(0, "late"))) == {7: 3}
        await sums.renew({("late", DAY): key.start})
        assert await is_kept(sums, "late")
        assert hits_of(await sums.read(day(0, "late"))) == {7: 3}
        await client.close()

    asyncio.run(adjusted_and_read())


def test_a_sum_of_windows_that_change_meanwhile_is_not_kept(pipeline: Pipeline) -> None:
    class Overtaken(ListSums):
        """Another counter closes one of the windows again."""

        async def _windows(self, newest: WindowKey) -> list[RowColumns]:
            found = await super()._windows(newest)
            await ListSums(self._client, self._settings)._withdraw((newest.brand, newest.period))
            return found

    async def overtaken() -> None:
        client, settings = Client(pipeline.endpoint), PageHitSettings()
        await Overtaken(client, settings).put_all([(day(0, "two"), closed_window(5))], time.time())
        sums = ListSums(client, settings)
        assert not await is_kept(sums, "two")
        assert hits_of(await sums.read(day(0, "two"))) == {7: 5}
        await client.close()

    asyncio.run(overtaken())


# Settings.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lateness_seconds = 'x'", "lateness_seconds"),
        ("unknown = 1", "unknown"),
        (
            '[[periods]]\nname="a"\ncode="A"\nseconds=7\ncount=1\nmax_age_seconds=1\n'
            '[[periods]]\nname="b"\ncode="B"\nseconds=10\ncount=1\nmax_age_seconds=1\n',
            "not a multiple",
        ),
        ("[spam]\nmode='filter'\ninterval_seconds=7", "not a multiple of interval_seconds"),
        ("[[urls]]\npattern='('", "pattern"),
        ("[[urls]]\npattern='a'", "assetId"),
    ],
)
def test_wrong_settings_are_refused_with_the_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "pagehits.toml"
    path.write_text(text)
    with pytest.raises(PartitaError, match=words):
        load(path)


def test_with_compression_a_window_is_one_item(tmp_path: Path) -> None:
    with running(tmp_path, f"compression = true\n{SHORT_PERIODS}", parts=ONE_PROCESS) as pipeline:
        put_assets(pipeline.client(), 4)
        visits = [{"assetId": asset_id(0), "sectionId": s, "paidType": "free"} for s in (1, 1, 2)]
        assert pipeline.post(visits)[0] == 200
        items = wait_for(lambda: scan(pipeline.client(), "pagehits"))
        assert {item["rangeKey"]["S"] for item in items} == {"compressed"}
        query = "/?brand=abc&period=day"
        wait_for(lambda: pipeline.get(query)[2]["lists"][0]["hits"])
        (hit,) = pipeline.get(query)[2]["lists"][0]["hits"]
        assert (hit["assetId"], hit["hits"], hit["sectionId"]) == (asset_id(0), 3, 1)
