"""A fast path for the most frequent request: GetItem with nothing but a key of short strings.

Everything else is left to `items.get_item`, which has all the rules and all the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from partita.database.operations.context import ReadContext
from partita.database.tables import layout
from partita.database.tables.keys import SHORT_CHARS_MAX
from partita.database.tables.schema import DELETING
from partita.database.tables.stored import HEADER_BYTES

NO_ITEM: Final = b"{}"


# Not a class statement: compiled by mypyc, it would lose `forbid_unknown_fields`.
_PlainGet: Final = msgspec.defstruct(
    "PlainGet",
    [("TableName", str), ("Key", dict[str, dict[str, str]]), ("ConsistentRead", bool, False)],
    forbid_unknown_fields=True,
    gc=False,
)
_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(_PlainGet).decode


def get_plain_item(context: ReadContext, body: bytes) -> bytes | None:
    """The response, or None if the request has to take the normal path."""
    service = context.service
    if service.ledger.is_on:
        return None
    try:
        request = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    table = service.catalog.find(request.TableName)
    if table is None or table.transition == DELETING or service.clock() < table.settles_at:
        return None
    key: dict[str, dict[str, str]] = request.Key
    attributes = table.key_attributes
    if len(key) != len(attributes):
        return None
    for name, kind in attributes:
        value = key.get(name)
        if value is None or kind != "S" or len(value) != 1:
            return None
        text = value.get("S")
        if not text or len(text) > SHORT_CHARS_MAX:
            return None
    item_key = layout.item_key(table, key)
    context.partition = layout.partition_of(item_key)
    stored = context.snapshot.get(item_key)
    return NO_ITEM if stored is None else b'{"Item":%b}' % stored[HEADER_BYTES:]
