"""Errors of the language: why a definition is refused, and why a state failed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from partita.errors import PartitaError
from partita_services.workflows.language.language_limits import CAUSE_CHARS_MAX, ERROR_CHARS_MAX

ALL = "States.ALL"
TASK_FAILED = "States.TaskFailed"
TIMEOUT = "States.Timeout"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
RUNTIME = "States.Runtime"
DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
NO_CHOICE_MATCHED = "States.NoChoiceMatched"
PARAMETER_PATH_FAILURE = "States.ParameterPathFailure"
RESULT_PATH_MATCH_FAILURE = "States.ResultPathMatchFailure"
INTRINSIC_FAILURE = "States.IntrinsicFailure"
QUERY_EVALUATION_ERROR = "States.QueryEvaluationError"
BRANCH_FAILED = "States.BranchFailed"
ITEM_READER_FAILED = "States.ItemReaderFailed"
EXCEED_TOLERATED_FAILURE_THRESHOLD = "States.ExceedToleratedFailureThreshold"


class StateError(Exception):
    """Raised when a state fails. Retriers and catchers match the error's name."""

    def __init__(
        self,
        error: str | None,
        cause: str | None = None,
        *,
        aliases: Sequence[str] = (),
        location: str | None = None,
    ) -> None:
        super().__init__(error, cause)
        self.error = error and error[:ERROR_CHARS_MAX]
        self.cause = cause and cause[:CAUSE_CHARS_MAX]
        self.aliases = tuple(aliases)
        """Other names for the error in the documentation, which retriers and catchers may use."""
        self.location = location
        """The field whose JSONata expression failed."""


class Diagnostic(msgspec.Struct, frozen=True):
    """A problem in a definition, as ValidateStateMachineDefinition shows it."""

    severity: str
    code: str
    message: str
    location: str | None = None

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location is not None else ""
        return f"{self.code}: {self.message}{place}"


class InvalidDefinition(PartitaError):
    """Raised for a definition that cannot run, with everything that is wrong in it."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        findings = ", ".join(f"'{diagnostic}'" for diagnostic in self.diagnostics)
        super().__init__(f"Invalid State Machine Definition: {findings}")
