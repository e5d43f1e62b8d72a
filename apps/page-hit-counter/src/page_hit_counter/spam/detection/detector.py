"""The detector of one brand: rules for each visit, the forest for each interval."""

from __future__ import annotations

from math import inf
from zlib import crc32

from msgspec import Struct

from page_hit_counter.spam.detection.cohorts import Cohort, CohortInterval, cohort_key
from page_hit_counter.spam.detection.features import FEATURES, SUSPICIOUS, Point, UsualCohort, point
from page_hit_counter.spam.detection.forest import Explanation, Forest
from page_hit_counter.spam.detection.user_agents import UserAgents
from page_hit_counter.spam.detection.visitors import Generations, JudgedVisit, Visitor
from page_hit_counter.spam.spam_settings import SpamSettings

BOT, RELOAD, RATE, SOURCE = "bot", "reload", "rate", "source"
ANOMALY = "anomaly"
MINUTE_SECONDS = 60
VISITOR_SECONDS = 3_600
POINTS_PER_INTERVAL_MAX = 300
USUAL_KEPT = 5_000
"""The usual hits of this many cohorts are saved for the next start."""
PAST_HITS = 20
FORGETTING = 0.02
"""The weight of a new score in the moving mean and variance."""


class Anomaly(Struct, frozen=True):
    """A cohort that the forest finds anomalous, and its excess hits."""

    cohort: Cohort
    time: int
    excess: int
    score: float
    threshold: float
    explanation: tuple[Explanation, ...]


class LearnedState(Struct, kw_only=True):
    """The state of a brand that is saved for the next start; single visitors are not saved."""

    points: list[Point] = []
    usual: dict[int, float] = {}
    intervals: int = 0
    score_mean: float = 0.0
    score_variance: float = 0.0


