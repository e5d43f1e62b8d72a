"""Which rights it needs to look at users and the audit log, and to change users.

None of them begins with Get: those are of the operator's pages, and monitoring has them all.
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
