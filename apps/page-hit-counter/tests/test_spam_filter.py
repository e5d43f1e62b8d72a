"""The spam filter lets people pass, withholds spam, and takes waves back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from benchmarks.applications.spam import PERIODS, deviations, measure
from benchmarks.applications.visits import ATTACKS, START, Attack, MadeVisit, visits
from page_hit_counter.spam.adjustments import Adjustment, AdjustmentRow, is_adjustment
from page_hit_counter.spam.spam_filter import Judgement, SpamFilter
from page_hit_counter.spam.spam_settings import Mode, SpamSettings
from partita.errors import PartitaError

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def visit(
    asset: int = 1, visitor: str = "ann", seconds: float = 0, agent: str = BROWSER, source: str = ""
) -> MadeVisit:
    return MadeVisit("abc", asset, 5, "free", "article", visitor, agent, source, START + seconds)


def spam_filter(mode: Mode = "filter", **settings: Any) -> SpamFilter:
    return SpamFilter(SpamSettings(mode=mode, **settings))


def verdicts(judged: Judgement) -> list[str | None]:
    assert judged.verdicts is not None
    return judged.verdicts


# Rules


def test_a_visitor_who_reloads_a_page_counts_three_times() -> None:
    judged = spam_filter().judge([visit(seconds=second) for second in range(6)])
    assert verdicts(judged) == [None, None, None, "reload", "reload", "reload"]
    assert [(case.reason, case.subject, case.hits) for case in judged.withheld] == [
        ("reload", "ann", 3)
    ]


def test_a_visitor_who_comes_back_later_counts_again() -> None:
    watched = spam_filter()
    for second in (0, 1, 2, 700, 701, 702):
        assert watched.judge([visit(seconds=second)]).verdicts is None


def test_visitors_of_many_assets_do_not_reload() -> None:
    assert spam_filter().judge([visit(asset=number) for number in range(1, 30)]).verdicts is None


@pytest.mark.parametrize(
    "agent",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "curl/8.5.0",
        "python-requests/2.32",
        "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/130.0",
    ],
)
def test_bots_that_say_so_do_not_count(agent: str) -> None:
    assert verdicts(spam_filter().judge([visit(agent=agent)])) == ["bot"]


@pytest.mark.parametrize("agent", [BROWSER, "Mozilla/5.0 (Linux; Android 11; CUBOT X50)", ""])
def test_people_are_not_bots(agent: str) -> None:
    assert spam_filter().judge([visit(agent=agent)]).verdicts is None


def test_bots_of_the_settings_do_not_count() -> None:
    watched = SpamFilter(SpamSettings(mode="filter", bots=("Partner-Check",)))
    assert verdicts(watched.judge([visit(agent="partner-check 1.0")])) == ["bot"]


def test_the_hits_of_a_visitor_per_minute_are_limited() -> None:
    judged = spam_filter(visitor_hits_per_minute=10).judge(
        [visit(asset=number, seconds=number) for number in range(1, 13)]
    )
    assert verdicts(judged) == [None] * 10 + ["rate"] * 2


def test_the_hits_of_an_address_per_minute_are_limited() -> None:
    watched = spam_filter(source_hits_per_minute=10)
    judged = watched.judge(
        [visit(asset=n, visitor=f"v{n}", source="192.0.2.1") for n in range(1, 13)]
    )
    assert verdicts(judged) == [None] * 10 + ["source"] * 2
    later = [visit(asset=50, visitor="v50", source="192.0.2.1", seconds=60)]
    assert watched.judge(later).verdicts is None


def test_visits_without_visitor_agent_and_source_pass() -> None:
    blank = [visit(visitor="", agent="") for _ in range(100)]
    assert spam_filter().judge(blank).verdicts is None


# Modes


def test_observing_notes_and_counts_all_the_same() -> None:
    judged = spam_filter("observe").judge([visit(seconds=second) for second in range(6)])
    assert judged.verdicts is None
    assert [(case.status, case.hits) for case in judged.withheld] == [("observed", 3)]


def test_a_filter_that_is_off_does_nothing() -> None:
    judged = spam_filter("off").judge([visit() for _ in range(100)])
    assert (judged.verdicts, judged.withheld, judged.adjustments) == (None, [], [])


def test_a_filter_without_its_library_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "krcf", None)
    with pytest.raises(PartitaError, match=r"krcf.*: make install, or set mode"):
        spam_filter()
    spam_filter("off")


# Decisions of people


def test_a_released_visitor_is_let_pass_and_a_confirmed_one_is_not() -> None:
    watched = spam_filter()
    watched.decide("abc", {("reload", "ann"): False, ("reload", "bob"): True})
    assert watched.judge([visit(seconds=second) for second in range(6)]).verdicts is None
    judged = watched.judge([visit(visitor="bob")])
    assert verdicts(judged) == ["confirmed"]
    assert judged.withheld[0].subject == "bob"


# Memory


def test_memory_of_visitors_is_bounded() -> None:
    watched = spam_filter(visitors_max=1_000)
    for first in range(0, 20_000, 100):
        batch = [visit(visitor=f"v{n}", seconds=first) for n in range(first, first + 100)]
        watched.judge(batch)
    brand = watched._detectors["abc"]
    assert len(brand._visitors) <= 20_000 * 60 // 100
    assert len(brand._visitors) + len(brand._pairs) < 10_000


def test_made_up_agents_cost_little_memory() -> None:
    watched = spam_filter()
    for number in range(12_000):
        watched.judge([visit(asset=number + 1, visitor=f"v{number}", agent=f"agent {number}")])
    assert len(watched._detectors["abc"]._agents._agents) == 10_000


# The forest


class Judged(NamedTuple):
    spam_filter: SpamFilter
    adjustments: list[Adjustment]
    judgements: list[Judgement]


def judge_all(watched: SpamFilter, made: Iterable[MadeVisit]) -> Judged:
    made = list(made)
    judgements = [watched.judge(made[n : n + 100]) for n in range(0, len(made), 100)]
    judgements.append(watched.settle(made[-1].time + 300))
    return Judged(watched, [a for j in judgements for a in j.adjustments], judgements)


def early_wave(chance: random.Random) -> Iterator[tuple[float, str]]:
    return ((900 + 60 * chance.random(), f"wave-{number}") for number in range(1_000))


@pytest.fixture(scope="module")
def attack() -> list[MadeVisit]:
    """Makes twenty minutes of visits; the sixteenth has a thousand hits on one asset."""
    waves = (Attack("wave", 30, early_wave),)
    return visits(minutes=20, per_second=20, seed=5, attacks=waves)


@pytest.fixture(scope="module")
def attacked(attack: list[MadeVisit]) -> Judged:
    return judge_all(spam_filter(), attack)


def test_a_wave_on_one_asset_is_taken_back_with_an_explanation(attacked: Judged) -> None:
    anomalies = [
        case
        for judged in attacked.judgements
        for case in judged.withheld
        if case.reason == "anomaly"
    ]
    waves = [case for case in anomalies if case.subject.startswith("132000030 ")]
    assert {case.subject for case in waves} == {"132000030 (first visit)"}
    assert len({case.case_id for case in waves}) == 1
    worst = max(waves, key=lambda case: case.score or 0)
    assert worst.score is not None and worst.score > 2
    reasons = {part.feature: part for part in worst.explanation}
    assert {part.feature for part in worst.explanation[:4]} <= {
        "hits",
        "share",
        "surge",
        "stays",
        "kind",
    }
    assert reasons["share"].direction == reasons["surge"].direction == "high"
    assert 0.8 < reasons["share"].strength <= 1
    assert sum(part.attribution for part in worst.explanation) == pytest.approx(
        worst.score, rel=0.01
    )


def test_what_is_taken_back_has_a_sign_and_a_time_within_the_wave(attacked: Judged) -> None:
    rows = [row for one in attacked.adjustments for row in one.rows if row.asset_id == 132_000_030]
    assert 980 < -sum(row.hits for row in rows) < 1_020
    assert all(row.hits < 0 and row.time == START + 900 for row in rows)
    names = [one.id for one in attacked.adjustments]
    assert len(set(names)) == len(names)


def test_nothing_is_taken_back_while_observing(attack: list[MadeVisit]) -> None:
    judged = judge_all(spam_filter("observe"), attack)
    assert judged.adjustments == []
    assert any(case.reason == "anomaly" for j in judged.judgements for case in j.withheld)


def test_what_was_learned_outlives_the_spam_filter() -> None:
    quiet = visits(minutes=15, per_second=20, seed=6)
    before = judge_all(spam_filter(), quiet).spam_filter
    after = spam_filter()
    after.relearn(before.learned())
    new = [f"wave-{number}" for number in range(600)]
    wave = [visit(asset=132_000_030, visitor=v, seconds=960 + n / 20) for n, v in enumerate(new)]
    honest = [v for v in visits(minutes=19, per_second=20, seed=6) if v.time >= START + 900]
    made = sorted([*honest, *wave], key=lambda one: one.time)
    taken = [row for one in judge_all(after, made).adjustments for row in one.rows]
    assert 500 < -sum(row.hits for row in taken if row.asset_id == 132_000_030) <= 630
    untaught = [row for one in judge_all(spam_filter(), made).adjustments for row in one.rows]
    assert untaught == []


def test_clocks_that_are_fast_do_not_end_the_interval(attack: list[MadeVisit]) -> None:
    """Some visits are stamped with the next minute as soon as one begins."""
    fast = [
        one._replace(time=one.time + 59) if place % 50 == 0 else one
        for place, one in enumerate(attack)
    ]
    judged = judge_all(spam_filter(), fast)
    rows = [row for one in judged.adjustments for row in one.rows if row.asset_id == 132_000_030]
    assert -sum(row.hits for row in rows) > 950


def test_attacks_are_found_and_lists_are_as_without_them() -> None:
    outcome = measure(visits(per_second=15, seed=7, attacks=ATTACKS), SpamSettings(mode="filter"))
    assert outcome.found["reload"] / outcome.spam["reload"] > 0.98
    assert outcome.found["wave"] / outcome.spam["wave"] > 0.98
    assert outcome.found["slow"] / outcome.spam["slow"] > 0.90
    assert outcome.taken / outcome.honest < 0.001
    for period in PERIODS:
        found = deviations(outcome, period)
        assert max(one.attacked for one in found) > 0.02
        assert max(one.filtered for one in found) < 0.02


# On the stream


def test_an_adjustment_is_distinguished_from_visits() -> None:
    adjustment = Adjustment(
        "release:abc:1", (AdjustmentRow("abc", 7, 5, "free", "article", START, -3),)
    )
    data = adjustment.encode()
    assert is_adjustment(data)
    assert not is_adjustment(b'{"id":"1","visits":[]}')
    assert Adjustment.decode(data) == adjustment
    assert data == (
        b'{"adjustment":"release:abc:1","rows":[["abc",7,5,"free","article",%d,-3]]}' % START
    )
