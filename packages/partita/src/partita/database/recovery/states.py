"""The state of a table at a moment: the items of a manifest, as later commits left them.

It comes in key order, in slices that are short enough to serve requests between them; an empty
slice is work that gave nothing yet. Later changes are held in memory; if there are too many, the
space of hashes is divided, and they are read once for each part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from partita.database.recovery.manifests import Chunk, Manifest, get_chunk
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import Change, Place, log_files, read_log

Item = tuple[Place, bytes]
"""An item's place behind its table's number, and its stored value."""
Slice = list[Item]
Changes = Iterator[list[Change]]
Range = tuple[Place, Place]
"""From a place on, up to another."""

CHANGES_BYTES_MAX: Final = 64 << 20
SLICE_ITEMS: Final = 1024
HASH_BITS: Final = 32
LAST_PLACE: Final = b"\xff" * 4096


def state(
    archive: Archive,
    manifest: Manifest,
    table_id: str,
    until: int | None = None,
    *,
    after: Place | None = None,
    within: Range | None = None,
    changes_bytes_max: int = CHANGES_BYTES_MAX,
) -> Iterator[Slice]:
    """What a table was at the stamp `until`, by its log; without it, what the manifest has.

    `after` is the place behind which to begin; what is not `within` two places is not read.
    """

    def changes() -> Changes:
        for patch in manifest.patches:
            yield get_chunk(archive, patch)
        if until is not None:
            for commits in read_log(archive, table_id, manifest.stamp, until):
                yield [change for _, made in commits for change in made]

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
    """Ranges of places, each with no more changes between two stamps than memory has room for."""
    size = _log_bytes(archive, table_id, after, until)
    return _ranges(size, CHANGES_BYTES_MAX, *(within or (b"", LAST_PLACE)))


def _ranges(size: int, size_max: int, first: Place, last: Place) -> Iterator[Range]:
    parts = max(1, -(-size // size_max))
    for part in range(parts):
        start, stop = max(_bound(part, parts), first), min(_bound(part + 1, parts), last)
        if start < stop:
            yield start, stop


def _log_bytes(archive: Archive, table_id: str, after: int, until: int) -> int:
    """About what the changes between two stamps take in memory."""
    files = log_files(archive, table_id)
    followings = [*(first for first, _ in files[1:]), until + 1]
    read = (
        archive.size(name)
        for (first, name), following in zip(files, followings, strict=False)
        if first <= until and following > after
    )
    # Compressed, on disk; about four times as much in memory.
    return 4 * sum(read)


def _bound(part: int, parts: int) -> Place:
    """Where a part of the hash space begins; places begin with their hash."""
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
    for some in changes():
        changed.update(one for one in some if start <= one[0] < stop)
        yield []
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
    """Items of a range, as changes left them."""
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
