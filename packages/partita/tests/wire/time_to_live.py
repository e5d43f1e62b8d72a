"""What the tests of time to live share: enabling, disabling and describing it."""

from __future__ import annotations

from typing import Any


def specification(attribute: str = "ttl", *, enabled: bool = True) -> dict[str, Any]:
    return {"Enabled": enabled, "AttributeName": attribute}


def enable(client: Any, name: str, attribute: str = "ttl", *, enabled: bool = True) -> Any:
    answer = client.update_time_to_live(
        TableName=name, TimeToLiveSpecification=specification(attribute, enabled=enabled)
    )
    return answer["TimeToLiveSpecification"]


def status(client: Any, name: str) -> dict[str, str]:
    return dict(client.describe_time_to_live(TableName=name)["TimeToLiveDescription"])
