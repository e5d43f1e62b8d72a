"""Parses policy documents from JSON to statements. Errors name the line.

(IAM User Guide, "Grammar of the IAM JSON policy language")
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from partita.errors import PartitaError
from partita.server.security.policies.condition_operators import (
    NULL,
    OPERATORS,
    PolicyCondition,
    new_condition,
    parse_operator,
)
from partita.server.security.policies.policy_patterns import (
    ARN_PARTS,
    has_variables,
    malformed_variable,
    wildcards_in,
)

CURRENT, OLDER = "2012-10-17", "2008-10-17"
IDENTITY, RESOURCE, TRUST = "identity-based", "resource-based", "trust"
CHARS_MAX: Final = {IDENTITY: 6144, TRUST: 4096}
"""The maximum length without white space. (IAM User Guide, "IAM and AWS STS quotas")"""
RESOURCE_BYTES_MAX: Final = 20 * 1024
WILDCARDS_MAX: Final = 100
"""The number of wildcards that one action, resource or condition value may have."""
PRINCIPAL_KINDS: Final = ("AWS", "Service", "Federated", "CanonicalUser")
_ELEMENTS: Final = (
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction"),
    *("Resource", "NotResource", "Condition"),
)
_SID: Final = re.compile(r"[A-Za-z0-9]*")
_RESOURCE_SID: Final = re.compile(r"[A-Za-z0-9 _-]*")
_ACTION: Final = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_WILD: Final = re.compile(r"[*?]")
_ACCOUNT: Final = re.compile(r"\d{12}")
_KEY: Final = re.compile(r"[A-Za-z0-9-]+:[\w:/.${}@=+ -]+")

Path = tuple[str | int, ...]


class PolicyError(PartitaError):
    """Raised for an invalid document, with the line and the reason."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"line {line}: {reason}")
        self.reason = reason
        self.line = line


class _InvalidPolicy(Exception):
    def __init__(self, reason: str, path: Path) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class PolicyPrincipals(NamedTuple):
    """The callers that a statement names."""

    aws: tuple[str, ...] = ()
    """ARNs, account ids, or `*`."""
    services: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class PolicyStatement(NamedTuple):
    """A statement of a policy, in the form in which decisions need it."""

    sid: str
    is_deny: bool
    action_prefixes: tuple[str, ...]
    """Actions whose only wildcard is a `*` at the end: without it, in lower case."""
    actions: tuple[str, ...]
    """All other actions, in lower case."""
    is_not_action: bool
    resources: tuple[str, ...]
    is_not_resource: bool
    conditions: tuple[PolicyCondition, ...]
    principals: PolicyPrincipals | None
    is_not_principal: bool
    has_variables: bool
    """True if `${...}` is a variable, which is only so in the current version of the language."""
    line: int
    place: int
    """The position among the statements of the document, from 0."""


class Policy(NamedTuple):
    """A parsed policy. `denials` and `allowances` are the statements by their effect."""

    name: str
    """Its name in messages: a name, or an ARN."""
    kind: str
    statements: tuple[PolicyStatement, ...]
    denials: tuple[PolicyStatement, ...]
    allowances: tuple[PolicyStatement, ...]


def parse(text: str, name: str, kind: str = IDENTITY) -> Policy:
    """Parses a policy document, or raises PolicyError."""
    _check_size(text, kind)
    document = _read(text)
    try:
        statements = _statements(document, kind, _statement_lines(text))
    except _InvalidPolicy as wrong:
        raise PolicyError(wrong.reason, line_of(text, wrong.path)) from None
    return policy_of(name, kind, statements)


def _check_size(text: str, kind: str) -> None:
    if kind == RESOURCE:
        if len(text.encode(errors="replace")) > RESOURCE_BYTES_MAX:
            raise PolicyError(f"The policy has more than {RESOURCE_BYTES_MAX} bytes.", 1)
    elif len(text) > CHARS_MAX[kind] and len(re.sub(r"\s", "", text)) > CHARS_MAX[kind]:
        raise PolicyError(f"The policy has more than {CHARS_MAX[kind]} characters.", 1)


def policy_of(name: str, kind: str, statements: tuple[PolicyStatement, ...]) -> Policy:
    denials = tuple(statement for statement in statements if statement.is_deny)
    allowances = tuple(statement for statement in statements if not statement.is_deny)
    return Policy(name, kind, statements, denials, allowances)


