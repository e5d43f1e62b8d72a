"""The proof of a write: the statement on a private copy, the requests on tables of their own.

Both begin with the same rows. After every call the copy, turned into items again, must equal the
tables. What an application does with a row that it has changed is the one function of all stages:
its items are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from partita.client.failures import ClientError
from partita.database.item.values import AttributeValue, Item
from partita.migrate.designing.requests.reads import NotServed, ReadPlanner
from partita.migrate.designing.requests.writes import WritePlanner
from partita.migrate.model.design import READS, Access, Design, Entity, TableDesign
from partita.migrate.model.key_texts import NotEncodable
from partita.migrate.model.making import ItemMaker
from partita.migrate.proving.answers import Asking, Refused
from partita.migrate.proving.comparing import plain
from partita.migrate.proving.parameters import Draw, ParameterSet
from partita.migrate.proving.private_server import DynamoDB
from partita.migrate.proving.results import Difference, PatternProof
from partita.migrate.proving.snapshot import Snapshot
from partita.migrate.proving.staging import Staging, lookups
from partita.migrate.proving.tables import (
    create_tables,
    drop_tables,
    is_taken,
    put_all,
    scanned,
)
from partita.migrate.statements.question import (
    Constant,
    Insertion,
    Modification,
    Parameter,
    Question,
    Value,
)
from partita.migrate.statements.values import literal_value
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.inventory import Inventory, Table
from partita.migrate.understanding.sources import Source
from partita.migrate.understanding.sources.values import attribute_value

SETS_MAX = 6
TRANSACTION_ITEMS = 100
SHOWN_ITEMS = 4
PREFIX = "partita-writes."

Key = tuple[str, str]
"""A table, and the text of an item's key."""


