"""Cases of the spam filter. A case collects the hits of one subject that were withheld from the
lists for one reason within one hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from typing import Literal, get_args

from msgspec import Struct, field

from page_hit_counter.spam.adjustments import AdjustmentRow
from page_hit_counter.spam.detection.forest import Explanation
from page_hit_counter.spam.detection.visitors import JudgedVisit

Status = Literal["observed", "quarantined", "releasing", "released", "confirmed"]
STATUSES: tuple[Status, ...] = get_args(Status)
HOUR_SECONDS = 3_600
SEEN_MAX = 50
"""How many visits of a batch are kept: enough to look at, and few enough to fit an item."""


class VisitEvidence(Struct, frozen=True, array_like=True):
    """The part of a visit that is kept, for people to look at."""

    time: float
    asset_id: int
    visitor: str
    agent: str
    source: str


class CaseEvidence(Struct, kw_only=True, rename="camel"):
    """The hits of a case from one batch or interval. A release counts `rows`."""

    rows: list[AdjustmentRow]
    visits: list[VisitEvidence]


class WithheldHits(Struct, kw_only=True):
    """Evidence that is to be added to a case."""

    brand: str
    reason: str
    subject: str
    time: int
    evidence: CaseEvidence
    status: Status = "quarantined"
    score: float | None = None
    explanation: tuple[Explanation, ...] = ()

    @property
    def case_id(self) -> str:
        """The id of the case. It is the same for a reason and a subject within an hour, also after
        a restart."""
        hour = datetime.fromtimestamp(self.time // HOUR_SECONDS * HOUR_SECONDS, UTC)
        return f"{hour:%Y-%m-%dT%H}-{self.reason}-{digest(self.subject)}"

    @property
    def hits(self) -> int:
        return sum(row.hits for row in self.evidence.rows)


class SpamCase(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A case without its evidence."""

    id: str
    brand: str
    reason: str
    subject: str
    status: Status
    hits: int
    first_time: int
    last_time: int
    score: float | None = None
    explanation: list[Explanation] = field(default_factory=list)


def digest(subject: str) -> str:
    """Returns a short hash of a subject, which may be longer than a key."""
    return blake2b(subject.encode(), digest_size=8).hexdigest()


def seen(visits: Iterable[JudgedVisit]) -> list[VisitEvidence]:
    return [
        VisitEvidence(visit.time, visit.asset_id, visit.visitor, visit.agent, visit.source)
        for visit in islice(visits, SEEN_MAX)
    ]


def rows_of(visits: list[JudgedVisit], interval_seconds: int) -> list[AdjustmentRow]:
    """Returns the hits of visits by the keys of the counter, in intervals that divide its
    windows."""
    hits = Counter(
        (
            visit.brand,
            visit.asset_id,
            visit.section_id,
            visit.paid_type,
            visit.resource_type or "",
            int(visit.time) // interval_seconds * interval_seconds,
        )
        for visit in visits
    )
    return [AdjustmentRow(*key, count) for key, count in hits.items()]


def summed(pieces: Iterable[CaseEvidence]) -> tuple[AdjustmentRow, ...]:
    """Returns the rows of all pieces of evidence, adding up those that differ only in hits."""
    hits: Counter[AdjustmentRow] = Counter()
    for piece in pieces:
        for row in piece.rows:
            hits[row._replace(hits=0)] += row.hits
    return tuple(row._replace(hits=count) for row, count in hits.items())
