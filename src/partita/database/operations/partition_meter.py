"""What a Scan costs: each partition that it visits is read on its own, and costs a unit at least.

Observed on the service: one tiny item in a new on-demand table, which has four partitions, takes 4
units consistently and 2 eventually.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partita.database.item.keys import PARTITION_HASH_BYTES
from partita.database.tables.stored import unpack_sizes


class PartitionMeter:
    """Watches the pairs of a range, which come in the order of their hashes."""

    __slots__ = ("_edges", "_start", "visited_bytes")

    def __init__(self, prefix: bytes, starts: Iterable[int], start: bytes, stop: bytes) -> None:
        """`starts` are the first hashes of all partitions behind the prefix."""
        edges = (prefix + first.to_bytes(PARTITION_HASH_BYTES, "big") for first in starts)
        self._start = start
        self._edges = [edge for edge in edges if start < edge < stop]
        self.visited_bytes = [0]
        """Of each partition that was visited, the bytes that were read."""

    def watch(self, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        visited, edges = self.visited_bytes, self._edges
        for pair in pairs:
            while len(visited) <= len(edges) and pair[0] >= edges[len(visited) - 1]:
                visited.append(0)
            visited[-1] += unpack_sizes(pair[1])[0]
            yield pair
        # Nothing follows: the rest of the partitions were looked into.
        visited += [0] * (len(edges) + 1 - len(visited))

    def visited_keys(self) -> list[bytes]:
        """Where the reading of each partition began."""
        return [self._start, *self._edges][: len(self.visited_bytes)]
