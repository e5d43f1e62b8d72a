"""The rights to list users and audit events, and to change users.

Their names do not begin with Get: `partita:Get*` are the rights for the operator's pages, which the
managed policy PartitaMonitoring allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.requested_rights import Request, RequestedRight, Rights

LIST_USERS, CHANGE_USERS, LIST_EVENTS = "ListUsers", "ChangeUsers", "ListEvents"


def _needing(action: str) -> Rights:
    def needs(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
        arn = f"arn:aws:partita:{service.region}:{service.account_id}:access"
        return (RequestedRight(f"partita:{action}", arn),)

    return needs


RIGHTS: Final[dict[str, Rights]] = {
    "ListUsers": _needing(LIST_USERS),
    "ExplainDecision": _needing(LIST_USERS),
    "ListEvents": _needing(LIST_EVENTS),
    **{
        operation: _needing(CHANGE_USERS)
        for operation in (
            *("CreateUser", "DeleteUser", "UpdateUser", "CreateAccessKey", "UpdateAccessKey"),
            *("PutPolicy", "DeletePolicy", "AttachPolicy", "DetachPolicy"),
        )
    },
}
