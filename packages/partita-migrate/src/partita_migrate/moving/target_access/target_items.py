"""Makes the items of rows as the target accepts them, and says why it would not accept one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from partita.database.item.attribute_values import Item
from partita.database.item.item_sizes import binary_size, item_size, string_size
from partita.foundation.service_limits import (
    ITEM_BYTES_MAX,
    PARTITION_KEY_BYTES_MAX,
    SORT_KEY_BYTES_MAX,
)
from partita_migrate.model.design import Design, Entity, SecondaryIndex, TableDesign
from partita_migrate.model.items.item_maker import ItemMaker, RowLookup
from partita_migrate.model.keys.key_formats import NotEncodable
from partita_migrate.moving.target_access.item_positions import DELETED, OWN, POSITION


class RowFilter(Protocol):
    """The condition of `load --where`: which rows of a table are moved."""

    def holds(self, row: Item) -> bool: ...


class KeyRequirement(NamedTuple):
    """A key attribute's requirements, by the table or index whose key it is."""

    name: str
    type: str
    bytes_max: int
    home: str
    is_own: bool
    """True for a key of the table itself, which every item must have."""


class TargetItems:
    """Makes items of rows; `entities` lists the design's entities by number, each with its
    table."""

    def __init__(
        self,
        design: Design,
        rows: RowLookup,
        primary_keys: Mapping[str, Sequence[str]],
        parts: Mapping[str, RowFilter],
    ) -> None:
        self.entities: list[tuple[TableDesign, Entity]] = list(design.entities())
        self.tables = design.tables
        self.parts = parts
        self.numbers: dict[str, list[int]] = {}
        """By table of the source, the numbers of the entities that are made of its rows."""
        for number, (_, entity) in enumerate(self.entities):
            self.numbers.setdefault(entity.source, []).append(number)
        self.maker = ItemMaker(rows, primary_keys)
        by_table = {table.name: _keys(table) for table in design.tables}
        self._keys = [by_table[table.name] for table, _ in self.entities]

    def item_of(self, number: int, row: Item) -> Item | None:
        """Returns the item of a row; None without one, or when DynamoDB would refuse it."""
        made = self.item_with_json(number, row)
        return None if made is None else made[0]

    def item_with_json(self, number: int, row: Item) -> tuple[Item, bytes] | None:
        """Returns the item of a row and its JSON; None as in `item_of`."""
        item, reason = self.make(number, row)
        if item is None or reason:
            return None
        content = _encode(item)
        # An item has fewer bytes than its JSON.
        return None if len(content) > ITEM_BYTES_MAX and is_too_large(item) else (item, content)

    def refusal(self, number: int, row: Item) -> str:
        """Returns why a row has no item of an entity although it should; empty when all is well."""
        item, reason = self.make(number, row)
        return reason or ("" if item is None else too_large(item))

    def make(self, number: int, row: Item) -> tuple[Item | None, str]:
        """Returns the item of a row and why DynamoDB would refuse its keys.

        The item's size is not checked: callers that have its bytes check it for less.
        """
        entity = self.entities[number][1]
        part = self.parts.get(entity.source)
        if part is not None and not part.holds(row):
            return None, ""
        try:
            item = self.maker.item(entity, row)
        except NotEncodable as error:
            return None, str(error)
        if item is None:
            return None, ""
        reason = _key_refusal(self._keys[number], item)
        return (None, reason) if reason else (item, "")


def is_too_large(item: Item) -> bool:
    """True when an item is larger than DynamoDB's 400 KB."""
    return item_size(item) > ITEM_BYTES_MAX


def too_large(item: Item) -> str:
    """Returns the reason for refusing an item that is too large; empty for any other."""
    size = item_size(item)
    return f"it has {size:,} bytes, more than an item may have" if size > ITEM_BYTES_MAX else ""


def _keys(table: TableDesign) -> list[KeyRequirement]:
    tables_and_indexes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
    return [
        KeyRequirement(key.name, key.type, most, home.name, home is table)
        for home in tables_and_indexes
        for key, most in zip(home.keys, (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX), strict=False)
    ]


def _key_refusal(keys: list[KeyRequirement], item: Item) -> str:
    for name, kind, most, home, is_own in keys:
        value = item.get(name)
        if value is None:
            if is_own:
                return f"it has no {name}, which is a key of {home}"
            continue
        content = value.get(kind)
        if content is None:
            return f"its {name} is not of type {kind}, as the key of {home} has to be"
        if not content:
            return f"its {name} is empty, and is a key of {home}"
        if len(content) * 4 > most:
            size = binary_size(content) if kind == "B" else string_size(content)
            if size > most:
                return f"its {name} is longer than a key of {home} may be ({most} bytes)"
    return ""


# Digests, by which items of both sides are compared.

_encode = msgspec.json.Encoder().encode
encoded = msgspec.json.Encoder(order="sorted").encode
_SET = b'S":["'
"""How SS, NS and BS begin in JSON. Nothing else contains these bytes, because quotes in texts are
escaped."""


def key_hash(table: TableDesign, item: Item) -> bytes:
    """Returns a hash of an item's table and key."""
    content = [table.name, *(item[key.name] for key in table.keys)]
    return hashlib.blake2b(encoded(content), digest_size=16).digest()


def item_digest(item: Item) -> bytes:
    """Returns a digest of an item's content: without the move's own attributes, sets in any
    order."""
    if POSITION in item or DELETED in item:
        item = {name: value for name, value in item.items() if name not in OWN}
    return content_digest(item, encoded(item))


def content_digest(item: Item, content: bytes) -> bytes:
    """Returns the same digest for an item without the move's own attributes; `content` is its
    sorted JSON."""
    if _SET in content:
        content = encoded({name: _unordered(value) for name, value in item.items()})
    return hashlib.blake2b(content, digest_size=16).digest()


def _unordered(value: Any) -> Any:
    ((kind, content),) = value.items()
    if kind in ("SS", "NS", "BS"):
        return {kind: sorted(content)}
    if kind == "L":
        return {kind: [_unordered(member) for member in content]}
    if kind == "M":
        return {kind: {name: _unordered(member) for name, member in content.items()}}
    return value
