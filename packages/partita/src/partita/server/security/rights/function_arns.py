"""ARNs of functions, in policies and in the audit log."""

from __future__ import annotations

import re
from typing import Final

from partita.database.operations.operation_context import DatabaseService

ANY: Final = "*"
FUNCTION: Final = re.compile(
    r"(?:arn:aws[\w-]*:lambda:[\w-]*:)?(?:\d{12}:)?(?:function:)?([\w-]+)(?::([$\w-]+))?"
)


def lambda_arn(service: DatabaseService, rest: str) -> str:
    return f"arn:aws:lambda:{service.region}:{service.account_id}:{rest}"


def function_arn(service: DatabaseService, given: str | None, qualifier: str | None = None) -> str:
    """Of a function that is given by its name, by an ARN or by a part of one; of its version or
    alias where one is named."""
    found = FUNCTION.fullmatch(given or "")
    if found is None:
        return ANY
    arn, qualifier = lambda_arn(service, f"function:{found[1]}"), found[2] or qualifier
    return f"{arn}:{qualifier}" if qualifier else arn
