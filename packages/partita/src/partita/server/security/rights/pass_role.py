"""A role that is handed to a service: what does so can do whatever the role can.

Roles have no paths here: an ARN with one names the role at its end, so that is the role that the
right is asked for. (IAM User Guide, "Grant a user permissions to pass a role to an AWS service")
"""

from __future__ import annotations

import re
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.requested_rights import Keys, RequestedRight

ROLE_ARN: Final = re.compile(r"arn:aws[\w-]*:iam::\d{12}:role/(?:[!-.0-~/]*/)?([\w+=,.@-]{1,64})")


def pass_role(service: DatabaseService, role: str | None, passed_to: str) -> list[RequestedRight]:
    """None for a request that names no role. What is not a role's ARN names none, either, and the
    service refuses it."""
    if role is None:
        return []
    found = ROLE_ARN.fullmatch(role)
    arn = role if found is None else f"arn:aws:iam::{service.account_id}:role/{found[1]}"
    keys: Keys = {"iam:passedtoservice": (passed_to,)}
    return [RequestedRight("iam:PassRole", arn, lambda: keys)]
