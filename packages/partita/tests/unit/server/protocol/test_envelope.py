"""Errors as clients receive them."""

from __future__ import annotations

import json

import pytest

from partita.errors import (
    ConditionalCheckFailedException,
    DynamoDBError,
    SerializationException,
    TransactionCanceledException,
    UnknownOperationException,
    ValidationException,
)
from partita.server.protocol.aws_responses import error_body

SERVICE = "com.amazonaws.dynamodb.v20120810#"


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (
            ValidationException("No."),
            {"__type": "com.amazon.coral.validate#ValidationException", "message": "No."},
        ),
        (
            SerializationException("No."),
            {"__type": "com.amazon.coral.service#SerializationException", "Message": "No."},
        ),
        (
            SerializationException(),
            {"__type": "com.amazon.coral.service#SerializationException"},
        ),
        (
            UnknownOperationException(),
            {"__type": "com.amazon.coral.service#UnknownOperationException"},
        ),
        (
            ConditionalCheckFailedException("No.", Item={"pk": {"S": "a"}}),
            {
                "__type": SERVICE + "ConditionalCheckFailedException",
                "message": "No.",
                "Item": {"pk": {"S": "a"}},
            },
        ),
        (
            TransactionCanceledException("No.", CancellationReasons=[{"Code": "None"}]),
            {
                "__type": SERVICE + "TransactionCanceledException",
                "Message": "No.",
                "CancellationReasons": [{"Code": "None"}],
            },
        ),
    ],
)
def test_an_error_has_its_type_its_text_and_its_members(
    error: DynamoDBError, body: dict[str, object]
) -> None:
    assert json.loads(error_body(error)) == body
