"""SQL to its exact words. What cannot be said with them is refused with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain, product
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from partita.migrate.statements.flattening import flattened
from partita.migrate.statements.question import (
    Change,
    Constant,
    Existence,
    Insertion,
    JoinedTable,
    Modification,
    NotExact,
    OnConflict,
    Operator,
    Parameter,
    Question,
    Sorting,
    Statement,
    Test,
    Value,
)
from partita.migrate.understanding.patterns.mining.lookup import SchemaLookup
from partita.migrate.understanding.patterns.mining.shapes import shapes_of
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.inventory import Column, Table, is_derived
from partita.migrate.understanding.schema.relationships import is_unique

_SKIPPED = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|/\*.*?\*/|--[^\n]*|::)"""
    r"|(\$\d+|%s|%\(\w+\)s|\?(?![|&?])|(?<![:\w]):[A-Za-z_]\w*|@p\d+)",
    re.DOTALL,
)
_COMPARED: dict[type[exp.Expression], tuple[Operator, Operator]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""Each with the operator that says the same with its sides exchanged."""
_OPPOSITES: dict[Operator, Operator] = {
    "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip
_SUFFIXES: dict[Operator, str] = {">": ".from", ">=": ".from", "<": ".to", "<=": ".to"}
_JOIN_KINDS = ("", "INNER", "OUTER", "CROSS", "STRAIGHT_JOIN")
_REFUSED: tuple[tuple[type[exp.Expression], str], ...] = (
    (exp.Union, "it combines several SELECTs"),
    (exp.Window, "it computes over a window of rows"),
    (exp.With, "it has a common table expression"),
)


_ON_CONFLICT = ("conflict", "ignore", "alternative")
_FORMS: dict[type[exp.Expression], str] = {exp.Lower: "lower", exp.Upper: "upper"}
_REPLACE = re.compile(r"\s*REPLACE\s+INTO\s+", re.IGNORECASE)
_OF_CONFLICT = ("constraint", "index_predicate", "where")
_IN_CONFLICT = ("VALUES", "VALUE")
"""MySQL's functions for the value that would have been inserted."""
ALTERNATIVES_MAX = 8
"""Of requests that one statement becomes."""
_BOTH_SIDES = ("this", "expression")
_PARTS: dict[type[Any], tuple[str, ...]] = {
    exp.Select: ("expressions", "from_", "joins", "where", "group", "having", "order", "limit",
                 "offset", "distinct", "locks"),
    exp.Insert: ("this", "expression", "returning", *_ON_CONFLICT),
    exp.Update: ("this", "expressions", "where", "returning"),
    exp.Delete: ("this", "where", "returning"),
    exp.Table: ("this", "db", "catalog", "alias", "hints"),
    exp.Join: ("this", "side", "kind", "on", "using"),
    exp.In: ("this", "expressions", "query"),
    exp.Between: ("this", "low", "high"),
    exp.Like: _BOTH_SIDES,
    exp.Is: (*_BOTH_SIDES, "negate"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Distinct: (),
    exp.Ordered: ("this", "desc", "nulls_first"),
    **dict.fromkeys(_COMPARED, _BOTH_SIDES),
}  # fmt: skip
"""What is understood of each kind of node; anything else that one has makes it another question."""


def parse_statement(statement: str, schema: SchemaLookup) -> Statement:
    """NotExact when a part of it is not understood."""
    text = statement
    if "..." in text:
        text = shapes_of(statement, schema.dialect)[0].text
    numbers = iter(range(1, 10_000))
    text = _SKIPPED.sub(lambda found: found[1] or f":p{next(numbers)}", text)
    is_replace = _REPLACE.match(text) is not None
    if is_replace:
        text = _REPLACE.sub("INSERT INTO ", text, count=1)
    try:
        parsed = sqlglot.parse(text, dialect=schema.dialect)
    except (SqlglotError, RecursionError) as error:
        raise NotExact(f"its SQL is not understood: {str(error).splitlines()[0]}") from error
    trees = [one for one in parsed if isinstance(one, exp.Expression)]
    if len(trees) != 1:
        raise NotExact("it is more than one statement")
    if is_replace:
        trees[0].set("alternative", "REPLACE")
    return _Reader(schema).read(flattened(trees[0], schema))


class _Reader:
    def __init__(self, schema: SchemaLookup, outer: _Reader | None = None) -> None:
        """`outer`: of the statement around, inside EXISTS and IN."""
        self.schema = schema
        self.outer = outer
        self.scope: dict[str, Table] = {}
        """By alias."""
        self.names: dict[str, int] = outer.names if outer is not None else {}
        self.existences: list[Existence] = []
        self.alternatives: list[list[tuple[Test, ...]]] = []
        """Of each OR, the groups of tests of which one must hold."""

    def read(self, tree: exp.Expr) -> Statement:
        for kind, reason in _REFUSED:
            if tree.find(kind) is not None:
                raise NotExact(reason)
        for node in tree.walk():
            known = _PARTS.get(type(node))
            if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
                continue  # COUNT(DISTINCT column), which the application counts.
            for name, part in node.args.items():
                if part and known is not None and name not in known:
                    raise NotExact(f"its {name.upper()} is not understood")
        if isinstance(tree, exp.Select):
            return self._select(tree)
        if isinstance(tree, exp.Insert):
            return self._insert(tree)
        if isinstance(tree, exp.Update):
            return self._update(tree)
        if isinstance(tree, exp.Delete):
            return self._delete(tree)
        raise NotExact(f"it is a {tree.key.upper()}")

    # Tables and columns.

    def _add_table(self, node: exp.Expression | None) -> Table:
        if not isinstance(node, exp.Table):
            raise NotExact("it reads what is no table")
        table = self.schema.table(node.name, node.db)
        if table is None:
            raise NotExact(f"{node.name} is not among the tables of the source")
        if table.is_inherited:
            raise NotExact(f"other tables inherit from {table.name}")
        if any(table is known for known in self.scope.values()):
            raise NotExact(f"it reads {table.name} twice: a pattern for each is served")
        alias = (node.alias or node.name).lower()
        self.scope[alias] = table
        name = table.name
        if table.schema is not None:
            name = name.removeprefix(f"{table.schema}.")
            node.set("db", exp.to_identifier(table.schema, quoted=True))
        node.set("this", exp.to_identifier(name, quoted=True))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        return table

    def _column(self, node: exp.Column) -> Ref:
        tables = list(self.scope.values())
        if node.table:
            found = self.scope.get(node.table.lower())
            if found is None:
                raise NotExact(f"{node.table} is no table of it")
            tables = [found]
        for table in tables:
            column = self.schema.column(table, node.name)
            if column is not None:
                node.set("this", exp.to_identifier(column.name, quoted=True))
                node.set("table", exp.to_identifier(self._alias(table), quoted=True))
                return Ref(table.name, column.name)
        raise NotExact(f"{node.name} is no column of {tables[0].name}")

    def _alias(self, table: Table) -> str:
        return next(alias for alias, known in self.scope.items() if known is table)

    # Values.

    def _value(self, node: exp.Expression, ref: Ref | None, name: str) -> Value:
        """A literal, or what the caller passes: also what it computes without the row."""
        literal = _literal(node)
        if literal is not None:
            return literal
        if node.find(exp.Select) is not None:
            raise NotExact(
                f"{_shown(node)} is asked first, and its answer passed on: make it a pattern of"
                " its own"
            )
        if node.find(exp.Column) is not None:
            raise NotExact(f"it compares columns with each other: {_shown(node.parent or node)}")
        count = self.names[name] = self.names.get(name, 0) + 1
        parameter = Parameter(name if count == 1 else f"{name}.{count}", ref)
        node.replace(exp.Placeholder(this=parameter.name))
        return parameter

    def _name(self, ref: Ref, suffix: str = "") -> str:
        first = next(iter(self.scope.values())).name
        return str(Ref("", ref.column) if ref.table == first else ref) + suffix

    # Conditions.

    def _conditions(self, node: exp.Expression | None) -> tuple[list[Test], list[tuple[Ref, Ref]]]:
        tests: list[Test] = []
        pairs: list[tuple[Ref, Ref]] = []
        for one in _conjuncts(node):
            taken = self._taken(one)
            if taken is not None:
                tests.append(taken)
                continue
            pair = self._pair(one)
            if pair is not None:
                pairs.append(pair)
            elif self._exists(one):
                continue
            elif _is_compound(one):
                tests += self._either(one)
            else:
                tests.append(self._test(one))
        return tests, pairs

    # Rows of other tables that must be there.

    def _taken(self, node: exp.Expression) -> Test | None:
        """A column that is compared with one of the row outside."""
        if self.outer is None or type(node) not in _COMPARED:
            return None
        operator, exchanged = _COMPARED[type(node)]
        left, right = node.this, node.expression
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
            return None
        if self._is_outside(left):
            operator, left, right = exchanged, right, left
        if self._is_outside(left) or not self._is_outside(right):
            return None
        ref, outer = self._column(left), self.outer._column(right)
        return Test(ref, operator, (self._from_outside(ref, outer, operator),))

    def _from_outside(self, ref: Ref, outer: Ref, operator: Operator) -> Parameter:
        """NotExact where a key would take for different what the source takes for the same."""
        own, other = self._inventoried(ref), self.outer._inventoried(outer) if self.outer else None
        kinds = {(one.kind, one.collation, one.is_case_insensitive) for one in (own, other) if one}
        if len(kinds) != 1:
            raise NotExact(f"it compares {ref} with {outer}, which holds other values")
        name = self._name(ref, _SUFFIXES.get(operator, ""))
        count = self.names[name] = self.names.get(name, 0) + 1
        return Parameter(name if count == 1 else f"{name}.{count}", ref, outer)

    def _is_outside(self, node: exp.Column) -> bool:
        if node.table:
            return node.table.lower() not in self.scope
        return all(self.schema.column(one, node.name) is None for one in self.scope.values())

    def _exists(self, node: exp.Expression) -> bool:
        """Whether it tests that rows are there, or that none is; they are noted then."""
        node = _inside(node)
        is_negated = isinstance(node, exp.Not)
        if is_negated:
            node = _inside(node.this)
        if isinstance(node, exp.Exists):
            self._add_existence(node.this, None, is_negated=is_negated)
            return True
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            self._add_existence(node.args["query"], node.this, is_negated=is_negated)
            return True
        is_equal = isinstance(node, exp.EQ) and isinstance(node.expression, exp.Subquery)
        if not is_equal or is_negated or node.expression.find(exp.AggFunc) is not None:
            return False
        self._add_existence(node.expression, node.this, is_negated=False, is_single=True)
        return True

    def _add_existence(
        self,
        query: exp.Expression,
        compared: exp.Expression | None,
        *,
        is_negated: bool,
        is_single: bool = False,
    ) -> None:
        """`compared`: what the column of the SELECT inside must equal; `is_single`: by =, which
        several rows would make an error."""
        select = query.unnest()
        if self.outer is not None:
            raise NotExact("it has a SELECT inside another one that is inside it")
        if not isinstance(select, exp.Select):
            raise NotExact("the SELECT inside it combines several")
        if any(select.args.get(part) for part in ("group", "having", "offset")):
            raise NotExact("the SELECT inside it groups or skips rows")
        if select.args.get("limit") is not None and (compared is not None or is_negated):
            raise NotExact("the SELECT inside it takes the first rows of an order")
        inner = _Reader(self.schema, self)
        question = inner._inside_select(select)
        if compared is not None:
            given = select.expressions[0].unalias()
            if len(select.expressions) != 1 or not isinstance(given, exp.Column):
                raise NotExact(f"it tests {_shown(compared)} with {_shown(given)}")
            ref, outer = inner._column(given), self._tested(compared)
            absent = [one for one in (ref,) if inner._may_be_null(one)]
            absent += [one for one in (outer,) if self._may_be_null(one)]
            if is_negated and absent:
                raise NotExact(f"NOT IN finds nothing once {absent[0]} is NULL: say NOT EXISTS")
            taken = Test(ref, "=", (inner._from_outside(ref, outer, "="),))
            question = replace(question, tests=(*question.tests, taken))
            if is_single and not inner._names_one(question, ref):
                raise NotExact("the SELECT inside it may give several rows, which = refuses")
        self.existences.append(Existence(question, is_negated))

    def _names_one(self, question: Question, but: Ref) -> bool:
        """Whether the tests, without that of one column, leave one row at most."""
        given = {test.ref.column for test in question.tests if test.is_fixing and test.ref != but}
        table = next(iter(self.scope.values()))
        return not question.joins and is_unique(table, given)

    def _inside_select(self, tree: exp.Select) -> Question:
        first, joins, tests = self._sources(tree)
        return Question(
            table=first.name,
            joins=tuple(joins),
            tests=tuple(tests),
            alternatives=self._chosen(),
            existences=tuple(self.existences),
            tree=tree,
        )

    def _pair(self, node: exp.Expression) -> tuple[Ref, Ref] | None:
        """Two columns of two tables that must be equal."""
        if not isinstance(node, exp.EQ):
            return None
        if not (isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column)):
            return None
        left, right = self._column(node.this), self._column(node.expression)
        if left.table == right.table:
            raise NotExact(f"it compares columns of one row: {node}")
        return left, right

    def _test(self, node: exp.Expression) -> Test:
        if isinstance(node, exp.Paren):
            return self._test(node.this)
        if isinstance(node, exp.Not):
            return self._negated(node.this)
        if isinstance(node, exp.Column):
            return Test(self._column(node), "=", (Constant(True),))
        if type(node) in _COMPARED:
            return self._comparison(node)
        if isinstance(node, exp.Between):
            ref = self._tested(node.this)
            low = self._value(node.args["low"], ref, self._name(ref, ".from"))
            high = self._value(node.args["high"], ref, self._name(ref, ".to"))
            return Test(ref, "between", (low, high))
        if isinstance(node, exp.In):
            return self._among(node, "in")
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.Like):
            return self._like(node)
        raise NotExact(f"no key and no filter tests {_shown(node)}")

    def _tested(self, node: exp.Expression) -> Ref:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Paren):
            return self._tested(node.this)
        raise NotExact(f"it tests {_shown(node)}, which no attribute holds")

    def _formed(self, node: exp.Expression) -> tuple[Ref, str]:
        """A column, or lower() or upper() of one, with the form in which a key holds it."""
        node = _inside(node)
        form = _FORMS.get(type(node))
        if form is None:
            return self._tested(node), ""
        ref = self._tested(node.this)
        if self._kind(ref) != "string":
            raise NotExact(f"it tests {_shown(node)}, and {ref} is no text")
        if self.schema.dialect == "mysql" and self._is_insensitive(ref):
            return ref, ""  # The collation of the column compares what the function gives too.
        return ref, f"{form}_ascii" if self.schema.dialect == "sqlite" else form

    def _comparison(self, node: exp.Expression) -> Test:
        operator, exchanged = _COMPARED[type(node)]
        left, right = node.this, node.expression
        if left.find(exp.Column) is None:
            operator, left, right = exchanged, right, left
        ref, form = self._formed(left)
        if form and operator != "=":
            raise NotExact(f"it compares {_shown(left)} otherwise than for equality")
        suffix = _SUFFIXES.get(operator, "")
        return Test(ref, operator, (self._value(right, ref, self._name(ref, suffix)),), form)

    def _negated(self, node: exp.Expression) -> Test:
        if isinstance(node, exp.Paren):
            return self._negated(node.this)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            is_twice = bool(node.args.get("negate"))
            return Test(self._tested(node.this), "is null" if is_twice else "is not null")
        if isinstance(node, exp.In):
            return self._among(node, "not in")
        if isinstance(node, exp.Column):
            return Test(self._column(node), "=", (Constant(False),))
        if type(node) in _COMPARED and not _is_of_rows(node):
            test = self._comparison(node)
            # Of NULL, neither a comparison nor its opposite is true.
            opposite = _OPPOSITES.get(test.operator)
            if opposite is not None and not test.form:
                return replace(test, operator=opposite)
        raise NotExact(f"no key and no filter tests NOT {_shown(node)}")

    def _among(self, node: exp.In, operator: Operator) -> Test:
        ref, form = self._formed(node.this)
        members = node.expressions
        if not members or node.args.get("query") is not None:
            raise NotExact("it has a SELECT inside an alternative (OR)")
        if form and operator != "in":
            raise NotExact(f"no key and no filter tests {_shown(node)}")
        values = tuple(self._value(one, ref, self._name(ref)) for one in members)
        return Test(ref, operator, values, form)

    def _is(self, node: exp.Is) -> Test:
        ref = self._tested(node.this)
        if isinstance(node.expression, exp.Null):
            return Test(ref, "is not null" if node.args.get("negate") else "is null")
        if isinstance(node.expression, exp.Boolean) and not node.args.get("negate"):
            return Test(ref, "=", (Constant(bool(node.expression.this)),))
        raise NotExact(f"no key and no filter tests {_shown(node)}")

    def _like(self, node: exp.Like) -> Test:
        ref = self._tested(node.this)
        literal = _literal(node.expression)
        text = literal.value if literal is not None else None
        if not isinstance(text, str):
            raise NotExact(f"how {ref} is searched is in a parameter of LIKE")
        if re.search(r"[_\\]", text):
            raise NotExact(f"{ref} is searched by a pattern")
        middle = text.strip("%")
        if "%" in middle or not middle:
            raise NotExact(f"{ref} is searched by a pattern")
        if text.startswith("%"):
            raise NotExact(f"the inside of {ref} is searched: a search service does that")
        if self.schema.dialect == "sqlite" and not self._is_insensitive(ref):
            raise NotExact(f"LIKE is blind to case there, and {ref} is not")
        return Test(ref, "begins_with" if text.endswith("%") else "=", (Constant(middle),))

    def _is_insensitive(self, ref: Ref) -> bool:
        column = self._inventoried(ref)
        return column is not None and column.is_case_insensitive

    def _kind(self, ref: Ref) -> str:
        column = self._inventoried(ref)
        return column.kind if column is not None else ""

    def _inventoried(self, ref: Ref) -> Column | None:
        table = next(one for one in self.scope.values() if one.name == ref.table)
        return self.schema.column(table, ref.column)

    def _either(self, node: exp.Expression) -> list[Test]:
        """One of several values of one column; other alternatives are kept apart."""
        groups = self._groups(node)
        if len(groups) == 1:
            return list(groups[0])
        tests = [test for group in groups for test in group]
        is_single = all(len(group) == 1 for group in groups)
        kinds = {(test.ref, test.operator, test.form) for test in tests}
        if is_single and len(kinds) == 1 and tests[0].operator == "=":
            values = tuple(value for test in tests for value in test.values)
            return [replace(tests[0], operator="in", values=values)]
        self.alternatives.append(groups)
        return []

    def _groups(self, node: exp.Expression, *, is_negated: bool = False) -> list[tuple[Test, ...]]:
        """The alternatives of a condition, each as tests that must all hold."""
        node = _inside(node)
        if isinstance(node, exp.Not):
            return self._groups(node.this, is_negated=not is_negated)
        if isinstance(node, exp.Or | exp.And):
            sides = [
                self._groups(one, is_negated=is_negated) for one in (node.this, node.expression)
            ]
            if isinstance(node, exp.Or) != is_negated:
                return [group for side in sides for group in side]
            return [(*left, *right) for left, right in product(*sides)]
        if _is_of_rows(node) and not is_negated:
            return self._row_groups(node)
        return [(self._negated(node) if is_negated else self._test(node),)]

    def _row_groups(self, node: exp.Expression) -> list[tuple[Test, ...]]:
        """(a, b) > (x, y): a is greater, or it is equal and b is greater."""
        operator, _ = _COMPARED[type(node)]
        lefts, rights = node.this.expressions, node.expression.expressions
        if operator == "<>" or len(lefts) != len(rights):
            raise NotExact(f"no key and no filter tests {_shown(node)}")
        suffix = _SUFFIXES.get(operator, "")
        values = []
        for left, right in zip(lefts, rights, strict=True):
            ref = self._tested(left)
            values.append((ref, self._value(right, ref, self._name(ref, suffix))))
        equal = [Test(ref, "=", (value,)) for ref, value in values]
        if operator == "=":
            return [tuple(equal)]
        beyond: Operator = ">" if operator in (">", ">=") else "<"
        groups = [
            (*equal[:place], Test(ref, beyond, (value,)))
            for place, (ref, value) in enumerate(values[:-1])
        ]
        ref, value = values[-1]
        return [*groups, (*equal[:-1], Test(ref, operator, (value,)))]

    def _chosen(self) -> tuple[tuple[Test, ...], ...]:
        """With several ORs, one group of each."""
        if not self.alternatives:
            return ()
        found = tuple(tuple(chain.from_iterable(one)) for one in product(*self.alternatives))
        if len(found) > ALTERNATIVES_MAX:
            raise NotExact(f"it has {len(found)} alternatives (OR): a pattern for each is served")
        return found

    # SELECT.

    def _select(self, tree: exp.Select) -> Question:
        return self._finished(tree, *self._sources(tree))

    def _sources(self, tree: exp.Select) -> tuple[Table, list[JoinedTable], list[Test]]:
        """FROM, JOIN and WHERE."""
        source = tree.args.get("from_") or tree.args.get("from")
        if source is None:
            raise NotExact("it reads no table")
        first = self._add_table(source.this)
        joins: list[JoinedTable] = []
        tests: list[Test] = []
        comma: list[Table] = []
        for join in tree.args.get("joins") or []:
            table = self._add_table(join.this)
            side = (join.side or "").upper()
            kind = (join.kind or "").upper()
            if side not in ("", "LEFT") or kind not in _JOIN_KINDS:
                raise NotExact(f"it has a {side} {join.kind} {join.method or ''} JOIN")
            before = len(self.alternatives)
            found, pairs = self._conditions(join.args.get("on"))
            pairs += self._using(join, table)
            if not pairs:
                comma.append(table)
                tests += found
                continue
            if side == "LEFT" and (found or len(self.alternatives) > before):
                raise NotExact("its LEFT JOIN tests more than the columns that join")
            tests += found
            joins.append(_joined(table, pairs, is_outer=side == "LEFT"))
        where = tree.args.get("where")
        found, pairs = self._conditions(where.this if where is not None else None)
        tests += found
        for table in comma:
            own = [pair for pair in pairs if table.name in (pair[0].table, pair[1].table)]
            if not own:
                raise NotExact(f"nothing joins {table.name} to the others")
            pairs = [pair for pair in pairs if pair not in own]
            joins.append(_joined(table, own, is_outer=False))
        if pairs:
            raise NotExact("its WHERE compares columns of two tables that are joined already")
        return first, joins, tests

    def _using(self, join: exp.Join, table: Table) -> list[tuple[Ref, Ref]]:
        pairs = []
        for name in join.args.get("using") or []:
            column = self.schema.column(table, name.name)
            others = [one for one in self.scope.values() if one is not table]
            other = next((one for one in others if self.schema.column(one, name.name)), None)
            if column is None or other is None:
                raise NotExact(f"USING names {name.name}, which is no column of both")
            own = self.schema.column(other, name.name)
            assert own is not None
            pairs.append((Ref(other.name, own.name), Ref(table.name, column.name)))
        return pairs

    def _finished(
        self, tree: exp.Select, first: Table, joins: list[JoinedTable], tests: list[Test]
    ) -> Question:
        finish = _finish(tree)
        columns = self._columns(tree, first)
        joins, tests = self._without_matches(joins, tests, columns)
        joins = [self._inner(join, tests) for join in joins]
        order = [] if finish else self._order(tree)
        limit = None if finish else self._count(tree, "limit", "limit")
        offset = None if finish else self._count(tree, "offset", "offset")
        if finish:
            for part in ("group", "having", "distinct", "order", "limit", "offset"):
                tree.set(part, None)
        tree.set("locks", None)
        return Question(
            table=first.name,
            joins=tuple(joins),
            tests=tuple(tests),
            alternatives=self._chosen(),
            existences=tuple(self.existences),
            order=tuple(order),
            limit=limit,
            offset=offset,
            columns=tuple(dict.fromkeys([*columns, *(one.ref for one in order)])),
            finish=finish,
            tree=tree,
        )

    def _inner(self, join: JoinedTable, tests: list[Test]) -> JoinedTable:
        """A LEFT JOIN whose absent rows no test lets pass is none."""
        is_tested = any(
            test.ref.table == join.table and test.operator != "is null" for test in tests
        )
        return replace(join, is_outer=False) if is_tested else join

    def _without_matches(
        self, joins: list[JoinedTable], tests: list[Test], columns: list[Ref]
    ) -> tuple[list[JoinedTable], list[Test]]:
        """A LEFT JOIN whose rows must be absent (`WHERE other.id IS NULL`) is a NOT EXISTS."""
        for join in joins:
            own = [test for test in tests if test.ref.table == join.table]
            absent = [
                test
                for test in own
                if test.operator == "is null" and not self._may_be_null(test.ref)
            ]
            others = [one for other in joins if other is not join for one in other.pairs]
            is_used = any(ref.table == join.table for ref in (*columns, *sum(others, ())))
            if not join.is_outer or len(own) != 1 or not absent or is_used:
                continue
            taken = tuple(
                Test(ref, "=", (Parameter(self._name(ref), ref, outer),))
                for outer, ref in join.pairs
            )
            self.existences.append(Existence(Question(join.table, tests=taken), is_negated=True))
            joins = [one for one in joins if one is not join]
            tests = [one for one in tests if one not in absent]
        return joins, tests

    def _columns(self, tree: exp.Select, first: Table) -> list[Ref]:
        found: list[Ref] = []
        for one in tree.expressions:
            if isinstance(one, exp.Star):
                found += self._all(list(self.scope.values()))
            elif isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
                table = self.scope.get(one.table.lower())
                if table is None:
                    raise NotExact(f"{one.table} is no table of it")
                found += self._all([table])
            elif one.find(exp.Select) is not None:
                raise NotExact(f"{_shown(one)} is asked for each row: make it a pattern of its own")
            else:
                found += [self._column(column) for column in one.find_all(exp.Column)]
        for part in ("group", "having") if _finish(tree) else ():
            clause = tree.args.get(part)
            named = {one.alias.lower() for one in tree.expressions if one.alias}
            for column in clause.find_all(exp.Column) if clause is not None else ():
                if column.table or column.name.lower() not in named:
                    found.append(self._column(column))
        key = [Ref(first.name, name) for name in first.primary_key]
        return list(dict.fromkeys(found)) or key or self._all([first])

    def _all(self, tables: list[Table]) -> list[Ref]:
        return [
            Ref(table.name, column.name)
            for table in tables
            for column in table.columns
            if not is_derived(column)
        ]

    def _order(self, tree: exp.Select) -> list[Sorting]:
        clause = tree.args.get("order")
        found = []
        for one in clause.expressions if clause is not None else ():
            node = one.this
            if isinstance(node, exp.Literal) and node.is_int:
                node = _unaliased(tree.expressions[int(node.this) - 1]).copy()
                one.set("this", node)
            if isinstance(node, exp.Column) and not node.table:
                named = {other.alias.lower(): other for other in tree.expressions if other.alias}
                alias = named.get(node.name.lower())
                if alias is not None:
                    node = _unaliased(alias).copy()
                    one.set("this", node)
            if not isinstance(node, exp.Column):
                raise NotExact(f"it sorts by {_shown(node)}, which no attribute holds")
            ref, is_descending = self._column(node), bool(one.args.get("desc"))
            is_first = is_descending == (self.schema.dialect == "postgres")
            if bool(one.args.get("nulls_first")) != is_first and self._is_nullable(ref):
                raise NotExact(f"it says itself where rows without {ref} are sorted")
            found.append(Sorting(ref, is_descending))
        return found

    def _may_be_null(self, ref: Ref) -> bool:
        """SQLite lets a primary key be NULL; such a row has no item, which `test` tells."""
        table = next(one for one in self.scope.values() if one.name == ref.table)
        return self._is_nullable(ref) and ref.column not in table.primary_key

    def _is_nullable(self, ref: Ref) -> bool:
        column = self._inventoried(ref)
        return column is None or column.is_nullable

    def _count(self, tree: exp.Expression, part: str, name: str) -> int | Parameter | None:
        clause = tree.args.get(part)
        if clause is None:
            return None
        counted = clause.expression
        if isinstance(clause, exp.Fetch):
            counted = clause.args.get("count") or exp.Literal.number(1)
            options = clause.args.get("limit_options")
            if options is not None and (options.args["percent"] or options.args["with_ties"]):
                raise NotExact(f"it takes rows by {_shown(clause)}")
        value = self._value(counted, None, name)
        return int(value.value) if isinstance(value, Constant) else value

    # Writes.

    def _insert(self, tree: exp.Insert) -> Insertion:
        schema = tree.this
        named = schema.expressions if isinstance(schema, exp.Schema) else []
        table = self._add_table(schema.this if isinstance(schema, exp.Schema) else schema)
        node = schema.this if isinstance(schema, exp.Schema) else schema
        node.set("alias", None)
        columns = [self.schema.column(table, one.name) for one in named] or list(table.columns)
        if None in columns:
            raise NotExact(f"it names a column that {table.name} does not have")
        refs = [Ref(table.name, column.name) for column in columns if column is not None]
        for identifier, ref in zip(named, refs, strict=False):
            identifier.replace(exp.to_identifier(ref.column, quoted=True))
        values = tree.expression
        if not isinstance(values, exp.Values) or len(values.expressions) != 1:
            raise NotExact("it inserts what a SELECT gives, or several rows at once")
        tree.set("returning", None)
        members = values.expressions[0].expressions
        if len(members) != len(refs):
            raise NotExact("its values do not fit its columns")
        found: list[Value | None] = []
        for member, ref in zip(members, refs, strict=True):
            is_name = isinstance(member, exp.Var | exp.Column)
            is_default = is_name and member.name.upper() == "DEFAULT"
            found.append(None if is_default else self._value(member, ref, self._name(ref)))
        brought = dict(zip((ref.column for ref in refs), found, strict=True))
        action, conflict, changes = self._upsert(tree, table, brought)
        return Insertion(
            table=table.name,
            columns=tuple(refs),
            values=tuple(found),
            on_conflict=action,
            conflict=conflict,
            changes=changes,
            tree=tree,
        )

    def _upsert(
        self, tree: exp.Insert, table: Table, brought: dict[str, Value | None]
    ) -> tuple[OnConflict, tuple[str, ...], tuple[Change, ...]]:
        """What becomes of a row that has the same key already: the key, and its changes."""
        instead = str(tree.args.get("alternative") or "").upper()
        if tree.args.get("ignore") or instead == "IGNORE":
            return "nothing", (), ()
        if instead == "REPLACE":
            return "replace", (), ()
        clause = tree.args.get("conflict")
        if instead or (clause is not None and any(clause.args.get(one) for one in _OF_CONFLICT)):
            raise NotExact("what it does to a row that is there already is not said in requests")
        if clause is None:
            return "", (), ()
        keys = []
        for key in clause.args.get("conflict_keys") or []:
            column = self.schema.column(table, key.find(exp.Identifier).this)
            if column is None:
                raise NotExact(f"its ON CONFLICT names no column of {table.name}")
            keys.append(column.name)
        changes = [self._upserted(one, table, brought) for one in clause.expressions]
        return "update" if changes else "nothing", tuple(keys), tuple(changes)

    def _upserted(
        self, node: exp.Expression, table: Table, brought: dict[str, Value | None]
    ) -> Change:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise NotExact(f"it sets {_shown(node)}")
        ref = self._column(node.this)
        node.this.set("table", None)
        value, sign = _inside(node.expression), 0
        if isinstance(value, exp.Add | exp.Sub) and isinstance(value.this, exp.Column):
            if value.this.table.lower() != "excluded" and self._column(value.this) == ref:
                sign = 1 if isinstance(value, exp.Add) else -1
                own = table.name.removeprefix(f"{table.schema}.") if table.schema else table.name
                value.this.set("table", exp.to_identifier(own, quoted=True))
                value = _inside(value.expression)
        name = _excluded(value)
        if name is None:
            return Change(ref, self._value(value, ref, self._name(ref, ".new")), sign)
        column = self.schema.column(table, name)
        inserted = brought.get(column.name) if column is not None else None
        if inserted is None:
            raise NotExact(f"it sets {_shown(node)}, which it does not insert")
        return Change(ref, inserted, sign)

    def _update(self, tree: exp.Update) -> Modification:
        if tree.args.get("from_") is not None or tree.args.get("from") is not None:
            raise NotExact("it changes rows by what other tables hold")
        table = self._add_table(tree.this)
        if self.schema.dialect == "sqlite":
            tree.this.set("alias", None)
        changes = tuple(self._change(one) for one in tree.expressions)
        return Modification(table.name, self._found(tree), changes, tree)

    def _delete(self, tree: exp.Delete) -> Modification:
        if tree.args.get("using") or tree.args.get("tables"):
            raise NotExact("it deletes rows by what other tables hold")
        table = self._add_table(tree.this)
        tree.this.set("alias", None)
        return Modification(table.name, self._found(tree), (), tree)

    def _found(self, tree: exp.Expression) -> tuple[Test, ...]:
        tree.set("returning", None)
        where = tree.args.get("where")
        tests, _ = self._conditions(where.this if where is not None else None)
        if self.alternatives:
            raise NotExact("it changes rows by alternatives (OR): a pattern for each is served")
        if self.existences:
            raise NotExact(
                "it changes rows by what a SELECT inside it finds: a pattern that reads their keys,"
                " and one that writes by key, are served"
            )
        for part in ("order", "limit"):
            if tree.args.get(part) is not None:
                raise NotExact("it changes the first rows of an order")
        for column in tree.find_all(exp.Column):
            # One table, and an alias that not every server takes.
            column.set("table", None)
        return tuple(tests)

    def _change(self, node: exp.Expression) -> Change:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise NotExact(f"it sets {_shown(node)}")
        ref = self._column(node.this)
        value = node.expression
        name = self._name(ref, ".new")
        if isinstance(value, exp.Add | exp.Sub) and isinstance(value.this, exp.Column):
            if self._column(value.this) == ref:
                sign = 1 if isinstance(value, exp.Add) else -1
                return Change(ref, self._value(value.expression, ref, name), sign)
        return Change(ref, self._value(value, ref, name))


