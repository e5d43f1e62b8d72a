"""What a client has seen over one connection: reads from a replica never go back behind it."""

from __future__ import annotations

from typing import Final

PRIMARY: Final = ""


class Session:
    """What a client has seen over one connection."""

    __slots__ = ("seen_at", "source")

    def __init__(self) -> None:
        self.seen_at = 0.0
        """By the clock of the database: who shows a later heartbeat has all of it."""
        self.source = PRIMARY
        """Who it was read from last."""

    def note(self, source: str, seen_at: float) -> None:
        self.source, self.seen_at = source, max(seen_at, self.seen_at)

    def accepts(self, source: str, beat_at: float) -> bool:
        """Whether a replica has what this client has seen; it never goes back itself."""
        return beat_at > self.seen_at or (source == self.source and source != PRIMARY)
