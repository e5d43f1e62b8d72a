"""The errors of refused requests."""

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
# What Select does not go with. Query puts its envelope around it, Scan does not (moto's tests,
# verified on the service in us-east-1 in 2026).
SELECT_CLASHES: dict[str, tuple[dict[str, Any], str]] = {
    "no attributes": (
        {"Select": "SPECIFIC_ATTRIBUTES"},
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
        "SPECIFIC_ATTRIBUTES",
    ),
    "all attributes": (
        {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
    ),
    "count": (
        {"Select": "COUNT", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get only the Count",
    ),
    "all projected attributes": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES", "ProjectionExpression": "a"},
        "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
    ),
    "all of some attributes": (
        {"Select": "ALL_ATTRIBUTES", "AttributesToGet": ["a"]},
        "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
    ),
    "count of some attributes": (
        {"Select": "COUNT", "AttributesToGet": ["a"]},
        "Cannot specify the AttributesToGet when choosing to get only the Count",
    ),
    "all projected of some attributes": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES", "AttributesToGet": ["a"]},
        "Cannot specify the AttributesToGet when choosing to get ALL_PROJECTED_ATTRIBUTES",
    ),
    # The word is "Querying" for a Scan too.
    "all projected attributes without an index": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
}

# Paths into the keys of a table (pk) and of an index (g), and how a read refuses them (dynalite).
_NOT_SCALAR = (
    "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
)
PATHS_INTO_KEYS: dict[str, str] = {
    "pk.a": f"{_NOT_SCALAR}Key: pk",
    "v, pk[0]": f"{_NOT_SCALAR}Key: pk",
    "g.a": f"{_NOT_SCALAR}IndexKey: g",
    "g[1].b, v": f"{_NOT_SCALAR}IndexKey: g",
}


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The type and the text of the error that answers the request."""
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]
