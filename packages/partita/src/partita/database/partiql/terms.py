"""The parser of PartiQL's expressions: terms, paths into them, and operators by precedence.

It parses the whole language, including what DynamoDB does not support, because AWS distinguishes
a malformed statement from an unsupported one. The messages are those of partiql-lang-kotlin, the
parser that the service uses; the service's recorded errors agree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from partita.database.partiql.keywords import (
    AGGREGATES,
    FUNCTIONS,
    NOT_PRECEDENCE,
    PRECEDENCE,
    TYPE_ALIASES,
    TYPES,
)
from partita.database.partiql.nodes import (
    DML,
    BagLiteral,
    Call,
    IonLiteral,
    ListLiteral,
    Literal,
    Missing,
    Name,
    Node,
    Operation,
    Parameter,
    Path,
    Place,
    StructLiteral,
    TypeTest,
    Unsupported,
    Wildcard,
    refusal,
)
from partita.database.partiql.tokens import Kind, Token, malformed, tokenize
from partita.limits import STATEMENT_NESTING_MAX

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
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if not self.is_at_end():
            self.position += 1
        return token

    def is_at_end(self) -> bool:
        return self.token.kind is Kind.END

    def accept(self, sign: str) -> bool:
        if self.token.sign != sign:
            return False
        self.position += 1
        return True

    def expect(self, sign: str) -> Token:
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

    def expression(self, precedence: int = -1) -> Node:
        with self.level():
            left = self.unary()
            while precedence < PRECEDENCE.get(self.token.sign, -1):
                left = self.operation(left)
            return left

    def operation(self, left: Node) -> Node:
        """Parse an operator and its right side."""
        token = self.token
        if self.following.kind is Kind.END and token.sign not in ("is", "is_not"):
            raise malformed("Missing right-hand side expression of infix operator")
        self.take()
        operator = NEGATED.get(token.sign, token.sign)
        node = self.right_side(operator, token.place, left)
        return Operation(token.place, "not", (node,)) if token.sign in NEGATED else node

    def right_side(self, operator: str, place: Place, left: Node) -> Node:
        if operator == "is":
            return TypeTest(place, left, self.type_name())
        if operator == "in" and self.token.sign == "(" and not self.is_grouping():
            opening = self.take()
            members = self.listed(self.expression)
            self.expect(")")
            return Operation(place, operator, (left, ListLiteral(opening.place, members)))
        right = self.expression(PRECEDENCE[operator])
        if operator == "between":
            self.expect("and")
            if self.is_at_end():
                raise malformed("Expected expression after AND")
            return Operation(place, operator, (left, right, self.expression(PRECEDENCE[operator])))
        if operator == "like" and self.accept("escape"):
            self.expression(PRECEDENCE[operator])
        if operator in JUNCTIONS and isinstance(left, Operation) and left.operator == operator:
            return Operation(left.place, operator, (*left.operands, right))
        return Operation(place, operator, (left, right))

    def is_grouping(self) -> bool:
        """True when the parenthesis after IN contains a query, not a list."""
        return self.following.sign in ("select", "values")

    def type_name(self) -> str:
        token = self.take()
        name = TYPE_ALIASES.get(token.sign, token.sign)
        if name not in TYPES:
            raise malformed("Expected type name")
        arguments: tuple[Node, ...] = ()
        if self.accept("("):
            arguments = self.listed(self.expression)
            self.expect(")")
        if len(arguments) > TYPES[name]:
            raise malformed(f"CAST for {name} must have arity of 0..{TYPES[name]}")
        if not all(isinstance(node, Literal) and node.text.isdecimal() for node in arguments):
            raise malformed("Type parameter must be an unsigned integer literal")
        return name

    def unary(self) -> Node:
        token = self.token
        if token.sign == "not":
            self.take()
            return Operation(token.place, "not", (self.expression(NOT_PRECEDENCE),))
        if token.sign not in ("+", "-"):
            return self.path()
        self.take()
        with self.level():
            term = self.unary()
        if isinstance(term, Literal) and term.kind == "N":
            return _signed(token.sign, term)
        return Operation(token.place, token.sign, (term,))

    def path(self) -> Node:
        return self.steps(self.term(), is_simple=False)

    def simple_path(self) -> Node:
        """Parse a path that can be assigned to: a name, followed by names and literals."""
        if self.token.kind is not Kind.NAME:
            raise malformed("Expected identifier for simple path")
        token = self.take()
        return self.steps(Name(token.place, token.text), is_simple=True)

    def steps(self, root: Node, *, is_simple: bool) -> Node:
        steps: list[Node] = []
        brackets: list[bool] = []
        while self.token.sign in (".", "["):
            is_bracket = self.take().sign == "["
            steps.append(self.bracket(is_simple) if is_bracket else self.dotted(is_simple))
            brackets.append(is_bracket)
        return Path(None, root, tuple(steps), tuple(brackets)) if steps else root

    def dotted(self, is_simple: bool) -> Node:
        token = self.take()
        if token.kind is Kind.NAME:
            return Name(token.place, token.text)
        if token.sign != "*":
            raise malformed("Invalid path dot component")
        if is_simple:
            raise malformed("Invalid path dot component for simple path")
        return Wildcard(token.place, unpivots=True)

    def bracket(self, is_simple: bool) -> Node:
        token = self.token
        if self.accept("*"):
            step: Node = Wildcard(token.place, unpivots=False)
        else:
            step = self.expression()
        self.expect("]")
        if is_simple and not isinstance(step, (Name, Literal, IonLiteral, Missing)):
            raise malformed("Invalid path component for simple path")
        return step

    def term(self) -> Node:
        token = self.token
        if token.kind in _ATOMS:
            return _ATOMS[token.kind](self, self.take())
        if token.kind is Kind.KEYWORD:
            return self.keyword()
        if token.sign == "@":
            if self.following.kind is not Kind.NAME:
                raise malformed("Identifier must follow @-operator")
            self.take()
            named = self.take()
            return Name(named.place, named.text)
        if token.kind is Kind.OPERATOR:
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

    def name(self, token: Token) -> Node:
        if self.accept("("):
            return Call(token.place, token.text.lower(), self.members(")"))
        return Name(token.place, token.text)

    def parameter(self, token: Token) -> Node:
        self.parameters += 1
        return Parameter(token.place, self.parameters)

    def members(self, closing: str) -> tuple[Node, ...]:
        if self.accept(closing):
            return ()
        members = self.listed(self.expression)
        self.expect(closing)
        return members

    def group(self) -> Node:
        opening = self.take()
        if self.token.sign == ")":
            raise malformed("Unexpected term")
        members = self.listed(self.expression)
        self.expect(")")
        return members[0] if len(members) == 1 else ListLiteral(opening.place, members)

    def struct(self) -> Node:
        opening = self.take()
        if self.accept("}"):
            return StructLiteral(opening.place, ())
        members = self.listed(self.member)
        self.expect("}")
        return StructLiteral(opening.place, members)

    def member(self) -> tuple[Node, Node]:
        name = self.expression()
        self.expect(":")
        return name, self.expression()

    def keyword(self) -> Node:
        token = self.token
        if token.text in ("null", "true", "false"):
            self.take()
            kind = "NULL" if token.text == "null" else "BOOL"
            return Literal(token.place, kind, token.text != "false")
        if token.text == "missing":
            return Missing(self.take().place)
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

    def statement(self) -> Node:
        """Parse a statement in the place of an expression; the statement parser overrides this."""
        raise malformed("Unexpected keyword")

    def function(self) -> Node:
        token = self.take()
        if not self.accept("("):
            raise malformed("Unexpected keyword")
        if token.text in AGGREGATES:
            self.accept("distinct") or self.accept("all")
            if token.text == "count" and self.accept("*"):
                self.expect(")")
            elif len(self.members(")")) != 1 and token.text != "count":
                raise malformed("Aggregate functions are always unary")
            return Unsupported(token.place, token.text, "CallAgg")
        members = self.members(")")
        if token.text in ("list", "bag"):
            return (ListLiteral if token.text == "list" else BagLiteral)(token.place, members)
        if token.text == "sexp":
            return Unsupported(token.place, "Seq", "Seq")
        return Call(token.place, token.text, members)

    def case(self) -> Node:
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
        return Unsupported(token.place, "CASE", "SimpleCase" if is_simple else "SearchedCase")

    def cast(self) -> Node:
        self.take()
        opening = self.token
        if not self.accept("("):
            raise malformed("Missing left parenthesis after CAST")
        self.expression()
        self.expect("as")
        self.type_name()
        self.expect(")")
        return Unsupported(opening.place, "cast", "Typed")

    def date(self) -> Node:
        self.take()
        token = self.take()
        if token.kind is not Kind.STRING:
            raise malformed("Expected date string followed by the keyword DATE, found null")
        return Unsupported(token.place, "UNKNOWN", "Date")

    def row(self) -> Node:
        opening = self.token
        if not self.accept("("):
            raise malformed("Expected LEFT_PAREN for row value constructor")
        return ListLiteral(opening.place, self.members(")"))


_ATOMS: dict[Kind, Callable[[TermParser, Token], Node]] = {
    Kind.NAME: TermParser.name,
    Kind.STRING: lambda parser, token: Literal(token.place, "S", token.text),
    Kind.NUMBER: lambda parser, token: Literal(token.place, "N", token.text),
    Kind.ION: lambda parser, token: IonLiteral(token.place, token.text),
    Kind.PARAMETER: TermParser.parameter,
}


def _signed(sign: str, literal: Literal) -> Literal:
    """Returns a number with a sign in front; two minus signs cancel each other."""
    text = literal.text
    if sign == "-":
        text = text[1:] if text.startswith("-") else f"-{text}"
    return Literal(literal.place, "N", text)
