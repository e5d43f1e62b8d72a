"""Attribute values of DynamoDB, as tasks may write them.

Step Functions reads them with AWS's SDK for Java, which accepts a plain string for a value, and
"true" for a boolean. AWS's samples use both.
"""

from __future__ import annotations

from typing import Any

from partita_services.workflows.language.json_values import json_text
from partita_services.workflows.language.language_errors import RUNTIME, StateError

FIELDS = ("Item", "Key", "ExpressionAttributeValues")
TRUTHS = {"true": True, "false": False}


def completed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters with complete attribute values, as DynamoDB's API expects them."""
    try:
        return {
            name: _named(value) if name in FIELDS and isinstance(value, dict) else value
            for name, value in parameters.items()
        }
    except ValueError as error:
        cause = f"The Parameters '{json_text(parameters)}' could not be used to start the Task"
        raise StateError(RUNTIME, f"{cause}: [{error}]") from None


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in values.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return {"S": value}
    if not isinstance(value, dict):
        return value
    return {type: _content(type, content) for type, content in value.items()}


def _content(type: str, content: Any) -> Any:
    if type in ("S", "N") and not isinstance(content, str):
        raise ValueError(f"The value for the field '{type}' must be a STRING")
    if type in ("BOOL", "NULL") and isinstance(content, str):
        return TRUTHS.get(content.lower(), content)
    if type == "L" and isinstance(content, list):
        return [_value(item) for item in content]
    if type == "M" and isinstance(content, dict):
        return _named(content)
    return content
