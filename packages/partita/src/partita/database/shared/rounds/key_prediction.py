"""Foresight: the keys that a request will read, as far as its parameters name them.

A hint, no more: what is foreseen is fetched before the request is run, which saves the run that
would only find out. Whatever else it asks for is fetched as for any other request.
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
"""The name of a table, and the key of an item or the whole item."""
Targets = Callable[[Request], Iterator[Target]]


def predict_keys(
    catalog: TableCatalog, targets: Targets, request: Request, *, is_write: bool
) -> set[bytes]:
    """All of its keys or none: what is fetched together was there together."""
    keys: set[bytes] = set()
    try:
        for name, attributes in targets(request):
            table = catalog.find(table_name(name))
            if table is None:
                return set()
            key = normalize_item({one: attributes[one] for one in table.key_names})
            check_key(table, key)
            keys.add(table_layout.item_key(table, key))
            if is_write and table.local_indexes:
                keys.add(table_layout.collection_key(table, key))
    except (RequestError, LookupError, TypeError, ValueError, AttributeError):
        # It will be refused for what is wrong with it when it is run.
        return set()
    return keys


def _item(request: Request) -> Iterator[Target]:
    yield request["TableName"], request["Item"]


def _key(request: Request) -> Iterator[Target]:
    yield request["TableName"], request["Key"]


def _batch_get(request: Request) -> Iterator[Target]:
    for name, asked in request["RequestItems"].items():
        for key in asked["Keys"]:
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
"""By operation, what a request is about."""
