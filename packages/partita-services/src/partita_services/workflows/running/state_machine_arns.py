"""ARNs of machines, executions, activities and functions.

There is one shared database whatever the region. So only the kind and the names in an ARN count,
and ARNs in answers always have the same region and account.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from partita.errors import InvalidArn, InvalidName
from partita_services.functions.function_arns import ACCOUNT, REGION

MACHINE, EXECUTION, EXPRESS, ACTIVITY = "stateMachine", "execution", "express", "activity"

_ARN = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:(\w+):(.+)", re.DOTALL)
PLACEHOLDER = r"\$\{[\w:.]+\}"
"""A value that a template leaves to CloudFormation, such as `${AWS::Region}`."""
_SEGMENT = rf"(?:[\w-]*|{PLACEHOLDER})"
_FUNCTION = re.compile(
    rf"(?:arn:{_SEGMENT}:lambda:{_SEGMENT}:{_SEGMENT}:function:|(?:\d+:)?(?:function:)?)"
    r"(?:([\w-]+)|\$\{([\w-]+)\})(:[$\w-]+)?"
)
_SUBSTITUTION = re.compile(r"\$\{([\w-]+?)(?:\.?[Aa]rn)?\}")
# (API reference, CreateStateMachine: "A name must not contain")
_STRANGE = re.compile(r"""[\s<>{}\[\]?*"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]""")


class ExecutionName(NamedTuple):
    machine: str
    name: str


def machine_arn(name: str) -> str:
    return _arn(MACHINE, name)


def execution_arn(execution: ExecutionName) -> str:
    return _arn(EXECUTION, f"{execution.machine}:{execution.name}")


def express_arn(execution: ExecutionName, run_id: str) -> str:
    return _arn(EXPRESS, f"{execution.machine}:{execution.name}:{run_id}")


def activity_arn(name: str) -> str:
    return _arn(ACTIVITY, name)


def version_arn(machine: str, qualifier: int | str) -> str:
    """The ARN of a version, or of an alias."""
    return f"{machine_arn(machine)}:{qualifier}"


def machine_name(arn: str) -> str:
    return _name(arn, MACHINE)


def qualified(arn: str) -> tuple[str, str | None]:
    """The name of a machine, and the version or alias that the ARN adds to it."""
    name, colon, qualifier = machine_name(arn).partition(":")
    if not name or (colon and not qualifier):
        raise InvalidArn(f"Invalid Arn: 'Invalid ARN: {arn}'")
    return name, qualifier if colon else None


def activity_name(arn: str) -> str:
    return _name(arn, ACTIVITY)


def execution_name(arn: str) -> ExecutionName:
    machine, _, name = _name(arn, EXECUTION).partition(":")
    if not machine or not name:
        raise InvalidArn(f"Invalid Arn: 'Invalid ARN: {arn}'")
    return ExecutionName(machine, name)


def kind_of(arn: str) -> str:
    match = _ARN.fullmatch(arn)
    return match[1] if match else ""


def function_name(resource: str) -> str | None:
    """The function in an ARN, a name, or a template's `${NameArn}`, with the version or alias if
    the ARN names one."""
    if match := _SUBSTITUTION.fullmatch(resource):
        return match[1]
    match = _FUNCTION.fullmatch(resource)
    return None if match is None else (match[1] or match[2]) + (match[3] or "")


def check_name(name: str) -> None:
    if _STRANGE.search(name):
        raise InvalidName(f"Invalid Name: '{name}'")


def check_role(arn: str) -> None:
    if not arn.startswith("arn:"):
        raise InvalidArn(f"Invalid Arn: 'Invalid ARN prefix: {arn}'")


def _arn(kind: str, name: str) -> str:
    return f"arn:aws:states:{REGION}:{ACCOUNT}:{kind}:{name}"


def _name(arn: str, kind: str) -> str:
    match = _ARN.fullmatch(arn)
    if match is None:
        raise InvalidArn(f"Invalid Arn: 'Invalid ARN prefix: {arn}'")
    if match[1] != kind:
        raise InvalidArn(f"Invalid Arn: 'Resource type not valid in this context: {match[1]}'")
    return match[2]
