"""Monotonic reads: what a client has read over one connection, so that a replica that is behind
that does not answer it."""

from __future__ import annotations

from typing import Final

PRIMARY: Final = ""


class ClientSession:
    """The newest state that a client has read over one connection."""

    __slots__ = ("seen_at", "source")

    def __init__(self) -> None:
        self.seen_at = 0.0
        """A time of the primary's clock: a replica with a later heartbeat has everything read so
        far.
        """
        self.source = PRIMARY
        """The server that was read from last."""

    def note(self, source: str, seen_at: float) -> None:
        self.source, self.seen_at = source, max(seen_at, self.seen_at)

    def accepts(self, source: str, beat_at: float) -> bool:
        """True if a replica is not behind what this client has read. The replica that was read from
        last never is, because it does not go back itself."""
        return beat_at > self.seen_at or (source == self.source and source != PRIMARY)
