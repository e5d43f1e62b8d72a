"""Every window equals a recount of the visits, whatever is killed and whenever."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.data.page_hit_pipeline import (
    Pipeline,
    down_to,
    make_visits,
    put_assets,
    recount,
    running,
)

SEED_VARIABLE = "PARTITA_FAULT_SEED"
HOUR, DAY = 3600, 86_400
LENGTHS = {"F": 300, "H": HOUR, "D": DAY}
KILLING_PACE = 4_000
"""The approximate number of visits per second that are sent between kills."""
ASSETS = 500
KEPT_ASSETS = 5
BATCH = 100
SETTINGS = f"""
kept_assets = {KEPT_ASSETS}
expiration_grace_seconds = 864000
write_units = 100000
spread = 0.001
[spam]
mode = "off"
"""
KILLED = ("database", "processor", "counter", "consumer", "api")


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(1 << 32))
    sys.stdout.write(f"{SEED_VARIABLE}={seed}\n")
    return random.Random(seed)


@contextmanager
def killing(
    pipeline: Pipeline, chance: random.Random, kills: int, seconds: float
) -> Iterator[list[str]]:
    """Kills each part the same number of times, in random order, over some seconds."""
    order = list(KILLED) * kills
    chance.shuffle(order)
    pauses = [chance.uniform(0, 2 * seconds / len(order)) for _ in order]
    killed: list[str] = []

    def kill_all() -> None:
        for name, pause in zip(order, pauses, strict=True):
            time.sleep(pause)
            pipeline.kill(name)
            killed.append(name)

    thread = threading.Thread(target=kill_all)
    thread.start()
    try:
        yield killed
    finally:
        thread.join()


def replay_with_kills(
    folder: Path, chance: random.Random, count: int, kills: int, hours: int
) -> None:
    """Replays the hours around a midnight a week ago, as fast as the service takes them."""
    midnight = int(time.time()) // DAY * DAY - 7 * DAY
    began, step = midnight - hours * HOUR // 2, hours * HOUR / count
    visits = list(make_visits(chance, count, ASSETS, lambda number: began + number * step))
    with running(folder, SETTINGS) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        with killing(pipeline, chance, kills, seconds=count / KILLING_PACE) as killed:
            for first in range(0, count, BATCH):
                events = visits[first : first + BATCH]
                is_last = first + BATCH >= count
                batch = {"replay": "week-ago", "number": first, "isLast": is_last}
                answer = pipeline.post_until_taken({**batch, "events": events})
                assert answer["accepted"] == len(events)
        assert len(killed) == kills * len(KILLED)
        expected = down_to(recount(visits, LENGTHS), KEPT_ASSETS)
        pipeline.wait_for_windows(expected)
        assert pipeline.windows() == expected


def test_windows_of_a_replay_equal_a_recount_after_kills(
    tmp_path: Path, chance: random.Random
) -> None:
    replay_with_kills(tmp_path, chance, count=12_000, kills=1, hours=3)


@pytest.mark.soak
def test_windows_of_a_million_visits_equal_a_recount_after_ten_kills_of_each_part(
    tmp_path: Path, chance: random.Random
) -> None:
    replay_with_kills(tmp_path, chance, count=1_000_000, kills=10, hours=8)
