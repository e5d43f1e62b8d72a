"""A need: one right that a request asks for. A request is allowed when all that it needs is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from partita.database.operations.context import Service
from partita.database.tables.schema import ResourcePolicy, Table

Request = dict[str, Any]
Keys = Mapping[str, Sequence[str]]
"""Condition keys in lower case, each with its values."""


def no_keys() -> Keys:
    return {}


class Need:
    __slots__ = ("action", "keys", "policy", "resource")

    def __init__(
        self,
        action: str,
        resource: str,
        keys: Callable[[], Keys] = no_keys,
        policy: ResourcePolicy | None = None,
    ) -> None:
        self.action = action
        """service:Action"""
        self.resource = resource
        self.keys = keys
        """Those that only this request has, worked out when a policy asks for one of them."""
        self.policy = policy
        """Of the resource."""


Rights = Callable[[Service, Request], Sequence[Need]]


def request_tags(tags: Mapping[str, str]) -> Keys:
    """Tags that a request sets."""
    keys: dict[str, Sequence[str]] = {
        f"aws:requesttag/{name.lower()}": (value,) for name, value in tags.items()
    }
    if tags:
        keys["aws:tagkeys"] = tuple(tags)
    return keys


def resource_tags(tags: Mapping[str, str]) -> Keys:
    """Tags that a resource has."""
    return {f"aws:resourcetag/{name.lower()}": (value,) for name, value in tags.items()}


def policy_of(table: Table | None) -> ResourcePolicy | None:
    """It counts for the indexes of the table too."""
    return None if table is None else table.resource_policy
