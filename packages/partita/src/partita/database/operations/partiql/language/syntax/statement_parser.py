"""The parser of statements: SELECT, INSERT, UPDATE, DELETE, and those that are only refused.

The grammar is all of PartiQL's, because AWS distinguishes malformed statements from those that it
does not support.
"""

from __future__ import annotations

from partita.database.expressions.name_resolution import NameItems, cached
from partita.database.operations.partiql.language.syntax.partiql_keywords import (
    JOINS,
    SELECT_PRECEDENCE,
)
from partita.database.operations.partiql.language.syntax.statement_tokens import (
    StatementTokenKind,
    malformed,
)
from partita.database.operations.partiql.language.syntax.syntax_tree import (
    Assignment,
    DeleteSyntax,
    FromSource,
    Identifier,
    InsertSyntax,
    Literal,
    OrderTerm,
    PathExpression,
    Removal,
    ReturningClause,
    SelectColumn,
    SelectSyntax,
    SyntaxNode,
    TokenPlace,
    UnsupportedClause,
    UnsupportedSyntax,
    UpdateSyntax,
    Wildcard,
    depth_of,
    refusal,
)
from partita.database.operations.partiql.language.syntax.term_parser import TOO_DEEP, TermParser
from partita.foundation.service_limits import STATEMENT_NESTING_MAX

STATEMENT_DEPTH_MAX = 2 * STATEMENT_NESTING_MAX
RETURNED = ("modified_old", "modified_new", "all_old", "all_new")
NO_DML = "Expected data manipulation"


def parse(text: str) -> SyntaxNode:
    """Returns the tree of a statement, from the cache if it was parsed before."""
    return _parsed(text, (), "")


@cached
def _parsed(text: str, names: NameItems, parameter: str) -> SyntaxNode:
    parser = StatementParser(text)
    node = parser.expression()
    if parser.accept(";") and not parser.is_at_end():
        raise malformed("Unexpected token after semicolon. (Only one query is allowed.)")
    if not parser.is_at_end():
        raise malformed("Unexpected token after expression")
    # A tree cannot have more levels than tokens, so most trees need not be measured.
    if len(parser.tokens) > STATEMENT_DEPTH_MAX and depth_of(node) > STATEMENT_DEPTH_MAX:
        raise refusal(TOO_DEEP)
    return node


