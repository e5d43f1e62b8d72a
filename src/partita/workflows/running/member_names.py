"""Members of Step Functions' own API as tasks write them: StateMachineArn for stateMachineArn.

Every name of an `aws-sdk` task begins with a capital, whatever the service's own API has. (guide,
Calling AWS services) Those of DynamoDB and Kinesis do so anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.workflows.language.timestamps import format_timestamp
from partita.workflows.language.values import is_number, json_text

TEXTS = ("input", "output")
"""JSON within JSON, which a task may give as it is."""


def to_wire(parameters: dict[str, Any]) -> dict[str, Any]:
    """The request that a task's parameters make."""
    request: dict[str, Any] = _renamed(parameters, str.lower)
    for name in TEXTS:
        if name in request and not isinstance(request[name], str):
            # As it was given: its own names are nobody's business.
            request[name] = json_text(parameters[_cased(name, str.upper)])
    return request


def from_wire(answer: Any) -> Any:
    """The result that an answer makes; times are text in it."""
    return _timed(_renamed(answer, str.upper))


def _renamed(value: Any, case: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {_cased(name, case): _renamed(member, case) for name, member in value.items()}
    if isinstance(value, list):
        return [_renamed(item, case) for item in value]
    return value


def _cased(name: str, case: Callable[[str], str]) -> str:
    return case(name[:1]) + name[1:]


def _timed(value: Any) -> Any:
    if isinstance(value, list):
        return [_timed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: format_timestamp(member)
        if name.endswith(("Date", "Timestamp")) and is_number(member)
        else _timed(member)
        for name, member in value.items()
    }
