"""Indexes as CreateTable and UpdateTable take them."""

from __future__ import annotations

from typing import Any

EVERYTHING = {"ProjectionType": "ALL"}
KEYS_ONLY = {"ProjectionType": "KEYS_ONLY"}


def index(
    name: str,
    *keys: str,
    projection: dict[str, Any] | None = None,
    hash_count: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """The first keys are the partition's; without a projection, an index has everything."""
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": key, "KeyType": "HASH" if position < hash_count else "RANGE"}
            for position, key in enumerate(keys)
        ],
        "Projection": projection or EVERYTHING,
        **more,
    }


def include(*names: str) -> dict[str, Any]:
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}
