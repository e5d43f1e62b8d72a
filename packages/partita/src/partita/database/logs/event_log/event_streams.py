"""Event streams: the stored definition of each, and the list of all.

As with tables, a change is visible to later requests as soon as it is decided, while its own
response waits for the commit. When a commit is lost, the list is reloaded from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

import msgspec

from partita.database.logs.event_log import event_log_layout
from partita.database.logs.event_log.shard_splits import HASH_KEY_BYTES, EventShard, open_shards
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.errors import StorageError

PROVISIONED, ON_DEMAND = "PROVISIONED", "ON_DEMAND"
CREATING, ACTIVE, UPDATING, DELETING = "CREATING", "ACTIVE", "UPDATING", "DELETING"


class EventStream(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The definition of an event stream, with its shards."""

    number: int
    name: str
    created_at: float
    mode: str
    shards: tuple[EventShard, ...]
    next_shard_number: int
    retention_hours: int
    record_kib_max: int
    tags: dict[str, str] = {}
    transition: str = ACTIVE
    """The status that the last change brought, until `settles_at`."""
    settles_at: float = 0.0

    def status(self, now: float) -> str:
        is_lasting = self.transition == DELETING or now < self.settles_at
        return self.transition if is_lasting else ACTIVE

    @cached_property
    def open_shards(self) -> list[EventShard]:
        return open_shards(self.shards)

    @cached_property
    def first_hashes(self) -> list[bytes]:
        """The first hash keys of the open shards, as bytes, which compare faster than integers."""
        return [shard.first_hash_key.to_bytes(HASH_KEY_BYTES, "big") for shard in self.open_shards]

    @cached_property
    def shards_by_number(self) -> dict[int, EventShard]:
        return {shard.number: shard for shard in self.shards}

    def shard(self, number: int) -> EventShard | None:
        return self.shards_by_number.get(number)

    def children(self, number: int) -> list[EventShard]:
        return [shard for shard in self.shards if number in shard.parents]


_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(EventStream)


class EventStreams:
    """All event streams of a database, in memory."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._streams: dict[str, EventStream] = {}
        self.on_change: Callable[[], None] = _ignore
        self.reload()

    def reload(self) -> None:
        self._streams = {
            stream.name: stream
            for key, value in self._snapshot.range(
                event_log_layout.STREAMS, prefix_end(event_log_layout.STREAMS)
            )
            for stream in [decode_stream(key, value)]
        }

    def __iter__(self) -> Iterator[EventStream]:
        return iter(list(self._streams.values()))

    def names(self) -> list[str]:
        return sorted(self._streams)

    def find(self, name: str) -> EventStream | None:
        return self._streams.get(name)

    def save(self, write_batch: WriteBatch, stream: EventStream) -> None:
        write_batch.put(event_log_layout.stream_key(stream.name), _encode(stream))
        write_batch.after_merge(partial(self._set, stream.name, stream))

    def remove(self, write_batch: WriteBatch, stream: EventStream) -> None:
        """Remove a stream; its records are removed in the background."""
        write_batch.delete(event_log_layout.stream_key(stream.name))
        write_batch.put(event_log_layout.deleted_key(stream.number), b"")
        write_batch.after_merge(partial(self._set, stream.name, None))

    def _set(self, name: str, stream: EventStream | None) -> None:
        if stream is None:
            self._streams.pop(name, None)
        else:
            self._streams[name] = stream
        self.on_change()


def _ignore() -> None:
    pass


def decode_stream(key: bytes, value: bytes) -> EventStream:
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        name = event_log_layout.stream_name(key)
        raise StorageError(
            f"The data folder is damaged: its entry for event stream {name} cannot be read "
            f"({error})."
        ) from error


def name_in_arn(arn: str) -> str:
    """Returns the stream name in an ARN; as with tables, any region and account is accepted."""
    return arn.rpartition(":stream/")[2]
