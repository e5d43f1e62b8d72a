"""A run of `test` that was stopped: the patterns that it had compared by then, kept as they came.

They are taken over only by a run of the same design over as many rows of the same source.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import msgspec

from partita.migrate.proving.results import PatternProof


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """What must be the same for a comparison to count."""

    fingerprint: str
    source: str
    is_all: bool
    rows: dict[str, int]
    statements: dict[str, str]
    """Of the patterns."""


class Unfinished:
    def __init__(self, path: Path, head: RunHead, *, is_resumed: bool) -> None:
        self.path = path
        self.kept: dict[str, PatternProof] = {}
        lines = path.read_bytes().splitlines() if is_resumed and path.exists() else []
        for proof in _proofs(lines, head):
            self.kept[proof.pattern] = proof
        path.parent.mkdir(exist_ok=True)
        self._file = path.open("wb")
        self._append(head)
        for proof in self.kept.values():
            self._append(proof)

    def of(self, pattern: str) -> PatternProof | None:
        """What the stopped run found, if it came to this pattern and it was in order."""
        found = self.kept.get(pattern)
        return found if found is not None and found.verdict == "proven" else None

    def add(self, proof: PatternProof) -> None:
        self._append(proof)

    def _append(self, content: RunHead | PatternProof) -> None:
        self._file.write(msgspec.json.encode(content) + b"\n")
        self._file.flush()

    def __enter__(self) -> Unfinished:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """A run that comes to its end leaves nothing."""
        self._file.close()
        if kind is None:
            self.path.unlink(missing_ok=True)


def _proofs(lines: list[bytes], head: RunHead) -> list[PatternProof]:
    """Of a run with the same head; a last line that was cut off does not count."""
    try:
        if not lines or msgspec.json.decode(lines[0], type=RunHead) != head:
            return []
    except msgspec.DecodeError:
        return []
    found = []
    for line in lines[1:]:
        try:
            found.append(msgspec.json.decode(line, type=PatternProof))
        except msgspec.DecodeError:
            break
    return found
