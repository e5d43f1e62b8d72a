"""Answers that still hold: what GetItem and Query said, until something in their partition changes.

Applications ask the same thing again and again, in the same bytes. Both operations read one
partition of a table or of an index, so their answer stays right until a commit changes a key of
that partition, or the catalog changes. An answer is kept when it is asked for a second time, for
most questions are never repeated. What is kept is bounded; the oldest goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from partita.database.tables import layout
from partita.limits import KB, MB

KEPT_BYTES_MAX: Final = 16 * MB
ANSWER_BYTES_MAX: Final = 64 * KB
ASKED_MAX: Final = 20_000
ENTRY_BYTES: Final = 500
"""What an entry takes besides its question and its answer, about."""


class CachedResponse:
    __slots__ = ("body", "checksum", "partition")

    def __init__(self, body: bytes, partition: bytes) -> None:
        self.body = body
        self.checksum = crc32(body)
        self.partition = partition


class ResponseCache:
    """Of one operation, by the bytes of the request."""

    def __init__(self) -> None:
        # To find the oldest, a plain dict would search all places that older ones have left.
        self._answers: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._questions: dict[bytes, set[bytes]] = {}
        """By partition."""
        self._kept_bytes = 0
        self._asked: set[int] = set()
        """Hashes of questions that came at least once; one taken for another does no harm."""

    def get(self, question: bytes) -> CachedResponse | None:
        return self._answers.get(question)

    def keep(self, question: bytes, body: bytes, partition: bytes) -> None:
        if len(question) + len(body) > ANSWER_BYTES_MAX or question in self._answers:
            return
        asked = hash(question)
        if asked not in self._asked:
            if len(self._asked) >= ASKED_MAX:
                self._asked.clear()
            self._asked.add(asked)
            return
        self._answers[question] = CachedResponse(body, partition)
        questions = self._questions.get(partition)
        if questions is None:
            self._questions[partition] = {question}
        else:
            questions.add(question)
        self._kept_bytes += ENTRY_BYTES + len(question) + len(body)
        while self._kept_bytes > KEPT_BYTES_MAX:
            self._forget_oldest()

    def forget_changed(self, keys: Iterable[bytes]) -> None:
        """A commit has changed these keys."""
        if not self._answers:
            return
        for key in keys:
            partition = layout.partition_of(key)
            questions = self._questions.pop(partition, None) if partition is not None else None
            if questions is not None:
                for question in questions:
                    self._drop(question)

    def forget_all(self) -> None:
        self._answers.clear()
        self._questions.clear()
        self._kept_bytes = 0

    def _forget_oldest(self) -> None:
        question = next(iter(self._answers))
        partition = self._answers[question].partition
        questions = self._questions[partition]
        questions.remove(question)
        if not questions:
            del self._questions[partition]
        self._drop(question)

    def _drop(self, question: bytes) -> None:
        known = self._answers.pop(question)
        self._kept_bytes -= ENTRY_BYTES + len(question) + len(known.body)
