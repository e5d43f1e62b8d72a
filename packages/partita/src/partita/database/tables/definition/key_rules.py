"""The rules for key attributes of tables and indexes, with AWS's error text for each violation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from partita.database.expressions.document_paths import Path
from partita.database.item.attribute_values import AttributeValue, Item, type_of
from partita.database.item.key_encoding import KeyAttribute, key_bytes
from partita.database.tables.definition.table_schema import Table
from partita.errors import INVALID, EmptyKeyError, KeyTypeError, ValidationException
from partita.foundation.service_limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX

SHORT_CHARS_MAX: Final = SORT_KEY_BYTES_MAX // 4
"""Up to this many characters, a key cannot exceed its limit: a character has at most four bytes."""
NOT_VALID: Final = "One or more parameter values are not valid. "
KEY_MISMATCH: Final = "The provided key element does not match the schema"
# "of2048": the service's own spelling (recorded).
PARTITION_KEY_TOO_LONG: Final = (
    f"{INVALID}Size of hashkey has exceeded the maximum size limit of"
    f"{PARTITION_KEY_BYTES_MAX} bytes"
)
SORT_KEY_TOO_LONG: Final = (
    f"{INVALID}Aggregated size of all range keys has exceeded the size limit of "
    f"{SORT_KEY_BYTES_MAX} bytes"
)


def check_key(table: Table, key: Item) -> None:
    """Check that a Key parameter has exactly the table's key attributes."""
    attributes = table.key_attributes
    if len(key) != len(attributes):
        raise KeyTypeError(KEY_MISMATCH)
    for name, kind in attributes:
        value = key.get(name)
        if value is None or kind not in value:
            raise KeyTypeError(KEY_MISMATCH)
    _check_table_key(table, key)


def check_item(table: Table, item: Item, *, in_batch: bool = False) -> None:
    """Check that an item has its table's key, and that its index key attributes fit their indexes.

    Items need not have index keys; those without are not in the index.
    """
    for name, kind in table.key_attributes:
        value = item.get(name)
        if value is None:
            missing = f"{INVALID}Missing the key {name} in the item"
            raise KeyTypeError(KEY_MISMATCH if in_batch else missing)
        if kind not in value:
            wrong = f"{INVALID}Type mismatch for key {name} expected: {kind} actual: "
            raise KeyTypeError(KEY_MISMATCH if in_batch else wrong + type_of(value))
    _check_table_key(table, item)
    if table.indexes:
        check_index_keys(table, item)


def check_index_keys(table: Table, item: Item) -> None:
    """Check the index key attributes that an item has: their types, and that none is empty."""
    types = {name: type_of(item[name]) for name in table.index_key_names if name in item}
    check_index_key_types(table, types)
    for index in table.indexes_by_name:
        for name, kind in index.key_attributes:
            if name in item and not item[name][kind]:
                raise EmptyKeyError(
                    f"{NOT_VALID}A value specified for a secondary index key is not supported. "
                    f"{_empty(kind)} IndexName: {index.name}, IndexKey: {name}"
                )
        _check_sizes(index.partition, index.sort, item)


def check_index_key_types(table: Table, types: Mapping[str, str]) -> None:
    """Check that attributes have the types with which indexes use them as keys."""
    for index in table.indexes_by_name:
        for name, kind in index.key_attributes:
            if types.get(name, kind) != kind:
                raise KeyTypeError(
                    f"{INVALID}Type mismatch for Index Key {name} Expected: {kind} "
                    f"Actual: {types[name]} IndexName: {index.name}"
                )


def check_updated_index_keys(table: Table, item: Item) -> None:
    """Check index key attributes after an update, for which the service has other error texts."""
    for index in table.indexes_by_name:
        for name, kind in index.key_attributes:
            if name in item and kind not in item[name]:
                raise ValidationException(
                    "The update expression attempted to update the secondary index key to "
                    "unsupported type"
                )
            if name in item and not item[name][kind]:
                raise EmptyKeyError(
                    f"{NOT_VALID}The update expression attempted to update a secondary index key "
                    f"to a value that is not supported. {_empty(kind)}"
                )
        _check_sizes(index.partition, index.sort, item)


def check_scalar_paths(table: Table, paths: Iterable[Path]) -> None:
    """Refuse document paths that lead into a key attribute, such as `id.part`."""
    for path in paths:
        if len(path) > 1 and (path[0] in table.key_names or path[0] in table.index_key_names):
            kind = "Key" if path[0] in table.key_names else "IndexKey"
            raise ValidationException(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' "
                f"are not allowed: {kind}: {path[0]}"
            )


def _check_table_key(table: Table, key: Item) -> None:
    may_be_long = False
    for name, kind in table.key_attributes:
        content = key[name][kind]
        if not content:
            raise _empty_key(name, kind)
        may_be_long = may_be_long or len(content) > SHORT_CHARS_MAX
    if may_be_long:
        _check_sizes((table.partition,), table.sort_attributes, key)


def check_key_values(
    partition: Sequence[KeyAttribute], sort: Sequence[KeyAttribute], key: Item
) -> None:
    """Check that key values, whose types are right, are not empty and not too long."""
    may_be_long = len(partition) > 1 or len(sort) > 1
    for name, kind in (*partition, *sort):
        if name in key:
            content = key[name][kind]
            if not content:
                raise _empty_key(name, kind)
            may_be_long = may_be_long or len(content) > SHORT_CHARS_MAX
    if may_be_long:
        _check_sizes(partition, sort, key)


def _check_sizes(
    partition: Sequence[KeyAttribute], sort: Sequence[KeyAttribute], item: Item
) -> None:
    if _size(partition, item) > PARTITION_KEY_BYTES_MAX:
        raise ValidationException(PARTITION_KEY_TOO_LONG)
    if _size(sort, item) > SORT_KEY_BYTES_MAX:
        raise ValidationException(SORT_KEY_TOO_LONG)


def _size(attributes: Sequence[KeyAttribute], item: Item) -> int:
    return sum(_value_size(item[name]) for name, _ in attributes if name in item)


def _value_size(value: AttributeValue) -> int:
    return len(key_bytes(value))


def _empty_key(name: str, kind: str) -> EmptyKeyError:
    return EmptyKeyError(f"{NOT_VALID}{_empty(kind)} Key: {name}")


def _empty(kind: str) -> str:
    noun = "string" if kind == "S" else "binary"
    return f"The AttributeValue for a key attribute cannot contain an empty {noun} value."
