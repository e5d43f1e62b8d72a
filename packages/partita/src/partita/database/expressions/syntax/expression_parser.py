"""The syntax trees of expressions, and the parser that builds them.

The parser keeps its own stack of open parentheses, so that an expression with four thousand of
them does not overflow Python's. The tree is only as deep as its operators, whose number is limited.
Like the service, the parser stops at the first token that no rule accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from partita.database.expressions.syntax.expression_tokens import (
    COMPARATORS,
    ExpressionToken,
    TokenKind,
    syntax_error,
    tokenize,
)

REDUNDANT_PARENTHESES: Final = "The expression has redundant parentheses;"
SECTIONS: Final = ("SET", "REMOVE", "ADD", "DELETE")


class InvalidExpression(Exception):
    """Raised for an invalid expression; the caller adds which parameter it is (see `invalid`)."""


@dataclass(frozen=True, slots=True)
class PathNode:
    """A document path as written: placeholders unresolved, list indexes as numbers."""

    elements: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ValueNode:
    """The placeholder of a value, such as `:v`."""

    name: str


@dataclass(frozen=True, slots=True)
class CallNode:
    function: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class ComparisonNode:
    """A comparator, BETWEEN or IN over its operands."""

    operator: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class NotNode:
    term: ConditionNode


@dataclass(frozen=True, slots=True)
class JunctionNode:
    """AND or OR of two or more terms."""

    operator: str
    terms: tuple[ConditionNode, ...]


@dataclass(frozen=True, slots=True)
class SumNode:
    """A sum or difference of two operands; only PartiQL nests them."""

    operator: str
    operands: tuple[Assigned, Assigned]


Operand = PathNode | ValueNode | CallNode
Assigned = PathNode | ValueNode | CallNode | SumNode
ConditionNode = CallNode | ComparisonNode | NotNode | JunctionNode
Node = PathNode | ValueNode | CallNode | ComparisonNode | NotNode | JunctionNode | SumNode


@dataclass(frozen=True, slots=True)
class ActionNode:
    """One action of an update expression; `section` is SET, REMOVE, ADD or DELETE."""

    section: str
    target: PathNode
    value: Assigned | None = None


@dataclass(frozen=True, slots=True)
class UpdateNode:
    sections: tuple[str, ...]
    actions: tuple[ActionNode, ...]
    operator_count: int


def parse_condition(text: str) -> tuple[ConditionNode, int]:
    """Returns the tree of a condition, and how many operators and functions it has."""
    parser = _Parser(text)
    node = parser.nested(_Conditions(is_outermost=True))
    parser.finish()
    assert isinstance(node, ConditionNode)
    return node, parser.operator_count


def parse_projection(text: str) -> list[PathNode]:
    parser = _Parser(text)
    paths = [parser.path()]
    while parser.accept(","):
        paths.append(parser.path())
    parser.finish()
    return paths


def parse_update(text: str) -> UpdateNode:
    parser = _Parser(text)
    sections: list[str] = []
    actions: list[ActionNode] = []
    while not sections or parser.token.kind is not TokenKind.END:
        section = parser.token.sign
        if section not in SECTIONS:
            parser.refuse()
        parser.position += 1
        sections.append(section)
        actions.append(_action(parser, section))
        while parser.accept(","):
            actions.append(_action(parser, section))
    parser.finish()
    return UpdateNode(tuple(sections), tuple(actions), parser.operator_count)


def _action(parser: _Parser, section: str) -> ActionNode:
    target = parser.path()
    if section == "REMOVE":
        return ActionNode(section, target)
    if section != "SET":
        return ActionNode(section, target, parser.value())
    parser.expect("=")
    value = parser.nested(_Sum(is_outermost=True))
    parser.settle()
    assert isinstance(value, Assigned)
    return ActionNode(section, target, value)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.position = 0
        self.operator_count = 0
        self.is_redundant = False

    @property
    def token(self) -> ExpressionToken:
        return self.tokens[self.position]

    def refuse(self) -> NoReturn:
        raise InvalidExpression(syntax_error(self.text, self.tokens, self.position))

    def accept(self, sign: str) -> bool:
        if self.tokens[self.position].sign != sign:
            return False
        self.position += 1
        return True

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.refuse()

    def take(self, *kinds: TokenKind) -> str:
        token = self.token
        if token.kind not in kinds:
            self.refuse()
        self.position += 1
        return token.text

    def finish(self) -> None:
        if self.token.kind is not TokenKind.END:
            self.refuse()
        self.settle()

    def settle(self) -> None:
        """Refuse redundant parentheses that were found so far.

        Parentheses around an operand are not refused at once: the service looks ahead to tell
        operands from conditions, so it reports an error that comes shortly after them first.
        """
        if self.is_redundant:
            raise InvalidExpression(REDUNDANT_PARENTHESES)

    def path(self) -> PathNode:
        elements: list[str | int] = [self.take(TokenKind.WORD, TokenKind.NAME)]
        while True:
            if self.accept("."):
                # The service's grammar allows a value placeholder here; later, its name lookup
                # fails.
                elements.append(self.take(TokenKind.WORD, TokenKind.NAME, TokenKind.VALUE))
            elif self.accept("["):
                elements.append(int(self.take(TokenKind.INDEX)))
                self.expect("]")
            else:
                return PathNode(tuple(elements))

    def value(self) -> ValueNode:
        return ValueNode(self.take(TokenKind.VALUE))

    def nested(self, outermost: _Level) -> Node:
        """Parse an expression with parentheses.

        After each term, the innermost open level decides what the next token means.
        """
        levels = [outermost]
        while True:
            opened = self._opened(levels[-1])
            if opened:
                levels.append(opened)
                continue
            node: Node | None = self.value() if self.token.kind is TokenKind.VALUE else self.path()
            is_wrapped = False
            while node is not None:
                level = levels[-1]
                result = level.receive(self, node, is_wrapped)
                if isinstance(result, _Level):
                    levels.append(result)
                    break
                node = result
                if node is not None:
                    if len(levels) == 1:
                        return node
                    levels.pop()
                    is_wrapped = level.is_parenthesis

    def _opened(self, level: _Level) -> _Level | None:
        level.begin(self)
        if self.accept("("):
            return level.parenthesis()
        if self.token.kind is TokenKind.WORD and self.tokens[self.position + 1].sign == "(":
            function = self.token.text
            self.position += 2
            return _Call(function)
        return None

    def close(self, node: Node, is_wrapped: bool) -> Node:
        self.expect(")")
        self.is_redundant |= is_wrapped
        if not isinstance(node, Operand):
            self.settle()
        return node


class _Level:
    """The parser's state inside one pair of parentheses, or outside of all."""

    is_parenthesis = True

    def begin(self, parser: _Parser) -> None:
        """Called before each term."""

    def parenthesis(self) -> _Level:
        """Returns the level that an opening parenthesis begins, where a term is expected."""
        return _Group()

    def receive(self, parser: _Parser, node: Node, is_wrapped: bool) -> Node | _Level | None:
        """Called after each term.

        Returns the level's result, or a new level, or None if another term must follow.
        """
        raise NotImplementedError


