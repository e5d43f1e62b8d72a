"""Sorts the parts of a WHERE or an ON by what a key could do for them.

A part is an equality with a value, a range of values, a link to another table, or a filter that no
key serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from partita_migrate.understanding.patterns.access_patterns import KEY_MUST_HOLD
from partita_migrate.understanding.patterns.mining.mined_query import MinedQuery
from partita_migrate.understanding.patterns.mining.name_scopes import DerivedTable, SelectScope

_SAME_VALUE = (exp.Lower, exp.Upper, exp.Trim)
"""Functions whose result a key can hold in place of the column."""
_PARTS_OF_TIME = (
    exp.Date, exp.TsOrDsToDate, exp.Year, exp.Month, exp.Extract, exp.TimestampTrunc,
    exp.DateTrunc, exp.Quarter, exp.AtTimeZone, exp.ConvertTimezone,
)  # fmt: skip
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)

Read = Callable[[exp.Expr, MinedQuery, SelectScope | None], DerivedTable]
"""Reads a SELECT and adds it to the query (`mined_selects.read_select`)."""


class MinedConditions:
    """Sorts the parts of a WHERE or an ON by what a key could do for them."""

    def __init__(self, query: MinedQuery, scope: SelectScope, read: Read) -> None:
        self.query = query
        self.scope = scope
        self.read = read

    def add(self, condition: exp.Expr) -> None:
        for part in _conjuncts(condition):
            self._add_part(part)

    def _add_part(self, part: exp.Expr) -> None:
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            self._equal(part.this, part.expression)
        elif isinstance(part, exp.In):
            self._among(part)
        elif isinstance(part, exp.Between) and _is_value(part.args["low"], part.args["high"]):
            self._within(part.this)
        elif isinstance(part, _COMPARISONS):
            self._compare(part.this, part.expression)
        elif isinstance(part, exp.Like | exp.Escape):
            self._like(part)
        elif isinstance(part, exp.Or):
            self._either(part)
        elif isinstance(part, exp.Exists):
            self._narrow(part.this)
        # WHERE is_active, and WHERE NOT is_active, compare a boolean column with a constant.
        elif isinstance(part, exp.Column):
            self._equal(part, exp.true())
        elif isinstance(part, exp.Not) and isinstance(_bare(part.this), exp.Column):
            self._equal(_bare(part.this), exp.false())
        else:
            self._filter(part)

    def _equal(self, left: exp.Expr, right: exp.Expr) -> None:
        left, right = _bare(left), _bare(right)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            for left_member, right_member in zip(left.expressions, right.expressions, strict=False):
                self._equal(left_member, right_member)
            return
        if _is_value(left):
            left, right = right, left
        # PostgreSQL's drivers send IN as = ANY(array).
        if isinstance(right, exp.Any):
            right = _bare(right.this)
        if isinstance(right, exp.Query):
            self._in_query([left], right)
        elif _is_value(right):
            self._found_by(left)
        elif isinstance(left, exp.Column) and isinstance(right, exp.Column):
            self._same(left, right)
        else:
            self._filter(exp.EQ(this=left.copy(), expression=right.copy()))

    def _found_by(self, side: exp.Expr) -> None:
        """Adds an equality with a value, also through a function whose result a key could hold."""
        if isinstance(side, exp.Tuple):
            for expression in side.expressions:
                self._found_by(_bare(expression))
            return
        inner, functions = _unwrap(side)
        if not isinstance(inner, exp.Column):
            self._filter(side)
            return
        reference = self.scope.resolve(inner)
        if reference is None:
            return
        # date(created) = ? selects a span of time.
        if any(isinstance(function, _PARTS_OF_TIME) for function in functions):
            self.query.range.append(reference)
            return
        self.query.equality.append(reference)
        for function in functions:
            form = type(function).__name__.lower()
            self.query.forms[reference] = form
            self.query.remarks.append(f"{KEY_MUST_HOLD}{form}({reference})")

    def _same(self, left: exp.Column, right: exp.Column) -> None:
        first, second = self.scope.resolve(left), self.scope.resolve(right)
        if first and second and first.occurrence is not second.occurrence:
            self.query.links.append((first, second))
        else:
            self.query.filters += [side for side in (first, second) if side]

    def _among(self, part: exp.In) -> None:
        left = _bare(part.this)
        inner = part.args.get("query")
        if inner is not None:
            sides = left.expressions if isinstance(left, exp.Tuple) else [left]
            self._in_query([_bare(side) for side in sides], _bare(inner))
        elif part.args.get("unnest") or _is_value(*part.expressions):
            self._found_by(left)
            self.query.is_among = True
        else:
            self._filter(part)

    def _in_query(self, sides: list[exp.Expr], inner: exp.Expr) -> None:
        """Adds IN (SELECT ...), which narrows like a join."""
        passed = self._narrow(inner)
        references = [*passed.outputs.values()]
        for position, side in enumerate(sides):
            reference = references[position] if position < len(references) else None
            own = self.scope.resolve(side) if isinstance(side, exp.Column) else None
            if own and reference:
                self.query.links.append((own, reference))
            elif own:
                # A computed value; another read has to bring it first.
                self.query.equality.append(own)

    def _narrow(self, select: exp.Expr) -> DerivedTable:
        inner = MinedQuery(self.query.schema)
        passed = self.read(select, inner, self.scope)
        inner.narrowing += inner.occurrences
        inner.occurrences = []
        inner.order, inner.limit, inner.is_aggregate = [], None, False
        self.query.absorb(inner)
        return passed

    def _within(self, side: exp.Expr) -> None:
        sides = side.expressions if isinstance(side, exp.Tuple) else [side]
        for member in sides:
            inner, functions = _unwrap(_bare(member))
            is_time = all(isinstance(function, _PARTS_OF_TIME) for function in functions)
            if isinstance(inner, exp.Column) and is_time:
                reference = self.scope.resolve(inner)
                if reference:
                    self.query.range.append(reference)
            else:
                self._filter(member)

    def _compare(self, left: exp.Expr, right: exp.Expr) -> None:
        left, right = _bare(left), _bare(right)
        if _is_value(right):
            self._within(left)
        elif _is_value(left):
            self._within(right)
        else:
            self._filter(exp.GT(this=left.copy(), expression=right.copy()))

    def _like(self, part: exp.Expr) -> None:
        """Adds a LIKE. A prefix is a range; a search inside the text is a filter."""
        like = part.this if isinstance(part, exp.Escape) else part
        if not isinstance(like, exp.Like):
            self._filter(part)
            return
        pattern, _ = _unwrap(like.expression)
        is_prefix = isinstance(pattern, exp.Literal) and pattern.this == "?%"
        inner, functions = _unwrap(_bare(like.this))
        if is_prefix and isinstance(inner, exp.Column) and not functions:
            self._within(inner)
        else:
            self._filter(like)

    def _either(self, part: exp.Or) -> None:
        """Adds an OR. `a = ? OR a = ?` is an IN; a column that every branch limits is a range; the
        rest are filters."""
        branches = []
        for branch in part.flatten():
            inner = MinedQuery(self.query.schema)
            MinedConditions(inner, self.scope, self.read).add(branch)
            branches.append(inner)
        alike = set.intersection(*({*inner.equality, *inner.range} for inner in branches))
        for inner in branches:
            self.query.narrowing += [*inner.occurrences, *inner.narrowing]
            others = {*inner.equality, *inner.range, *inner.filters} - alike
            linked = {side for link in inner.links for side in link}
            self.query.filters += [*others, *linked]
        for reference in alike:
            is_equality = all(reference in inner.equality for inner in branches)
            (self.query.equality if is_equality else self.query.range).append(reference)
        if not alike:
            self.query.remarks.append("by one column or another (OR)")

    def _filter(self, part: exp.Expr) -> None:
        for node in outside_subqueries(part):
            if isinstance(node, exp.Query):
                inner = MinedQuery(self.query.schema)
                self.read(node, inner, self.scope)
                self.query.narrowing += [*inner.occurrences, *inner.narrowing]
                linked = [side for link in inner.links for side in link]
                self.query.filters += [*inner.equality, *inner.range, *inner.filters, *linked]
            elif isinstance(node, exp.Column) and not node.is_star:
                reference = self.scope.resolve(node)
                if reference:
                    self.query.filters.append(reference)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = _bare(condition)
    if isinstance(condition, exp.And):
        for part in condition.flatten():
            yield from _conjuncts(part)
    else:
        yield condition


def _bare(expression: exp.Expr) -> exp.Expr:
    """Removes parentheses, also those around a subquery."""
    while isinstance(expression, exp.Paren | exp.Subquery):
        expression = expression.this
    return expression


def _is_value(*expressions: exp.Expr) -> bool:
    """True when no part of the expressions comes from a row."""
    return not any(expression.find(exp.Column, exp.Query) for expression in expressions)


def _unwrap(side: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """Returns a column without its casts, and the functions around it."""
    functions: list[exp.Expr] = []
    side = _bare(side)
    while True:
        if isinstance(side, exp.Cast | exp.Collate):
            if isinstance(side, exp.Cast) and _narrows_time(side):
                functions.append(exp.Date(this=side.this.copy()))
        elif isinstance(side, (*_SAME_VALUE, *_PARTS_OF_TIME)):
            functions.append(side)
        else:
            return side, functions
        columns = [node for node in side.iter_expressions() if node.find(exp.Column)]
        if not columns:
            return side, functions
        side = _bare(columns[0])


def _narrows_time(cast: exp.Cast) -> bool:
    """True for a cast to a date, which drops the time of day."""
    return bool(cast.to.is_type(exp.DType.DATE)) and not _is_value(cast.this)


def outside_subqueries(expression: exp.Expr) -> Iterator[exp.Expr]:
    """Yields all nodes, without those inside of subqueries, which are read separately."""
    return expression.walk(bfs=False, prune=lambda node: isinstance(node, exp.Query))
