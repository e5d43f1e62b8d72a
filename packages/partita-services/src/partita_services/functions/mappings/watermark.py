"""The watermark of a shard: the position up to which all records are done, while lanes finish
records out of order."""

from __future__ import annotations

from collections import deque


class Watermark:
    """Positions are added in the order of the shard, and finished in any order."""

    def __init__(self, position: str) -> None:
        self.position = position
        """All records up to this position are done."""
        self._places: deque[str] = deque()
        self._finished: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        return bool(self._places)

    def add(self, place: str) -> None:
        self._places.append(place)

    def finish(self, place: str) -> None:
        self._finished.add(place)
        while self._places and self._places[0] in self._finished:
            self.position = self._places.popleft()
            self._finished.remove(self.position)

    def pass_over(self, place: str) -> None:
        """The records up to this position were filtered out: there is nothing to do for them."""
        if self._places:
            # Behind the waiting records, like a record that is done at once.
            if self._places[-1] != place:
                self.add(place)
                self.finish(place)
        else:
            self.position = place
