"""The spam filter as the processor uses it: judges batches, and closes intervals that have ended.

Nothing here does I/O. Before the caller answers a request, it puts the adjustments on the stream
and writes what is withheld to the quarantine.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from msgspec import Struct

from page_hit_counter.spam.adjustments import Adjustment, AdjustmentRow
from page_hit_counter.spam.detection.detector import (
    ANOMALY,
    BOT,
    RATE,
    RELOAD,
    SOURCE,
    Anomaly,
    Detector,
    LearnedState,
)
from page_hit_counter.spam.detection.forest import check_installed
from page_hit_counter.spam.detection.visitors import KINDS, JudgedVisit
from page_hit_counter.spam.spam_cases import CaseEvidence, WithheldHits, rows_of, seen
from page_hit_counter.spam.spam_settings import SpamSettings

__all__ = ["Adjustment", "AdjustmentRow", "JudgedVisit", "Judgement", "SpamFilter"]

CONFIRMED = "confirmed"
MINUTES_SHOWN = 60
Decisions = dict[tuple[str, str], bool]
"""Decisions of people, by reason and subject: True for confirmed spam, False for a release."""


class Judgement(Struct):
    verdicts: list[str | None] | None = None
    """For each visit the reason why it is withheld, or None; no list when all visits pass."""
    adjustments: list[Adjustment] = []
    """Adjustments to put on the stream before the visits."""
    withheld: list[WithheldHits] = []
    """Hits to write to the quarantine."""


class SpamFilter:
    def __init__(self, settings: SpamSettings) -> None:
        if settings.mode != "off":
            check_installed()
        self._settings = settings
        self._is_filtering = settings.mode == "filter"
        self._detectors: dict[str, Detector] = {}
        self._learned: Mapping[str, LearnedState] = {}
        self._decisions: dict[str, Decisions] = {}
        self._withheld_hits: dict[str, Counter[str]] = {}
        self._minutes: dict[str, deque[tuple[int, Counter[str]]]] = {}

    def judge(self, visits: Sequence[JudgedVisit]) -> Judgement:
        """Judges visits. Those without a resource type pass, because no list shows them."""
        if self._settings.mode == "off":
            return Judgement()
        judgement = Judgement()
        reasons: list[str | None] = []
        brand, detector = None, None
        for visit in visits:
            if not visit.resource_type:
                reasons.append(None)
                continue
            if visit.brand != brand or detector is None:
                brand = visit.brand
                detector = self._detectors.get(brand) or self._begin(brand)
            if visit.time >= detector.end and detector.is_past(visit.time):
                self._close(brand, detector, visit.time, judgement)
            reasons.append(detector.see(visit))
        if self._decisions:
            reasons = [
                self._decided(visit, reason) for visit, reason in zip(visits, reasons, strict=True)
            ]
        if any(reasons):
            self._withhold(visits, reasons, judgement)
            if self._is_filtering:
                judgement.verdicts = reasons
        return judgement

    def withhold(
        self, visits: Sequence[JudgedVisit], reasons: list[str | None], *, is_filtering: bool
    ) -> Judgement:
        """Withholds visits for reasons that were found elsewhere, such as a forged signature. A
        person's release of the subject overrides them."""
        judgement = Judgement()
        reasons = [
            self._decided(visit, reason) if reason else None
            for visit, reason in zip(visits, reasons, strict=True)
        ]
        if any(reasons):
            self._withhold(visits, reasons, judgement)
            for withheld in judgement.withheld:
                withheld.status = "quarantined" if is_filtering else "observed"
            judgement.verdicts = reasons if is_filtering else None
        return judgement

    def settle(self, time: float) -> Judgement:
        """Closes intervals that have ended, also when no later visit arrived."""
        judgement = Judgement()
        for brand, detector in self._detectors.items():
            # A quiet site may have no later visit that would close the interval.
            if detector.is_over(time):
                self._close(brand, detector, time, judgement)
        return judgement

    def _begin(self, brand: str) -> Detector:
        detector = Detector(brand, self._settings, self._learned.get(brand))
        self._detectors[brand] = detector
        return detector

    def _decided(self, visit: JudgedVisit, reason: str | None) -> str | None:
        """Returns the reason after people's decisions, which override the rules."""
        decisions = self._decisions.get(visit.brand)
        if not decisions or not visit.resource_type:
            return reason
        if reason is not None:
            is_confirmed = decisions.get((reason, subject_of(visit, reason)))
            return None if is_confirmed is False else reason
        for rule in (RELOAD, RATE, SOURCE):
            if decisions.get((rule, subject_of(visit, rule))):
                return CONFIRMED
        return None

    def _withhold(
        self, visits: Sequence[JudgedVisit], reasons: list[str | None], judgement: Judgement
    ) -> None:
        cases: dict[tuple[str, str, str], list[JudgedVisit]] = {}
        for visit, reason in zip(visits, reasons, strict=True):
            if reason is not None:
                key = (visit.brand, reason, subject_of(visit, reason))
                cases.setdefault(key, []).append(visit)
        for (brand, reason, subject), withheld_visits in cases.items():
            rows = rows_of(withheld_visits, self._settings.interval_seconds)
            self._withhold_one(
                judgement,
                WithheldHits(
                    brand=brand,
                    reason=reason,
                    subject=subject,
                    time=int(withheld_visits[0].time),
                    evidence=CaseEvidence(rows=rows, visits=seen(withheld_visits)),
                ),
            )

    def _close(self, brand: str, detector: Detector, time: float, judgement: Judgement) -> None:
        for anomaly in detector.close(time):
            subject = f"{anomaly.cohort.asset_id} ({KINDS[anomaly.cohort.kind]})"
            if self._decisions.get(brand, {}).get((ANOMALY, subject)) is False:
                continue
            rows = _excess_rows(brand, anomaly)
            withheld = WithheldHits(
                brand=brand,
                reason=ANOMALY,
                subject=subject,
                time=anomaly.time,
                evidence=CaseEvidence(rows=rows, visits=seen(anomaly.cohort.examples)),
                score=round(anomaly.score, 4),
                explanation=anomaly.explanation,
            )
            self._withhold_one(judgement, withheld)
            if self._is_filtering:
                taken_back = tuple(row._replace(hits=-row.hits) for row in rows)
                name = f"withdraw:{withheld.case_id}:{brand}:{anomaly.time}"
                judgement.adjustments = [*judgement.adjustments, Adjustment(name, taken_back)]

    def _withhold_one(self, judgement: Judgement, withheld: WithheldHits) -> None:
        if not self._is_filtering:
            withheld.status = "observed"
        judgement.withheld = [*judgement.withheld, withheld]
        self._count_withheld(withheld)

    # Statistics and decisions

    def _count_withheld(self, withheld: WithheldHits) -> None:
        brand, reason, hits = withheld.brand, withheld.reason, withheld.hits
        self._withheld_hits.setdefault(brand, Counter())[reason] += hits
        minutes = self._minutes.setdefault(brand, deque(maxlen=MINUTES_SHOWN))
        minute = withheld.time // 60 * 60
        for start, counts in reversed(minutes):
            if start == minute:
                counts[reason] += hits
                return
        minutes.append((minute, Counter({reason: hits})))

    @property
    def mode(self) -> str:
        return self._settings.mode

    @property
    def retention_days(self) -> int:
        return self._settings.retention_days

    def withheld_hits(self, brand: str) -> dict[str, int]:
        """Returns the hits that were withheld since this filter started, by reason."""
        return dict(self._withheld_hits.get(brand, {}))

    def withheld_by_minute(self, brand: str) -> list[tuple[int, dict[str, int]]]:
        minutes = sorted(self._minutes.get(brand, ()), key=lambda minute: minute[0])
        return [(start, dict(counts)) for start, counts in minutes]

    def decide(self, brand: str, decisions: Decisions) -> None:
        if decisions:
            self._decisions[brand] = decisions
        else:
            self._decisions.pop(brand, None)

    @property
    def brands(self) -> list[str]:
        return list(self._detectors)

    def learned(self) -> dict[str, LearnedState]:
        return {brand: detector.learned for brand, detector in self._detectors.items()}

    def relearn(self, learned: Mapping[str, LearnedState]) -> None:
        """Takes over what an earlier filter has learned, for brands without visits so far."""
        self._learned = learned


def subject_of(visit: JudgedVisit, reason: str) -> str:
    """Returns whom a case is about: a user agent, an address or a visitor."""
    if reason == BOT:
        return visit.agent
    if reason == SOURCE:
        return visit.source
    return visit.visitor or (visit.source if reason not in (RELOAD, RATE) else "")


def _excess_rows(brand: str, anomaly: Anomaly) -> list[AdjustmentRow]:
    """Spreads the excess hits in proportion over the sections and types of the asset."""
    rows = []
    left = anomaly.excess
    for (section_id, paid_type, resource_type), hits in anomaly.cohort.keys.items():
        taken = min(left, -(-anomaly.excess * hits // anomaly.cohort.hits))
        if taken:
            key = (brand, anomaly.cohort.asset_id, section_id, paid_type, resource_type)
            rows.append(AdjustmentRow(*key, anomaly.time, taken))
        left -= taken
    return rows
