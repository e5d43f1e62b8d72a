"""Time, passed in: whoever needs it is given a clock or a stopwatch, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""

Stopwatch = Callable[[], float]
"""Seconds since some moment, never set back: to measure how long something takes."""

system_clock: Clock = time.time
system_stopwatch: Stopwatch = time.monotonic
