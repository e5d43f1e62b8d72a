"""A need: one right that a request asks for. A request is allowed when all that it needs is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from partita.database.operations.context import Service

Request = dict[str, Any]
Keys = Mapping[str, Sequence[str]]
"""Condition keys in lower case, each with its values."""


def no_keys() -> Keys:
    return {}


class Need(NamedTuple):
    action: str
    """service:Action"""
    resource: str
    keys: Callable[[], Keys] = no_keys
    """Those that only this request has, worked out when a policy asks for one of them."""


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
