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


def function_arn(
    service: DatabaseService, name_or_arn: str | None, qualifier: str | None = None
) -> str:
    """Returns the ARN of a function, given its name, an ARN or a part of one, with the version or
    alias if one is named. Returns `*` if the name is invalid."""
    match = FUNCTION.fullmatch(name_or_arn or "")
    if match is None:
        return ANY
    arn, qualifier = lambda_arn(service, f"function:{match[1]}"), match[2] or qualifier
    return f"{arn}:{qualifier}" if qualifier else arn
