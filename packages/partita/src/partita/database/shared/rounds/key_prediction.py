"""Predicts the keys that a request will read, from the items that its parameters name.

Predicted keys are fetched before the first run, which saves a run that would only find out that
they are missing. A prediction is a hint: keys that it misses are fetched after the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from partita.database.item.attribute_values import normalize_item
from partita.database.operations.operation_context import Request, table_name
from partita.database.tables import table_layout
from partita.database.tables.definition.key_rules import check_key
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.errors import RequestError

Target = tuple[str, Mapping[str, Any]]
"""The name of a table, and an item or its key."""
Targets = Callable[[Request], Iterator[Target]]


def predict_keys(
    catalog: TableCatalog, targets: Targets, request: Request, *, is_write: bool
) -> set[bytes]:
    """Returns all predicted keys or none, so that everything is fetched at one moment."""
    keys: set[bytes] = set()
    try:
        for name_or_arn, attributes in targets(request):
            table = catalog.find(table_name(name_or_arn))
            if table is None:
                return set()
            key = normalize_item({name: attributes[name] for name in table.key_names})
            check_key(table, key)
            keys.add(table_layout.item_key(table, key))
            if is_write and table.local_indexes:
                keys.add(table_layout.collection_key(table, key))
    except (RequestError, LookupError, TypeError, ValueError, AttributeError):
        # An invalid request: the operation will refuse it with the right error.
        return set()
    return keys


def _item(request: Request) -> Iterator[Target]:
    yield request["TableName"], request["Item"]


def _key(request: Request) -> Iterator[Target]:
    yield request["TableName"], request["Key"]


def _batch_get(request: Request) -> Iterator[Target]:
    for name, keys_and_attributes in request["RequestItems"].items():
        for key in keys_and_attributes["Keys"]:
            yield name, key


def _batch_write(request: Request) -> Iterator[Target]:
    for name, writes in request["RequestItems"].items():
        for write in writes:
            for kind, parameters in write.items():
                yield name, parameters["Item" if kind == "PutRequest" else "Key"]


def _transaction(request: Request) -> Iterator[Target]:
    for action in request["TransactItems"]:
        for kind, parameters in action.items():
            yield parameters["TableName"], parameters["Item" if kind == "Put" else "Key"]


TARGETS: Final[Mapping[str, Targets]] = {
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "DeleteItem": _key,
    "GetItem": _key,
    "PutItem": _item,
    "TransactGetItems": _transaction,
    "TransactWriteItems": _transaction,
    "UpdateItem": _key,
}
"""The items that a request names, by operation."""
