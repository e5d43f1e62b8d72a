"""What a write takes: the items of the rows that it changes, and all that repeats them elsewhere.

Rows are found as a read finds them. Items of other types that hold columns of a changed row are
found by the row's own key; where no key leads to them, the pattern is not served.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from partita.migrate.designing.requests.reads import NotServed, ReadPlanner
from partita.migrate.model.design import Access, Attribute, Design, Entity, columns_of
from partita.migrate.statements.question import (
    Insertion,
    JoinedTable,
    Modification,
    Parameter,
    Question,
    Test,
)
from partita.migrate.understanding.schema.column_refs import Join, Ref, parse_join
from partita.migrate.understanding.schema.inventory import Table, is_derived

CASCADE = "CASCADE"
FOLLOWED = (CASCADE, "SET NULL")
"""What a source does by itself to rows that refer to one that is deleted."""


@dataclass(frozen=True)
class Copies:
    """Items of one type that repeat columns of another table's rows."""

    entity: Entity
    question: Question
    """Finds their rows, by the key of the row that they repeat."""


class CopiesNotFound(NotServed):
    """Items repeat what a write changes, and no key leads to them."""

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(
            f"the items of {entity} repeat what it changes, and no key leads to them ({reason})"
        )
        self.entity = entity


class WritePlanner:
    def __init__(self, design: Design, reads: ReadPlanner) -> None:
        self.design = design
        self.reads = reads

    def plan(
        self, statement: Insertion | Modification, pattern: str, drafted: list[Access]
    ) -> list[Access]:
        """The requests of a write: what finds its items, the write, what finds copies of them."""
        self._refuse_without_items(statement.table)
        if isinstance(statement, Insertion):
            self._refuse_collected(statement.table)
            return drafted
        finding = self.reads.plan(self.rows_question(statement), pattern)
        (first, *others) = finding
        if others:
            raise NotServed(f"no item holds all of a row of {statement.table}")
        is_direct = first.request == "GetItem" and first.requests == 1
        if is_direct and not first.filter and not first.tested:
            found: list[Access] = []
        else:
            why = f"Finds the items that are changed. {first.why}".strip()
            found = [replace(first, why=why)]
        found += drafted
        for copies in self.copies(statement):
            (access, *_) = self._found(copies, pattern)
            why = f"Finds the items of {copies.entity.name} that repeat what is changed."
            found.append(replace(access, why=why))
        return found

    def rows_question(self, statement: Modification) -> Question:
        """Finds the rows by the statement's own tests."""
        return Question(
            table=statement.table, tests=statement.tests, columns=self._identity(statement.table)
        )

    def copies(self, statement: Modification) -> list[Copies]:
        """Of the types of items that must change with a row; those of other rows."""
        changed = {change.ref for change in statement.changes}
        found = [] if statement.changes else self._referring(statement.table)
        for _, entity in self.design.entities():
            if entity.source == statement.table or entity.is_guard:
                continue
            for attribute in entity.attributes:
                path = self._path(entity, attribute, statement.table)
                refs = set(columns_of(entity, attribute))
                if path and (not changed or changed & refs):
                    found.append(Copies(entity, self._copies_question(entity, path)))
                    break
        return found

    def _referring(self, table: str) -> list[Copies]:
        """What goes or loses its reference with a row that is deleted."""
        found = []
        for other in self.reads.inventory.tables:
            for key in other.foreign_keys:
                rule = (key.on_delete or "").upper()
                if key.referenced_table != table or rule not in FOLLOWED or other.name == table:
                    continue
                entities = [one for _, one in self.design.entities() if one.source == other.name]
                own = [one for one in entities if one.rows == "each" and not one.is_guard]
                tests = tuple(
                    Test(Ref(other.name, name), "=", (Parameter(f"{table}.{target}", ref),))
                    for name, target in zip(key.columns, key.referenced_columns, strict=True)
                    for ref in [Ref(table, target)]
                )
                question = Question(
                    table=other.name, tests=tests, columns=self._identity(other.name)
                )
                if rule == CASCADE and self._referring(other.name):
                    raise NotServed(f"deleting goes on behind {other.name}")
                found += [Copies(one, question) for one in own[:1]]
                if not own:
                    raise NotServed(f"{other.name}, which changes with it, has no items of its own")
        return found

    def joins(self, attribute: Attribute) -> list[Join]:
        return [join for text in attribute.through if (join := parse_join(text)) is not None]

    def _path(self, entity: Entity, attribute: Attribute, table: str) -> list[Join]:
        """The joins from an entity's rows to a table's, if an attribute goes that way."""
        joins = self.joins(attribute)
        tables = [join.after[0].table for join in joins]
        return joins[: tables.index(table) + 1] if table in tables else []

    def _copies_question(self, entity: Entity, path: list[Join]) -> Question:
        joins = tuple(
            JoinedTable(join.after[0].table, tuple(zip(join.before, join.after, strict=True)))
            for join in path
        )
        # The last join's own columns tell the row: an earlier table is looked at only if needed.
        tests = tuple(Test(after, "=", (Parameter(str(after), after),)) for after in path[-1].after)
        question = Question(
            table=entity.source, joins=joins, tests=tests, columns=self._identity(entity.source)
        )
        if len(path) == 1:
            own = tuple(
                Test(before, "=", (Parameter(str(before), before),)) for before in path[0].before
            )
            return Question(table=entity.source, tests=own, columns=self._identity(entity.source))
        return question

    def _found(self, copies: Copies, pattern: str) -> list[Access]:
        try:
            return self.reads.plan(copies.question, pattern)
        except NotServed as reason:
            raise CopiesNotFound(copies.entity.name, str(reason)) from reason

    def _identity(self, name: str) -> tuple[Ref, ...]:
        key = tuple(Ref(name, column) for column in self._table(name).primary_key)
        return key or self._columns(name)

    def _columns(self, name: str) -> tuple[Ref, ...]:
        table = self._table(name)
        return tuple(Ref(name, one.name) for one in table.columns if not is_derived(one))

    def _table(self, name: str) -> Table:
        table = self.reads.table(name)
        if table is None:
            raise NotServed(f"{name} is not among the tables of the source")
        return table

    def _refuse_without_items(self, table: str) -> None:
        own = [one for _, one in self.design.entities() if one.source == table]
        if not any(one.rows == "each" and not one.is_guard for one in own):
            raise NotServed(f"{table} has no items of its own")

    def _refuse_collected(self, table: str) -> None:
        for _, entity in self.design.entities():
            for attribute in entity.attributes:
                if any(Ref.parse(name).table == table for name in attribute.collect):
                    raise NotServed(f"a new row of {table} would change {entity.name}'s items")
