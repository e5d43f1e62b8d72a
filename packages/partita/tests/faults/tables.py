"""The table of the tests that harm a disk or a folder: items, and an index to fall behind."""

from __future__ import annotations

from typing import Any


def indexed(projection: str) -> dict[str, Any]:
    """What CreateTable needs besides a name."""
    return {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "g")
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "index",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": projection},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
