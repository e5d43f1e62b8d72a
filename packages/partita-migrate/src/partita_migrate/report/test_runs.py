"""What `partita migrate test` found: the last run of the chosen design, and how it went before."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from partita_migrate.model.design import Design
from partita_migrate.model.proofs import RUNS, TEST, fingerprint
from partita_migrate.proving.proof_run.proof_results import ProofRun, ProofSummary
from partita_migrate.workspace.migration_folder import Folder

RUNS_SHOWN = 20


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a run as shows progress."""

    at: str
    model: str
    summary: ProofSummary


def last_run(folder: Folder, design: Design) -> ProofRun | None:
    """Of this very design."""
    wanted = fingerprint(design)
    paths = sorted((folder.path / RUNS).glob("*.json"), reverse=True)
    for path in [folder.path / TEST, *paths]:
        try:
            run = msgspec.json.decode(path.read_bytes(), type=ProofRun)
        except (OSError, msgspec.DecodeError):
            continue
        if run.fingerprint == wanted:
            return run
    return None


def earlier_runs(folder: Folder) -> list[EarlierRun]:
    """Newest first."""
    return sorted(_runs(folder), key=lambda run: run.at, reverse=True)[:RUNS_SHOWN]


def _runs(folder: Folder) -> Iterator[EarlierRun]:
    for path in (folder.path / RUNS).glob("*.json"):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=EarlierRun)
        except (OSError, msgspec.DecodeError):
            continue