class _Group(_Level):
    """Parentheses around one operand."""

    def receive(self, parser: _Parser, node: Node, is_wrapped: bool) -> Node | _Level | None:
        return parser.close(node, is_wrapped)


class _Operands(_Level):
    """Operands separated by commas, up to the closing parenthesis."""

    is_parenthesis = False

    def __init__(self, *operands: Operand) -> None:
        self.operands = list(operands)

    def receive(self, parser: _Parser, node: Node, is_wrapped: bool) -> Node | _Level | None:
        assert isinstance(node, Operand)
        self.operands.append(node)
        if parser.accept(","):
            return None
        parser.expect(")")
        parser.operator_count += 1
        return self.result()

    def result(self) -> Node:
        return ComparisonNode("IN", tuple(self.operands))


class _Call(_Operands):
    def __init__(self, function: str) -> None:
        super().__init__()
        self.function = function

    def result(self) -> Node:
        return CallNode(self.function, tuple(self.operands))


class _Sum(_Level):
    """The right side of SET: an operand, or a sum or difference of two, perhaps in parentheses."""

    def __init__(self, is_outermost: bool = False) -> None:
        self.is_outermost = is_outermost
        self.left: Operand | None = None
        self.operator = ""

    def parenthesis(self) -> _Level:
        return _Group() if self.left else _Sum()

    def receive(self, parser: _Parser, node: Node, is_wrapped: bool) -> Node | _Level | None:
        if self.left is not None:
            assert isinstance(node, Operand)
            node, is_wrapped = SumNode(self.operator, (self.left, node)), False
            parser.operator_count += 1
        elif isinstance(node, Operand) and parser.token.sign in ("+", "-"):
            self.left, self.operator = node, parser.token.sign
            parser.position += 1
            return None
        return node if self.is_outermost else parser.close(node, is_wrapped)