class StatementParser(TermParser):
    def statement(self) -> SyntaxNode:
        rules = {
            "select": self.select,
            "pivot": self.pivot,
            "insert_into": self.manipulation,
            "set": self.manipulation,
            "remove": self.manipulation,
            "update": self.update,
            "delete": self.delete,
            "from": self.from_first,
            "create": self.create,
            "drop": self.drop,
            "exec": self.exec,
        }
        rule = rules.get(self.token.text)
        if rule is None:
            raise malformed("Unexpected keyword")
        return rule(self.token.place)

    def select(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        is_distinct = self.accept("distinct")
        if not is_distinct:
            self.accept("all")
        if self.accept("value"):
            self.expression()
            return self.after_projection(place, (), is_distinct=is_distinct, has_rows=False)
        columns = self.listed(self.column)
        if all(columns):
            shown = tuple(column for column in columns if column)
            return self.after_projection(place, shown, is_distinct=is_distinct, has_rows=True)
        if len(columns) > 1:
            raise malformed(
                "Other expressions may not be present in the select list when '*' is used without "
                "dot notation."
            )
        return self.after_projection(place, None, is_distinct=is_distinct, has_rows=True)

    def pivot(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        self.expression()
        self.expect("at")
        self.expression()
        return self.after_projection(place, (), is_distinct=False, has_rows=False)

    def column(self) -> SelectColumn | None:
        """Parse one column; None for `*`."""
        place = self.token.place
        if self.accept("*"):
            return None
        node = self.expression()
        is_spread = isinstance(node, PathExpression) and _spreads(node)
        return SelectColumn(place, node, self.alias("as"), is_spread)

    def alias(self, keyword: str) -> bool:
        if self.accept(keyword):
            if self.token.kind is not StatementTokenKind.NAME:
                raise malformed(f"Expected identifier for {keyword.upper()}-alias")
        elif keyword != "as" or self.token.kind is not StatementTokenKind.NAME:
            return False
        self.take()
        return True

    def after_projection(
        self,
        place: TokenPlace,
        columns: tuple[SelectColumn, ...] | None,
        *,
        is_distinct: bool,
        has_rows: bool,
    ) -> SyntaxNode:
        if not self.accept("from"):
            raise malformed("Expected FROM after SELECT list")
        source = self.from_source(SELECT_PRECEDENCE)
        unsupported: list[UnsupportedClause] = []
        if self.accept("let"):
            self.listed(self.binding)
        where = self.expression(SELECT_PRECEDENCE) if self.accept("where") else None
        order_by: tuple[OrderTerm, ...] = ()
        if self.accept("order"):
            self.expect("by")
            order_by = self.listed(self.sorting)
        if self.accept("group"):
            self.group_by()
            unsupported.append(UnsupportedClause(None, "GROUP BY"))
        for keyword in ("having", "limit"):
            if self.accept(keyword):
                clause = self.expression(SELECT_PRECEDENCE)
                unsupported.append(UnsupportedClause(clause.place, keyword.upper()))
        return SelectSyntax(
            place, columns, source, where, order_by, is_distinct, has_rows, tuple(unsupported)
        )

    def binding(self) -> None:
        self.expression()
        if not self.accept("as"):
            raise malformed("Expected AS following LET expr")
        if self.take().kind is not StatementTokenKind.NAME:
            raise malformed("Expected identifier for AS-alias")

    def group_by(self) -> None:
        self.accept("partial")
        self.expect("by")
        for key in self.listed(self.group_key):
            if isinstance(key, Literal):
                raise malformed("Literals (including ordinals) not supported in GROUP BY")
        if self.accept("group"):
            self.expect("as")
            if self.take().kind is not StatementTokenKind.NAME:
                raise malformed("Expected identifier for GROUP name")

    def group_key(self) -> SyntaxNode:
        key = self.expression(SELECT_PRECEDENCE)
        self.alias("as")
        return key

    def sorting(self) -> OrderTerm:
        expression = self.expression()
        is_descending = self.token.sign == "desc"
        if self.token.sign in ("asc", "desc"):
            self.take()
        return OrderTerm(expression.place, expression, is_descending)

    def from_source(self, precedence: int = -1) -> FromSource:
        source = self.single_source(precedence)
        while self.token.sign == "," or self.token.sign in JOINS:
            joined = self.take().sign
            self.single_source(precedence)
            if joined != "," and "cross" not in joined:
                if not self.accept("on"):
                    raise malformed("Expected 'ON'")
                self.expression(precedence)
            source = FromSource(None, None, is_aliased=False)
        return source

    def single_source(self, precedence: int) -> FromSource:
        place = self.token.place
        if self.accept("unpivot"):
            self.expression(precedence)
            source = FromSource(place, None, is_aliased=False)
        elif self.token.sign == "(" and not self.opens_query():
            self.take()
            with self.level():
                source = self.from_source(precedence)
            self.expect(")")
        else:
            source = FromSource(place, self.expression(precedence), is_aliased=False)
        is_aliased = [self.alias(keyword) for keyword in ("as", "at", "by")]
        return FromSource(place, source.expression, source.is_aliased or any(is_aliased))

    def opens_query(self) -> bool:
        literals = (StatementTokenKind.STRING, StatementTokenKind.NUMBER, StatementTokenKind.ION)
        return self.following.kind in literals or self.following.sign == "select"

    def from_first(self, place: TokenPlace) -> SyntaxNode:
        """Parse `FROM table WHERE condition SET ...`, the other syntax of an update."""
        self.take()
        source = self.from_source()
        where = self.condition()
        actions = self.manipulations()
        return UpdateSyntax(place, source, actions, where, self.returning())

    def manipulation(self, place: TokenPlace) -> SyntaxNode:
        """Parse a statement that begins with SET, REMOVE or INSERT INTO.

        SET and REMOVE have no table here, and are refused when the statement is compiled.
        """
        if self.token.text == "insert_into":
            return self.insert(place)
        return UpdateSyntax(place, None, self.manipulations(), None, None)

    def manipulations(self) -> tuple[SyntaxNode, ...]:
        actions: list[SyntaxNode] = []
        while True:
            place = self.token.place
            if self.accept("set"):
                actions += self.listed(self.assignment)
            elif self.accept("remove"):
                actions.append(Removal(place, self.simple_path()))
            elif self.token.sign == "insert_into":
                actions.append(self.insert(place))
            elif actions:
                return tuple(actions)
            else:
                raise malformed(NO_DML)

    def assignment(self) -> Assignment:
        place = self.token.place
        target = self.simple_path()
        if not self.accept("="):
            raise malformed("Expected '='")
        return Assignment(place, target, self.expression())

    def insert(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        target = self.simple_path()
        if not self.accept("value"):
            self.expression()
            return InsertSyntax(place, target, None, False, False, False)
        item = self.expression()
        has_position = self.accept("at")
        if has_position:
            self.expression()
        has_conflict = self.accept("on_conflict")
        if has_conflict:
            self.conflict()
        return InsertSyntax(
            place, target, item, has_position, has_conflict, self.returning() is not None
        )

    def conflict(self) -> None:
        if not self.accept("where"):
            raise malformed("invalid ON CONFLICT syntax")
        self.expression()
        if not self.accept("do_nothing"):
            raise malformed("invalid ON CONFLICT syntax")

    def update(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        source = self.target()
        actions = self.manipulations()
        where = self.condition()
        return UpdateSyntax(place, source, actions, where, self.returning())

    def delete(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        if not self.accept("from"):
            raise malformed("Expected FROM after DELETE")
        source = self.target()
        where = self.condition()
        return DeleteSyntax(place, source, where, self.returning())

    def target(self) -> FromSource:
        place = self.token.place
        expression = self.simple_path()
        is_aliased = [self.alias(keyword) for keyword in ("as", "at", "by")]
        return FromSource(place, expression, any(is_aliased))

    def condition(self) -> SyntaxNode | None:
        return self.expression() if self.accept("where") else None

    def returning(self) -> ReturningClause | None:
        place = self.token.place
        if not self.accept("returning"):
            return None
        elements = self.listed(self.returned)
        mapping, is_everything = elements[0]
        return ReturningClause(place, mapping, is_everything, len(elements) == 1)

    def returned(self) -> tuple[str, bool]:
        mapping = self.take().sign
        if mapping not in RETURNED:
            raise malformed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.")
        if self.accept("*"):
            return mapping, True
        column = self.expression()
        if isinstance(column, PathExpression) and len(column.steps) > 1:
            raise malformed("More than two paths in RETURNING columns.")
        if not isinstance(column, (PathExpression, Identifier, Literal)):
            raise malformed("Unsupported syntax in RETURNING columns.")
        return mapping, False

    def create(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        kind = self.take().sign
        if kind == "table":
            self.identifier("Expected identifier!")
            return self.last(UnsupportedSyntax(place, "CREATE", "CreateTable"))
        if kind != "index":
            raise malformed("Unexpected token following CREATE")
        self.on()
        self.identifier("Index target must be an identifier")
        if not self.accept("("):
            raise malformed("Expected parenthesis for keys")
        self.listed(self.simple_path)
        self.expect(")")
        return self.last(UnsupportedSyntax(place, "CREATE", "CreateIndex"))

    def drop(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        kind = self.take().sign
        if kind not in ("table", "index"):
            raise malformed("Unexpected token following DROP")
        self.identifier("Expected identifier!")
        if kind == "table":
            return self.last(UnsupportedSyntax(place, "DROP", "DropTable"))
        self.on()
        self.identifier("Table target must be an identifier")
        return self.last(UnsupportedSyntax(place, "DROP", "DropIndex"))

    def identifier(self, message: str) -> None:
        if self.take().kind is not StatementTokenKind.NAME:
            raise malformed(message)

    def on(self) -> None:
        if not self.accept("on"):
            raise malformed("Expected ON")

    def last(self, node: SyntaxNode) -> SyntaxNode:
        statement = (
            "CREATE" if isinstance(node, UnsupportedSyntax) and node.token == "CREATE" else "DROP"
        )
        if not self.is_at_end() and self.token.sign != ";":
            raise malformed(f"Unexpected tokens after {statement} statement!")
        return node

    def exec(self, place: TokenPlace) -> SyntaxNode:
        self.take()
        if self.is_at_end():
            raise malformed("No stored procedure provided")
        self.take()
        if self.token.sign == "(":
            raise malformed("Unexpected LEFT_PAREN found following stored procedure call")
        if not self.is_at_end():
            self.listed(self.expression)
        return UnsupportedSyntax(place, "EXEC", "Exec")


def _spreads(path: PathExpression) -> bool:
    """True for a column `a.*`; raises for a star anywhere else in a path."""
    for position, step in enumerate(path.steps):
        if not isinstance(step, Wildcard):
            continue
        if not step.unpivots or position < len(path.steps) - 1:
            raise malformed("Invalid use of * in select list")
        if any(path.brackets):
            raise malformed("Cannot use [] and * together in SELECT list expression")
        return True
    return False
