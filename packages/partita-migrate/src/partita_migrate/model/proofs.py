"""The proofs of a design: a pattern counts as served only when a test has shown it.

A run of `partita migrate test` proves the design that it loaded. The fingerprint of that design
tells whether the run still applies.
"""

from __future__ import annotations

import hashlib
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from partita_migrate.model.design import Design
from partita_migrate.workspace.migration_folder import Folder

TEST = "test.json"
RUNS = "tests"
"""The folder with earlier runs, each in a file named after its date."""

Verdict = Literal["proven", "differs", "unproven", "unserved"]


class Proof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict of the tests on one access pattern."""

    pattern: str
    verdict: Verdict
    why: str = ""
    at: str = ""
    """The time of the test run."""


class _Tested(Struct, frozen=True, kw_only=True):
    pattern: str
    verdict: Verdict
    why: str = ""


class _Run(Struct, frozen=True, kw_only=True):
    """The part of a test run that proofs need."""

    at: str
    fingerprint: str
    functional: list[_Tested] = field(default_factory=list)


class _Fingerprinted(Protocol):
    @property
    def fingerprint(self) -> str: ...


Run = TypeVar("Run", bound=_Fingerprinted)


def fingerprint(design: Design) -> str:
    """Returns a digest of the tables, items and requests; explanations (`why`) do not change it."""
    content = msgspec.to_builtins(design)
    tested = {name: content.get(name) for name in ("tables", "access", "unserved")}
    return hashlib.sha256(msgspec.json.encode(_without_reasons(tested), order="sorted")).hexdigest()


def _without_reasons(content: object) -> object:
    if isinstance(content, dict):
        return {name: _without_reasons(value) for name, value in content.items() if name != "why"}
    if isinstance(content, list):
        return [_without_reasons(member) for member in content]
    return content


def proofs(folder: Folder, design: Design, patterns: list[str]) -> list[Proof]:
    """Returns what the last test run of this exact design says of each pattern."""
    run = last_run(folder, design, _Run)
    tested = {result.pattern: result for result in run.functional} if run is not None else {}
    unserved = {pattern.pattern: pattern.why for pattern in design.unserved}
    proofs_found = []
    for name in patterns:
        result = tested.get(name)
        if result is not None and run is not None:
            proofs_found.append(
                Proof(pattern=name, verdict=result.verdict, why=result.why, at=run.at)
            )
        elif name in unserved:
            proofs_found.append(Proof(pattern=name, verdict="unserved", why=unserved[name]))
        else:
            why = "`partita migrate test` has not proven this design"
            proofs_found.append(Proof(pattern=name, verdict="unproven", why=why))
    return proofs_found


def last_run(folder: Folder, design: Design, kind: type[Run]) -> Run | None:
    """Returns the last test run of a design as it is now, read as far as `kind` has members."""
    tested = fingerprint(design)
    runs = sorted((folder.path / RUNS).glob("*.json"), reverse=True)
    for path in [folder.path / TEST, *runs]:
        try:
            run = msgspec.json.decode(path.read_bytes(), type=kind)
        except (OSError, msgspec.DecodeError):
            continue
        if run.fingerprint == tested:
            return run
    return None
