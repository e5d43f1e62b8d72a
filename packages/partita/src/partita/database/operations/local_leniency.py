"""CreateTable in `partita local`: members that AWS refuses are left out.

Some releases of DynamoDB Local accept unnecessary members, such as definitions of attributes that
no key uses, and test suites have come to send them. They are ignored, with a warning in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from partita.database.operations.operation_context import Request
from partita.database.tables.definition.table_schema import PAY_PER_REQUEST

logger = logging.getLogger(__name__)

Leave = Callable[[Request], Iterator[str]]
"""Removes unnecessary members, and yields a description of each."""


def without_surplus(request: Request) -> Request:
    """Returns a CreateTable request that AWS would accept, and logs what was left out."""
    kept = dict(request)
    for leave in _SURPLUS:
        for surplus in leave(kept):
            logger.warning(
                "CreateTable of %s: %s left out; Amazon DynamoDB refuses such a request.",
                request.get("TableName"),
                surplus,
            )
    return kept


def _unused_definitions(request: Request) -> Iterator[str]:
    indexes = [
        index
        for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
        for index in request.get(member, ())
    ]
    used = {
        element["AttributeName"] for keyed in (request, *indexes) for element in keyed["KeySchema"]
    }
    definitions = request["AttributeDefinitions"]
    kept = [definition for definition in definitions if definition["AttributeName"] in used]
    if len(kept) < len(definitions):
        names = ", ".join(
            definition["AttributeName"] for definition in definitions if definition not in kept
        )
        request["AttributeDefinitions"] = kept
        yield f"definitions of attributes that no key uses ({names}) are"


def _units_on_demand(request: Request) -> Iterator[str]:
    if request.get("BillingMode") != PAY_PER_REQUEST:
        return
    if request.pop("ProvisionedThroughput", None) is not None:
        yield "provisioned units of a table on demand are"
    indexes: list[dict[str, Any]] = request.get("GlobalSecondaryIndexes", [])
    if any("ProvisionedThroughput" in index for index in indexes):
        request["GlobalSecondaryIndexes"] = [
            {name: member for name, member in index.items() if name != "ProvisionedThroughput"}
            for index in indexes
        ]
        yield "provisioned units of indexes on demand are"


def _no_local_indexes(request: Request) -> Iterator[str]:
    if request.get("LocalSecondaryIndexes") == []:
        del request["LocalSecondaryIndexes"]
        yield "an empty list of LocalSecondaryIndexes is"


_SURPLUS: Final[tuple[Leave, ...]] = (_no_local_indexes, _unused_definitions, _units_on_demand)
