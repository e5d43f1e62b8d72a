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
from partita.migrate.designing.requests.homes import NotServed
from partita.migrate.designing.requests.reads import ReadPlanner
from partita.migrate.designing.requests.writes import WritePlanner, written_with
from partita.migrate.model.design import READS, Access, Attribute, Design, Entity, TableDesign
from partita.migrate.model.key_texts import NotEncodable
from partita.migrate.model.making import ItemMaker
from partita.migrate.model.templates import template_fields
from partita.migrate.proving.answers import Asking, Refused
from partita.migrate.proving.comparing import plain
from partita.migrate.proving.parameters import ParameterSet
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
from partita.migrate.proving.write_cases import WriteCases
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
from partita.migrate.understanding.schema.inventory import Inventory
from partita.migrate.understanding.sources import Source
from partita.migrate.understanding.sources.values import attribute_value

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
        self.cases = WriteCases(self.staging, inventory, self.planner)
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

    def _items(self, source: str, row: Item, written: set[str] | None = None) -> dict[Key, Item]:
        """Of all types, or of those that are written."""
        found: dict[Key, Item] = {}
        for home, entity in self._entities(source):
            if written is not None and entity.name not in written:
                continue
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
            if not self.is_filled:
                self.begin()
            sets = self.cases.of(statement)
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
            count, what = self._run(statement, one, accesses)
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
        accesses: Sequence[Access],
    ) -> tuple[int, list[str]]:
        """Rows that were written, and what is not the same afterwards."""
        assert statement.tree is not None
        old = {repr(row): row for row in self.staging.rows(statement.table)}
        sql, bound = self._sql(statement, one)
        try:
            # What the application knows before it writes.
            change = self._change(statement)
            found = self._found(change, one, accesses)
            beside = self._dependents(change, found, accesses)
            forbidden = self._forbidden(change, found, accesses)
        except (ClientError, NotEncodable, Refused, NotServed) as error:
            return 0, [f"the rows were not found: {error}"]
        try:
            count = self.copy.connection.execute(text(sql), bound).rowcount
        except IntegrityError as error:
            reason = " ".join(str(error.orig).split())
            return 0, self._refused(statement, one, reason, found, forbidden, accesses)
        except SQLAlchemyError as error:
            return 0, [f"the source refused the statement: {' '.join(str(error).split())[:200]}"]
        if forbidden:
            return count, [f"the requests refuse what the source takes: {forbidden}"]
        self._stage()
        new = [row for row in self.staging.rows(statement.table) if repr(row) not in old]
        try:
            strange = self._send(statement, one, (found, beside, new), accesses)
        except (ClientError, NotEncodable, Refused, NotServed) as error:
            return count, [f"the requests were refused: {error}"]
        return count, strange or self._compare()

    def _sql(
        self, statement: Insertion | Modification, one: ParameterSet
    ) -> tuple[str, dict[str, Any]]:
        assert statement.tree is not None
        tree = statement.tree.copy()
        is_replace = isinstance(statement, Insertion) and statement.on_conflict == "replace"
        if is_replace:
            tree.set("alternative", None)
        columns = {
            parameter.name: column
            for parameter in statement.parameters()
            if parameter.ref and (column := self.reads.column(parameter.ref)) is not None
        }
        sql, bound = self.snapshot.bound(tree, one.values, columns)
        return (f"REPLACE{sql.removeprefix('INSERT')}" if is_replace else sql), bound

    def _change(self, statement: Insertion | Modification) -> Modification | None:
        """What it does to rows that are there."""
        if isinstance(statement, Modification):
            return statement
        is_changing = statement.on_conflict in ("update", "replace")
        return self.planner.existing(statement) if is_changing else None

    def _send(
        self,
        statement: Insertion | Modification,
        one: ParameterSet,
        rows: tuple[list[Item], list[tuple[str, Item]], list[Item]],
        accesses: Sequence[Access],
    ) -> list[str]:
        """The requests of the application; what is strange about the keys that they name.

        `rows`: those that were found, those beside them, and those that the copy has since then.
        """
        found, beside, new = rows
        written = self._written(accesses)
        if isinstance(statement, Modification):
            strange = self._strange_keys(accesses, statement.table, found)
            self._modify(statement, one, found, beside, written)
            return strange
        change = self._change(statement)
        if change is not None and statement.on_conflict == "update" and found:
            self._modify(change, one, found, beside, written)
            return self._strange_keys(accesses, statement.table, found)
        strange = self._strange_keys(accesses, statement.table, new)
        if statement.on_conflict == "nothing" and not new:
            return self._refusal(statement, one, "the row is there already", written)
        # A row that is replaced by its like is there again.
        again = [row for row in self.staging.rows(statement.table) if row in found]
        self._write(found, [*new, *again], statement.table, written)
        return strange

    def _written(self, accesses: Sequence[Access]) -> set[str]:
        """The types of items that the requests of the model write."""
        writes = [one for one in accesses if one.request not in (*READS, "TTL", "none")]
        beside = (one.name for access in writes for _, one in written_with(self.design, access))
        return {*(one.entity for one in writes), *beside}

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
            column = _passed(attribute, one.value) if is_plain else None
            asked = replace(
                attribute,
                column=str(Ref(entity.source, column)) if column else None,
                constant=None,
                template=None if is_plain else one.value,
            )
            value = self.maker.value(entity, asked, row)
            made[one.attribute] = value if value is not None else {"S": one.value}
        return made

    def _refused(
        self,
        statement: Insertion | Modification,
        one: ParameterSet,
        reason: str,
        found: list[Item],
        forbidden: str,
        accesses: Sequence[Access],
    ) -> list[str]:
        """What the source does not take, the design's conditions must not take either."""
        is_repeated = "UNIQUE" in reason.upper().replace("DUPLICATE", "UNIQUE")
        if isinstance(statement, Insertion):
            written = self._written(accesses)
            return self._refusal(statement, one, reason, written) if is_repeated else []
        took = [f"the source did not take it ({reason}), and the requests did"]
        if any(access.forbids for access in accesses):
            return [] if forbidden else took
        lost = [one for one in self.design.unique if one.kept_by == "application"]
        if not is_repeated or any(one.table == statement.table for one in lost):
            return []
        try:
            self._modify(statement, one, found, [], self._written(accesses))
        except ClientError:
            return self._compare()
        return took

    def _refusal(
        self, statement: Insertion, one: ParameterSet, reason: str, written: set[str]
    ) -> list[str]:
        row = self._row(statement, one)
        try:
            self._write([], [row], statement.table, written)
        except ClientError:
            return self._compare()
        return [f"the source did not take it ({reason}), and the requests did"]

    # The application.

    def _found(
        self, statement: Modification | None, one: ParameterSet, accesses: Sequence[Access]
    ) -> list[Item]:
        """Rows that the requests of the model find, as the copy has them."""
        if statement is None:
            return []
        question = self.planner.rows_question(statement)
        return self._rows_by(question, one.values, self._finding(statement.table, accesses))

    def _finding(self, table: str, accesses: Sequence[Access]) -> Access:
        """The request that finds the rows: one before the write, else the key of the write."""
        for access in accesses:
            entity = self._entity(access)
            if access.forbids or entity.source != table:
                continue
            if access.request in READS:
                return access
            plain = {one.name: one for one in entity.attributes if one.column}
            key = [
                replace(one, value=f"{{{_passed(plain[one.attribute], one.value)}}}")
                if one.attribute in plain
                else one
                for one in access.key
            ]
            return replace(access, request="GetItem", key=key)
        raise Refused(f"the model has no request for the items of {table}")

    def _entity(self, access: Access) -> Entity:
        home = self.design.table(access.table)
        entity = home.entity(access.entity) if home is not None else None
        if entity is None:
            raise Refused(f"the model has no {access.entity!r}")
        return entity

    def _rows_by(
        self, question: Question, values: Mapping[str, AttributeValue | None], access: Access
    ) -> list[Item]:
        table = self.design.table(access.table)
        assert table is not None
        brought = self.reads.brought(question, [access])
        names = brought.attributes[0]
        if not set(question.columns) <= names.keys():
            raise Refused(f"the items of {access.entity} do not tell the rows of {question.table}")
        asking = Asking(self.server, self.inventory, table, access, brought.asked, self.prefix)
        found: list[Item] = []
        for item in asking.items(values):
            known = {
                ref.column: cell
                for ref in question.columns
                if (cell := item.get(names[ref])) is not None
            }
            found += self.staging.matching(question.table, list(known), list(known.values()))
        return found

    def _dependents(
        self, statement: Modification | None, found: list[Item], accesses: Sequence[Access]
    ) -> list[tuple[str, Item]]:
        """(table, row) of what repeats or refers to the rows, as the model's requests find it."""
        if statement is None:
            return []
        known: dict[str, tuple[str, Item]] = {}
        requests = self._reads_of_others(statement.table, accesses, forbids=False)
        for copies in self.planner.copies(statement):
            access = _next(requests, copies.entity.name)
            if access is None:
                raise Refused(f"no request finds the items of {copies.entity.name} that change too")
            for row in found:
                values = self._values_of(copies.question, copies.entity, row, statement)
                for other in self._rows_by(copies.question, values, access):
                    known[repr((copies.entity.source, other))] = (copies.entity.source, other)
        return list(known.values())

    def _forbidden(
        self, statement: Modification | None, found: list[Item], accesses: Sequence[Access]
    ) -> str:
        """The row that keeps others from being deleted, if a request of the model finds one."""
        if statement is None or statement.changes:
            return ""
        requests = self._reads_of_others(statement.table, accesses, forbids=True)
        for question in self.planner.restricting(statement.table):
            names = [one.name for _, one in self._entities(question.table)]
            access = next((one for name in names if (one := _next(requests, name))), None)
            if access is None:
                continue
            for row in found:
                values = self._values_of(question, self._entity(access), row, statement)
                for other in self._rows_by(question, values, access):
                    return f"{question.table} {other}"
        return ""

    def _reads_of_others(
        self, table: str, accesses: Sequence[Access], *, forbids: bool
    ) -> dict[str, list[Access]]:
        found: dict[str, list[Access]] = {}
        for access in accesses:
            is_other = access.request in READS and self._entity(access).source != table
            if is_other and access.forbids == forbids:
                found.setdefault(access.entity, []).append(access)
        return found

    def _values_of(
        self, question: Question, entity: Entity, row: Item, statement: Modification
    ) -> dict[str, AttributeValue | None]:
        values: dict[str, AttributeValue | None] = {}
        for test in question.tests:
            (value,) = test.values
            assert isinstance(value, Parameter)
            ref = value.ref or test.ref
            values[value.name] = self._joined_value(entity, ref, row, statement)
        return values

    def _modify(
        self,
        statement: Modification,
        one: ParameterSet,
        found: list[Item],
        beside: list[tuple[str, Item]],
        written: set[str],
    ) -> None:
        changed = [self._changed(statement, row, one) for row in found]
        self._write(found, changed, statement.table, written)
        for source, row in beside:
            table = self.inventory.table(source)
            key = table.primary_key if table is not None and table.primary_key else list(row)
            after = self.staging.matching(source, key, [row[name] for name in key])
            names = {one.name for _, one in self._entities(source)}
            self._write([row], list(after), source, names, is_copy=True)

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
        self,
        before: list[Item],
        after: list[Item],
        source: str,
        written: set[str],
        *,
        is_copy: bool = False,
    ) -> None:
        """Rows that were, and what became of them: puts and deletes, all or nothing.

        `written`: the types of items that are written.
        """
        gone: dict[Key, Item] = {}
        new: dict[Key, Item] = {}
        for row in before:
            gone |= self._items(source, row, written)
        for row in after:
            if row:
                new |= self._items(source, row, written)
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


def _passed(attribute: Attribute, value: str) -> str:
    """The column whose value a request passes for a key that is a column: its own, under the name
    of the attribute, or the one that the model says."""
    own = Ref.parse(attribute.column or "").column
    fields = template_fields(value)
    return own if not fields or fields[0].name == attribute.name else fields[0].name


def _next(requests: dict[str, list[Access]], entity: str) -> Access | None:
    """The next request for a type of items; the last one is for all that are left."""
    own = requests.get(entity, [])
    return own.pop(0) if len(own) > 1 else next(iter(own), None)


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
