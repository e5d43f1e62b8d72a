"""The parser of PartiQL's expressions: terms, paths into them, and operators by precedence.

It parses the whole language, including what DynamoDB does not support, because AWS distinguishes
a malformed statement from an unsupported one. The messages are those of partiql-lang-kotlin, the
parser that the service uses; the service's recorded errors agree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from partita.database.operations.partiql.language.syntax.partiql_keywords import (
    AGGREGATES,
    FUNCTIONS,
    NOT_PRECEDENCE,
    PRECEDENCE,
    TYPE_ALIASES,
    TYPES,
)
from partita.database.operations.partiql.language.syntax.statement_tokens import (
    StatementToken,
    StatementTokenKind,
    malformed,
    tokenize,
)
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    DML,
    BagLiteral,
    FunctionCall,
    Identifier,
    IonLiteral,
    ListLiteral,
    Literal,
    MissingKeyword,
    OperatorCall,
    ParameterMarker,
    PathExpression,
    StructLiteral,
    SyntaxNode,
    TokenPlace,
    TypeTest,
    UnsupportedSyntax,
    Wildcard,
    refusal,
)
from partita.foundation.service_limits import STATEMENT_NESTING_MAX

NEGATED = {"is_not": "is", "not_in": "in", "not_between": "between", "not_like": "like"}
JUNCTIONS = ("and", "or")
EXPECTED = {
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
    "as": "AS",
    "by": "BY",
}
CLOSING = {"[": "]", "<<": ">>"}
TOO_DEEP = f"A statement may nest {STATEMENT_NESTING_MAX} levels deep; split or simplify it"

Item = TypeVar("Item")


class TermParser:
    """A recursive-descent parser of expressions."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.position = 0
        self.parameters = 0
        self.depth = 0

    @property
    def token(self) -> StatementToken:
        return self.tokens[self.position]

    @property
    def following(self) -> StatementToken:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def take(self) -> StatementToken:
        token = self.token
        if not self.is_at_end():
            self.position += 1
        return token

    def is_at_end(self) -> bool:
        return self.token.kind is StatementTokenKind.END

    def accept(self, sign: str) -> bool:
        if self.token.sign != sign:
            return False
        self.position += 1
        return True

    def expect(self, sign: str) -> StatementToken:
        if self.token.sign != sign:
            raise malformed(f"Expected {EXPECTED.get(sign, f'{sign.upper()} keyword')}")
        return self.take()

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    @contextmanager
    def level(self) -> Iterator[None]:
        """Enter one level of nesting.

        A statement of 8 KB could nest so deep that Python's stack overflows.
        """
        self.depth += 1
        if self.depth > STATEMENT_NESTING_MAX:
            raise refusal(TOO_DEEP)
        yield
        self.depth -= 1

    def expression(self, precedence: int = -1) -> SyntaxNode:
        with self.level():
            left = self.unary()
            while precedence < PRECEDENCE.get(self.token.sign, -1):
                left = self.operation(left)
            return left

    def operation(self, left: SyntaxNode) -> SyntaxNode:
        """Parse an operator and its right side."""
        token = self.token
        if self.following.kind is StatementTokenKind.END and token.sign not in ("is", "is_not"):
            raise malformed("Missing right-hand side expression of infix operator")
        self.take()
        operator = NEGATED.get(token.sign, token.sign)
        node = self.right_side(operator, token.place, left)
        return OperatorCall(token.place, "not", (node,)) if token.sign in NEGATED else node

    def right_side(self, operator: str, place: TokenPlace, left: SyntaxNode) -> SyntaxNode:
        if operator == "is":
            return TypeTest(place, left, self.type_name())
        if operator == "in" and self.token.sign == "(" and not self.is_grouping():
            opening = self.take()
            members = self.listed(self.expression)
            self.expect(")")
            return OperatorCall(place, operator, (left, ListLiteral(opening.place, members)))
        right = self.expression(PRECEDENCE[operator])
        if operator == "between":
            self.expect("and")
            if self.is_at_end():
                raise malformed("Expected expression after AND")
            return OperatorCall(
                place, operator, (left, right, self.expression(PRECEDENCE[operator]))
            )
        if operator == "like" and self.accept("escape"):
            self.expression(PRECEDENCE[operator])
        if operator in JUNCTIONS and isinstance(left, OperatorCall) and left.operator == operator:
            return OperatorCall(left.place, operator, (*left.operands, right))
        return OperatorCall(place, operator, (left, right))

    def is_grouping(self) -> bool:
        """True when the parenthesis after IN contains a query, not a list."""
        return self.following.sign in ("select", "values")

    def type_name(self) -> str:
        token = self.take()
        name = TYPE_ALIASES.get(token.sign, token.sign)
        if name not in TYPES:
            raise malformed("Expected type name")
        arguments: tuple[SyntaxNode, ...] = ()
        if self.accept("("):
            arguments = self.listed(self.expression)
            self.expect(")")
        if len(arguments) > TYPES[name]:
            raise malformed(f"CAST for {name} must have arity of 0..{TYPES[name]}")
        if not all(isinstance(node, Literal) and node.text.isdecimal() for node in arguments):
            raise malformed("Type parameter must be an unsigned integer literal")
        return name

    def unary(self) -> SyntaxNode:
        token = self.token
        if token.sign == "not":
            self.take()
            return OperatorCall(token.place, "not", (self.expression(NOT_PRECEDENCE),))
        if token.sign not in ("+", "-"):
            return self.path()
        self.take()
        with self.level():
            term = self.unary()
        if isinstance(term, Literal) and term.kind == "N":
            return _signed(token.sign, term)
        return OperatorCall(token.place, token.sign, (term,))

    def path(self) -> SyntaxNode:
        return self.steps(self.term(), is_simple=False)

    def simple_path(self) -> SyntaxNode:
        """Parse a path that can be assigned to: a name, followed by names and literals."""
        if self.token.kind is not StatementTokenKind.NAME:
            raise malformed("Expected identifier for simple path")
        token = self.take()
        return self.steps(Identifier(token.place, token.text), is_simple=True)

    def steps(self, root: SyntaxNode, *, is_simple: bool) -> SyntaxNode:
        steps: list[SyntaxNode] = []
        brackets: list[bool] = []
        while self.token.sign in (".", "["):
            is_bracket = self.take().sign == "["
            steps.append(self.bracket(is_simple) if is_bracket else self.dotted(is_simple))
            brackets.append(is_bracket)
        return PathExpression(None, root, tuple(steps), tuple(brackets)) if steps else root

    def dotted(self, is_simple: bool) -> SyntaxNode:
        token = self.take()
        if token.kind is StatementTokenKind.NAME:
            return Identifier(token.place, token.text)
        if token.sign != "*":
            raise malformed("Invalid path dot component")
        if is_simple:
            raise malformed("Invalid path dot component for simple path")
        return Wildcard(token.place, unpivots=True)

    def bracket(self, is_simple: bool) -> SyntaxNode:
        token = self.token
        if self.accept("*"):
            step: SyntaxNode = Wildcard(token.place, unpivots=False)
        else:
            step = self.expression()
        self.expect("]")
        if is_simple and not isinstance(step, (Identifier, Literal, IonLiteral, MissingKeyword)):
            raise malformed("Invalid path component for simple path")
        return step

    def term(self) -> SyntaxNode:
        token = self.token
        if token.kind in _ATOMS:
            return _ATOMS[token.kind](self, self.take())
        if token.kind is StatementTokenKind.KEYWORD:
            return self.keyword()
        if token.sign == "@":
            if self.following.kind is not StatementTokenKind.NAME:
                raise malformed("Identifier must follow @-operator")
            self.take()
            named = self.take()
            return Identifier(named.place, named.text)
        if token.kind is StatementTokenKind.OPERATOR:
            raise malformed("Unexpected operator")
        if token.sign == "(":
            return self.group()
        if token.sign in CLOSING:
            members = self.members(CLOSING[self.take().sign])
            literal = ListLiteral if token.sign == "[" else BagLiteral
            return literal(token.place, members)
        if token.sign == "{":
            return self.struct()
        raise malformed("Unexpected term")

    def name(self, token: StatementToken) -> SyntaxNode:
        if self.accept("("):
            return FunctionCall(token.place, token.text.lower(), self.members(")"))
        return Identifier(token.place, token.text)

    def parameter(self, token: StatementToken) -> SyntaxNode:
        self.parameters += 1
        return ParameterMarker(token.place, self.parameters)

    def members(self, closing: str) -> tuple[SyntaxNode, ...]:
        if self.accept(closing):
            return ()
        members = self.listed(self.expression)
        self.expect(closing)
        return members

    def group(self) -> SyntaxNode:
        opening = self.take()
        if self.token.sign == ")":
            raise malformed("Unexpected term")
        members = self.listed(self.expression)
        self.expect(")")
        return members[0] if len(members) == 1 else ListLiteral(opening.place, members)

    def struct(self) -> SyntaxNode:
        opening = self.take()
        if self.accept("}"):
            return StructLiteral(opening.place, ())
        members = self.listed(self.member)
        self.expect("}")
        return StructLiteral(opening.place, members)

    def member(self) -> tuple[SyntaxNode, SyntaxNode]:
        name = self.expression()
        self.expect(":")
        return name, self.expression()

    def keyword(self) -> SyntaxNode:
        token = self.token
        if token.text in ("null", "true", "false"):
            self.take()
            kind = "NULL" if token.text == "null" else "BOOL"
            return Literal(token.place, kind, token.text != "false")
        if token.text == "missing":
            return MissingKeyword(self.take().place)
        if token.text == "case":
            return self.case()
        if token.text == "cast":
            return self.cast()
        if token.text == "date":
            return self.date()
        if token.text == "values":
            self.take()
            return ListLiteral(token.place, self.listed(self.row))
        if token.text in FUNCTIONS:
            return self.function()
        is_first = all(token.sign == "(" for token in self.tokens[: self.position])
        statement = self.statement()
        if isinstance(statement, DML) and not is_first:
            raise malformed(
                f"Keyword {token.text.upper()} only expected at the top level in the query"
            )
        return statement

    def statement(self) -> SyntaxNode:
        """Parse a statement in the place of an expression; the statement parser overrides this."""
        raise malformed("Unexpected keyword")

    def function(self) -> SyntaxNode:
        token = self.take()
        if not self.accept("("):
            raise malformed("Unexpected keyword")
        if token.text in AGGREGATES:
            self.accept("distinct") or self.accept("all")
            if token.text == "count" and self.accept("*"):
                self.expect(")")
            elif len(self.members(")")) != 1 and token.text != "count":
                raise malformed("Aggregate functions are always unary")
            return UnsupportedSyntax(token.place, token.text, "CallAgg")
        members = self.members(")")
        if token.text in ("list", "bag"):
            return (ListLiteral if token.text == "list" else BagLiteral)(token.place, members)
        if token.text == "sexp":
            return UnsupportedSyntax(token.place, "Seq", "Seq")
        return FunctionCall(token.place, token.text, members)

    def case(self) -> SyntaxNode:
        token = self.take()
        is_simple = self.token.sign != "when"
        if is_simple:
            self.expression()
        if self.token.sign != "when":
            raise malformed("Expected a WHEN clause in CASE")
        while self.accept("when"):
            self.expression()
            self.expect("then")
            self.expression()
        if self.accept("else"):
            self.expression()
        self.expect("end")
        return UnsupportedSyntax(token.place, "CASE", "SimpleCase" if is_simple else "SearchedCase")

    def cast(self) -> SyntaxNode:
        self.take()
        opening = self.token
        if not self.accept("("):
            raise malformed("Missing left parenthesis after CAST")
        self.expression()
        self.expect("as")
        self.type_name()
        self.expect(")")
        return UnsupportedSyntax(opening.place, "cast", "Typed")

    def date(self) -> SyntaxNode:
        self.take()
        token = self.take()
        if token.kind is not StatementTokenKind.STRING:
            raise malformed("Expected date string followed by the keyword DATE, found null")
        return UnsupportedSyntax(token.place, "UNKNOWN", "Date")

    def row(self) -> SyntaxNode:
        opening = self.token
        if not self.accept("("):
            raise malformed("Expected LEFT_PAREN for row value constructor")
        return ListLiteral(opening.place, self.members(")"))


_ATOMS: dict[StatementTokenKind, Callable[[TermParser, StatementToken], SyntaxNode]] = {
    StatementTokenKind.NAME: TermParser.name,
    StatementTokenKind.STRING: lambda parser, token: Literal(token.place, "S", token.text),
    StatementTokenKind.NUMBER: lambda parser, token: Literal(token.place, "N", token.text),
    StatementTokenKind.ION: lambda parser, token: IonLiteral(token.place, token.text),
    StatementTokenKind.PARAMETER: TermParser.parameter,
}


def _signed(sign: str, literal: Literal) -> Literal:
    """Returns a number with a sign in front; two minus signs cancel each other."""
    text = literal.text
    if sign == "-":
        text = text[1:] if text.startswith("-") else f"-{text}"
    return Literal(literal.place, "N", text)
