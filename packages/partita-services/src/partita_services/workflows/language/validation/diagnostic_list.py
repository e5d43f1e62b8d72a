"""Findings in a definition, with their locations."""

from __future__ import annotations

from collections.abc import Iterator

from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.language_errors import Diagnostic
from partita_services.workflows.language.validation.field_checks import Check, Problem

SCHEMA = "SCHEMA_VALIDATION_FAILED"
MISSING_TARGET = "MISSING_TRANSITION_TARGET"
DUPLICATE_NAME = "DUPLICATE_STATE_NAME"
INVALID_JSON = "INVALID_JSON_DESCRIPTION"


class DiagnosticList:
    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def known(self, fields: dict[str, Json], place: str, names: tuple[str, ...]) -> None:
        for name in fields:
            if name not in names:
                self.wrong("Field is not supported", f"{place}/{name}")

    def check(self, fields: dict[str, Json], place: str, checks: dict[str, Check]) -> None:
        for name, check in checks.items():
            if name in fields:
                self._note(check(fields[name]), f"{place}/{name}")

    def target(self, name: Json, siblings: dict[str, Json], place: str, field: str) -> None:
        if not isinstance(name, str):
            self.wrong("The value must be a string", place)
        elif name not in siblings:
            self.report(MISSING_TARGET, f"Missing '{field}' target: {name}", place)

    def _note(self, problems: Iterator[Problem], place: str) -> None:
        for inner, message in problems:
            self.wrong(message, place + inner)

    def wrong(self, message: str, place: str) -> None:
        self.report(SCHEMA, message, place)

    def report(self, code: str, message: str, place: str) -> None:
        self.diagnostics.append(Diagnostic("ERROR", code, message, place))
