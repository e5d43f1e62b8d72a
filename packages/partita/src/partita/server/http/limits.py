"""How much a client may ask a listener to hold, and for how long."""

from __future__ import annotations

from partita.limits import MB, REQUEST_BODY_BYTES_MAX


class Limits:
    """Sizes in bytes, times in seconds. A plain class: its attributes are read for every request,
    and those of a dataclass are slower when compiled."""

    def __init__(
        self,
        *,
        body_bytes_max: int = REQUEST_BODY_BYTES_MAX,
        bodies_bytes_max: int = 512 * MB,
        pipelined_max: int = 128,
        header_seconds_max: float = 20,
        body_seconds_max: float = 60,
        idle_seconds_max: float = 120,
        unread_seconds_max: float = 30,
        sweep_seconds: float = 1.0,
    ) -> None:
        """`bodies_bytes_max` counts the bodies of all connections that are unfinished, or were
        packed and are under way: beyond it a large request is refused with 503. `pipelined_max` is
        how many requests of one connection are under way at once, `unread_seconds_max` how long a
        client may leave answers unread, and `sweep_seconds` how often times are looked at."""
        self.body_bytes_max = body_bytes_max
        self.bodies_bytes_max = bodies_bytes_max
        self.pipelined_max = pipelined_max
        self.header_seconds_max = header_seconds_max
        self.body_seconds_max = body_seconds_max
        self.idle_seconds_max = idle_seconds_max
        self.unread_seconds_max = unread_seconds_max
        self.sweep_seconds = sweep_seconds