class WriteProof:
    def __init__(
        self,
        design: Design,
        inventory: Inventory,
        copy: Source,
        server: DynamoDB,
        space: Path,
        prefix: str = PREFIX,
    ) -> None:
        self.design = design
        self.inventory = inventory
        self.copy = copy
        self.server = server
        self.prefix = prefix
        self.snapshot = Snapshot(copy, inventory, is_streamed=False)
        self.reads = ReadPlanner(design, inventory)
        self.planner = WritePlanner(design, self.reads)
        self.staging = Staging(space / "writes", inventory, lookups(design, inventory))
        self.maker = ItemMaker(
            self.staging, {table.name: table.primary_key for table in inventory.tables}
        )
        self.is_filled = False

    def close(self) -> None:
        if self.is_filled:
            drop_tables(self.server, self.design, self.prefix)
        self.staging.close()

    # Both sides at the same point.

    def begin(self) -> None:
        """Tables with what the copy holds now."""
        create_tables(self.server, self.design, self.prefix)
        self._stage()
        items = ((f"{self.prefix}{name}", item) for (name, _), item in self._expected().items())
        for _ in put_all(self.server, items):
            pass
        self.is_filled = True

    def _stage(self) -> None:
        for table in self.inventory.tables:
            if table.is_readable and table.columns:
                for _ in self.staging.fill(table.name, self.snapshot.rows(table)):
                    pass

    def _entities(self, source: str) -> Iterator[tuple[TableDesign, Entity]]:
        return ((table, one) for table, one in self.design.entities() if one.source == source)

    def _expected(self) -> dict[Key, Item]:
        """Every item that the copy's rows become."""
        found: dict[Key, Item] = {}
        for table in self.inventory.tables:
            for row in self.staging.rows(table.name):
                found.update(self._items(table.name, row))
        return found

    def _items(self, source: str, row: Item) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        for home, entity in self._entities(source):
            item = self.maker.item(entity, row)
            if item is not None and is_taken(home, item):
                found[home.name, _key_text(home, item)] = item
        return found

    def _actual(self) -> dict[Key, Item]:
        return {
            (table.name, _key_text(table, item)): item
            for table in self.design.tables
            for item in scanned(self.server, f"{self.prefix}{table.name}")
        }

    # One pattern.

    def of(
        self,
        pattern: AccessPattern,
        statement: Insertion | Modification,
        accesses: list[Access],
        line: str,
    ) -> PatternProof:
        shown = statement.tree.sql() if statement.tree is not None else ""
        try:
            self.planner.plan(statement, pattern.name, accesses)
            sets = list(self._sets(statement))[:SETS_MAX]
        except NotServed as reason:
            return PatternProof(
                pattern=pattern.name,
                operation=pattern.operation,
                verdict="unserved",
                why=str(reason),
                statement=shown,
            )
        before = self.server.calls
        differences: list[Difference] = []
        cases: list[str] = []
        for one in sets:
            if not self.is_filled:
                self.begin()
            count, what = self._run(statement, one, pattern.name, accesses)
            cases.append(f"{one.case}: {count} rows")
            if what:
                self.is_filled = False
                drop_tables(self.server, self.design, self.prefix)
                differences.append(self._difference(one, what, line))
        return PatternProof(
            pattern=pattern.name,
            operation=pattern.operation,
            verdict="differs" if differences else ("proven" if cases else "unproven"),
            why="" if cases else "no row to try it with",
            statement=shown,
            cases=cases,
            requests=self.server.calls - before,
            differences=differences,
        )

    def _difference(self, one: ParameterSet, what: list[str], line: str) -> Difference:
        return Difference(
            case=one.case,
            parameters={
                name: "NULL" if value is None else str(next(iter(value.values())))
                for name, value in one.values.items()
            },
            what=what[0],
            items=what[1 : SHOWN_ITEMS + 1],
            line=line,
        )

    def _run(
        self,
        statement: Insertion | Modification,
        one: ParameterSet,
        pattern: str,
        accesses: Sequence[Access],
    ) -> tuple[int, list[str]]:
        """Rows that were written, and what is not the same afterwards."""
        assert statement.tree is not None
        old = {repr(row): row for row in self.staging.rows(statement.table)}
        sql, bound = self.snapshot.bound(statement.tree.copy(), one.values)
        refused = ""
        count = 0
        try:
            # What the application knows before it writes.
            found = self._found(statement, one, pattern)
            beside = self._dependents(statement, found)
            count = self.copy.connection.execute(text(sql), bound).rowcount
        except IntegrityError as error:
            refused = str(error.orig)
        except SQLAlchemyError as error:
            return 0, [f"the source refused the statement: {' '.join(str(error).split())[:200]}"]
        except (ClientError, NotEncodable, Refused, NotServed) as error:
            return 0, [f"the rows were not found: {error}"]
        if refused:
            return 0, self._refused(statement, one, refused)
        self._stage()
        try:
            if isinstance(statement, Insertion):
                rows = [row for row in self.staging.rows(statement.table) if repr(row) not in old]
                strange = self._strange_keys(accesses, statement.table, rows)
                self._write([], rows, statement.table)
            else:
                strange = self._strange_keys(accesses, statement.table, found)
                self._modify(statement, one, found, beside)
        except (ClientError, NotEncodable, Refused, NotServed) as error:
            return count, [f"the requests were refused: {error}"]
        return count, strange or self._compare()

    def _strange_keys(
        self, accesses: Sequence[Access], source: str, rows: Sequence[Item]
    ) -> list[str]:
        """Keys that a request of the design names, and that no item of the row has."""
        for access in accesses:
            home = self.design.table(access.table)
            entity = home.entity(access.entity) if home is not None else None
            is_write = access.request not in (*READS, "TTL", "none")
            if home is None or entity is None or not is_write or entity.source != source:
                continue
            for row in rows:
                item = self.maker.item(entity, row)
                named = self._named_key(access, entity, row)
                if item is not None and any(item.get(name) != key for name, key in named.items()):
                    return [
                        "the request names another item than the row's",
                        f"named: {named}",
                        f"the row's: {_key_text(home, item)}",
                    ]
        return []

    def _named_key(self, access: Access, entity: Entity, row: Item) -> Item:
        made = {}
        for one in access.key:
            attribute = entity.attribute(one.attribute)
            if attribute is None:
                raise Refused(f"{entity.name} has no attribute {one.attribute!r}")
            is_plain = attribute.template is None and attribute.constant is None
            asked = replace(
                attribute,
                column=attribute.column if is_plain else None,
                constant=None,
                template=None if is_plain else one.value,
            )
            value = self.maker.value(entity, asked, row)
            made[one.attribute] = value if value is not None else {"S": one.value}
        return made

    def _refused(
        self, statement: Insertion | Modification, one: ParameterSet, reason: str
    ) -> list[str]:
        """What the source does not take, the design's conditions must not take either."""
        if not isinstance(statement, Insertion) or "UNIQUE" not in reason.upper().replace(
            "DUPLICATE", "UNIQUE"
        ):
            return []
        row = self._row(statement, one)
        try:
            self._write([], [row], statement.table)
        except ClientError:
            return self._compare()
        return [f"the source refused it ({reason}), and the requests did not"]

    # The application.

    def _found(
        self, statement: Insertion | Modification, one: ParameterSet, pattern: str
    ) -> list[Item]:
        """Rows that the design's own requests find, as the copy has them."""
        if isinstance(statement, Insertion):
            return []
        question = self.planner.rows_question(statement)
        return self._rows_by(question, one.values, pattern)

    def _rows_by(
        self, question: Question, values: Mapping[str, AttributeValue | None], pattern: str
    ) -> list[Item]:
        (access, *_) = self.reads.plan(question, pattern)
        table = self.design.table(access.table)
        assert table is not None
        brought = self.reads.brought(question, [access])
        asking = Asking(self.server, self.inventory, table, access, brought.asked, self.prefix)
        found: list[Item] = []
        for item in asking.items(values):
            columns = [ref.column for ref in question.columns]
            cells = [item.get(brought.attributes[0][ref]) for ref in question.columns]
            known = {
                name: cell for name, cell in zip(columns, cells, strict=True) if cell is not None
            }
            found += self.staging.matching(question.table, list(known), list(known.values()))
        return found

    def _dependents(
        self, statement: Insertion | Modification, found: list[Item]
    ) -> list[tuple[str, Item]]:
        """(table, row) of what repeats the rows, or refers to them, found by the design's keys."""
        if isinstance(statement, Insertion):
            return []
        known: dict[str, tuple[str, Item]] = {}
        for copies in self.planner.copies(statement):
            for row in found:
                values: dict[str, AttributeValue | None] = {}
                for test in copies.question.tests:
                    (value,) = test.values
                    assert isinstance(value, Parameter)
                    ref = value.ref or test.ref
                    values[value.name] = self._joined_value(copies.entity, ref, row, statement)
                for other in self._rows_by(copies.question, values, statement.table):
                    known[repr((copies.entity.source, other))] = (copies.entity.source, other)
        return list(known.values())

    def _modify(
        self,
        statement: Modification,
        one: ParameterSet,
        found: list[Item],
        beside: list[tuple[str, Item]],
    ) -> None:
        changed = [self._changed(statement, row, one) for row in found]
        self._write(found, changed, statement.table)
        for source, row in beside:
            table = self.inventory.table(source)
            key = table.primary_key if table is not None and table.primary_key else list(row)
            after = self.staging.matching(source, key, [row[name] for name in key])
            self._write([row], list(after), source, is_copy=True)

    def _joined_value(
        self, entity: Entity, ref: Ref, row: Item, statement: Modification
    ) -> AttributeValue | None:
        """What the copies are found by: a column of the row, under the name of their own."""
        if ref.table == statement.table:
            return row.get(ref.column)
        for attribute in entity.attributes:
            for join in self.planner.joins(attribute):
                for before, after in zip(join.before, join.after, strict=True):
                    if before == ref and after.table == statement.table:
                        return row.get(after.column)
        return None

    def _changed(self, statement: Modification, row: Item, one: ParameterSet) -> Item:
        """Empty for a row that is deleted."""
        if not statement.changes:
            return {}
        changed = dict(row)
        for change in statement.changes:
            value = self._value(change.ref, change.value, one)
            if change.sign:
                before = row.get(change.ref.column)
                is_float = self._is_float(change.ref)
                value = _sum(before, value, change.sign, is_float=is_float)
            if value is None:
                changed.pop(change.ref.column, None)
            else:
                changed[change.ref.column] = value
        return changed

    def _is_float(self, ref: Ref) -> bool:
        """Whether the source counts in floating point; SQLite does with every fraction."""
        column = self.reads.column(ref)
        is_whole = column is not None and column.kind == "integer"
        is_float = column is not None and column.kind == "float"
        return is_float or (self.inventory.dialect == "sqlite" and not is_whole)

    def _row(self, statement: Insertion, one: ParameterSet) -> Item:
        row: Item = {}
        for ref, value in zip(statement.columns, statement.values, strict=True):
            held = self._value(ref, value, one) if value is not None else None
            if held is not None:
                row[ref.column] = held
        return row

    def _value(self, ref: Ref, value: Value, one: ParameterSet) -> AttributeValue | None:
        if isinstance(value, Parameter):
            return one.values.get(value.name)
        assert isinstance(value, Constant)
        column = self.reads.column(ref)
        assert column is not None
        return literal_value(column, value.value, self.inventory.dialect)

    def _write(
        self, before: list[Item], after: list[Item], source: str, *, is_copy: bool = False
    ) -> None:
        """Rows that were, and what became of them: puts and deletes, all or nothing."""
        gone: dict[Key, Item] = {}
        new: dict[Key, Item] = {}
        for row in before:
            gone |= self._items_of(source, row)
        for row in after:
            if row:
                new |= self._items_of(source, row)
        calls: list[dict[str, Any]] = []
        for key, item in gone.items():
            if key not in new:
                calls.append({"Delete": self._target(key, item)})
        for key, item in new.items():
            put: dict[str, Any] = {"TableName": f"{self.prefix}{key[0]}", "Item": item}
            if key not in gone and not is_copy and not self._is_latest(key[0], item):
                put["ConditionExpression"] = "attribute_not_exists(#k)"
                put["ExpressionAttributeNames"] = {"#k": self._home(key[0]).partition_key.name}
            calls.append({"Put": put})
        for start in range(0, len(calls), TRANSACTION_ITEMS):
            self.server.call(
                "TransactWriteItems", TransactItems=calls[start : start + TRANSACTION_ITEMS]
            )

    def _items_of(self, source: str, row: Item) -> dict[Key, Item]:
        return self._items(source, row)

    def _is_latest(self, table: str, item: Item) -> bool:
        """The copy of the newest row is replaced by each newer one."""
        latest = [one for one in self._home(table).entities if one.rows == "latest"]
        return any(
            all(
                item.get(one.name) == {one.type: one.constant}
                for one in entity.attributes
                if one.constant is not None
            )
            for entity in latest
        )

    def _target(self, key: Key, item: Item) -> dict[str, Any]:
        home = self._home(key[0])
        names = [one.name for one in home.keys]
        return {
            "TableName": f"{self.prefix}{key[0]}",
            "Key": {name: item[name] for name in names},
        }

    def _home(self, name: str) -> TableDesign:
        found = self.design.table(name)
        assert found is not None
        return found

    # Comparing.

    def _compare(self) -> list[str]:
        expected, actual = self._expected(), self._actual()
        shown: list[str] = []
        for key in expected.keys() - actual.keys():
            shown.append(f"missing in {key[0]}: {key[1]}")
        for key in actual.keys() - expected.keys():
            shown.append(f"too many in {key[0]}: {key[1]}")
        for key in expected.keys() & actual.keys():
            ours, theirs = expected[key], actual[key]
            names = {
                name
                for name in ours.keys() | theirs.keys()
                if _text(ours.get(name)) != _text(theirs.get(name))
            }
            if names:
                cells = ", ".join(
                    f"{name} is {_text(theirs.get(name))} and should be {_text(ours.get(name))}"
                    for name in sorted(names)
                )
                shown.append(f"{key[0]} {key[1]}: {cells}"[:300])
        if not shown:
            return []
        return [f"{len(shown)} items are not what the copy's rows become", *shown]

    # Parameters.

    def _sets(self, statement: Insertion | Modification) -> Iterator[ParameterSet]:
        table = self.inventory.table(statement.table)
        if table is None:
            return
        if not self.is_filled:
            self.begin()
        if isinstance(statement, Insertion):
            yield from self._insertions(statement, table)
        else:
            yield from self._modifications(statement, table)

    def _insertions(self, statement: Insertion, table: Table) -> Iterator[ParameterSet]:
        rows = self.staging.spread(table.name, 3)
        for number, row in enumerate(rows[:3], 1):
            values: dict[str, AttributeValue | None] = {}
            for ref, value in zip(statement.columns, statement.values, strict=True):
                if isinstance(value, Parameter):
                    values[value.name] = self._new_value(table, ref, row, number)
            yield ParameterSet("a new row", values)
        if rows:
            values = {}
            for ref, value in zip(statement.columns, statement.values, strict=True):
                if isinstance(value, Parameter):
                    values[value.name] = rows[0].get(ref.column)
            yield ParameterSet("a row that is there already", values)

    def _new_value(self, table: Table, ref: Ref, row: Item, number: int) -> AttributeValue | None:
        """Keys are new, references lead to rows that are there, the rest is as it was."""
        column = self.reads.column(ref)
        held = row.get(ref.column)
        refers = [key for key in table.foreign_keys if ref.column in key.columns]
        unique = [table.primary_key, *(one.columns for one in table.indexes if one.is_unique)]
        is_key = any(ref.column in columns for columns in unique)
        if not is_key:
            return held
        if refers:
            return self._other_reference(table, ref, row, number)
        if held is None or column is None:
            return held
        if "N" in held:
            values = [one[ref.column] for one in self.staging.rows(table.name) if ref.column in one]
            most = max(Decimal(value["N"]) for value in values if "N" in value)
            return {"N": format(most + number, "f")}
        if "S" in held and column.kind in ("string", "other"):
            kept = str(held["S"])[: (column.length_max or 60) - 4]
            return {"S": f"{kept}~{number}"}
        if "S" in held and column.kind == "uuid":
            return {"S": f"00000000-0000-4000-8000-{number:012}"}
        return held

    def _other_reference(
        self, table: Table, ref: Ref, row: Item, number: int
    ) -> AttributeValue | None:
        """Of a key that is made of references: a pair that is not there yet."""
        key = next(one for one in table.foreign_keys if ref.column in one.columns)
        position = key.columns.index(ref.column)
        target = key.referenced_columns[position]
        if ref.column != table.primary_key[-1] if table.primary_key else True:
            return row.get(ref.column)
        others = {column: row.get(column) for column in table.primary_key[:-1]}
        taken = {
            _text(one.get(ref.column))
            for one in self.staging.rows(table.name)
            if all(_text(one.get(name)) == _text(value) for name, value in others.items())
        }
        free = [
            one[target]
            for one in self.staging.rows(key.referenced_table)
            if target in one and _text(one[target]) not in taken
        ]
        return free[min(number, len(free)) - 1] if free else row.get(ref.column)

    def _modifications(self, statement: Modification, table: Table) -> Iterator[ParameterSet]:
        draw = Draw(self.staging, self.inventory)
        question = self.planner.rows_question(statement)
        for one in draw.sets(question, table.name)[: SETS_MAX - 1]:
            values = dict(one.values)
            others = self.staging.spread(table.name, 7)
            for number, change in enumerate(statement.changes):
                if isinstance(change.value, Parameter):
                    donors = [row for row in others if change.ref.column in row]
                    donor = donors[(number + 1) % len(donors)] if donors else {}
                    values[change.value.name] = donor.get(change.ref.column)
            yield ParameterSet(one.case, values)


def _sum(
    before: AttributeValue | None, value: AttributeValue | None, sign: int, *, is_float: bool
) -> AttributeValue | None:
    if before is None or value is None or "N" not in before or "N" not in value:
        return None
    if is_float:
        return attribute_value("float", float(before["N"]) + sign * float(value["N"]))
    total = Decimal(before["N"]) + sign * Decimal(value["N"])
    return {"N": format(total.normalize(), "f") if total else "0"}


def _key_text(table: TableDesign, item: Item) -> str:
    return ", ".join(f"{key.name}={_text(item.get(key.name))}" for key in table.keys)


def _text(value: AttributeValue | None) -> str:
    return plain(value)