def parse_document(document: Mapping[str, Any], name: str, kind: str = IDENTITY) -> Policy:
    return _parsed(json.dumps(document, indent=2), name, kind)


@lru_cache(maxsize=1024)
def _parsed(text: str, name: str, kind: str) -> Policy:
    return parse(text, name, kind)


def parse_cached(text: str, name: str, kind: str) -> Policy:
    """Parses a policy, from a cache: the same few documents apply to many requests."""
    return _parsed(text, name, kind)


def _read(text: str) -> Any:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        # json.loads alone would keep the last of two equal names without complaint.
        unique: dict[str, Any] = {}
        for name, value in members:
            if name in unique:
                raise PolicyError(f"{name!r} is given twice.", _line_of_second(text, name))
            unique[name] = value
        return unique

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise PolicyError(f"This is not JSON: {error.msg}.", error.lineno) from None
    except RecursionError:
        raise PolicyError("This is not JSON: it nests too deep.", 1) from None
    except ValueError:
        # Python refuses to read numbers with more than 4,300 digits.
        raise PolicyError("A number has too many digits.", 1) from None


def _no_constant(name: str) -> None:
    raise PolicyError(f"This is not JSON: {name} is not a number.", 1)


def _line_of_second(text: str, name: str) -> int:
    places = [match.start() for match in re.finditer(re.escape(json.dumps(name)), text)]
    return text.count("\n", 0, places[1] if len(places) > 1 else 0) + 1


def _statements(document: Any, kind: str, lines: Mapping[Path, int]) -> tuple[PolicyStatement, ...]:
    if not isinstance(document, dict):
        raise _InvalidPolicy("A policy is a JSON object.", ())
    for name in document:
        if name not in ("Version", "Id", "Statement"):
            raise _InvalidPolicy(f"A policy has no element {name!r}.", (name,))
    version = document.get("Version", OLDER)
    if version not in (CURRENT, OLDER):
        raise _InvalidPolicy(f"Version is {CURRENT!r} or {OLDER!r}, not {version!r}.", ("Version",))
    if "Id" in document and not isinstance(document["Id"], str):
        raise _InvalidPolicy("Id is a string.", ("Id",))
    element = document.get("Statement")
    if isinstance(element, dict):
        numbered: list[tuple[Path, Any]] = [(("Statement",), element)]
    elif isinstance(element, list) and element:
        numbered = [(("Statement", place), content) for place, content in enumerate(element)]
    else:
        raise _InvalidPolicy("Statement is missing: a policy has one or more.", ("Statement",))
    sids: set[str] = set()
    statements = []
    for place, (path, content) in enumerate(numbered):
        statement = _statement(content, path, kind, version == CURRENT, place, lines.get(path, 1))
        if statement.sid and statement.sid in sids:
            raise _InvalidPolicy(f"There are two statements with the Sid {statement.sid!r}.", path)
        sids.add(statement.sid)
        statements.append(statement)
    return tuple(statements)


def _statement(
    element: Any,
    path: Path,
    kind: str,
    is_current: bool,
    place: int,
    line: int,
) -> PolicyStatement:
    if not isinstance(element, dict):
        raise _InvalidPolicy("A statement is a JSON object.", path)
    for name in element:
        if name not in _ELEMENTS:
            raise _InvalidPolicy(f"A statement has no element {name!r}.", (*path, name))
    sid = element.get("Sid", "")
    form = _SID if kind == IDENTITY else _RESOURCE_SID
    if not isinstance(sid, str) or not form.fullmatch(sid):
        raise _InvalidPolicy("A Sid has letters and digits only.", (*path, "Sid"))
    if element.get("Effect") not in ("Allow", "Deny"):
        raise _InvalidPolicy("Effect is 'Allow' or 'Deny'.", (*path, *_if_there(element, "Effect")))
    actions, is_not_action = _one_of(element, path, "Action", "NotAction", _check_action)
    resources: tuple[str, ...] = ("*",)
    is_not_resource = False
    if kind == TRUST:
        for name in ("Resource", "NotResource"):
            if name in element:
                raise _InvalidPolicy(f"A trust policy has no {name}.", (*path, name))
    else:
        check = _check_resource(is_current)
        resources, is_not_resource = _one_of(element, path, "Resource", "NotResource", check)
    principals, is_not_principal = _principals(element, path, kind)
    conditions = _conditions(element.get("Condition", {}), (*path, "Condition"), is_current)
    lower = [action.lower() for action in actions]
    prefixes = [
        action[:-1] for action in lower if action.endswith("*") and not _WILD.search(action[:-1])
    ]
    return PolicyStatement(
        sid,
        element["Effect"] == "Deny",
        tuple(prefixes),
        tuple(
            action for action in lower if action[:-1] not in prefixes or not action.endswith("*")
        ),
        is_not_action,
        resources,
        is_not_resource,
        conditions,
        principals,
        is_not_principal,
        is_current,
        line,
        place,
    )


