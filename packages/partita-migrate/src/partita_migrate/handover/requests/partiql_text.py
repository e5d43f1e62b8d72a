"""Writes requests as PartiQL, for the console, ExecuteStatement and ExecuteTransaction.

PartiQL has no literal for bytes, so they become parameters.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.handover.requests.pattern_request import PatternRequest, RequestTest


class PartiqlStatement(Struct, frozen=True, kw_only=True):
    """A PartiQL statement with the members of ExecuteStatement that belong to it."""

    text: str
    parameters: list[AttributeValue] = field(default_factory=list)
    limit: int | None = None
    is_consistent: bool = False


def write(requests: list[PatternRequest]) -> str:
    """Writes the statements, with the other members of their requests in comments."""
    partiql_statements = statements(requests)
    lines = []
    if any(request.parts for request in requests):
        lines.append("-- All or nothing: the statements of one ExecuteTransaction.")
    lines += [f"-- {text}" for request in requests[:1] for text in request.comments]
    for statement in partiql_statements:
        if statement.limit:
            lines.append(f"-- Limit: {statement.limit}")
        if statement.is_consistent:
            lines.append("-- ConsistentRead: true")
        if statement.parameters:
            lines.append(f"-- Parameters: {json.dumps(statement.parameters)}")
        lines.append(f"{statement.text};")
    return "\n".join(lines) + "\n" if lines else ""


def statements(requests: list[PatternRequest]) -> list[PartiqlStatement]:
    parts = [part for request in requests for part in request.parts or [request]]
    return [_Writer().statement(part) for part in parts]


class _Writer:
    """Writes one statement, and collects its parameters in the order of their question marks."""

    def __init__(self) -> None:
        self.parameters: list[AttributeValue] = []

    def statement(self, request: PatternRequest) -> PartiqlStatement:
        write = {
            "PutItem": self._insert,
            "UpdateItem": self._update,
            "DeleteItem": self._delete,
        }.get(request.operation, self._select)
        text = write(request)
        is_filtered = bool(request.filter)
        return PartiqlStatement(
            text=text,
            parameters=self.parameters,
            limit=None if is_filtered else request.rows_max,
            is_consistent=bool(request.input.get("ConsistentRead")),
        )

    def _select(self, request: PatternRequest) -> str:
        place = _name(request.table) + (f".{_name(request.index)}" if request.index else "")
        text = f"SELECT * FROM {place}"
        tests = [*request.key, *request.filter]
        if tests:
            text += f"\nWHERE {self._tests(tests)}"
        if request.descending_by:
            text += f"\nORDER BY {_name(request.descending_by)} DESC"
        return text

    def _insert(self, request: PatternRequest) -> str:
        members = ", ".join(
            f"{_text(name)}: {self._value(value)}" for name, value in request.item.items()
        )
        return f"INSERT INTO {_name(request.table)} VALUE {{{members}}}"

    def _update(self, request: PatternRequest) -> str:
        added = {name: f"{_name(name)} {sign} " for name, sign in request.added.items()}
        sets = "".join(
            f"\nSET {_name(name)} = {added.get(name, '')}{self._value(value)}"
            for name, value in request.item.items()
        )
        sets += "".join(f"\nREMOVE {_name(name)}" for name in request.removed)
        tests = self._tests([*request.key, *request.filter])
        return f"UPDATE {_name(request.table)}{sets}\nWHERE {tests}"

    def _delete(self, request: PatternRequest) -> str:
        tests = self._tests([*request.key, *request.filter])
        return f"DELETE FROM {_name(request.table)}\nWHERE {tests}"

    def _tests(self, tests: list[RequestTest]) -> str:
        return " AND ".join(self._test(test) for test in tests)

    def _test(self, test: RequestTest) -> str:
        name = _name(test.attribute)
        if test.comparison in ("exists", "not_exists"):
            return f"{name} IS {'NOT ' if test.comparison == 'exists' else ''}MISSING"
        values = [self._value(value) for value in test.values]
        if test.comparison == "between":
            return f"{name} BETWEEN {values[0]} AND {values[-1]}"
        if test.comparison == "begins_with":
            return f"begins_with({name}, {values[0]})"
        if test.comparison in ("in", "not in"):
            text = f"{name} IN [{', '.join(values)}]"
            return f"{name} IS NOT MISSING AND NOT {text}" if "not" in test.comparison else text
        if test.comparison == "<>":
            return f"{name} IS NOT MISSING AND {name} <> {values[0]}"
        return f"{name} {test.comparison} {values[0]}"

    def _value(self, value: AttributeValue) -> str:
        if _has_bytes(value):
            self.parameters.append(value)
            return "?"
        return _literal(value)


def _has_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        is_bytes = isinstance(value.get("B"), str) or isinstance(value.get("BS"), list)
        return is_bytes or any(map(_has_bytes, value.values()))
    return isinstance(value, list) and any(map(_has_bytes, value))


def _literal(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    if kind == "S":
        return _text(content)
    if kind == "N":
        return str(content)
    if kind == "BOOL":
        return "TRUE" if content else "FALSE"
    if kind == "L":
        return f"[{', '.join(map(_literal, content))}]"
    if kind == "M":
        members = (f"{_text(name)}: {_literal(member)}" for name, member in content.items())
        return f"{{{', '.join(members)}}}"
    if kind == "SS":
        return f"<<{', '.join(map(_text, content))}>>"
    if kind == "NS":
        return f"<<{', '.join(map(str, content))}>>"
    return "NULL"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
