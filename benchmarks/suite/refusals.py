"""The errors of refused requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

FAILED = "ConditionalCheckFailedException"
CANCELLED = "TransactionCanceledException"
INVALID = "ValidationException"


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """Returns the code of the error that a call raises."""
    return str(refused(call, *arguments, **named)["Error"]["Code"])


def reasons(call: Callable[..., Any], *arguments: Any, **named: Any) -> list[str]:
    """Returns the cancellation reasons of a transaction, by action."""
    answer = refused(call, *arguments, **named)
    assert answer["Error"]["Code"] == CANCELLED
    return [reason["Code"] for reason in answer["CancellationReasons"]]


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as error:
        call(*arguments, **named)
    answer: dict[str, Any] = error.value.response
    return answer