def _if_there(element: Mapping[str, Any], name: str) -> Path:
    return (name,) if name in element else ()


def _one_of(
    element: Mapping[str, Any],
    path: Path,
    name: str,
    negated: str,
    check: Callable[[str, Path], None],
) -> tuple[tuple[str, ...], bool]:
    """Reads one of two elements that exclude each other, such as Action and NotAction.

    Returns its values, and True if it is the negated one.
    """
    present = [member for member in (name, negated) if member in element]
    if len(present) != 1:
        problem = "both are given" if present else "neither is given"
        raise _InvalidPolicy(f"A statement has {name} or {negated}: {problem}.", path)
    values = _texts(element[present[0]], (*path, present[0]))
    for place, value in enumerate(values):
        check(value, (*path, present[0], place))
    return values, present[0] == negated


def _texts(element: Any, path: Path) -> tuple[str, ...]:
    values = element if isinstance(element, list) else [element]
    if not values or not all(isinstance(value, str) for value in values):
        raise _InvalidPolicy(f"{path[-1]} is a string, or a list of strings.", path)
    return tuple(values)


def _check_wildcards(value: str, path: Path) -> None:
    if wildcards_in(value) > WILDCARDS_MAX:
        raise _InvalidPolicy(
            f"{path[-2]} has a text with more than {WILDCARDS_MAX} wildcards.", path
        )


def _check_action(value: str, path: Path) -> None:
    _check_wildcards(value, path)
    if not _ACTION.fullmatch(value):
        raise _InvalidPolicy(
            f"{value!r} is not an action: it is written as service:Action, such as "
            "dynamodb:GetItem.",
            path,
        )


def _check_resource(is_current: bool) -> Callable[[str, Path], None]:
    def check(value: str, path: Path) -> None:
        _check_wildcards(value, path)
        if is_current and malformed_variable(value):
            raise _InvalidPolicy(f"{value!r} has a policy variable that does not end.", path)
        plain = value.split(":", ARN_PARTS - 1)
        if value != "*" and (len(plain) < ARN_PARTS or not _is_arn_prefix(plain[0])):
            raise _InvalidPolicy(f'{value!r} must be in ARN format or "*".', path)

    return check


def _is_arn_prefix(text: str) -> bool:
    return text in ("arn", "*")


def _principals(
    element: Mapping[str, Any], path: Path, kind: str
) -> tuple[PolicyPrincipals | None, bool]:
    present = [name for name in ("Principal", "NotPrincipal") if name in element]
    if kind == IDENTITY:
        if present:
            raise _InvalidPolicy(
                f"{present[0]} is only allowed in resource policies: "
                "this policy applies to whoever it is attached to.",
                (*path, present[0]),
            )
        return None, False
    if len(present) != 1:
        problem = "both are given" if present else "neither is given"
        raise _InvalidPolicy(f"A statement has Principal or NotPrincipal: {problem}.", path)
    name = present[0]
    if name == "NotPrincipal" and element.get("Effect") != "Deny":
        raise _InvalidPolicy(
            "NotPrincipal is only allowed in statements whose Effect is Deny.", (*path, name)
        )
    return _principal(element[name], (*path, name)), name == "NotPrincipal"


def _principal(element: Any, path: Path) -> PolicyPrincipals:
    if element == "*":
        return PolicyPrincipals(aws=("*",))
    if not isinstance(element, dict) or not element:
        raise _InvalidPolicy('A principal is "*", or an object such as {"AWS": "arn:..."}.', path)
    groups: dict[str, tuple[str, ...]] = {}
    for kind, values in element.items():
        if kind not in PRINCIPAL_KINDS:
            raise _InvalidPolicy(f"{kind!r} is not a kind of principal.", (*path, kind))
        groups[kind] = _texts(values, (*path, kind))
    for place, value in enumerate(groups.get("AWS", ())):
        is_arn = value.startswith("arn:") and len(value.split(":")) >= ARN_PARTS
        if not (value == "*" or _ACCOUNT.fullmatch(value) or (is_arn and "*" not in value)):
            raise _InvalidPolicy(
                f"{value!r} is not a principal: give an ARN without wildcards, an account, or *.",
                (*path, "AWS", place),
            )
    others = groups.get("Federated", ()) + groups.get("CanonicalUser", ())
    return PolicyPrincipals(groups.get("AWS", ()), groups.get("Service", ()), others)