def _joined(table: Table, pairs: list[tuple[Ref, Ref]], *, is_outer: bool) -> JoinedTable:
    ordered = tuple(
        (left, right) if right.table == table.name else (right, left) for left, right in pairs
    )
    if any(right.table != table.name for _, right in ordered):
        raise NotExact(f"what joins {table.name} is not said beside it")
    return JoinedTable(table.name, ordered, is_outer)


def _finish(tree: exp.Select) -> str:
    """What an application does with the rows once it has them."""
    if tree.args.get("group") is not None:
        return "groups the rows"
    if any(one.find(exp.AggFunc) is not None for one in tree.expressions):
        return "counts or sums the rows"
    return "drops repeated rows" if tree.args.get("distinct") is not None else ""


def _conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    if isinstance(node, exp.Boolean) and node.this:
        return []
    if isinstance(node, exp.EQ) and node.this == node.expression and _literal(node.this):
        return []  # WHERE 1 = 1
    return [node]


def _excluded(node: exp.Expression) -> str | None:
    """The column whose value would have been inserted, if it is that."""
    if isinstance(node, exp.Column) and node.table.lower() == "excluded":
        return str(node.name)
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _IN_CONFLICT:
        return str(node.expressions[0].name)
    return None


def _literal(node: exp.Expression) -> Constant | None:
    if isinstance(node, exp.Paren):
        return _literal(node.this)
    if isinstance(node, exp.Boolean):
        return Constant(bool(node.this))
    if isinstance(node, exp.Null):
        return Constant(None)
    if isinstance(node, exp.Neg):
        inner = _literal(node.this)
        return Constant(-inner.value) if inner is not None and not _is_text(inner.value) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return None if node.this == "?" else Constant(node.this)
    try:
        number = Decimal(node.this)
    except InvalidOperation:
        return None
    return Constant(int(number) if number == number.to_integral_value() else number)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or value is None


def _is_compound(node: exp.Expression) -> bool:
    """Whether several tests are in it, or one that compares several columns."""
    node = _inside(node)
    if isinstance(node, exp.Not):
        return _is_compound(node.this)
    return isinstance(node, exp.Or | exp.And) or _is_of_rows(node)


def _is_of_rows(node: exp.Expression) -> bool:
    if type(node) not in _COMPARED:
        return False
    return isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple)


def _inside(node: exp.Expression) -> exp.Expression:
    return _inside(node.this) if isinstance(node, exp.Paren) else node


def _unaliased(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def _shown(node: exp.Expr) -> str:
    text = node.sql()
    return text if len(text) <= 80 else f"{text[:80]}…"
