"""Counting record by record: late, repeated, replayed; and closing windows in the right order."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from page_hit_counter.counting import tumbling_windows as windows_module
from page_hit_counter.counting.count_segments import (
    decode_counts,
    decode_ids,
    encode_counts,
    encode_ids,
)
from page_hit_counter.counting.segment_manifest import SegmentManifest
from page_hit_counter.counting.tally import VisitTally
from page_hit_counter.counting.tumbling_windows import Facet, TumblingWindow, TumblingWindows
from page_hit_counter.lists import most_popular
from page_hit_counter.pagehits_settings import DAY, JUST_NOW, WEEK, PageHitSettings, Period
from page_hit_counter.spam.adjustments import Adjustment
from page_hit_counter.spam.adjustments import AdjustmentRow as Change
from page_hit_counter.storing.window_rows import (
    RowColumns,
    WindowRow,
    columns_of,
    in_order,
    pack,
    pack_most,
    rows_by_brand,
    summed,
    unpack,
)
from partita.client.consumer.kinesis_source import KinesisRecord

PERIODS = (
    Period(name="a", code="A", seconds=10, count=1, max_age_seconds=1),
    Period(name="b", code="B", seconds=30, count=2, max_age_seconds=1),
    Period(name="c", code="C", seconds=120, count=2, max_age_seconds=1),
)
SETTINGS = PageHitSettings(periods=PERIODS, lateness_seconds=5)
Closed = dict[TumblingWindow, Counter[int]]


def record(visits: list[tuple[int, float]], arrived: float, **more: Any) -> KinesisRecord:
    """Makes a record; visits are pairs of asset and time."""
    packed = {
        "id": f"{arrived}-{visits}",
        "visits": [
            {
                "assetId": asset,
                "sectionId": 1,
                "paidType": "free",
                "time": time,
                "brand": "abc",
                "resourceType": "article",
            }
            for asset, time in visits
        ],
        **more,
    }
    return KinesisRecord("1", "key", json.dumps(packed).encode(), arrived)


def close_all(tally: VisitTally, watermark: float) -> Closed:
    """Closes windows as the counter does."""
    tally.windows.mark_saved()
    closing = tally.closable(watermark)
    tally.manifest.closed |= closing
    closed: Closed = {}
    for window in sorted(closing):
        counts = tally.windows.saved.get(window, {})
        closed[window] = Counter(
            {asset: hits for (asset, _), hits in tally.windows.spell_out(counts).items()}
        )
        tally.windows.close(window, tally.manifest.closed - closing)
    return {window: counts for window, counts in closed.items() if counts}


def test_a_visit_counts_in_every_window_that_holds_it() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0), (7, 1008.0), (8, 1011.0)], 1012.0), 0)
    assert close_all(tally, 1015.0) == {TumblingWindow(0, 1000): {7: 2}}
    assert close_all(tally, 1030.0) == {
        TumblingWindow(0, 1010): {8: 1},
        TumblingWindow(1, 990): {7: 2, 8: 1},
    }
    assert close_all(tally, 1100.0) == {TumblingWindow(2, 960): {7: 2, 8: 1}}


def test_a_visit_that_is_late_for_one_window_counts_in_the_longer_ones() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0)], 1015.0), 1015.0)
    assert close_all(tally, 1015.0) == {}
    assert close_all(tally, 1025.0) == {TumblingWindow(1, 990): {7: 1}}
    assert tally.manifest.late == 0


def test_a_visit_that_is_late_for_all_windows_is_counted_as_late() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0)], 1085.0), 1085.0)
    assert tally.manifest.late == 1
    assert not tally.windows.open_windows()


def test_a_record_that_comes_twice_counts_once() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    for _ in range(2):
        tally.take(record([(7, 1003.0)], 1004.0), 0)
    assert close_all(tally, 1020.0)[TumblingWindow(0, 1000)] == {7: 1}
    assert tally.manifest.repeated == 1


def test_a_visit_without_resource_type_is_counted_as_such_and_in_no_list() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    packed = {"id": "x", "visits": [{"assetId": 1, "sectionId": 1, "paidType": "a", "time": 1e3}]}
    tally.take(KinesisRecord("1", "key", json.dumps(packed).encode(), 1001.0), 0)
    tally.windows.mark_saved()
    ((_, facet),) = tally.windows.spell_out(tally.windows.saved[TumblingWindow(0, 1000)])
    assert facet.paid_type == "no resource type"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"visits": 1}', b"\xff", b'{"adjustment": 3}'])
def test_a_record_of_another_program_is_counted_as_malformed(data: bytes) -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(KinesisRecord("1", "key", data, 1.0), 0)
    assert tally.manifest.malformed == 1


def test_history_closes_as_its_own_times_pass() -> None:
    now = 1_000_000.0
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0), (7, 1011.0)], now, replay="r", number=0), now)
    assert close_all(tally, now) == {}
    tally.take(record([(8, 1015.0)], now + 1, replay="r", number=1), now)
    assert close_all(tally, now) == {TumblingWindow(0, 1000): {7: 2 - 1}}
    tally.take(record([(8, 1015.0)], now + 2, replay="r", number=1), now)
    tally.take(record([], now + 3, replay="r", number=2, isLast=True), now)
    assert close_all(tally, now) == {
        TumblingWindow(0, 1010): {7: 1, 8: 1},
        TumblingWindow(1, 990): {7: 2, 8: 1},
        TumblingWindow(2, 960): {7: 2, 8: 1},
    }


def test_history_does_not_hold_back_windows_of_today() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0)], 50_003.0, replay="r", number=0), 0)
    tally.take(record([(9, 50_002.0)], 50_004.0), 0)
    assert close_all(tally, 50_015.0) == {
        TumblingWindow(0, 50_000): {9: 1},
        TumblingWindow(1, 49_980): {9: 1},
    }


def test_an_adjustment_counts_once_and_waits_for_windows_that_are_closed() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    tally.take(record([(7, 1003.0)] * 5, 1004.0), 0)
    close_all(tally, 1015.0)
    change = Adjustment("x", (Change("abc", 7, 1, "free", "article", 1003, -2),))
    for _ in range(2):
        tally.take(KinesisRecord("2", "key", change.encode(), 1016.0), 1015.0)
    assert [(a.window, a.hits) for a in tally.manifest.late_adjustments] == [
        (TumblingWindow(0, 1000), -2)
    ]
    assert close_all(tally, 1030.0) == {TumblingWindow(1, 990): {7: 3}}


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_whenever_windows_are_closed_they_equal_a_recount(seed: int) -> None:
    """Visits arrive in any order, some long after their time, and windows close at any moment."""
    chance = random.Random(seed)
    tally = VisitTally(SETTINGS, SegmentManifest())
    now, expected, closed = (
        1000.0,
        dict[TumblingWindow, Counter[int]](),
        dict[TumblingWindow, Counter[int]](),
    )
    for _ in range(200):
        now += chance.choice((0.5, 1, 3, 40))
        visits = [
            (chance.randint(1, 3), now - chance.choice((0, 0, 1, 8, 30, 200))) for _ in range(3)
        ]
        tally.take(record(visits, now), now)
        for asset, time in visits:
            for window in tally.windows.windows_of(time):
                if now < tally.windows.end(window) + SETTINGS.lateness_seconds:
                    expected.setdefault(window, Counter())[asset] += 1
        if chance.random() < 0.3:
            for window, counts in close_all(tally, now).items():
                assert window not in closed
                closed[window] = counts
    closed |= close_all(tally, now + 1000)
    assert closed == expected


def test_the_periods_of_the_document_are_the_default() -> None:
    assert PageHitSettings().periods == (JUST_NOW, DAY, WEEK)
    assert [(p.seconds, p.count, p.max_age_seconds) for p in PageHitSettings().periods] == [
        (300, 1, 30),
        (3600, 24, 120),
        (86_400, 7, 300),
    ]


# The state must fit items, whatever clients send.

ITEM_BYTES_MAX = 400_000


def made_up(chance: random.Random) -> str:
    """Makes a paid type that does not compress."""
    return "".join(chr(chance.randrange(0x10000, 0x10FFFF)) for _ in range(20))


def test_counts_of_made_up_facets_are_written_in_pieces_that_fit() -> None:
    chance, windows = random.Random(7), TumblingWindows(PERIODS)
    for _ in range(5_000):
        facet = Facet("abc", chance.randrange(1 << 31), made_up(chance), "article")
        windows.add(TumblingWindow(0, 0), 7, facet, 1)
    counts = windows.unsaved[TumblingWindow(0, 0)]
    pieces = list(encode_counts(counts, windows.facets))
    assert max(map(len, pieces)) < ITEM_BYTES_MAX
    read = TumblingWindows(PERIODS)
    for piece in pieces:
        read.add_counts(TumblingWindow(0, 0), decode_counts(piece, read.facets))
    assert read.spell_out(read.saved[TumblingWindow(0, 0)]) == windows.spell_out(counts)


def test_too_many_facets_are_counted_under_one_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes facets of a brand that arrives after all numbers are used up."""
    monkeypatch.setattr(windows_module, "FACETS_MAX", 10)
    windows, window = TumblingWindows(PERIODS), TumblingWindow(0, 0)
    for section in range(20):
        windows.add(window, 7, Facet("abc", section, "free", "article"), 1)
    windows.add(window, 7, Facet("def", 1, "free", "article"), 1)
    windows.mark_saved()
    closed = rows_by_brand(windows, windows.saved[window], 5, 100)
    assert closed["abc"].hits + closed["abc"].filtered["too many facets"] == 20
    assert closed["?"].filtered == {"too many facets": 1}


