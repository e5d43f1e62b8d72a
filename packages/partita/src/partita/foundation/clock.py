"""Clocks: code that needs the time gets a clock or stopwatch passed in; tests pass their own."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns seconds since the epoch."""

Stopwatch = Callable[[], float]
"""Returns seconds since some moment, and never goes back: for measuring durations."""

system_clock: Clock = time.time
system_stopwatch: Stopwatch = time.monotonic
