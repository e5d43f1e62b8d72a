"""Simulated visits to a news site, and three attacks on its lists; deterministic for a seed.

Visitors are new or come back, read one page or several, reload now and then, and follow breaking
news. Attackers use the user agents of ordinary browsers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

START = 1_588_755_600
"""2020-05-06 09:00 UTC."""
BRAND = "abc"
SECTIONS = 40
AGENTS = tuple(f"Mozilla/5.0 (device {number}) Browser/{80 + number % 7}" for number in range(40))
PAID_TYPES = ("free", "paid", "metered")
RESOURCE_TYPES = ("article", "article", "article", "recipe", "advertorial")
REGULARS = 6_000


class MadeVisit(NamedTuple):
    brand: str
    asset_id: int
    section_id: int
    paid_type: str
    resource_type: str | None
    visitor: str
    agent: str
    source: str
    time: float
    url: str = ""
    attack: str | None = None
    """The attack that the visit belongs to; the filter does not see it."""


class Attack(NamedTuple):
    name: str
    rank: int
    """The rank of the asset, by popularity."""
    make: Callable[[random.Random], Iterator[tuple[float, str]]]
    """Yields (seconds since the start, visitor)."""


class Site:
    """Assets with their popularity; breaking news is added halfway through."""

    def __init__(self, chance: random.Random, assets: int) -> None:
        self._chance = chance
        self.assets = [132_000_000 + number for number in range(assets)]
        self._kinds = {
            asset: (
                1 + chance.randrange(SECTIONS),
                chance.choice(PAID_TYPES),
                chance.choice(RESOURCE_TYPES),
            )
            for asset in self.assets
        }
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(assets)))
        self._agent_weights = list(accumulate(1 / (rank + 1) for rank in range(len(AGENTS))))
        self.breaking = assets - 1
        """The rank of an asset that nobody reads before it is news."""

    def asset(self) -> int:
        return self._chance.choices(self.assets, cum_weights=self._weights)[0]

    def agent(self) -> str:
        return self._chance.choices(AGENTS, cum_weights=self._agent_weights)[0]

    def visit(
        self, asset: int, visitor: str, agent: str, time: float, attack: str | None = None
    ) -> MadeVisit:
        section, paid, kind = self._kinds[asset]
        return MadeVisit(BRAND, asset, section, paid, kind, visitor, agent, "", time, "", attack)


def visits(
    minutes: int = 120,
    per_second: int = 50,
    assets: int = 2_000,
    seed: int = 1,
    attacks: tuple[Attack, ...] = (),
) -> list[MadeVisit]:
    """Returns all visits in order of time."""
    chance = random.Random(seed)
    site = Site(chance, assets)
    made = list(_honest(chance, site, minutes * 60, per_second))
    for attack in attacks:
        target = site.assets[attack.rank]
        own = random.Random(f"{seed} {attack.name}")
        agents: dict[str, str] = {}
        for seconds, visitor in attack.make(own):
            agent = agents.setdefault(visitor, site.agent())
            made.append(site.visit(target, visitor, agent, START + seconds, attack.name))
    made.sort(key=lambda visit: visit.time)
    return made


def _honest(
    chance: random.Random, site: Site, seconds: int, per_second: int
) -> Iterator[MadeVisit]:
    regulars = [(f"regular-{number}", site.agent()) for number in range(REGULARS)]
    pages_mean = 2.4
    newcomers = 0
    now = 0.0
    while now < seconds:
        now += chance.expovariate(per_second / pages_mean)
        is_news = seconds / 2 <= now < seconds / 2 + min(900, seconds / 8) and chance.random() < 0.2
        if chance.random() < (0.6 if is_news else 0.4):
            newcomers += 1
            visitor, agent = f"new-{newcomers}", site.agent()
        else:
            visitor, agent = chance.choice(regulars)
        asset = site.assets[site.breaking] if is_news else site.asset()
        time = now
        while time < seconds:
            yield site.visit(asset, visitor, agent, START + time)
            if chance.random() < 1 / pages_mean:
                break
            time += 5 + chance.expovariate(1 / 40)
            asset = asset if chance.random() < 0.03 else site.asset()


def reloading(chance: random.Random) -> Iterator[tuple[float, str]]:
    """Yields one visitor who reloads every two seconds for ten minutes."""
    return ((1_200 + 2 * number + chance.random(), "reloader") for number in range(300))


def wave(chance: random.Random) -> Iterator[tuple[float, str]]:
    """Yields three thousand new visitors within three minutes."""
    return ((2_700 + 180 * chance.random(), f"wave-{number}") for number in range(3_000))


def slow(chance: random.Random) -> Iterator[tuple[float, str]]:
    """Yields three hundred visitors, each about every five minutes for an hour."""
    for number in range(300):
        seconds = 3_000 + 300 * chance.random()
        while seconds < 6_600:
            yield seconds, f"slow-{number}"
            seconds += chance.uniform(240, 360)


ATTACKS = (Attack("reload", 40, reloading), Attack("wave", 30, wave), Attack("slow", 20, slow))
