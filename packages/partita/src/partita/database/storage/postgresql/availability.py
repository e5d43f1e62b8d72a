"""Logs once when the database becomes unavailable and once when it is back, however many requests
fail in between."""

from __future__ import annotations

import logging
from typing import Final

from partita.foundation.clock import Stopwatch

logger = logging.getLogger(__name__)

LINE_SECONDS: Final = 10.0
"""The minimum time between two lines about failures."""


class Availability:
    """The availability of one database, as the results of requests show it."""

    def __init__(self, place: str, stopwatch: Stopwatch) -> None:
        self._place = place
        self._stopwatch = stopwatch
        self._failing_since: float | None = None
        self._logged_at: float | None = None
        self._reason = ""

    @property
    def is_failing(self) -> bool:
        return self._failing_since is not None

    def fail(self, reason: str) -> None:
        now = self._stopwatch()
        is_new = self._failing_since is None or reason != self._reason
        if self._failing_since is None:
            self._failing_since = now
        if is_new and (self._logged_at is None or now - self._logged_at >= LINE_SECONDS):
            self._logged_at, self._reason = now, reason
            logger.error(
                "%s cannot be used: %s. Requests are refused until it can.", self._place, reason
            )

    def recover(self) -> None:
        """Called after a successful commit."""
        if self._failing_since is None:
            return
        seconds = self._stopwatch() - self._failing_since
        self._failing_since, self._reason = None, ""
        logger.warning("%s can be used again, after %.1f seconds.", self._place, seconds)