def _conditions(element: Any, path: Path, is_current: bool) -> tuple[PolicyCondition, ...]:
    if not isinstance(element, dict):
        raise _InvalidPolicy("Condition is an object of operators.", path)
    conditions = []
    for text, keys in element.items():
        parsed = parse_operator(text)
        if parsed is None:
            raise _InvalidPolicy(f"There is no condition operator {text!r}.", (*path, text))
        if not isinstance(keys, dict) or not keys:
            raise _InvalidPolicy(f"{text} has an object of condition keys.", (*path, text))
        qualifier, operator, if_exists = parsed
        for key, values in keys.items():
            place = (*path, text, key)
            if not _KEY.fullmatch(key):
                raise _InvalidPolicy(
                    f"{key!r} is not a condition key, such as aws:username.", place
                )
            texts = _condition_values(values, place)
            _check_values(operator, texts, place, is_current)
            conditions.append(new_condition(key, operator, texts, qualifier, if_exists, is_current))
    return tuple(conditions)


def _condition_values(element: Any, path: Path) -> tuple[str, ...]:
    """Returns the values of a condition as texts. Numbers and booleans need no quotes."""
    values = element if isinstance(element, list) else [element]
    texts = []
    for value in values:
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str):
            raise _InvalidPolicy(f"The values of {path[-1]} are strings.", path)
        texts.append(value)
    if not texts:
        raise _InvalidPolicy(f"{path[-1]} has no values.", path)
    return tuple(texts)


def _check_values(operator: str, values: Iterable[str], path: Path, is_current: bool) -> None:
    for place, value in enumerate(values):
        where = (*path, place)
        if operator == NULL:
            if value.lower() not in ("true", "false"):
                raise _InvalidPolicy(f"Null takes true or false, not {value!r}.", where)
            continue
        rules = OPERATORS[operator]
        if rules.is_wild:
            _check_wildcards(value, where)
        if is_current and malformed_variable(value):
            raise _InvalidPolicy(f"{value!r} has a policy variable that does not end.", where)
        if is_current and has_variables(value):
            continue
        if rules.read is not None:
            try:
                rules.read(value)
            except ValueError:
                raise _InvalidPolicy(f"{operator} cannot take {value!r}.", where) from None
        if rules.is_arn and value != "*":
            if len(value.split(":", ARN_PARTS - 1)) < ARN_PARTS:
                raise _InvalidPolicy(f"{operator} takes ARNs, not {value!r}.", where)


# Lines of errors: json.loads does not keep positions, so a small tokenizer finds them again.

_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)


def line_of(text: str, path: Path) -> int:
    """Returns the line of a member or element of valid JSON, or that of its nearest ancestor."""
    nearest, depth = 0, -1
    for found_path, place in _places(text):
        if len(found_path) > depth and found_path == path[: len(found_path)]:
            nearest, depth = place, len(found_path)
            if found_path == path:
                break
    return text.count("\n", 0, nearest) + 1


def _statement_lines(text: str) -> dict[Path, int]:
    """Returns the lines of all statements of valid JSON, by their paths."""
    lines: dict[Path, int] = {}
    line, counted_to = 1, 0
    for path, place in _places(text):
        if len(path) <= 2 and path[:1] == ("Statement",) and path not in lines:
            line += text.count("\n", counted_to, place)
            counted_to = place
            lines[path] = line
    return lines


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Yields the paths of all names and values of valid JSON, with their offsets."""
    stack: list[str | int] = []
    # For each open object or array: True if its next string is a name.
    expects_name = [False]
    for match in _TOKEN.finditer(text):
        token, place = match[1], match.start(1)
        if token == ",":
            if isinstance(stack[-1], int):
                stack[-1] += 1
            else:
                expects_name[-1] = True
        elif token in "}]":
            stack.pop()
            expects_name.pop()
        elif token != ":":
            if expects_name[-1]:
                stack[-1] = json.loads(token)
            yield tuple(stack), place
            if expects_name[-1]:
                expects_name[-1] = False
            elif token in "{[":
                stack.append("" if token == "{" else 0)
                expects_name.append(token == "{")
