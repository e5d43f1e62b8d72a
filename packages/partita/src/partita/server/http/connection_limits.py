"""Limits of a listener: how much memory and time a client may take."""

from __future__ import annotations

from partita.foundation.service_limits import MB, REQUEST_BODY_BYTES_MAX


class ConnectionLimits:
    """Limits of the connections of one listener.

    This is a plain class because its attributes are read for every request, and mypyc compiles
    attributes of dataclasses to slower code.
    """

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
        """`bodies_bytes_max` limits the memory for bodies over all connections: those that are
        still arriving, and those that were decompressed and are not answered yet. Beyond it, large
        requests are refused with a 503. `pipelined_max` limits the requests of one connection that
        are under way at once, and `unread_seconds_max` the time that a client may leave responses
        unread. Time limits are checked every `sweep_seconds`."""
        self.body_bytes_max = body_bytes_max
        self.bodies_bytes_max = bodies_bytes_max
        self.pipelined_max = pipelined_max
        self.header_seconds_max = header_seconds_max
        self.body_seconds_max = body_seconds_max
        self.idle_seconds_max = idle_seconds_max
        self.unread_seconds_max = unread_seconds_max
        self.sweep_seconds = sweep_seconds