class _Conditions(_Level):
    """Tests joined by AND and OR.

    In parentheses it may turn out to be just an operand, as in `(a) = :v`.
    """

    def __init__(self, is_outermost: bool = False) -> None:
        self.is_outermost = is_outermost
        self.alternatives: list[list[ConditionNode]] = [[]]
        self.negations = 0
        self.operator = ""
        self.operands: list[Operand] = []

    def begin(self, parser: _Parser) -> None:
        while not self.operator and parser.accept("NOT"):
            self.negations += 1
            parser.operator_count += 1

    def parenthesis(self) -> _Level:
        return _Group() if self.operator else _Conditions()

    def receive(self, parser: _Parser, node: Node, is_wrapped: bool) -> Node | _Level | None:
        if isinstance(node, Operand):
            if self.operator:
                parser.settle()
                self.operands.append(node)
                if self.operator == "BETWEEN" and len(self.operands) == 2:
                    parser.expect("AND")
                    return None
                node, is_wrapped = ComparisonNode(self.operator, tuple(self.operands)), False
                parser.operator_count += 1
                self.operator, self.operands = "", []
            elif parser.accept("IN"):
                parser.settle()
                parser.expect("(")
                return _Operands(node)
            elif parser.token.sign in COMPARATORS or parser.token.sign == "BETWEEN":
                parser.settle()
                self.operator, self.operands = parser.token.sign, [node]
                parser.position += 1
                return None
            elif not isinstance(node, CallNode):
                if self.is_outermost or self.negations or self.alternatives != [[]]:
                    parser.refuse()
                return parser.close(node, is_wrapped)
        assert isinstance(node, ConditionNode)
        return self._join(parser, node, is_wrapped)

    def _join(self, parser: _Parser, node: ConditionNode, is_wrapped: bool) -> Node | None:
        is_alone = not self.negations and self.alternatives == [[]]
        for _ in range(self.negations):
            node = NotNode(node)
        self.negations = 0
        self.alternatives[-1].append(node)
        if parser.accept("AND"):
            parser.settle()
            parser.operator_count += 1
            return None
        if parser.accept("OR"):
            parser.settle()
            parser.operator_count += 1
            self.alternatives.append([])
            return None
        terms = tuple(_junction("AND", terms) for terms in self.alternatives)
        condition = _junction("OR", terms)
        return condition if self.is_outermost else parser.close(condition, is_wrapped and is_alone)


def _junction(operator: str, terms: Sequence[ConditionNode]) -> ConditionNode:
    return terms[0] if len(terms) == 1 else JunctionNode(operator, tuple(terms))
