"""The input of an execution, as a client sends it."""

from __future__ import annotations

from partita.errors import InvalidExecutionInput
from partita.workflows.language.limits import DATA_BYTES_MAX
from partita.workflows.language.values import parse_json


def check_input(text: str) -> None:
    if len(text.encode()) > DATA_BYTES_MAX:
        raise InvalidExecutionInput(
            "Invalid State Machine Execution Input: "
            f"'The input is longer than {DATA_BYTES_MAX} bytes'"
        )
    try:
        parse_json(text)
    except ValueError as error:
        raise InvalidExecutionInput(f"Invalid State Machine Execution Input: '{error}'") from error
