"""The cost of a Scan: every partition that it visits is charged separately, for at least 4 KB.

Observed on the service: in a new on-demand table, which has four partitions, scanning one tiny item
costs 4 units with consistent reads, and 2 with eventually consistent ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partita.database.item.key_encoding import PARTITION_HASH_BYTES
from partita.database.tables.stored_item import unpack_sizes


class PartitionMeter:
    """Counts the bytes read in each partition, while a range is read in the order of hashes."""

    __slots__ = ("_edges", "_start", "visited_bytes")

    def __init__(self, prefix: bytes, starts: Iterable[int], start: bytes, stop: bytes) -> None:
        """`starts` are the first hashes of the partitions under the prefix."""
        edges = (prefix + first.to_bytes(PARTITION_HASH_BYTES, "big") for first in starts)
        self._start = start
        self._edges = [edge for edge in edges if start < edge < stop]
        self.visited_bytes = [0]
        """The bytes read in each partition that was visited so far."""

    def watch(self, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        visited, edges = self.visited_bytes, self._edges
        for pair in pairs:
            while len(visited) <= len(edges) and pair[0] >= edges[len(visited) - 1]:
                visited.append(0)
            visited[-1] += unpack_sizes(pair[1])[0]
            yield pair
        # The range was read to its end, so the remaining partitions were visited too.
        visited += [0] * (len(edges) + 1 - len(visited))

    def visited_keys(self) -> list[bytes]:
        """The first key that was read, or could have been, in each visited partition."""
        return [self._start, *self._edges][: len(self.visited_bytes)]
