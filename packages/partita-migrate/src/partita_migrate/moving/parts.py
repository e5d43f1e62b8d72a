"""Parts of tables: the rows that `load --where` moves, while the rest stays in the source.

A condition is asked of every row that is read and of every change that is followed, here and not in
the source: a change in the log has left the source's SQL behind. So it is one that can be answered
from the row alone: comparisons of columns with constants, IN, BETWEEN, IS NULL, AND, OR and NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from partita.database.item.values import AttributeValue, Item
from partita.errors import PartitaError
from partita_migrate.model.making import order
from partita_migrate.moving.items import Part
from partita_migrate.statements.values import fold_of, folded, literal_value
from partita_migrate.understanding.schema.inventory import Column, Inventory, Table

Holds = Callable[[Item], bool | None]
"""None where SQL says UNKNOWN."""


@dataclass(frozen=True)
class RowsWhere:
    test: Holds

    def holds(self, row: Item) -> bool:
        return self.test(row) is True


def parts_of(inventory: Inventory, where: Mapping[str, str]) -> dict[str, Part]:
    """By table; PartitaError when a condition cannot be answered from its row."""
    found: dict[str, Part] = {}
    for name, condition in where.items():
        table = inventory.table(name)
        if table is None:
            raise PartitaError(f"--where names {name}, and the source has no such table.")
        try:
            tree = parse_one(condition, dialect=_DIALECTS.get(inventory.dialect))
        except SqlglotError as error:
            raise PartitaError(f"--where {name}: {condition!r} is not a condition.") from error
        found[name] = RowsWhere(_Compiler(table, inventory.dialect, condition).holds(tree))
    return found


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


class _Compiler:
    def __init__(self, table: Table, dialect: str, condition: str) -> None:
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
            tests = [self._compared(exp.EQ, tree.this, one) for one in tree.expressions]
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
        wanted, test = order(folded(constant, fold)), _COMPARED[kind]

        def compare(row: Item) -> bool | None:
            value = row.get(column.name)
            if value is None:
                return None
            found = order(folded(value, fold))
            if found[0] != wanted[0]:
                return test(-1 if found[0] < wanted[0] else 1)
            return test((found > wanted) - (found < wanted))

        return compare

    def _column(self, tree: exp.Expr) -> Column:
        if isinstance(tree, exp.Column):
            name = tree.name
            for column in self.table.columns:
                if column.name == name or column.name.lower() == name.lower():
                    return column
            raise PartitaError(f"--where: {self.table.name} has no column {name}.")
        raise self._refused(tree)

    def _constant(self, column: Column, tree: exp.Expr) -> AttributeValue | None:
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


def _not(one: Holds, row: Item) -> bool | None:
    found = one(row)
    return None if found is None else not found


def _both(tests: tuple[Holds, Holds], row: Item) -> bool | None:
    found = [test(row) for test in tests]
    return False if False in found else None if None in found else True


def _either(tests: list[Holds] | tuple[Holds, Holds], row: Item) -> bool | None:
    found = [test(row) for test in tests]
    return True if True in found else None if None in found else False
