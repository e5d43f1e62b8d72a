"""The section `[spam]` of pagehits.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Mode = Literal["off", "observe", "filter"]
Positive = Annotated[int, Meta(ge=1)]


class SpamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: Mode = "observe"
    """`observe` writes cases but counts everything; `filter` withholds."""
    interval_seconds: Positive = 60
    """The length of the intervals that the forest judges. It must divide every window."""
    reload_hits: Positive = 3
    """How many hits of one visitor on one asset count within `reload_seconds`."""
    reload_seconds: Positive = 300
    visitor_hits_per_minute: Positive = 60
    source_hits_per_minute: Positive = 600
    """This is generous, because many people may share an address."""
    bots: tuple[str, ...] = ()
    """More words that mark a user agent as a bot, in upper or lower case."""
    trees: Annotated[int, Meta(ge=1, le=500)] = 50
    samples: Annotated[int, Meta(ge=16, le=4_096)] = 256
    learning_points: Positive = 256
    """How many points the forest learns before it judges any."""
    cohort_hits_min: Positive = 12
    """Cohorts with fewer hits are not judged."""
    score_min: Annotated[float, Meta(gt=0)] = 1.0
    deviations: Annotated[float, Meta(gt=0)] = 3.0
    """How many standard deviations above the mean the score of an anomaly is."""
    visitors_max: Positive = 200_000
    """How many visitors of a brand, and how many pairs of visitor and asset, are remembered."""
    quarantine_table: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{3,255}$")] = (
        "pagehits-quarantine"
    )
    retention_days: Positive = 7
