"""The background jobs of event streams: removing old records, and the data of deleted streams."""

from __future__ import annotations

from functools import partial

from partita.database.logs.event_log.event_retention import remove_deleted, trim_stream
from partita.database.logs.event_log.event_streams import DELETING, EventStreams
from partita.database.storage.engine import Snapshot
from partita.database.storage.write_batch import WriteBatch
from partita.database.upkeep import table_walk
from partita.foundation.clock import Clock

TRIM_SECONDS = 1.0
"""The interval between checks for old records while there are none."""


class EventLogJobs:
    """The jobs of event streams, of which each call of `work` does a piece."""

    def __init__(self, streams: EventStreams, snapshot: Snapshot, clock: Clock) -> None:
        self._streams = streams
        self._snapshot = snapshot
        self._clock = clock
        self._trims_at = 0.0

    def work(self, write_batch: WriteBatch) -> bool:
        """Do one piece of the first job that has work; True if there was any."""
        jobs = (self._settle_deletions, self._remove_deleted, self._trim_streams)
        return any(job(write_batch) for job in jobs)

    def _settle_deletions(self, write_batch: WriteBatch) -> bool:
        """Remove the streams whose DELETING phase is over."""
        deleted = [
            stream
            for stream in self._streams
            if stream.transition == DELETING and stream.settles_at <= self._clock()
        ]
        for stream in deleted:
            self._streams.remove(write_batch, stream)
        return bool(deleted)

    def _remove_deleted(self, write_batch: WriteBatch) -> bool:
        return remove_deleted(write_batch, self._snapshot, table_walk.PIECE_KEYS)

    def _trim_streams(self, write_batch: WriteBatch) -> bool:
        now = self._clock()
        # The lower bound is for a clock that was set back.
        if self._trims_at - TRIM_SECONDS <= now < self._trims_at:
            return False
        has_trimmed = any(
            trim_stream(write_batch, self._snapshot, self._streams, stream, table_walk.PIECE_KEYS)
            for stream in self._streams
        )
        next_trim = now if has_trimmed else now + TRIM_SECONDS
        write_batch.after_merge(partial(self._trim_at, next_trim))
        return has_trimmed

    def _trim_at(self, moment: float) -> None:
        self._trims_at = moment
