"""The input of an execution, as a client sends it."""

from __future__ import annotations

from partita.errors import InvalidExecutionInput
from partita_services.workflows.language.json_values import parse_data


def check_input(text: str) -> None:
    try:
        parse_data(text)
    except ValueError as error:
        raise InvalidExecutionInput(f"Invalid State Machine Execution Input: '{error}'") from error
