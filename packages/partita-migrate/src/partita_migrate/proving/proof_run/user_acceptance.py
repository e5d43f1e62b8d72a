"""User acceptance: a checklist that people fill in and that later runs preserve."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from partita_migrate.model.proofs import TEST
from partita_migrate.proving.proof_run.proof_results import Acceptor
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.workspace.migration_folder import Folder

PATTERNS_ASKED = 10
QUESTIONS = (
    "The patterns are those of the application, with their rates",
    "What is not served or not proven is not needed, or is done elsewhere",
    "What the application has to do itself (sorting, counting, looking up) is understood",
    "The monthly bill is accepted",
    "Tables without a way back may stay without one",
)


class _AcceptanceAnswers(Struct, frozen=True):
    """The part of `test.json` that people fill in."""

    user_acceptance: list[Acceptor] = field(default_factory=list)


def user_acceptance(folder: Folder, patterns: list[AccessPattern]) -> list[Acceptor]:
    """Returns the questions, with the names and dates that people have entered in `test.json`."""
    answered = {pattern.question: pattern for pattern in read_acceptance(folder)}
    most_called = sorted(patterns, key=lambda pattern: -pattern.calls_per_second)[:PATTERNS_ASKED]
    questions = [
        *QUESTIONS,
        *(f"{pattern.name!r} answers as users expect" for pattern in most_called),
    ]
    return [answered.get(question) or Acceptor(question=question) for question in questions]


def read_acceptance(folder: Folder) -> list[Acceptor]:
    """Returns the checklist as people have filled it in; empty before the first run of `test`."""
    if not folder.has(TEST):
        return []
    try:
        content = (folder.path / TEST).read_bytes()
        return msgspec.json.decode(content, type=_AcceptanceAnswers).user_acceptance
    except msgspec.DecodeError:
        return []
