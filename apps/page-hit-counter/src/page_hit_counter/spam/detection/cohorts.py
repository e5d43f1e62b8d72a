"""Cohorts: the hits of one kind of visitor on one asset in one interval, which the forest judges.

A single hit says little. The hits of a cohort can show that its share of the asset's hits is much
higher than elsewhere, that its visitors look at nothing else, or that they return again and again.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from page_hit_counter.spam.detection.visitors import KINDS, Visitor

if TYPE_CHECKING:
    from page_hit_counter.spam.detection.user_agents import UserAgent
    from page_hit_counter.spam.detection.visitors import JudgedVisit

EXAMPLES_MAX = 20
UNSEEN_HITS = 3
"""Up to this many hits of a cohort are only counted, because most of a million assets never have
more. When more arrive, the first hits are assumed to have been like the next one."""
COUNTED_MAX = 100_000


class Cohort:
    """Hits of one kind of visitor on one asset."""

    __slots__ = (
        "agents",
        "asset_id",
        "departures",
        "examples",
        "hits",
        "keys",
        "kind",
        "returns",
        "visitors",
    )

    def __init__(self, asset_id: int, kind: int) -> None:
        self.asset_id = asset_id
        self.kind = kind
        self.hits = 0
        self.visitors = 0
        self.departures = 0
        """Hits after which the visitor moved on to another asset."""
        self.returns = 0
        """The sum, over all hits, of the visitor's earlier hits."""
        self.agents: dict[UserAgent, int] = {}
        self.keys: dict[tuple[int, str, str], int] = {}
        """Hits by section, paid type and resource type, as in the counter."""
        self.examples: list[JudgedVisit] = []

    def add(self, visit: JudgedVisit, visitor: Visitor, agent: UserAgent) -> None:
        self.hits += 1
        self.visitors += visitor.minute_hits == 1
        self.returns += visitor.hits - 1
        self.agents[agent] = self.agents.get(agent, 0) + 1
        key = _counting_key(visit)
        self.keys[key] = self.keys.get(key, 0) + 1
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(visit)

    @property
    def resource_type(self) -> str:
        return max(self.keys, key=self.keys.__getitem__)[2]


def _counting_key(visit: JudgedVisit) -> tuple[int, str, str]:
    return visit.section_id, visit.paid_type, visit.resource_type or ""


def cohort_key(asset_id: int, kind: int) -> int:
    """Returns asset and kind as one integer, which is cheap to compute for every hit."""
    return asset_id * 4 + kind


class CohortInterval:
    """The hits of a brand from `start` to `end`."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.cohorts: dict[int, Cohort] = {}
        """The cohorts by `cohort_key`."""
        self.kind_hits = [0, 0, 0]
        self.kind_departures = [0, 0, 0]
        self._counted: dict[int, int] = {}

    def add(self, visit: JudgedVisit, visitor: Visitor, agent: UserAgent) -> None:
        kind = visitor.kind
        self.kind_hits[kind] += 1
        key = visit.asset_id * 4 + kind
        cohort = self.cohorts.get(key)
        if cohort is None:
            hits = self._counted.get(key, 0) + 1
            if hits <= UNSEEN_HITS:
                self._counted[key] = hits
                if len(self._counted) > COUNTED_MAX:
                    self._forget_rare()
                return
            del self._counted[key]
            cohort = self.cohorts[key] = Cohort(visit.asset_id, kind)
            cohort.hits = cohort.visitors = hits - 1
            cohort.keys[_counting_key(visit)] = hits - 1
        cohort.add(visit, visitor, agent)

    def depart(self, asset_id: int, kind: int) -> None:
        """Notes that a visitor, who was of this kind then, has moved on to another asset."""
        self.kind_departures[kind] += 1
        cohort = self.cohorts.get(asset_id * 4 + kind)
        if cohort is not None:
            cohort.departures += 1

    def _forget_rare(self) -> None:
        self._counted = {key: hits - 1 for key, hits in self._counted.items() if hits > 1}

    @property
    def hits(self) -> int:
        return sum(self.kind_hits)

    def hits_of(self, asset_id: int) -> list[int]:
        """Returns the hits on an asset, by kind of visitor."""
        cohorts = (self.cohorts.get(cohort_key(asset_id, kind)) for kind in range(len(KINDS)))
        return [cohort.hits if cohort else 0 for cohort in cohorts]

    def expected(self, cohort: Cohort) -> float:
        """Returns the hits that a cohort would have if its visitors behaved as elsewhere.

        That is the higher of two estimates. News attract many new visitors, which the first one
        takes for spam; but they read on, which the second one sees.
        """
        return max(self._expected_by_others(cohort), self._expected_by_departures(cohort))

    def _expected_by_others(self, cohort: Cohort) -> float:
        here, kind = self.hits_of(cohort.asset_id), cohort.kind
        elsewhere = [total - hits for total, hits in zip(self.kind_hits, here, strict=True)]
        others_here = sum(here) - here[kind]
        others_elsewhere = sum(elsewhere) - elsewhere[kind]
        return others_here * (elsewhere[kind] + 1) / (others_elsewhere + 1)

    def _expected_by_departures(self, cohort: Cohort) -> float:
        hits_elsewhere = self.kind_hits[cohort.kind] - cohort.hits
        departures_elsewhere = self.kind_departures[cohort.kind] - cohort.departures
        return cohort.departures * (hits_elsewhere + 1) / (departures_elsewhere + 1)

    @cached_property
    def type_hits(self) -> Counter[str]:
        hits: Counter[str] = Counter()
        for cohort in self.cohorts.values():
            hits[cohort.resource_type] += cohort.hits
        return hits
