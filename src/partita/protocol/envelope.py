"""An error as the client receives it: the one place where errors become bytes."""

from __future__ import annotations

import orjson

from partita.errors import DynamoDBError


def error_body(error: DynamoDBError) -> bytes:
    """`{"__type": ..., "message": ..., more}`; an error without a text has no message member."""
    content: dict[str, object] = {"__type": error.wire_type}
    if error.message is not None:
        content[error.message_member] = error.message
    return orjson.dumps({**content, **error.members})