class Detector:
    def __init__(
        self, brand: str, settings: SpamSettings, learned: LearnedState | None = None
    ) -> None:
        learned = learned or LearnedState()
        self._settings = settings
        self._agents = UserAgents(settings.bots)
        self._visitors: Generations[Visitor] = Generations(settings.visitors_max, VISITOR_SECONDS)
        self._pairs: Generations[int] = Generations(settings.visitors_max, settings.reload_seconds)
        self._source_hits: dict[str, int] = {}
        self._minute = 0
        self._interval = CohortInterval(0, 0)
        self.end = 0
        """The end of the current interval."""
        self._next = CohortInterval(0, 0)
        self._later_hits, self._later_time = 0, inf
        self._is_idle = False
        self._forest = Forest(
            FEATURES, settings.trees, settings.samples, crc32(brand.encode()), learned.points
        )
        self._usual = UsualCohort(learned.usual, learned.intervals)
        self._score_mean = learned.score_mean
        self._score_variance = learned.score_variance

    def see(self, visit: JudgedVisit) -> str | None:
        """Applies the rules to a visit. Returns the reason to withhold it, or None."""
        agent = self._agents.get(visit.agent) or self._agents.add(visit.agent)
        if agent.is_bot:
            return BOT
        agent.hits += 1
        self._is_idle = False
        time = visit.time
        minute = int(time) // MINUTE_SECONDS
        if minute > self._minute:
            self._minute = minute
            self._source_hits = {}
            self._visitors.turn_if_due(time)
            self._pairs.turn_if_due(time)
        source = visit.source
        if source:
            hits = self._source_hits[source] = self._source_hits.get(source, 0) + 1
            if hits > self._settings.source_hits_per_minute:
                return SOURCE
        name = visit.visitor
        if not name:
            return None
        asset_id = visit.asset_id
        pairs = self._pairs
        pair = hash((name, asset_id))
        pairs.newer[pair] = hits = pairs.newer.get(pair, 0) + 1
        visitor = self._visitor(hash(name), asset_id)
        if visitor.asset_id != asset_id:
            self._interval.depart(visitor.asset_id, visitor.kind)
            visitor.asset_id = asset_id
            visitor.changes += 1
        visitor.hits += 1
        if visitor.minute != self._minute:
            visitor.minute = self._minute
            visitor.minute_hits = 0
        visitor.minute_hits += 1
        if hits + pairs.older.get(pair, 0) > self._settings.reload_hits:
            return RELOAD
        if visitor.minute_hits > self._settings.visitor_hits_per_minute:
            return RATE
        interval = self._interval if time < self.end else self._next
        if interval.start <= time < interval.end:
            interval.add(visit, visitor, agent)
        return None

    def _visitor(self, key: int, asset_id: int) -> Visitor:
        visitors = self._visitors
        visitor = visitors.newer.get(key)
        if visitor is None:
            visitor = visitors.older.pop(key, None) or Visitor(asset_id)
            visitors.newer[key] = visitor
        return visitor

    # Intervals that have ended

    def is_past(self, time: float) -> bool:
        """True when visits after `end` show that the interval has ended. A single visit may come
        from a clock that is fast, so it takes many of them."""
        enough = PAST_HITS + self._interval.hits / 2
        if time < self._next.end:
            return self._next.hits > enough
        self._later_hits += 1
        self._later_time = min(time, self._later_time)
        return self._later_hits > enough

    def is_over(self, now: float) -> bool:
        """True when the interval has ended by the clock. During a replay of history, whose visits
        are much older, the clock counts only after a pause."""
        was_idle, self._is_idle = self._is_idle, True
        late_seconds = now - self.end
        return 0 <= late_seconds < self._settings.interval_seconds or (
            late_seconds > 0 and was_idle
        )

    def close(self, time: float) -> list[Anomaly]:
        """Closes the intervals that have ended, and returns their anomalies. The next interval
        begins, or a later one when there were no visits in between."""
        time = min(time, self._later_time)
        over, self._interval = [self._interval], self._next
        length = self._settings.interval_seconds
        if time >= self._interval.end:
            over.append(self._interval)
            start = int(time) // length * length
            self._interval = CohortInterval(start, start + length)
        self.end = self._interval.end
        self._next = CohortInterval(self.end, self.end + length)
        self._later_hits, self._later_time = 0, inf
        return [anomaly for interval in over for anomaly in self._look_at(interval)]

    def _look_at(self, interval: CohortInterval) -> list[Anomaly]:
        if not interval.cohorts:
            return []
        agent_hits = self._agents.total()
        points = {
            key: point(cohort, interval, self._usual, agent_hits)
            for key, cohort in _largest(interval)
        }
        anomalies = self._find(interval, points)
        anomalous = {cohort_key(a.cohort.asset_id, a.cohort.kind) for a in anomalies}
        for key in points.keys() - anomalous:
            self._forest.learn(points[key])
        self._usual.learn(interval, anomalous)
        self._agents.decay()
        return anomalies

    def _find(self, interval: CohortInterval, points: dict[int, Point]) -> list[Anomaly]:
        """Finds the anomalies of an interval. All cohorts have the same threshold, so that their
        order does not matter."""
        if len(self._forest.points) < self._settings.learning_points:
            return []
        threshold = max(
            self._settings.score_min,
            self._score_mean + self._settings.deviations * self._score_variance**0.5,
        )
        anomalies = []
        scores = {key: self._forest.score(point) for key, point in points.items()}
        for key, score in scores.items():
            cohort = interval.cohorts[key]
            if score > threshold and cohort.hits >= self._settings.cohort_hits_min:
                anomaly = self._anomaly(interval, cohort, points[key], score, threshold)
                if anomaly is not None:
                    anomalies.append(anomaly)
                    continue
            self._learn_score(min(score, threshold))
        return anomalies

    def _anomaly(
        self, interval: CohortInterval, cohort: Cohort, point: Point, score: float, threshold: float
    ) -> Anomaly | None:
        explanation = self._forest.explain(point)
        suspicious = sum(
            part.attribution
            for part in explanation
            if part.feature in SUSPICIOUS and part.direction == "high"
        )
        ordinary = max(interval.expected(cohort), self._usual.of(cohort.asset_id)[cohort.kind])
        excess = int(cohort.hits - ordinary)
        least = max(cohort.hits / 2, self._settings.deviations * ordinary**0.5)
        if suspicious < score / 2 or excess < least:
            return None
        return Anomaly(cohort, interval.start, excess, score, threshold, explanation)

    def _learn_score(self, score: float) -> None:
        apart = score - self._score_mean
        self._score_mean += FORGETTING * apart
        self._score_variance = (1 - FORGETTING) * (self._score_variance + FORGETTING * apart**2)

    @property
    def learned(self) -> LearnedState:
        return LearnedState(
            points=list(self._forest.points),
            usual=self._usual.highest(USUAL_KEPT),
            intervals=self._usual.intervals,
            score_mean=self._score_mean,
            score_variance=self._score_variance,
        )


def _largest(interval: CohortInterval) -> list[tuple[int, Cohort]]:
    cohorts = sorted(interval.cohorts.items(), key=lambda entry: -entry[1].hits)
    return cohorts[:POINTS_PER_INTERVAL_MAX]
