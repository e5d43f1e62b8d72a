"""Load: threads that read, add and update metrics over HTTP all the time."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from typing import Any

from .conftest import Answer, Api, hybrid, scalar

IN_MIGRATION = 423
PAUSE_SECONDS = 0.03
SECONDS_MAX = 120
_numbers = itertools.count(1)


class Load:
    """Runs as long as the block. Answers are counted; unexpected failures are collected."""

    def __init__(self, urls: list[str], names: list[str], seed: int = 1) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.failures: list[tuple[str, Answer]] = []
        self.written: dict[str, int] = {}
        """The latest acknowledged version of every metric."""
        self._names = names
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        works = (self._read, self._read, self._add, self._update)
        self._threads = [
            threading.Thread(target=self._work, args=(work, urls[place % len(urls)], place))
            for place, work in enumerate(works)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_additions(self) -> None:
        """Waits until metrics are added whose requests began after this call."""
        enough = self.answers["add", 201] + 2
        deadline = time.monotonic() + SECONDS_MAX
        while self.answers["add", 201] < enough and not self.failures:
            assert time.monotonic() < deadline, "nothing is added any more"
            time.sleep(PAUSE_SECONDS)

    def _work(self, work: Any, url: str, place: int) -> None:
        api, chance = Api(url), random.Random(place)
        try:
            while not self._stopped.is_set():
                work(api, chance, f"added.{next(_numbers)}")
                time.sleep(PAUSE_SECONDS)
        except Exception as error:
            self.failures.append((f"{work.__name__}: {error!r}", Answer(0, {}, None)))
        finally:
            api.close()

    def _read(self, api: Api, chance: random.Random, unused: str) -> None:
        name = chance.choice(self._names)
        known = self.written.get(name, 1)
        answer = api("GET", f"/metrics/{name}")
        self._count("read", answer, answer.status == 200)
        if answer.status == 200 and answer.body["latestVersion"] < known:
            self.failures.append((f"{name} went back from version {known}", answer))

    def _add(self, api: Api, chance: random.Random, name: str) -> None:
        if chance.random() < 0.5:
            first, second = chance.sample(self._names, 2)
            answer = api.add_hybrid(name, f"{first} - {second}")
        else:
            answer = api.add_primitive(name, "d1", "d2")
        self._count("add", answer, answer.status == 201)
        if answer.status == 201:
            self.written[name] = 1

    def _update(self, api: Api, chance: random.Random, unused: str) -> None:
        name = chance.choice(self._names)
        metric = api("GET", f"/metrics/{name}").body
        if "deprecatedAt" in metric:
            return
        asked = scalar(aggregationStyle=chance.choice(("SUM", "PERCENTILE")))
        if metric["valueType"] == "HYBRID":
            asked = hybrid(metric["hybridFormula"])
        answer = api("PUT", f"/metrics/{name}", asked, X_User="load")
        self._count("update", answer, answer.status in (200, IN_MIGRATION))
        if answer.status == 200:
            self.written[name] = answer.body["latestVersion"]

    def _count(self, what: str, answer: Answer, is_well: bool) -> None:
        with self._lock:
            self.answers[what, answer.status] += 1
        if not is_well:
            self.failures.append((what, answer))
