"""The members of Step Functions' own API, as tasks spell them: StateMachineArn for stateMachineArn.

In an `aws-sdk` task every name begins with a capital letter, however the service's API spells it.
(Step Functions guide, "Integrating with AWS services") DynamoDB and Kinesis use capital letters
anyway.
"""

from __future__ import annotations

from typing import Any

from partita_services.workflows.language.json_values import is_number, json_text
from partita_services.workflows.language.timestamps import format_timestamp

TEXTS = ("Input", "Output")
"""Members that are JSON as text. A task may give the JSON value itself."""
TIMES = ("Date", "timestamp")
"""The suffixes of members that are seconds on the wire, but text in a result."""


def to_wire(parameters: Any) -> Any:
    """The request for the parameters of a task."""
    if isinstance(parameters, list):
        return [to_wire(item) for item in parameters]
    if not isinstance(parameters, dict):
        return parameters
    request = {}
    for name, value in parameters.items():
        is_json = name in TEXTS and not isinstance(value, str)
        request[name[:1].lower() + name[1:]] = json_text(value) if is_json else to_wire(value)
    return request


def from_wire(answer: Any) -> Any:
    """The result of a task for an answer."""
    if isinstance(answer, list):
        return [from_wire(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    result = {}
    for name, value in answer.items():
        is_time = name.endswith(TIMES) and is_number(value)
        result[name[:1].upper() + name[1:]] = (
            format_timestamp(value) if is_time else from_wire(value)
        )
    return result
