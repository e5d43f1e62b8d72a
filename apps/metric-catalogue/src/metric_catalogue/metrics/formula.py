"""Parses and evaluates the formulas of hybrid metrics, such as `100 * late / (all + 1)`.

expression = term   { ("+" | "-") term }
term       = factor { ("*" | "/") factor }
factor     = { "-" | "+" } ( number | name | "(" expression ")" )
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from operator import add, mul, sub, truediv
from typing import NamedTuple

from metric_catalogue.metrics.catalogue_errors import RequestRefused

BRACKETS_MAX = 50
WHITESPACE = " \t\n\r\f\v"
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?![A-Za-z_0-9])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<sign>[-+*/()]))",
    re.ASCII,
)
OPERATORS = ("+-", "*/")
EXPONENT_MAX = 1000
"""The largest exponent of a number in a formula. DynamoDB's numbers end at 1E+126, and fractions
with huge exponents would take gigabytes of memory."""
PROGRAMS_MAX = 50_000


class FormulaToken(NamedTuple):
    kind: str
    text: str
    place: int
    """The position in the formula, counted from 1."""


END = "end"


class FormulaInstruction(NamedTuple):
    """Pushes a constant, pushes the value of a metric, or applies an operator; exactly one field is
    set."""

    constant: Fraction | None = None
    name: str | None = None
    operator: str | None = None


Program = tuple[FormulaInstruction, ...]
"""A formula in postfix order: each instruction works on a stack."""
ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
}
NEGATE = "negate"


@lru_cache(PROGRAMS_MAX)
def compiled(formula: str) -> Program:
    """Compiles a formula. Raises an error with the position when it is not valid."""
    reader = _FormulaParser(formula)
    reader.read_expression(0)
    reader.expect(END)
    return tuple(reader.program)


def evaluate(program: Program, values: Mapping[str, Fraction]) -> Fraction:
    """Returns the exact result. Raises ZeroDivisionError."""
    stack: list[Fraction] = []
    for constant, name, operator in program:
        if constant is not None:
            stack.append(constant)
        elif name is not None:
            stack.append(values[name])
        elif operator == NEGATE:
            stack.append(-stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(ARITHMETIC[str(operator)](left, right))
    return stack.pop()


def names_in(program: Program) -> tuple[str, ...]:
    """Returns the names of the metrics in a program, sorted."""
    return tuple(sorted({step.name for step in program if step.name is not None}))


def consumed_metrics(formula: str) -> tuple[str, ...]:
    """Returns the names of the metrics in a formula, sorted. Raises RequestRefused when the formula
    is not valid or uses no metric."""
    names = names_in(compiled(formula))
    if not names:
        raise RequestRefused(f"The formula {formula!r} uses no metric.")
    return names


class _FormulaParser:
    def __init__(self, formula: str) -> None:
        self.program: list[FormulaInstruction] = []
        self._formula = formula
        self._place = 0
        self._token = self._next()

    def read_expression(self, brackets: int, level: int = 0) -> None:
        if brackets > BRACKETS_MAX:
            raise RequestRefused(
                f"Brackets in a formula may be nested at most {BRACKETS_MAX} deep."
            )
        self._read_operand(brackets, level)
        while self._token.kind == "sign" and self._token.text in OPERATORS[level]:
            operator = self._token.text
            self._token = self._next()
            self._read_operand(brackets, level)
            self.program.append(FormulaInstruction(operator=operator))

    def _read_operand(self, brackets: int, level: int) -> None:
        if level + 1 < len(OPERATORS):
            self.read_expression(brackets, level + 1)
        else:
            self._read_factor(brackets)

    def _read_factor(self, brackets: int) -> None:
        is_negative = False
        while self._token.text in ("-", "+"):
            is_negative ^= self._token.text == "-"
            self._token = self._next()
        if self._token.kind == "name":
            self.program.append(FormulaInstruction(name=self._token.text))
        elif self._token.text == "(":
            self._token = self._next()
            self.read_expression(brackets + 1)
            if self._token.text != ")":
                self.expect(")")
        elif self._token.kind == "number":
            self.program.append(FormulaInstruction(constant=self._constant()))
        else:
            self.expect("a metric, a number or a bracket")
        if is_negative:
            self.program.append(FormulaInstruction(operator=NEGATE))
        self._token = self._next()

    def _constant(self) -> Fraction:
        exponent = self._token.text.lower().partition("e")[2].lstrip("+-0")
        if len(exponent) > len(str(EXPONENT_MAX)) or int(exponent or 0) > EXPONENT_MAX:
            raise RequestRefused(
                f"The number {self._token.text} in a formula is too large or too small."
            )
        return Fraction(Decimal(self._token.text))

    def expect(self, expected: str) -> None:
        if self._token.kind != expected:
            actual = repr(self._token.text) if self._token.text else "its end"
            expected = "an operator or its end" if expected == END else expected
            raise RequestRefused(
                f"The formula {self._formula!r} has {actual} at position {self._token.place}, "
                f"where {expected} is expected."
            )

    def _next(self) -> FormulaToken:
        match = TOKEN.match(self._formula, self._place)
        if match is None:
            rest = self._formula[self._place :].lstrip(WHITESPACE)
            place = len(self._formula) - len(rest) + 1
            return FormulaToken("unknown", rest[0], place) if rest else FormulaToken(END, "", place)
        self._place = match.end()
        kind = str(match.lastgroup)
        return FormulaToken(kind, match[kind], match.start(kind) + 1)
