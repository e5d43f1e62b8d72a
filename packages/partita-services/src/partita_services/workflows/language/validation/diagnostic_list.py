"""The list of everything that is wrong in a definition, with locations."""

from __future__ import annotations

from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.language_errors import Diagnostic
from partita_services.workflows.language.validation.field_checks import Check

SCHEMA = "SCHEMA_VALIDATION_FAILED"
MISSING_TARGET = "MISSING_TRANSITION_TARGET"
DUPLICATE_NAME = "DUPLICATE_STATE_NAME"
INVALID_JSON = "INVALID_JSON_DESCRIPTION"


class DiagnosticList:
    """Collects what is wrong in a definition. A `place` is a location, such as `/States/A/Next`."""

    def __init__(self) -> None:
        self.entries: list[Diagnostic] = []

    def check_names(self, fields: dict[str, Json], place: str, names: tuple[str, ...]) -> None:
        for name in fields:
            if name not in names:
                self.report("Field is not supported", f"{place}/{name}")

    def check(self, fields: dict[str, Json], place: str, checks: dict[str, Check]) -> None:
        for name, check in checks.items():
            if name in fields:
                for inner, message in check(fields[name]):
                    self.report(message, f"{place}/{name}{inner}")

    def check_target(self, name: Json, siblings: dict[str, Json], place: str, field: str) -> None:
        if not isinstance(name, str):
            self.report("The value must be a string", place)
        elif name not in siblings:
            self.report(f"Missing '{field}' target: {name}", place, MISSING_TARGET)

    def report(self, message: str, place: str, code: str = SCHEMA) -> None:
        self.entries.append(Diagnostic("ERROR", code, message, place))
