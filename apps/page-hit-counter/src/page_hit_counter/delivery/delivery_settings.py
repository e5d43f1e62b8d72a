"""The section `[delivery]` of pagehits.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Route = Literal["off", "direct", "bucket", "topic", "schedule"]
OPTIONS: dict[str, Route] = {"A": "direct", "B": "bucket", "C": "topic", "D": "schedule"}
"""The routes by their letters in figure 5.1."""
NAME = r"^[A-Za-z0-9_.-]{1,64}$"
FUNCTION = r"^[A-Za-z0-9_-]{1,64}$"
MINUTE_SECONDS = 60
MARGIN_SECONDS = 5.0
"""For what is on its way between two parts."""


class DeliverySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    route: Route = "off"
    """How visits get from the delivery stream to the counter; off puts them on its stream."""
    name: Annotated[str, Meta(pattern=NAME)] = "pagehits-delivery"
    """Of the delivery stream: files are named after it."""
    stream: Annotated[str, Meta(pattern=NAME)] = "pagehits-events"
    """Where the delivery stream takes its records from."""
    bucket: Annotated[str, Meta(pattern=NAME)] = "pagehits-events"
    folder: str = "pagehits-events"
    """Of the bucket, seen from the folder of pagehits.toml."""
    prefix: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.=-]+/)*$")] = "visits/"
    buffer_mb: Annotated[float, Meta(gt=0, le=128)] = 5.0
    buffer_seconds: Annotated[float, Meta(ge=0, le=900)] = 60.0
    """A file is written when one of both is reached. (Limits of Amazon Data Firehose)"""
    topic: Annotated[str, Meta(pattern=NAME)] = "pagehits-arrived"
    function: Annotated[str, Meta(pattern=FUNCTION)] = "page-hit-delivery"
    subscribers: tuple[Annotated[str, Meta(pattern=FUNCTION)], ...] = ()
    """Further functions that the topic calls."""
    schedule_minutes: Annotated[int, Meta(ge=1, le=60)] = 5

    @property
    def is_on(self) -> bool:
        return self.route != "off"

    @property
    def delay_seconds_max(self) -> float:
        """How long a visit may take to the counter."""
        waits = self.schedule_minutes * MINUTE_SECONDS if self.route == "schedule" else 0
        return self.buffer_seconds + waits + MARGIN_SECONDS
