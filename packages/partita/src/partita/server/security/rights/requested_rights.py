"""Rights that requests need. A request is allowed if the caller has all of them."""

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
    """One right that a request needs: an action on a resource, with its condition keys."""

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
        """Returns the condition keys of this request; only called if a policy uses one of them."""
        self.policy = policy
        """The resource's own policy."""


Rights = Callable[[DatabaseService, Request], Sequence[RequestedRight]]
EACH_ALONE: Final = "BatchExecuteStatement"
"""The operation whose parts are denied separately."""


def parts_of(
    operation: str, rights: Rights, service: DatabaseService, request: Request
) -> list[Sequence[RequestedRight]]:
    """Returns the rights that a request needs, for each part that can be denied separately."""
    if operation != EACH_ALONE:
        return [rights(service, request)]
    return [
        rights(service, {**request, "Statements": [statement]})
        for statement in request["Statements"]
    ]


def denials_of(
    parts: Sequence[Sequence[RequestedRight]], check: Callable[[RequestedRight], None]
) -> list[DynamoDBError | None]:
    """Returns for each part why it is denied, or None. `check` raises for a denied right."""
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
    """Returns the permit for a request whose parts were decided. Raises if all parts are denied."""
    refusals: Refusals = {
        place: denial for place, denial in enumerate(denials) if denial is not None
    }
    if refusals and len(refusals) == len(denials):
        raise refusals[0]
    return PermittedRequest(request, refusals)


def request_tags(tags: Mapping[str, str]) -> Keys:
    """Returns the condition keys for tags that a request sets."""
    keys: dict[str, Sequence[str]] = {
        f"aws:requesttag/{name.lower()}": (value,) for name, value in tags.items()
    }
    if tags:
        keys["aws:tagkeys"] = tuple(tags)
    return keys


def resource_tags(tags: Mapping[str, str]) -> Keys:
    """Returns the condition keys for tags that a resource has."""
    return {f"aws:resourcetag/{name.lower()}": (value,) for name, value in tags.items()}


def policy_of(table: Table | None) -> ResourcePolicy | None:
    """Returns the policy of a table, which also applies to its indexes."""
    return None if table is None else table.resource_policy
