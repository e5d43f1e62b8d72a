"""The state of a table at a moment: the items of a chunk manifest with later commits applied.

Items come in key order, in slices that are short enough to serve requests between them; an empty
slice means that work was done without a result so far. The later changes are held in memory. If
they do not fit, the hash space is divided into parts, and the changes are read once for each part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from partita.database.recovery.chunk_manifests import Chunk, ChunkManifest, get_chunk
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import Change, Place, log_files, read_log

Item = tuple[Place, bytes]
"""An item's place, which is its storage key after the table's prefix, and its stored value."""
Slice = list[Item]
Changes = Iterator[list[Change]]
Range = tuple[Place, Place]
"""A range of places; the end is exclusive."""

CHANGES_BYTES_MAX: Final = 64 << 20
SLICE_ITEMS: Final = 1024
HASH_BITS: Final = 32
LAST_PLACE: Final = b"\xff" * 4096


def table_state(
    archive: Archive,
    manifest: ChunkManifest,
    table_id: str,
    until: int | None = None,
    *,
    after: Place | None = None,
    within: Range | None = None,
    changes_bytes_max: int = CHANGES_BYTES_MAX,
) -> Iterator[Slice]:
    """Yields the items that a table had at the stamp `until`; at the manifest's stamp if None.

    The result begins behind the place `after` and stays in the range `within`.
    """

    def changes() -> Changes:
        for patch in manifest.patches:
            yield get_chunk(archive, patch)
        if until is not None:
            for commits in read_log(archive, table_id, manifest.stamp, until):
                yield [change for _, changes in commits for change in changes]

    size = sum(patch.size_bytes for patch in manifest.patches)
    if until is not None:
        size += _log_bytes(archive, table_id, manifest.stamp, until)
    first, last = within or (b"", LAST_PLACE)
    if after is not None:
        first = max(first, after + b"\x00")
    for start, stop in _ranges(size, changes_bytes_max, first, last):
        yield from _part(archive, manifest.chunks, changes, start, stop)


def changed_ranges(
    archive: Archive, table_id: str, after: int, until: int, within: Range | None
) -> Iterator[Range]:
    """Divides the places into ranges whose changes between two stamps fit into memory."""
    size = _log_bytes(archive, table_id, after, until)
    return _ranges(size, CHANGES_BYTES_MAX, *(within or (b"", LAST_PLACE)))


def _ranges(size: int, size_max: int, first: Place, last: Place) -> Iterator[Range]:
    parts = max(1, -(-size // size_max))
    for part in range(parts):
        start, stop = max(_bound(part, parts), first), min(_bound(part + 1, parts), last)
        if start < stop:
            yield start, stop


def _log_bytes(archive: Archive, table_id: str, after: int, until: int) -> int:
    """Estimates the memory that the changes between two stamps take."""
    files = log_files(archive, table_id)
    followings = [*(first for first, _ in files[1:]), until + 1]
    read = (
        archive.size(name)
        for (first, name), following in zip(files, followings, strict=False)
        if first <= until and following > after
    )
    # The files are compressed: their content takes about four times as much memory.
    return 4 * sum(read)


def _bound(part: int, parts: int) -> Place:
    """The first place of a part of the hash space; a place begins with its hash."""
    if part == parts:
        return LAST_PLACE
    return ((part << HASH_BITS) // parts).to_bytes(HASH_BITS // 8, "big") if part else b""


def _part(
    archive: Archive,
    chunks: list[Chunk],
    changes: Callable[[], Changes],
    start: Place,
    stop: Place,
) -> Iterator[Slice]:
    changed: dict[Place, bytes | None] = {}
    for some_changes in changes():
        changed.update(change for change in some_changes if start <= change[0] < stop)
        yield []
    # Chunks and changes are both in key order from here on, and are merged.
    places = sorted(changed)
    firsts = [chunk.first for chunk in chunks]
    position = start
    for number, chunk in enumerate(chunks):
        end = min(firsts[number + 1], stop) if number + 1 < len(chunks) else stop
        if end <= position:
            continue
        items = {
            place: value
            for place, value in get_chunk(archive, chunk)
            if position <= place < end and value is not None
        }
        yield from _slices(_merged(items, changed, places, position, end))
        position = end
        if end >= stop:
            return
    yield from _slices(_merged({}, changed, places, position, stop))


def _merged(
    items: dict[Place, bytes],
    changed: dict[Place, bytes | None],
    places: list[Place],
    start: Place,
    stop: Place,
) -> Slice:
    """Applies the changes in a range of places to its items."""
    first, last = bisect_left(places, start), bisect_left(places, stop)
    if first == last:
        return list(items.items())
    for place in places[first:last]:
        value = changed[place]
        if value is None:
            items.pop(place, None)
        else:
            items[place] = value
    return sorted(items.items())


def _slices(items: Slice) -> Iterator[Slice]:
    for at in range(0, len(items), SLICE_ITEMS):
        yield items[at : at + SLICE_ITEMS]
