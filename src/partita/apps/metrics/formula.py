"""Formulas of hybrid metrics: numbers, names of metrics, + - * / and brackets.

expression = term   { ("+" | "-") term }
term       = factor { ("*" | "/") factor }
factor     = { "-" | "+" } ( number | name | "(" expression ")" )
"""

from __future__ import annotations

import re
from typing import NamedTuple

from partita.apps.metrics.failures import Refused

BRACKETS_MAX = 50
WHITESPACE = " \t\n\r\f\v"
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?![A-Za-z_0-9])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<sign>[-+*/()]))",
    re.ASCII,
)
OPERATORS = ("+-", "*/")


class Token(NamedTuple):
    kind: str
    text: str
    place: int
    """Counted from 1."""


END = "end"


def consumed_metrics(formula: str) -> tuple[str, ...]:
    """The names of the metrics in a formula, sorted. Raises Refused."""
    reader = _Reader(formula)
    reader.read_expression(0)
    reader.expect(END)
    if not reader.names:
        raise Refused(f"The formula {formula!r} uses no metric.")
    return tuple(sorted(reader.names))


class _Reader:
    def __init__(self, formula: str) -> None:
        self.names: set[str] = set()
        self._formula = formula
        self._place = 0
        self._token = self._next()

    def read_expression(self, brackets: int, level: int = 0) -> None:
        if brackets > BRACKETS_MAX:
            raise Refused(f"Brackets in a formula may be nested at most {BRACKETS_MAX} deep.")
        self._read_operand(brackets, level)
        while self._token.kind == "sign" and self._token.text in OPERATORS[level]:
            self._token = self._next()
            self._read_operand(brackets, level)

    def _read_operand(self, brackets: int, level: int) -> None:
        if level + 1 < len(OPERATORS):
            self.read_expression(brackets, level + 1)
        else:
            self._read_factor(brackets)

    def _read_factor(self, brackets: int) -> None:
        while self._token.text in ("-", "+"):
            self._token = self._next()
        if self._token.kind == "name":
            self.names.add(self._token.text)
        elif self._token.text == "(":
            self._token = self._next()
            self.read_expression(brackets + 1)
            if self._token.text != ")":
                self.expect(")")
        elif self._token.kind != "number":
            self.expect("a metric, a number or a bracket")
        self._token = self._next()

    def expect(self, wanted: str) -> None:
        if self._token.kind != wanted:
            found = repr(self._token.text) if self._token.text else "its end"
            wanted = "an operator or its end" if wanted == END else wanted
            raise Refused(
                f"The formula {self._formula!r} has {found} at position {self._token.place}, "
                f"where {wanted} is expected."
            )

    def _next(self) -> Token:
        match = TOKEN.match(self._formula, self._place)
        if match is None:
            rest = self._formula[self._place :].lstrip(WHITESPACE)
            place = len(self._formula) - len(rest) + 1
            return Token("unknown", rest[0], place) if rest else Token(END, "", place)
        self._place = match.end()
        kind = str(match.lastgroup)
        return Token(kind, match[kind], match.start(kind) + 1)
