"""The section `[delivery]` of pagehits.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Route = Literal["off", "direct", "bucket", "topic", "schedule"]
OPTIONS: dict[str, Route] = {"A": "direct", "B": "bucket", "C": "topic", "D": "schedule"}
"""The routes, by their letters in figure 5.1."""
NAME = r"^[A-Za-z0-9_.-]{1,64}$"
FUNCTION = r"^[A-Za-z0-9_-]{1,64}$"
MINUTE_SECONDS = 60
MARGIN_SECONDS = 5.0
"""Allows for the time that a record takes between two parts."""


class DeliverySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    route: Route = "off"
    """How visits get from the delivery stream to the counter. With `off` the processor puts them
    on the counter's stream directly."""
    name: Annotated[str, Meta(pattern=NAME)] = "pagehits-delivery"
    """The name of the delivery stream, after which files are named."""
    stream: Annotated[str, Meta(pattern=NAME)] = "pagehits-events"
    """The stream from which the delivery stream takes its records."""
    bucket: Annotated[str, Meta(pattern=NAME)] = "pagehits-events"
    folder: str = "pagehits-events"
    """The folder of the bucket, relative to the folder of pagehits.toml."""
    prefix: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.=-]+/)*$")] = "visits/"
    buffer_mb: Annotated[float, Meta(gt=0, le=128)] = 5.0
    buffer_seconds: Annotated[float, Meta(ge=0, le=900)] = 60.0
    """A file is written when the buffer reaches its size or its age, whichever comes first. The
    limits are those of Amazon Data Firehose."""
    topic: Annotated[str, Meta(pattern=NAME)] = "pagehits-arrived"
    function: Annotated[str, Meta(pattern=FUNCTION)] = "page-hit-delivery"
    subscribers: tuple[Annotated[str, Meta(pattern=FUNCTION)], ...] = ()
    """More functions that the topic calls."""
    schedule_minutes: Annotated[int, Meta(ge=1, le=60)] = 5

    @property
    def is_on(self) -> bool:
        return self.route != "off"

    @property
    def delay_seconds_max(self) -> float:
        """The longest time that a visit takes to reach the counter."""
        waits = self.schedule_minutes * MINUTE_SECONDS if self.route == "schedule" else 0
        return self.buffer_seconds + waits + MARGIN_SECONDS
