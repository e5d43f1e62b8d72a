"""Row filters: the rows that `load --where` moves, while the rest stays in the source.

A filter is evaluated here, on every row that is read and every change that is followed, because a
row in the log can no longer be asked in SQL. So a condition has to be answerable from the row
alone: comparisons of columns with constants, IN, BETWEEN, IS NULL, AND, OR and NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from partita.database.item.attribute_values import AttributeValue, Item
from partita.errors import PartitaError
from partita_migrate.model.items.item_maker import order
from partita_migrate.moving.target_access.target_items import RowFilter
from partita_migrate.understanding.schema.inventory import Inventory, SourceColumn, SourceTable
from partita_migrate.understanding.statements.literal_values import fold_of, folded, literal_value

Holds = Callable[[Item], bool | None]
"""Returns None where SQL says UNKNOWN."""


@dataclass(frozen=True)
class WhereFilter:
    """The rows for which a condition is true; UNKNOWN does not count."""

    test: Holds

    def holds(self, row: Item) -> bool:
        return self.test(row) is True


def parts_of(inventory: Inventory, where: Mapping[str, str]) -> dict[str, RowFilter]:
    """Returns the filters by table; raises PartitaError for a condition that its row cannot
    answer."""
    filters: dict[str, RowFilter] = {}
    for name, condition in where.items():
        table = inventory.table(name)
        if table is None:
            raise PartitaError(f"--where names {name}, which is not a table of the source.")
        try:
            tree = parse_one(condition, dialect=_DIALECTS.get(inventory.dialect))
        except SqlglotError as error:
            raise PartitaError(
                f"--where {name}: {condition!r} cannot be parsed as an SQL condition."
            ) from error
        filters[name] = WhereFilter(_WhereCompiler(table, inventory.dialect, condition).holds(tree))
    return filters


_DIALECTS = {"mariadb": "mysql", "mysql": "mysql", "postgresql": "postgres", "sqlite": "sqlite"}
_COMPARED: dict[type[exp.Expr], Callable[[int], bool]] = {
    exp.EQ: lambda sign: sign == 0,
    exp.NEQ: lambda sign: sign != 0,
    exp.LT: lambda sign: sign < 0,
    exp.LTE: lambda sign: sign <= 0,
    exp.GT: lambda sign: sign > 0,
    exp.GTE: lambda sign: sign >= 0,
}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip


class _WhereCompiler:
    """Compiles one condition to a function of a row."""

    def __init__(self, table: SourceTable, dialect: str, condition: str) -> None:
        self.table = table
        self.dialect = dialect
        self.condition = condition

    def holds(self, tree: exp.Expr) -> Holds:
        kind = type(tree)
        if isinstance(tree, exp.Paren):
            return self.holds(tree.this)
        if isinstance(tree, exp.Not):
            return partial(_not, self.holds(tree.this))
        if isinstance(tree, exp.And | exp.Or):
            both = self.holds(tree.left), self.holds(tree.right)
            return partial(_either if isinstance(tree, exp.Or) else _both, both)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            name = self._column(tree.this).name
            return lambda row: name not in row
        if isinstance(tree, exp.Between):
            low = self._compared(exp.GTE, tree.this, tree.args["low"])
            high = self._compared(exp.LTE, tree.this, tree.args["high"])
            return partial(_both, (low, high))
        if isinstance(tree, exp.In) and tree.expressions:
            tests = [self._compared(exp.EQ, tree.this, member) for member in tree.expressions]
            return partial(_either, tests)
        if kind in _COMPARED:
            left, right = tree.this, tree.expression
            if not isinstance(left, exp.Column):
                left, right, kind = right, left, _TURNED.get(kind, kind)
            return self._compared(kind, left, right)
        raise self._refused(tree)

    def _compared(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Holds:
        column = self._column(left)
        fold = fold_of(column, self.dialect)
        constant = self._constant(column, right)
        if constant is None:
            return lambda row: None
        bound, test = order(folded(constant, fold)), _COMPARED[kind]

        def compare(row: Item) -> bool | None:
            value = row.get(column.name)
            if value is None:
                return None
            current = order(folded(value, fold))
            if current[0] != bound[0]:
                return test(-1 if current[0] < bound[0] else 1)
            return test((current > bound) - (current < bound))

        return compare

    def _column(self, tree: exp.Expr) -> SourceColumn:
        if isinstance(tree, exp.Column):
            name = tree.name
            for column in self.table.columns:
                if column.name == name or column.name.lower() == name.lower():
                    return column
            raise PartitaError(f"--where: {self.table.name} has no column {name}.")
        raise self._refused(tree)

    def _constant(self, column: SourceColumn, tree: exp.Expr) -> AttributeValue | None:
        if isinstance(tree, exp.Null):
            return None
        if isinstance(tree, exp.Boolean):
            return literal_value(column, bool(tree.this), self.dialect)
        sign = ""
        if isinstance(tree, exp.Neg):
            sign, tree = "-", tree.this
        if not isinstance(tree, exp.Literal):
            raise self._refused(tree)
        text = f"{sign}{tree.this}"
        if tree.is_string:
            return literal_value(column, text, self.dialect)
        number = int(text) if text.lstrip("-").isdigit() else float(text)
        return literal_value(column, number, self.dialect)

    def _refused(self, tree: exp.Expr) -> PartitaError:
        return PartitaError(
            f"--where {self.table.name}: {tree.sql()!r} cannot be answered from a row in the log;"
            " compare columns with constants."
        )


def _not(test: Holds, row: Item) -> bool | None:
    result = test(row)
    return None if result is None else not result


def _both(tests: tuple[Holds, Holds], row: Item) -> bool | None:
    results = [test(row) for test in tests]
    return False if False in results else None if None in results else True


def _either(tests: list[Holds] | tuple[Holds, Holds], row: Item) -> bool | None:
    results = [test(row) for test in tests]
    return True if True in results else None if None in results else False
