"""Time, passed in: whoever needs the hour is given a clock, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""

system_clock: Clock = time.time