def test_facets_that_no_window_has_are_forgotten() -> None:
    windows, old, new = TumblingWindows(PERIODS), TumblingWindow(0, 0), TumblingWindow(0, 10)
    for section in range(20):
        windows.add(old, 7, Facet("abc", section, "free", "article"), 1)
    windows.add(new, 7, Facet("abc", 21, "free", "article"), 3)
    windows.mark_saved()
    del windows.saved[old]
    windows.forget_facets()
    assert len(windows.facets) == 3
    assert windows.spell_out(windows.saved[new]) == {(7, Facet("abc", 21, "free", "article")): 3}


def test_rows_that_do_not_fit_are_left_out_from_the_end() -> None:
    chance = random.Random(7)
    rows = [WindowRow(7, n, made_up(chance), "article", 10_000 - n) for n in range(10_000)]
    packed = pack_most(rows, 350_000)
    assert len(packed) <= 350_000
    kept = unpack(packed).rows()
    assert 2_000 < len(kept) < 10_000
    assert kept == rows[: len(kept)]


def test_ids_of_many_records_are_written_in_pieces_that_fit() -> None:
    chance = random.Random(7)
    ids = [bytes(chance.choices(range(33, 127), k=128)).decode() for _ in range(6_000)]
    pieces = list(encode_ids(ids))
    assert max(map(len, pieces)) < ITEM_BYTES_MAX
    assert [each for piece in pieces for each in decode_ids(piece)] == ids


