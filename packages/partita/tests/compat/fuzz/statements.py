"""PartiQL: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from ..notation import Body, Index, Value
from .dice import Dice
from .expressions import meets
from .paths import Path, kind_at, path, value_at
from .requests import Request, capacity, maybe, table
from .tables import Table, item, key, key_value, kinds
from .values import KINDS, SETS, needle, value

SORTABLE = ("S", "N", "B")
COMPARATORS = ("=", "=", "<>", "<", "<=", ">", ">=")
RETURNING = (
    "RETURNING ALL OLD *",
    "RETURNING ALL NEW *",
    "RETURNING MODIFIED OLD *",
    "RETURNING MODIFIED NEW *",
)


class Writer:
    """A statement with its parameters, in the order of the question marks."""

    def __init__(self, dice: Dice, table: Table) -> None:
        self.dice = dice
        self.table = table
        self.parameters: list[Value] = []

    def body(self, statement: str) -> Body:
        return {"Statement": statement} | (
            {"Parameters": self.parameters} if self.parameters else {}
        )

    # Operands.

    def value(self, value: Value) -> str:
        if _has_bytes(value) or self.dice.chance(0.6):
            self.parameters.append(value)
            return "?"
        return literal(value)

    def path_text(self, kind: str | None = None, avoid: Collection[str] = ()) -> str:
        return written(path(self.dice, self.table, kind, avoid))

    def equal(self, name: str, value: Value) -> str:
        return f"{written((name,))} = {self.value(value)}"

    # Conditions.

    def condition(self, avoid: Collection[str], depth: int = 1) -> str:
        dice = self.dice
        if depth == 0 or dice.chance(0.65):
            return dice.weighted(self._tests)(avoid)
        terms = dice.times(2, 3, lambda: self.condition(avoid, depth - 1))
        joined = dice.choice((" AND ", " OR ")).join(terms)
        return f"NOT ({joined})" if dice.chance(0.2) else f"({joined})"

    @property
    def _tests(self) -> list[tuple[int, Callable[[Collection[str]], str]]]:
        return [
            (8, self._comparison),
            (2, self._between),
            (2, self._in),
            (3, self._missing),
            (2, self._type_test),
            (2, self._begins_with),
            (3, self._contains),
            (2, self._size),
            (1, self._is_type),
        ]

    def _comparison(self, avoid: Collection[str]) -> str:
        comparator = self.dice.choice(COMPARATORS)
        kind = None if comparator in ("=", "<>") else self.dice.choice(SORTABLE)
        target = path(self.dice, self.table, kind, avoid)
        if self.dice.chance(0.1):
            return f"{written(target)} {comparator} {self.path_text(kind, avoid)}"
        other = value(self.dice, kind) if kind else value_at(self.dice, self.table, target)
        return f"{written(target)} {comparator} {self.value(other)}"

    def _between(self, avoid: Collection[str]) -> str:
        kind = self.dice.choice(SORTABLE)
        operand = self.path_text(kind, avoid)
        lower, upper = (self.value(value(self.dice, kind)) for _ in range(2))
        return f"{operand} {self._maybe_not()}BETWEEN {lower} AND {upper}"

    def _maybe_not(self) -> str:
        return "NOT " if self.dice.chance(0.2) else ""

    def _in(self, avoid: Collection[str]) -> str:
        target = path(self.dice, self.table, None, avoid)
        operand = written(target)
        candidates = self.dice.times(
            1, 3, lambda: self.value(value_at(self.dice, self.table, target))
        )
        return f"{operand} {self._maybe_not()}IN [{', '.join(candidates)}]"

    def _missing(self, avoid: Collection[str]) -> str:
        test = self.dice.choice(("IS MISSING", "IS NOT MISSING", "IS NULL", "IS NOT NULL"))
        return f"{self.path_text(None, avoid)} {test}"

    def _is_type(self, avoid: Collection[str]) -> str:
        types = ("BOOLEAN", "BLOB", "STRING", "NUMERIC", "STRUCT", "TUPLE", "LIST")
        return f"{self.path_text(None, avoid)} IS {self._maybe_not()}{self.dice.choice(types)}"

    def _type_test(self, avoid: Collection[str]) -> str:
        target = path(self.dice, self.table, None, avoid)
        kind = kind_at(self.table, target) if self.dice.chance(0.6) else None
        operand = self.value({"S": kind or self.dice.choice(KINDS)})
        return f"attribute_type({written(target)}, {operand})"

    def _begins_with(self, avoid: Collection[str]) -> str:
        operand = self.path_text("S", avoid)
        return f"begins_with({operand}, {self.value(value(self.dice, 'S'))})"

    def _contains(self, avoid: Collection[str]) -> str:
        kind = self.dice.choice((*SETS, "S", "L"))
        operand = self.path_text(kind, avoid)
        member = {"SS": "S", "NS": "N", "BS": "B", "L": self.dice.choice(KINDS)}.get(kind, kind)
        return f"contains({operand}, {self.value(needle(self.dice, member))})"

    def _size(self, avoid: Collection[str]) -> str:
        operand = self.path_text(None, avoid)
        limit = self.value({"N": str(self.dice.randint(0, 4))})
        return f"size({operand}) {self.dice.choice(COMPARATORS)} {limit}"

    # Statements.

    def where_key(self, probability: float = 0.4) -> str:
        """A WHERE clause with the key of one item, sometimes with a further condition."""
        terms = [self.equal(name, one) for name, one in key(self.dice, self.table).items()]
        if self.dice.chance(probability):
            terms.append(self.condition(self.table.key_kinds))
        return "WHERE " + " AND ".join(terms)

    def insert(self) -> str:
        members = item(self.dice, self.table).items()
        written_members = (f"{literal({'S': name})}: {self.value(one)}" for name, one in members)
        return f'INSERT INTO "{self.table.name}" VALUE {{{", ".join(written_members)}}}'

    def delete(self) -> str:
        returning = f" {RETURNING[0]}" if self.dice.chance(0.5) else ""
        return f'DELETE FROM "{self.table.name}" {self.where_key()}{returning}'

    def update(self) -> str:
        taken: list[Path] = []
        clauses = []
        for _ in range(self.dice.randint(1, 3)):
            target = path(self.dice, self.table, None, self.table.key_kinds)
            if not any(meets(target, other) for other in taken):
                taken.append(target)
                clauses.append(self._assignment(target))
        returning = f" {self.dice.choice(RETURNING)}" if self.dice.chance(0.7) else ""
        changes = " ".join(clauses)
        return f'UPDATE "{self.table.name}" {changes} {self.where_key()}{returning}'

    def _assignment(self, target: Path) -> str:
        dice = self.dice
        name = written(target)
        kind = kind_at(self.table, target)
        if dice.chance(0.2):
            return f"REMOVE {name}"
        if kind == "N" and dice.chance(0.6):
            left, operator, right = self._number(), dice.choice("+-"), self._number()
            return f"SET {name} = {left} {operator} {right}"
        if kind in SETS and dice.chance(0.6):
            function = dice.choice(("set_add", "set_delete"))
            return f"SET {name} = {function}({name}, {self.value(value(dice, kind))})"
        if kind == "L" and dice.chance(0.6):
            operands = [name, self.value(value(dice, "L"))]
            dice.shuffle(operands)
            return f"SET {name} = list_append({', '.join(operands)})"
        new = self.value(value_at(dice, self.table, target))
        if dice.chance(0.2):
            return f"SET {name} = if_not_exists({name}, {new})"
        return f"SET {name} = {new}"

    def _number(self) -> str:
        if self.dice.chance(0.5):
            return self.value(value(self.dice, "N"))
        return self.path_text("N")

    def select_one(self) -> str:
        """A SELECT for a batch or transaction, where no further condition is allowed."""
        return f'SELECT {self._columns()} FROM "{self.table.name}" {self.where_key(0.05)}'

    def _columns(self) -> str:
        if self.dice.chance(0.4):
            return "*"
        columns: list[Path] = []
        for _ in range(self.dice.randint(1, 3)):
            one = path(self.dice, self.table, None)
            if not any(meets(one, other) for other in columns):
                columns.append(one)
        return ", ".join(map(written, columns))

    def select(self, index: Index | None, *, is_query: bool) -> str:
        dice = self.dice
        source = f'"{self.table.name}"' + (f'."{index.name}"' if index else "")
        statement = f"SELECT {self._columns()} FROM {source}"
        keys = kinds(index.key if index else self.table.key)
        terms = self._key_terms(keys) if is_query else []
        if dice.chance(0.5):
            terms.append(self.condition(() if not terms else tuple(keys)))
        elif not terms and dice.chance(0.3):
            terms.append(self._one_of_keys(keys))
        if terms:
            statement += " WHERE " + " AND ".join(terms)
        if len(terms) > 1 and dice.chance(0.2):
            order = dice.choice(list(keys))
            statement += f" ORDER BY {written((order,))} {dice.choice(('ASC', 'DESC'))}"
        return statement

    def exists(self) -> str:
        """A condition of a transaction: one item, and something that must hold of it."""
        terms = [self.equal(name, one) for name, one in key(self.dice, self.table).items()]
        terms.append(self.condition(self.table.key_kinds))
        return f'EXISTS(SELECT * FROM "{self.table.name}" WHERE {" AND ".join(terms)})'

    def _one_of_keys(self, keys: dict[str, str]) -> str:
        name, kind = next(iter(keys.items()))
        values = ", ".join(self.value(key_value(self.dice, kind)) for _ in range(2))
        return f"{written((name,))} IN [{values}]"

    def _key_terms(self, keys: dict[str, str]) -> list[str]:
        dice = self.dice
        (hash_name, hash_kind), *sort = keys.items()
        terms = [self.equal(hash_name, key_value(dice, hash_kind))]
        for name, kind in sort:
            if dice.chance(0.5):
                comparator = dice.choice(("=", "<", "<=", ">", ">="))
                operand = self.value(key_value(dice, kind))
                terms.append(f"{written((name,))} {comparator} {operand}")
        return terms


def written(path: Path) -> str:
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        else:
            text += f'."{element}"' if text else f'"{element}"'
    return text


def _has_bytes(value: Value) -> bool:
    """Bytes cannot be written into a statement."""
    text = json.dumps(value)
    return '"B":' in text or '"BS":' in text


def literal(value: Value) -> str:
    ((kind, content),) = value.items()
    if kind == "S":
        return _quoted(content)
    if kind == "N":
        return str(content)
    if kind == "BOOL":
        return "TRUE" if content else "FALSE"
    if kind == "NULL":
        return "NULL"
    if kind == "L":
        return f"[{', '.join(map(literal, content))}]"
    if kind == "M":
        members = (f"{_quoted(name)}: {literal(one)}" for name, one in content.items())
        return f"{{{', '.join(members)}}}"
    members = (_quoted(one) if kind == "SS" else one for one in content)
    return f"<<{', '.join(members)}>>"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def execute_statement(dice: Dice) -> Request:
    used = table(dice)
    writer = Writer(dice, used)
    if dice.chance(0.55):
        return _select(dice, used, writer)
    body = writer.body(dice.choice((writer.insert, writer.update, writer.update, writer.delete))())
    return Request("ExecuteStatement", body | _on_failure(dice) | capacity(dice))


def _on_failure(dice: Dice) -> Body:
    return maybe(dice, 0.3, "ReturnValuesOnConditionCheckFailure", ("ALL_OLD", "NONE"))


def _select(dice: Dice, used: Table, writer: Writer) -> Request:
    index = dice.choice(used.indexes) if used.indexes and dice.chance(0.4) else None
    is_query = dice.chance(0.6)
    body = writer.body(writer.select(index, is_query=is_query))
    keys = list(kinds(index.key if index else used.key))
    if index not in used.across:
        body |= maybe(dice, 0.3, "ConsistentRead", (True,))
    limit = maybe(dice, 0.4, "Limit", (1, 2, 3))
    return Request(
        "ExecuteStatement",
        body | limit | capacity(dice),
        unordered=("Items",),
        order_by=keys[1] if is_query and len(keys) == 2 else None,
        to_the_end=bool(limit),
    )


def batch_execute_statement(dice: Dice) -> Request:
    reads = dice.chance(0.5)
    statements = dice.times(1, 4, lambda: _one_of_many(dice, reads=reads))
    body = {"Statements": _on_different_items(statements)}
    return Request("BatchExecuteStatement", body | capacity(dice))


def execute_transaction(dice: Dice) -> Request:
    reads = dice.chance(0.3)
    statements = dice.times(1, 3, lambda: _one_of_many(dice, reads=reads, returns=False))
    body = {"TransactStatements": _on_different_items(statements)}
    return Request("ExecuteTransaction", body | capacity(dice))


def _one_of_many(dice: Dice, *, reads: bool, returns: bool = True) -> Body:
    writer = Writer(dice, table(dice))
    if reads:
        return writer.body(writer.select_one())
    kinds_of_writes = [writer.insert, writer.update, writer.update, writer.delete]
    if not returns:
        kinds_of_writes.append(writer.exists)
    statement = dice.choice(kinds_of_writes)()
    if not returns:
        statement = statement.split(" RETURNING ")[0]
    return writer.body(statement) | _on_failure(dice)


def _on_different_items(statements: list[Body]) -> list[Body]:
    """Statements for different tables, so that no two of them have the same item."""
    tables = {one["Statement"].split('"Fuzz')[1].split('"')[0]: one for one in statements}
    return list(tables.values())
