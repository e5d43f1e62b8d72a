"""The background jobs of event streams: what is too old goes, and what was deleted."""

from __future__ import annotations

from partita.clock import Clock
from partita.events.retention import remove_deleted, trim_stream
from partita.events.streams import DELETING, EventStreams
from partita.storage.commits import Draft
from partita.storage.engine import Snapshot

PIECE_KEYS = 200
"""A piece of work ends after so many keys."""
TRIM_SECONDS = 1.0
"""How often the shards are looked at when nothing in them is too old."""


class EventJobs:
    def __init__(self, streams: EventStreams, snapshot: Snapshot, clock: Clock) -> None:
        self._streams = streams
        self._snapshot = snapshot
        self._clock = clock
        self._trims_at = 0.0

    def work(self, draft: Draft) -> bool:
        """One piece of the first job that has something to do."""
        jobs = (self._settle_deletions, self._remove_deleted, self._trim_streams)
        return any(job(draft) for job in jobs)

    def _settle_deletions(self, draft: Draft) -> bool:
        """Remove the streams whose DELETING is over."""
        gone = [
            stream
            for stream in self._streams
            if stream.transition == DELETING and stream.settles_at <= self._clock()
        ]
        for stream in gone:
            self._streams.remove(draft, stream)
        return bool(gone)

    def _remove_deleted(self, draft: Draft) -> bool:
        return remove_deleted(draft, self._snapshot, PIECE_KEYS)

    def _trim_streams(self, draft: Draft) -> bool:
        now = self._clock()
        if self._trims_at - TRIM_SECONDS <= now < self._trims_at:
            return False
        found = any(
            trim_stream(draft, self._snapshot, self._streams, stream, PIECE_KEYS)
            for stream in self._streams
        )
        self._trims_at = now if found else now + TRIM_SECONDS
        return found
