"""An error as the client receives it: the one place where errors become bytes."""

from __future__ import annotations

import orjson

from partita.errors import DynamoDBError


def error_body(error: DynamoDBError, *, is_qualified: bool = True) -> bytes:
    """`{"__type": ..., "message": ..., more}`; an error without a text has no message member.

    Kinesis names the type of an error without a namespace.
    """
    content: dict[str, object] = {"__type": error.wire_type if is_qualified else error.wire_code}
    if error.message is not None:
        content[error.message_member] = error.message
    return orjson.dumps({**content, **error.members})
