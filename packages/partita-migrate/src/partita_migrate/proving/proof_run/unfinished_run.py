"""The state of a run of `test` that was stopped, as far as it came.

Its rows, loaded items, patterns and sections are reused only by a run of the same design and
statements over as many rows of the same source.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import msgspec

from partita_migrate.proving.proof_run.proof_results import PatternProof, ProofCheck


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a run's file: a later run reuses its results only if all of this is the
    same."""

    fingerprint: str
    source: str
    is_all: bool
    rows: dict[str, int]
    statements: dict[str, str]
    """The statements by pattern."""


class FinishedSection(msgspec.Struct, frozen=True, kw_only=True):
    """One section that was finished."""

    section: str
    checks: list[ProofCheck]


class AcknowledgedItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items that a server which outlives the run has acknowledged."""

    endpoint: str
    prefix: str
    items: int = 0


LOADED = "loaded.json"


class UnfinishedRun:
    """The file of a run, one line for each result, which is removed when the run ends."""

    def __init__(self, path: Path, head: RunHead, *, is_resumed: bool) -> None:
        self.path = path
        self.kept: dict[str, PatternProof] = {}
        self.sections: dict[str, list[ProofCheck]] = {}
        lines = path.read_bytes().splitlines() if is_resumed and path.exists() else []
        is_same = _is_same(lines, head)
        for line in _lines(lines[1:] if is_same else []):
            if isinstance(line, FinishedSection):
                self.sections[line.section] = line.checks
            else:
                self.kept[line.pattern] = line
        self.space = path.with_suffix(".work")
        """The folder with the rows and items of the run."""
        self.left = self._loaded()
        """What an earlier run has loaded on a server; None without one."""
        if not is_same:
            shutil.rmtree(self.space, ignore_errors=True)
        self.space.mkdir(parents=True, exist_ok=True)
        (self.space / ".gitignore").write_text("*\n")
        self._file = path.open("wb")
        self._append(head)
        for proof in self.kept.values():
            self._append(proof)
        for name, checks in self.sections.items():
            self._append(FinishedSection(section=name, checks=checks))

    # What a server has loaded.

    def _loaded(self) -> AcknowledgedItems | None:
        path = self.space / LOADED
        try:
            return (
                msgspec.json.decode(path.read_bytes(), type=AcknowledgedItems)
                if path.exists()
                else None
            )
        except msgspec.DecodeError:
            return None

    def note_loaded(self, loaded: AcknowledgedItems) -> None:
        # Replaced as a whole, so that a kill never leaves half of the file.
        partly = self.space / f"{LOADED}.new"
        partly.write_bytes(msgspec.json.encode(loaded))
        partly.replace(self.space / LOADED)

    def forget_loaded(self) -> None:
        (self.space / LOADED).unlink(missing_ok=True)

    def checks(self, section: str, make: Callable[[], list[ProofCheck]]) -> list[ProofCheck]:
        """Returns the checks of a section; makes them unless the stopped run had finished it."""
        if section not in self.sections:
            self.sections[section] = make()
            self._append(FinishedSection(section=section, checks=self.sections[section]))
        return self.sections[section]

    def of(self, pattern: str) -> PatternProof | None:
        """Returns a pattern's proof from the stopped run, if that was successful."""
        proof = self.kept.get(pattern)
        return proof if proof is not None and proof.verdict == "proven" else None

    def add(self, proof: PatternProof) -> None:
        self._append(proof)

    def _append(self, content: RunHead | PatternProof | FinishedSection) -> None:
        self._file.write(msgspec.json.encode(content) + b"\n")
        self._file.flush()

    def __enter__(self) -> UnfinishedRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Removes the file and the folder when the run came to its end."""
        self._file.close()
        if kind is None:
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self.space, ignore_errors=True)


def _is_same(lines: list[bytes], head: RunHead) -> bool:
    try:
        return bool(lines) and msgspec.json.decode(lines[0], type=RunHead) == head
    except msgspec.DecodeError:
        return False


def _lines(lines: list[bytes]) -> list[PatternProof | FinishedSection]:
    """Decodes the lines up to one that a kill has cut off."""
    results: list[PatternProof | FinishedSection] = []
    for line in lines:
        try:
            if line.startswith(b'{"section"'):
                results.append(msgspec.json.decode(line, type=FinishedSection))
            else:
                results.append(msgspec.json.decode(line, type=PatternProof))
        except msgspec.DecodeError:
            break
    return results
