"""What tests have proven of a design: a pattern is called served only with its proof.

A run of `partita migrate test` belongs to the design that it loaded, as it was: its fingerprint
tells whether it still speaks of this one.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
from msgspec import Struct, field

from partita_migrate.folder import Folder
from partita_migrate.model.design import Design

TEST = "test.json"
RUNS = "tests"
"""The folder of earlier runs, each under its date."""

Verdict = Literal["proven", "differs", "unproven", "unserved"]


class Proof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    pattern: str
    verdict: Verdict
    why: str = ""
    at: str = ""
    """When it was tested."""


class _Tested(Struct, frozen=True, kw_only=True):
    pattern: str
    verdict: Verdict
    why: str = ""


class _Run(Struct, frozen=True, kw_only=True):
    """As much of a run as is asked for here."""

    at: str
    fingerprint: str
    functional: list[_Tested] = field(default_factory=list)


def fingerprint(design: Design) -> str:
    """The same for the same tables, items and requests, whatever the reasons say."""
    content = msgspec.to_builtins(design)
    said = {name: content.get(name) for name in ("tables", "access", "unserved")}
    return hashlib.sha256(msgspec.json.encode(_without_reasons(said), order="sorted")).hexdigest()


def _without_reasons(content: object) -> object:
    if isinstance(content, dict):
        return {name: _without_reasons(one) for name, one in content.items() if name != "why"}
    if isinstance(content, list):
        return [_without_reasons(one) for one in content]
    return content


def proofs(folder: Folder, design: Design, patterns: list[str]) -> list[Proof]:
    """Of each pattern, what the last test of this very design says."""
    run = _last_run(folder, fingerprint(design))
    tested = {one.pattern: one for one in run.functional} if run is not None else {}
    unserved = {one.pattern: one.why for one in design.unserved}
    found = []
    for name in patterns:
        one = tested.get(name)
        if one is not None and run is not None:
            found.append(Proof(pattern=name, verdict=one.verdict, why=one.why, at=run.at))
        elif name in unserved:
            found.append(Proof(pattern=name, verdict="unserved", why=unserved[name]))
        else:
            why = "`partita migrate test` has not proven this design"
            found.append(Proof(pattern=name, verdict="unproven", why=why))
    return found


def _last_run(folder: Folder, wanted: str) -> _Run | None:
    runs = sorted((folder.path / RUNS).glob("*.json"), reverse=True)
    for path in [folder.path / TEST, *runs]:
        try:
            run = msgspec.json.decode(path.read_bytes(), type=_Run)
        except (OSError, msgspec.DecodeError):
            continue
        if run.fingerprint == wanted:
            return run
    return None
