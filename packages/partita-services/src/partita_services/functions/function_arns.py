"""ARNs of functions, versions, aliases, mappings and schedules.

There is one shared database whatever the region. So only the names in an ARN count, and ARNs in
answers always have the same region and account.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from partita.errors import InvalidParameterValueException

REGION, ACCOUNT = "us-east-1", "123456789012"
LATEST = "$LATEST"
OWN_ROLE = "partita"
"""The role of functions and triggers of the settings that name none."""
NAME_CHARS_MAX = 64

_FUNCTION = re.compile(
    r"(?:arn:aws[\w-]*:lambda:[\w-]*:)?(?:\d{12}:)?(?:function:)?([\w-]+)(?::([$\w-]+))?"
)

_MAPPING = re.compile(r"arn:aws[\w-]*:lambda:[\w-]*:\d{12}:event-source-mapping:([\w-]+)")
_GROUP = re.compile(r"arn:aws[\w-]*:scheduler:[\w-]*:\d{12}:schedule-group/([\w.-]+)")


def role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


class QualifiedFunction(NamedTuple):
    """A function, and one of its versions: a number, an alias, or $LATEST."""

    name: str
    qualifier: str = LATEST


def qualified(text: str, qualifier: str | None = None) -> QualifiedFunction:
    """Reads a name, a partial ARN or an ARN, and the qualifier of a request."""
    match = _FUNCTION.fullmatch(text)
    if match is None or len(match[1]) > NAME_CHARS_MAX:
        raise InvalidParameterValueException(f"{text} is not the name or ARN of a function.")
    if match[2] and qualifier and match[2] != qualifier:
        raise InvalidParameterValueException(
            "The derived qualifier from the function name does not match the specified qualifier."
        )
    return QualifiedFunction(match[1], match[2] or qualifier or LATEST)


def is_function(arn: str) -> bool:
    return arn.startswith("arn:") and ":lambda:" in arn and _FUNCTION.fullmatch(arn) is not None


def function_arn(name: str, qualifier: str = "") -> str:
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    return f"{arn}:{qualifier}" if qualifier else arn


def mapping_arn(uuid: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:{uuid}"


def mapping_of(arn: str) -> str | None:
    """The UUID in the ARN of an event source mapping; None for other ARNs."""
    match = _MAPPING.fullmatch(arn)
    return None if match is None else match[1]


def schedule_arn(group: str, name: str) -> str:
    return f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/{group}/{name}"


def group_arn(name: str) -> str:
    return f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group/{name}"


def group_of(arn: str) -> str | None:
    """The name in the ARN of a schedule group; None for other ARNs."""
    match = _GROUP.fullmatch(arn)
    return None if match is None else match[1]
