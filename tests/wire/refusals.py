"""What a refused request says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

VALIDATION = "ValidationException"
ENVELOPE = "1 validation error detected: "
INVALID = "One or more parameter values were invalid: "
BAD_CAPACITY = (
    "Value 'BOGUS' at 'returnConsumedCapacity' failed to satisfy constraint: "
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
BAD_METRICS = (
    "Value 'BOGUS2' at 'returnItemCollectionMetrics' failed to satisfy constraint: "
    "Member must satisfy enum value set: [SIZE, NONE]"
)
_NAME = "at 'tableName' failed to satisfy constraint: Member must "
_LONG = "a" * 256
# Names of tables, and how DescribeTable and UpdateTimeToLive refuse them (recorded).
BAD_NAMES: dict[str, tuple[str, str]] = {
    "empty": ("", f"{ENVELOPE}Value '' {_NAME}have length greater than or equal to 3"),
    "short": ("ab", f"{ENVELOPE}Value 'ab' {_NAME}have length greater than or equal to 3"),
    "long": (_LONG, f"{ENVELOPE}Value '{_LONG}' {_NAME}have length less than or equal to 255"),
    "other characters": (
        "abc;",
        f"{ENVELOPE}Value 'abc;' {_NAME}satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    "short and other characters": (
        "a;",
        f"2 validation errors detected: Value 'a;' {_NAME}satisfy regular expression pattern: "
        f"[a-zA-Z0-9_.-]+; Value 'a;' {_NAME}have length greater than or equal to 3",
    ),
}
# What is asked to be returned, and how that is refused (recorded).
BAD_RETURNS: dict[str, tuple[dict[str, str], str]] = {
    "capacity": ({"ReturnConsumedCapacity": "BOGUS"}, ENVELOPE + BAD_CAPACITY),
    "metrics": ({"ReturnItemCollectionMetrics": "BOGUS2"}, ENVELOPE + BAD_METRICS),
    "both": (
        {"ReturnConsumedCapacity": "BOGUS", "ReturnItemCollectionMetrics": "BOGUS2"},
        f"2 validation errors detected: {BAD_CAPACITY}; {BAD_METRICS}",
    ),
}


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The type and the text of the error that answers the request."""
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]
