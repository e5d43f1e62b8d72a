"""The features of a cohort. Amounts are logarithms, so that no feature outweighs the others."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from page_hit_counter.spam.detection.cohorts import Cohort, CohortInterval, cohort_key
from page_hit_counter.spam.detection.visitors import KINDS

FEATURES = (
    "hits",  # of the cohort
    "share",  # compared with what the asset's other visitors let expect
    "surge",  # compared with its usual hits, and the usual hits of the asset's other visitors
    "stays",  # compared with the visitors who moved on to another asset: bots seldom read on
    "returns",  # how often its visitors were seen before
    "repeats",  # hits of one visitor within the interval
    "agents",  # how far its mix of user agents is from that of the brand
    "kind",  # encoded: first visit, this asset only, several assets
    "type",  # encoded: how rare the resource type is
)
SUSPICIOUS = frozenset({"hits", "share", "surge", "stays", "returns", "repeats", "agents"})
"""Features that spam raises. Anomalies that lower them, such as a quiet night, are ignored."""

Point = list[float]


class UsualCohort:
    """The usual hits of cohorts in an interval, as a moving average."""

    WEIGHT = 0.1
    LEAST = 0.05
    INTERVALS_MIN = 3

    def __init__(self, hits: Mapping[int, float] | None = None, intervals: int = 0) -> None:
        self.hits = dict(hits or {})
        self.intervals = intervals
        """How many intervals were learned. Nothing is unusual before there were a few."""

    def of(self, asset_id: int) -> list[float]:
        """Returns the usual hits on an asset, by kind of visitor."""
        return [self.hits.get(cohort_key(asset_id, kind), 0.0) for kind in range(len(KINDS))]

    def highest(self, count: int) -> dict[int, float]:
        return dict(sorted(self.hits.items(), key=lambda entry: -entry[1])[:count])

    def surge(self, cohort: Cohort, interval: CohortInterval) -> float:
        """Returns how much a cohort has grown compared with the asset's other visitors. News
        attract visitors of all kinds, an attack only those of one kind."""
        if self.intervals < self.INTERVALS_MIN:
            return 0.0
        here, usual, kind = interval.hits_of(cohort.asset_id), self.of(cohort.asset_id), cohort.kind
        others, usual_others = sum(here) - here[kind], sum(usual) - usual[kind]
        return log((here[kind] + 1) / (usual[kind] + 1)) - log((others + 1) / (usual_others + 1))

    def learn(self, interval: CohortInterval, anomalous: set[int]) -> None:
        self.intervals += 1
        # The first intervals are averaged, so that the average does not have to climb from zero.
        weight = max(self.WEIGHT, 1 / self.intervals)
        for key in [key for key in self.hits if key not in anomalous]:
            self.hits[key] *= 1 - weight
            if self.hits[key] < self.LEAST:
                del self.hits[key]
        for key, cohort in interval.cohorts.items():
            if key not in anomalous:
                self.hits[key] = self.hits.get(key, 0.0) + weight * cohort.hits


def point(cohort: Cohort, interval: CohortInterval, usual: UsualCohort, agent_hits: float) -> Point:
    """Returns the features of a cohort in the order of FEATURES. `agent_hits` are the hits of all
    agents of the brand."""
    hits = cohort.hits
    return [
        log(hits),
        log((hits + 1) / (interval.expected(cohort) + 1)),
        usual.surge(cohort, interval),
        log((hits + 1) / (cohort.departures + 1)),
        log(cohort.returns / hits + 1),
        log(hits / max(1, cohort.visitors)),
        _distance_of_agents(cohort, agent_hits),
        float(cohort.kind),
        log(sum(interval.type_hits.values()) / interval.type_hits[cohort.resource_type]),
    ]


def _distance_of_agents(cohort: Cohort, agent_hits: float) -> float:
    """Returns the Kullback-Leibler divergence of the cohort's agents from those of the brand."""
    total = sum(cohort.agents.values())
    terms = (
        hits / total * log(hits / total * agent_hits / max(1.0, agent.hits))
        for agent, hits in cohort.agents.items()
    )
    return max(0.0, sum(terms))
