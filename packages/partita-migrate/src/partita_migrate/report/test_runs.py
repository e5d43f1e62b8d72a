"""Earlier runs of `partita migrate test`, from which the report shows the progress."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from partita_migrate.model.proofs import RUNS
from partita_migrate.proving.proof_run.proof_results import ProofSummary
from partita_migrate.workspace.migration_folder import Folder

RUNS_SHOWN = 20


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a test run that shows progress."""

    at: str
    model: str
    summary: ProofSummary


def earlier_runs(folder: Folder) -> list[EarlierRun]:
    """Returns the earlier runs, newest first."""
    return sorted(_runs(folder), key=lambda run: run.at, reverse=True)[:RUNS_SHOWN]


def _runs(folder: Folder) -> Iterator[EarlierRun]:
    for path in (folder.path / RUNS).glob("*.json"):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=EarlierRun)
        except (OSError, msgspec.DecodeError):
            continue
