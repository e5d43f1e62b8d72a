"""How much of three attacks the spam filter finds, its false positives, and the effect on lists.

    python -m benchmarks.applications.spam [--seeds 21 22 23] [--per-second 50] [--minutes 120]

Prints the tables of docs/reference/page-hits/spam-filter.md. Traffic and attacks are made up:
`visits.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.applications.visits import ATTACKS, MadeVisit, visits
from page_hit_counter.pagehits_settings import DAY, JUST_NOW, Period
from page_hit_counter.spam.adjustments import AdjustmentRow
from page_hit_counter.spam.spam_filter import SpamFilter
from page_hit_counter.spam.spam_settings import SpamSettings

SEEDS = [21, 22, 23]
"""Other seeds than those with which the filter's settings were chosen."""
BATCH = 100
LIST_LENGTH = 100
PERIODS = (JUST_NOW, DAY)
Hits = Counter[int]
Windows = dict[tuple[str, int], Hits]
"""Hits of assets, by period and start."""


class Outcome(NamedTuple):
    spam: Counter[str]
    """Hits of each attack."""
    found: Counter[str]
    honest: int
    taken: int
    """The number of honest hits that were withheld."""
    microseconds: float
    """For one visit, including all work of the filter."""
    clean: Windows
    attacked: Windows
    filtered: Windows


class Deviation(NamedTuple):
    """The deviation of one list from that without spam."""

    attacked: float
    filtered: float


def measure(made: Sequence[MadeVisit], settings: SpamSettings) -> Outcome:
    screen = SpamFilter(settings)
    passed: list[MadeVisit] = []
    adjustments: list[AdjustmentRow] = []
    taken = 0
    found: Counter[str] = Counter()
    minutes = Counter((v.asset_id, _minute(v.time, settings), v.attack) for v in made)
    seconds = 0.0
    for first in range(0, len(made), BATCH):
        batch = made[first : first + BATCH]
        started = time.process_time()
        judged = screen.judge(batch)
        seconds += time.process_time() - started
        adjustments += (row for one in judged.adjustments for row in one.rows)
        for visit, verdict in zip(batch, judged.verdicts or [None] * len(batch), strict=True):
            if verdict is None:
                passed.append(visit)
            elif visit.attack is None:
                taken += 1
            else:
                found[visit.attack] += 1
                minutes[visit.asset_id, _minute(visit.time, settings), visit.attack] -= 1
    adjustments += (r for one in screen.settle(made[-1].time + 300).adjustments for r in one.rows)
    for row in adjustments:
        taken += _credit(row, minutes, found)
    honest = [visit for visit in made if visit.attack is None]
    return Outcome(
        spam=Counter(visit.attack for visit in made if visit.attack is not None),
        found=found,
        honest=len(honest),
        taken=taken,
        microseconds=seconds / len(made) * 1e6,
        clean=count(honest),
        attacked=count(made),
        filtered=count(passed, adjustments),
    )


def _minute(moment: float, settings: SpamSettings) -> int:
    return int(moment) // settings.interval_seconds * settings.interval_seconds


def _credit(
    row: AdjustmentRow, minutes: Counter[tuple[int, int, str | None]], found: Counter[str]
) -> int:
    """Counts withdrawn hits as spam, up to the spam of the asset in that minute."""
    left = -row.hits
    for attack in ATTACKS:
        key = (row.asset_id, row.time, attack.name)
        spam = min(left, minutes[key])
        minutes[key] -= spam
        found[attack.name] += spam
        left -= spam
    return left


def count(passed: Iterable[MadeVisit], adjustments: Iterable[AdjustmentRow] = ()) -> Windows:
    windows: Windows = {}
    for visit in passed:
        _add(windows, visit.asset_id, visit.time, 1)
    for row in adjustments:
        _add(windows, row.asset_id, row.time, row.hits)
    return windows


def _add(windows: Windows, asset_id: int, moment: float, hits: int) -> None:
    for period in PERIODS:
        key = (period.code, period.start(moment))
        windows.setdefault(key, Counter())[asset_id] += hits


def deviations(outcome: Outcome, period: Period) -> list[Deviation]:
    """Returns excess and missing hits of each window's list, as a share of all listed hits."""
    return [
        Deviation(
            _deviation(outcome.clean[key], outcome.attacked[key]),
            _deviation(outcome.clean[key], outcome.filtered[key]),
        )
        for key in sorted(outcome.clean)
        if key[0] == period.code
    ]


def _deviation(clean: Hits, other: Hits) -> float:
    listed = {asset for hits in (clean, other) for asset, _ in hits.most_common(LIST_LENGTH)}
    wrong = sum(abs(clean[asset] - other[asset]) for asset in listed)
    return wrong / sum(hits for _, hits in clean.most_common(LIST_LENGTH))


def report(outcomes: Sequence[Outcome]) -> Iterable[str]:
    yield "| attack | hits | found |"
    yield "| --- | --- | --- |"
    for attack in ATTACKS:
        spam = sum(outcome.spam[attack.name] for outcome in outcomes)
        found = sum(outcome.found[attack.name] for outcome in outcomes)
        yield f"| {attack.name} | {spam:,} | {found / spam:.1%} |"
    honest = sum(outcome.honest for outcome in outcomes)
    taken = sum(outcome.taken for outcome in outcomes)
    yield ""
    yield f"Of {honest:,} honest hits {taken:,} were withheld: {taken / honest:.3%}."
    yield ""
    yield "| lists | worst deviation with spam | worst deviation filtered | mean filtered |"
    yield "| --- | --- | --- | --- |"
    for period in PERIODS:
        found_deviations = [one for outcome in outcomes for one in deviations(outcome, period)]
        attacked = max(one.attacked for one in found_deviations)
        filtered = [one.filtered for one in found_deviations]
        mean = sum(filtered) / len(filtered)
        length = f"{period.seconds // 60} minutes"
        yield f"| {length} | {attacked:.1%} | {max(filtered):.2%} | {mean:.2%} |"
    microseconds = sum(outcome.microseconds for outcome in outcomes) / len(outcomes)
    yield ""
    yield f"{microseconds:.1f} microseconds of CPU time for a visit, including the forest."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--per-second", type=int, default=50)
    parser.add_argument("--minutes", type=int, default=120)
    chosen = parser.parse_args()
    outcomes = [
        measure(
            visits(chosen.minutes, chosen.per_second, seed=seed, attacks=ATTACKS),
            SpamSettings(mode="filter"),
        )
        for seed in chosen.seeds
    ]
    sys.stdout.writelines(f"{line}\n" for line in report(outcomes))


if __name__ == "__main__":
    main()