def test_a_counter_remembers_and_postpones_no_more_than_fits() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    chance = random.Random(7)
    rows = tuple(Change("abc", 7, n, made_up(chance), "article", 1_000, 1) for n in range(1_000))
    for number in range(6_000):
        change = Adjustment(f"release:abc:2020-05-06T11-reload-{number}", rows)
        tally.take(KinesisRecord("1", "key", change.encode(), 1_200.0), 1_200.0)
        rows = rows if number < 1 else ()
    tally.forget(1_200.0)
    manifest = tally.manifest
    assert (len(manifest.adjustments), len(manifest.late_adjustments)) == (5_000, 3_000)
    assert manifest.late == 3_000
    assert len(zlib.compress(msgspec.json.encode(manifest))) < ITEM_BYTES_MAX


def test_late_adjustments_of_one_row_are_added_up() -> None:
    tally = VisitTally(SETTINGS, SegmentManifest())
    rows = tuple(Change("abc", 7, 1, "free", "article", time, 2) for time in (1_001, 1_002, 1_012))
    tally.take(KinesisRecord("1", "key", Adjustment("x", rows).encode(), 1_200.0), 1_200.0)
    late = {each.window: each.hits for each in tally.manifest.late_adjustments}
    assert late == {
        TumblingWindow(0, 1_000): 4,
        TumblingWindow(0, 1_010): 2,
        TumblingWindow(1, 990): 6,
        TumblingWindow(2, 960): 6,
    }


def test_lists_are_those_of_a_plain_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is right when only first rows count, and when other rows of the assets do too."""
    monkeypatch.setattr(most_popular, "RESULTS_MAX", 4)
    chance = random.Random(1)
    for _ in range(300):
        steep = chance.choice((0.5, 1.5, 4.0))
        sections = chance.choice((1, 3))
        windows: dict[str, list[RowColumns]] = {"a": [], "b": []}
        counts: Counter[tuple[str, int, int]] = Counter()
        for brand in chance.choices("ab", k=4):
            made = [
                WindowRow(
                    asset, section, "free", "article", 1 + int(chance.paretovariate(1 / steep))
                )
                for asset in range(12)
                for section in range(sections)
                if chance.random() < 0.6
            ]
            windows[brand].append(unpack(pack(in_order(made))))
            assert windows[brand][-1].rows() == in_order(made)
            counts.update({(brand, row.asset_id, row.section_id): row.hits for row in made})
        totals: Counter[tuple[str, int]] = Counter()
        best: dict[tuple[str, int], tuple[int, int]] = {}
        for (brand, asset, section), hits in sorted(counts.items()):
            totals[brand, asset] += hits
            best[brand, asset] = max(best.get((brand, asset), (0, 0)), (hits, -section))
        sums = [(brand, columns_of(summed(found))) for brand, found in windows.items()]
        found = most_popular.ranked(sums)
        order = sorted(totals, key=lambda asset: (-totals[asset], asset))[:4]
        assert [(asset, hits) for asset, hits, _ in found] == [(a, totals[a]) for a in order]
        assert [(row.hits, -row.section_id) for _, _, row in found] == [best[a] for a in order]
