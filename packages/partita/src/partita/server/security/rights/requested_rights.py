"""A need: one right that a request asks for. A request is allowed when all that it needs is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from partita.database.operations.operation_context import (
    DatabaseService,
    PermittedRequest,
    Refusals,
)
from partita.database.tables.definition.table_schema import ResourcePolicy, Table
from partita.errors import AccessDeniedException, DynamoDBError

Request = dict[str, Any]
Keys = Mapping[str, Sequence[str]]
"""Condition keys in lower case, each with its values."""


def no_keys() -> Keys:
    return {}


class RequestedRight:
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


Rights = Callable[[DatabaseService, Request], Sequence[RequestedRight]]
EACH_ALONE: Final = "BatchExecuteStatement"
"""The operation whose parts are refused each on its own."""


def parts_of(
    operation: str, rights: Rights, service: DatabaseService, request: Request
) -> list[Sequence[RequestedRight]]:
    """What a request needs, by the parts of it that are refused each on its own."""
    if operation != EACH_ALONE:
        return [rights(service, request)]
    return [rights(service, {**request, "Statements": [one]}) for one in request["Statements"]]


def denials_of(
    parts: Sequence[Sequence[RequestedRight]], check: Callable[[RequestedRight], None]
) -> list[DynamoDBError | None]:
    """Why each part is denied, or None; `check` raises for a need that is."""
    denials: list[DynamoDBError | None] = []
    for needs in parts:
        try:
            for need in needs:
                check(need)
            denials.append(None)
        except AccessDeniedException as error:
            denials.append(error)
    return denials


def permitted(request: Request, denials: Sequence[DynamoDBError | None]) -> PermittedRequest:
    """The permit for a request whose parts were decided; raises when no part of it is allowed."""
    refusals: Refusals = {
        place: denial for place, denial in enumerate(denials) if denial is not None
    }
    if refusals and len(refusals) == len(denials):
        raise refusals[0]
    return PermittedRequest(request, refusals)


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
