"""`iam:PassRole`: the right to give a role to a service, which can then do whatever the role can.

Roles have no paths in Partita. An ARN with a path names the role at its end, so that is the role
whose right is checked. (IAM User Guide, "Grant a user permissions to pass a role to an AWS
service")
"""

from __future__ import annotations

import re
from typing import Final

from partita.database.operations.operation_context import DatabaseService
from partita.server.security.rights.requested_rights import Keys, RequestedRight

ROLE_ARN: Final = re.compile(r"arn:aws[\w-]*:iam::\d{12}:role/(?:[!-.0-~/]*/)?([\w+=,.@-]{1,64})")


def pass_role(service: DatabaseService, role: str | None, passed_to: str) -> list[RequestedRight]:
    """Returns the right to pass a role, or nothing if the request names no role.

    A text that is not the ARN of a role is checked as it is; the service refuses it later.
    """
    if role is None:
        return []
    match = ROLE_ARN.fullmatch(role)
    arn = role if match is None else f"arn:aws:iam::{service.account_id}:role/{match[1]}"
    keys: Keys = {"iam:passedtoservice": (passed_to,)}
    return [RequestedRight("iam:PassRole", arn, lambda: keys)]
