"""The right to copy the whole database. It is a single right: a copy contains everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.requested_rights import Request, RequestedRight, Rights

BACK_UP: Final = "BackUpDatabase"


def _back_up(service: DatabaseService, request: Request) -> Sequence[RequestedRight]:
    arn = f"arn:aws:partita:{service.region}:{service.account_id}:database"
    return (RequestedRight(f"partita:{BACK_UP}", arn),)


RIGHTS: Final[dict[str, Rights]] = dict.fromkeys(
    ("Begin", "ReadKeys", "ReadCommits", "ListFiles", "ReadFile", "End"), _back_up
)
