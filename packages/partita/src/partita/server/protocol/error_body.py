"""The body of an error response. All errors in AWS's JSON protocols are encoded here."""

from __future__ import annotations

import orjson

from partita.errors import DynamoDBError


def error_body(error: DynamoDBError, *, is_qualified: bool = True) -> bytes:
    """Returns `{"__type": ..., "message": ..., ...}`, without `message` if the error has no text.

    Kinesis sends the type without a namespace, so it needs `is_qualified=False`.
    """
    content: dict[str, object] = {"__type": error.wire_type if is_qualified else error.wire_code}
    if error.message is not None:
        content[error.message_member] = error.message
    return orjson.dumps({**content, **error.members})
