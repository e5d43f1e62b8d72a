"""The old counter on PostgreSQL, and both counters on the same visits."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from page_hit_counter.aws.aws_costs import read_prices
from page_hit_counter.legacy import counter_comparison
from page_hit_counter.legacy.relational_counter import (
    OLD_PERIODS,
    PageHit,
    Popular,
    RelationalCounter,
)
from page_hit_counter.processing.page_visits import PageVisit
from partita.errors import PartitaError
from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL

NOON = int(datetime(2020, 5, 6, 12, tzinfo=UTC).timestamp())
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSQL]:
    PostgreSQL.require()
    with PostgreSQL() as server:
        yield server


@pytest.fixture
def url(postgresql: PostgreSQL) -> str:
    """Connects to an empty database."""
    name = f"pagehits{next(_numbers)}"
    postgresql.create(name)
    password = quote(postgresql.password, safe="")
    return f"postgresql://postgres:{password}@127.0.0.1:{postgresql.port}/{name}"


@pytest.fixture
def counter(url: str) -> Iterator[RelationalCounter]:
    counter = RelationalCounter.connect(url)
    counter.create()
    yield counter
    counter.close()


def hit(
    asset: int = 1, seconds: int = -30, hits: int = 1, section: int = 5, paid: str = "free"
) -> PageHit:
    """Makes a hit, by default one before noon."""
    return PageHit(asset, hits, section, "article", paid, NOON + seconds)


def listed(
    counter: RelationalCounter, period: str = "justnow", **filters: Any
) -> list[tuple[int, int]]:
    return [(p.asset_id, p.hits) for p in counter.most_popular(period, NOON, **filters)]


def test_a_hit_is_a_row_in_each_of_three_tables(counter: RelationalCounter) -> None:
    assert counter.count([hit()]) == 3
    assert counter.size().rows == 3
    assert counter.most_popular("justnow", NOON) == [Popular(1, "article", 5, "free", 1)]


def test_a_hit_with_the_same_key_is_added_to_the_row(counter: RelationalCounter) -> None:
    counter.count([hit(), hit(hits=4), hit(asset=2)])
    counter.count([hit()])
    assert listed(counter) == [(1, 6), (2, 1)]
    assert counter.size().rows == 6


def test_just_now_is_five_minutes_by_the_minute(counter: RelationalCounter) -> None:
    counter.count([hit(seconds=second) for second in (-301, -300, -1, 0, 59)])
    assert listed(counter) == [(1, 2)]
    assert [p.hits for p in counter.most_popular("justnow", NOON + 60)] == [3]


def test_a_day_is_24_hours_and_a_week_is_7_days(counter: RelationalCounter) -> None:
    counter.count([hit(seconds=-3_600 * hour - 1) for hour in range(30)])
    assert listed(counter, "day") == [(1, 24)]
    counter.count([hit(asset=2, seconds=-86_400 * day) for day in range(10)])
    assert dict(listed(counter, "week"))[2] == 7


def test_lists_are_filtered_by_any_of_several_values(counter: RelationalCounter) -> None:
    counter.count([hit(1, section=5), hit(2, section=6), hit(3, section=7, paid="metered")])
    assert listed(counter, sections=[5, 7]) == [(1, 1), (3, 1)]
    assert listed(counter, paid_types=["metered"]) == [(3, 1)]
    assert listed(counter, sections=[5], paid_types=["metered"]) == []
    assert listed(counter, resource_types=["article", "recipe"]) == [(1, 1), (2, 1), (3, 1)]
    assert listed(counter, resource_types=["recipe"]) == []


def test_lists_have_a_hundred_entries_in_order_of_hits(counter: RelationalCounter) -> None:
    counter.count([hit(asset, hits=asset) for asset in range(1, 151)])
    found = listed(counter)
    assert found == [(asset, asset) for asset in range(150, 50, -1)]


def test_a_batch_is_counted_whole_or_not_at_all(counter: RelationalCounter) -> None:
    wrong = hit()._replace(paid_type="x" * 33)
    with pytest.raises(psycopg.DataError):
        counter.count([hit(), wrong])
    assert counter.size().rows == 0


def test_what_no_list_shows_any_more_is_deleted(counter: RelationalCounter) -> None:
    counter.count([hit(), hit(seconds=-400), hit(seconds=-90_000), hit(seconds=-8 * 86_400)])
    before = {name: listed(counter, name) for name in OLD_PERIODS}
    deleted = counter.delete_stale(NOON)
    assert deleted == 3 + 2 + 1
    assert {name: listed(counter, name) for name in OLD_PERIODS} == before


def test_a_database_that_does_not_answer_is_a_readable_error() -> None:
    with pytest.raises(PartitaError, match="Cannot connect to PostgreSQL"):
        RelationalCounter.connect("postgresql://nobody@127.0.0.1:1/none")


# Over HTTP


def test_the_old_service_counts_and_lists(url: str) -> None:
    sent = {"assetId": 7, "hits": 3, "sectionId": 5, "resourceType": "article", "paidType": "free"}
    with processes.starting() as start:
        server = start("pagehits", "serve-old", "--postgresql", url, "--port", "0", stderr=None)
        assert ask(server, "POST", "/pagehits", [sent, sent]) == (200, {"accepted": 2})
        assert ask(server, "GET", "/")[0] == 200
        assert ask(server, "GET", "/?period=day&section=5&section=6") == (200, [])
        status, answer = ask(server, "POST", "/pagehits", [{**sent, "hits": "many"}])
        assert (status, "hits" in answer["detail"]) == (400, True)
        assert ask(server, "POST", "/pagehits", [{**sent, "paidType": "\0"}])[0] == 400
        odd = ("paidType=%00", "section=", f"section={'9' * 20}", f"section={'9' * 5_000}")
        for query in ("period=year", "colour=red", "section=x", *odd):
            assert ask(server, "GET", f"/?{query}")[0] == 400
    counter = RelationalCounter.connect(url)
    assert counter.most_popular("day", time.time() + 3_600) == [Popular(7, "article", 5, "free", 6)]
    counter.close()


def ask(server: processes.Server, method: str, target: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, target, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


# Both counters


def test_both_counters_have_the_same_lists_and_other_costs(url: str) -> None:
    visits = counter_comparison.sample_visits(5_000)
    result = asyncio.run(counter_comparison.run(visits, url, read_prices("today")))
    assert result.visits == 5_000
    assert result.differences == {"justnow": 0, "day": 0, "week": 0}
    assert result.empty_lists == []
    assert result.old.lists == result.new.lists
    assert sum(hits for _, hits in result.new.lists["day"]) > 500
    assert result.old.rows_written == 15_000
    assert result.new.rows_written < result.old.rows_written
    assert result.new.bytes_kept < result.old.bytes_kept
    assert result.new.dollars_month < result.old.dollars_month


def test_visits_are_moved_to_the_present_without_changing_their_distances() -> None:
    visits = counter_comparison.sample_visits(100)
    moved = counter_comparison.moved_to_end(visits, 1_000_000_200)
    assert 1_000_000_200 - 300 <= moved[-1].time < 1_000_000_200
    assert moved[-1].time - moved[0].time == pytest.approx(visits[-1].time - visits[0].time)


def test_visits_are_read_from_a_file_and_must_be_of_one_brand(tmp_path: Path, url: str) -> None:
    path = tmp_path / "visits.jsonl"
    event = {"assetId": 1, "sectionId": 2, "paidType": "free", "resourceType": "article"}
    path.write_text("".join(json.dumps({**event, "brand": b, "time": 9}) + "\n" for b in "ab"))
    assert counter_comparison.read_visits(path) == [
        PageVisit(
            asset_id=1, section_id=2, paid_type="free", time=9, brand=b, resource_type="article"
        )
        for b in "ab"
    ]
    done = processes.run("pagehits", "compare", path, "--postgresql", url)
    assert done.returncode == 1
    assert "one brand, but the visits have 2" in done.stderr
    path.write_text("{}\n")
    with pytest.raises(PartitaError, match="assetId"):
        counter_comparison.read_visits(path)


def test_without_visits_nothing_is_called_the_same(tmp_path: Path, url: str) -> None:
    path = tmp_path / "visits.jsonl"
    uncatalogued = {"assetId": 1, "sectionId": 2, "paidType": "free", "brand": "a", "time": 9}
    for content in ("", json.dumps(uncatalogued) + "\n"):
        path.write_text(content)
        done = processes.run("pagehits", "compare", path, "--postgresql", url)
        assert (done.returncode, "nothing can be compared" in done.stderr) == (1, True)
        assert "the same" not in done.stdout
