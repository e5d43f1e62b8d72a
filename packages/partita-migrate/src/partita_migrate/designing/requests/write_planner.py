"""What a write takes: the items of the rows that it changes, and all that repeats them elsewhere.

Rows are found as a read finds them. Items of other types that hold columns of a changed row are
found by the row's own key; where no key leads to them, the pattern is not served.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from partita_migrate.designing.requests.item_locations import NotServed, own_attributes
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import (
    Design,
    Entity,
    ItemAttribute,
    PatternAccess,
    TableDesign,
    columns_of,
    type_attribute,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef, ForeignKeyJoin, parse_join
from partita_migrate.understanding.schema.inventory import ForeignKey, SourceTable, is_derived
from partita_migrate.understanding.statements.resolved_statements import (
    ColumnTest,
    Insertion,
    JoinedTable,
    Modification,
    Parameter,
    ResolvedQuery,
)

CASCADE = "CASCADE"
FOLLOWED = (CASCADE, "SET NULL")
"""What a source does by itself to rows that refer to one that is deleted."""
EXACT = ("integer", "decimal")
WHY_FOUND = {CASCADE: "that are deleted with it", "SET NULL": "that lose their reference to it"}


@dataclass(frozen=True)
class CopiedColumns:
    """Items of one type that repeat columns of another table's rows."""

    entity: Entity
    question: ResolvedQuery
    """Finds their rows, by the key of the row that they repeat."""
    rule: str = ""
    """What the source does to these rows by itself, when that row is deleted."""

    @property
    def place(self) -> tuple[str, tuple[JoinedTable, ...], tuple[ColumnRef, ...]]:
        """Two with the same are found by one request."""
        tested = tuple(test.ref for test in self.question.tests)
        return self.entity.name, self.question.joins, tested


class CopiesNotFound(NotServed):
    """Items repeat what a write changes, and no key leads to them."""

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(
            f"the items of {entity} repeat what it changes, and no key leads to them ({reason})"
        )
        self.entity = entity


def written_with(design: Design, access: PatternAccess) -> list[tuple[TableDesign, Entity]]:
    """What one transaction writes besides: guards of unique values, the copy of the latest."""
    table = design.table(access.table)
    entity = table.entity(access.entity) if table is not None else None
    if entity is None or access.request != "TransactWriteItems":
        return []
    return [
        (home, one)
        for home, one in design.entities()
        if one.source == entity.source
        and one.name != entity.name
        and (one.is_guard or "latest" in (one.rows, entity.rows))
    ]


class WritePlanner:
    def __init__(self, design: Design, reads: ReadPlanner) -> None:
        self.design = design
        self.reads = reads

    def plan(
        self, statement: Insertion | Modification, pattern: str, drafted: list[PatternAccess]
    ) -> list[PatternAccess]:
        """The requests of a write: what finds its items, the write, what finds copies of them."""
        self._refuse_without_items(statement.table)
        if isinstance(statement, Insertion):
            self._refuse_collected(statement.table)
            told = [self._telling_copies(one, statement.table, set()) for one in drafted]
            return self._upserting(statement, pattern, told)
        changed = {change.ref for change in statement.changes}
        if changed:
            drafted = [self._telling_copies(one, statement.table, changed) for one in drafted]
        finding = self.reads.plan(self.rows_question(statement), pattern)
        (first, *others) = finding
        if others:
            raise NotServed(f"no item holds all of a row of {statement.table}")
        is_direct = first.request == "GetItem" and first.requests == 1
        if is_direct and not first.filter and not first.tested:
            found: list[PatternAccess] = []
        else:
            why = f"Finds the items that are changed. {first.why}".strip()
            found = [replace(first, why=why)]
        if not statement.changes:
            found += self._forbidding(statement.table, pattern)
        own = [self._conditional(one, statement, first) for one in drafted]
        return [*found, *own, *self._copying(statement, pattern)]

    def _conditional(
        self, access: PatternAccess, statement: Modification, finding: PatternAccess
    ) -> PatternAccess:
        """Between the request that finds a row and the write, others write too."""
        home = self.design.table(access.table)
        entity = home.entity(access.entity) if home is not None else None
        if home is None or entity is None or access.entity != finding.entity:
            return access
        kind = type_attribute(home)
        tested = [one for one in finding.filter if one.attribute != kind]
        adds = self._adds(entity, statement) if access.request != "DeleteItem" else []
        return replace(access, filter=tested, adds=adds)

    def _adds(self, entity: Entity, statement: Modification) -> list[str]:
        """Sums that the service makes: exact ones, of what is always there and in no other
        attribute of the item."""
        own = own_attributes(entity)
        found = []
        for change in statement.changes:
            column = self.reads.column(change.ref)
            kinds = ("integer",) if self.reads.inventory.dialect == "sqlite" else EXACT
            holders = [
                attribute
                for attribute in entity.attributes
                if change.ref in columns_of(entity, attribute)
            ]
            is_summed = column is not None and column.kind in kinds and not column.is_nullable
            if change.sign and is_summed and len(holders) == 1 and change.ref in own:
                value = change.value
                text = f"{{{value.name}}}" if isinstance(value, Parameter) else str(value.value)
                found.append(f"{own[change.ref]} {'-' if change.sign < 0 else '+'} {text}")
        return found

    def _telling_copies(
        self, access: PatternAccess, table: str, changed: set[ColumnRef]
    ) -> PatternAccess:
        """With what its item repeats of other rows: nothing else says that these are read first.

        `changed`: of a row that is there already, its other references have not changed.
        """
        home = self.design.table(access.table)
        entity = home.entity(access.entity) if home is not None else None
        if entity is None or entity.source != table:
            return access
        repeated: dict[tuple[str, str], list[str]] = {}
        for attribute in entity.attributes:
            joins = self.joins(attribute)
            if not attribute.column or not joins or (changed and not changed & {*joins[0].before}):
                continue
            ref = ColumnRef.parse(attribute.column)
            by = " and ".join(one.column for one in joins[0].before)
            repeated.setdefault((ref.table, by), []).append(ref.column)
        said = [
            f"The item repeats {' and '.join(columns)} of {other}, by {by}: read that row first."
            for (other, by), columns in repeated.items()
        ]
        return replace(access, why=" ".join([access.why, *said]).strip())

    def _copying(self, statement: Modification, pattern: str) -> list[PatternAccess]:
        found = []
        for copies in self.copies(statement):
            (access, *_) = self._found(copies, pattern)
            why = WHY_FOUND.get(copies.rule, "that repeat what is changed")
            found.append(replace(access, why=f"Finds the items of {copies.entity.name} {why}."))
        return found

    # A row that is there already.

    def _upserting(
        self, statement: Insertion, pattern: str, drafted: list[PatternAccess]
    ) -> list[PatternAccess]:
        if statement.on_conflict not in ("update", "replace"):
            return drafted
        existing = self.existing(statement)
        (first, *others) = self.reads.plan(self.rows_question(existing), pattern)
        copying = self._copying(existing, pattern)
        if others:
            raise NotServed(f"no item holds all of a row of {statement.table}")
        if statement.on_conflict == "replace" and (copying or self.restricting(statement.table)):
            raise NotServed("it deletes the row that is there, and others refer to that")
        why = "Finds the row that is there already; without one, the new row is inserted."
        return [replace(first, why=why), *drafted, *copying]

    def existing(self, statement: Insertion) -> Modification:
        """What becomes of the row that has the key of a new one already."""
        values = dict(zip(statement.columns, statement.values, strict=True))
        given = {ref.column for ref, value in values.items() if value is not None}
        tests = []
        for column in statement.conflict or self._conflict(statement.table, given):
            ref = ColumnRef(statement.table, column)
            value = values.get(ref)
            if value is None:
                raise NotServed(f"it does not say which {column} the row has")
            tests.append(ColumnTest(ref, "=", (value,)))
        return Modification(statement.table, tuple(tests), statement.changes)

    def _conflict(self, name: str, given: set[str]) -> list[str]:
        """The one unique key that a new row can have in common with another."""
        table = self._table(name)
        keys = [table.primary_key, *(index.columns for index in table.indexes if index.is_unique)]
        found = {tuple(key) for key in keys if key and set(key) <= given}
        if len(found) != 1:
            which = "several unique keys" if found else "no unique key"
            raise NotServed(f"{which} of {name} may tell the row that is there already")
        return list(found.pop())

    # Rows that others refer to.

    def _forbidding(self, table: str, pattern: str) -> list[PatternAccess]:
        """Looks for rows that refer to what is deleted; where no key finds them, the design says
        that the rule is lost."""
        found = []
        for question in self.restricting(table):
            try:
                (access, *_) = self.reads.plan(question, pattern)
            except NotServed:
                continue
            why = f"While this brings an item of {question.table}, nothing is deleted."
            found.append(replace(access, forbids=True, why=why))
        return found

    def restricting(self, table: str) -> list[ResolvedQuery]:
        """Questions for the rows whose foreign keys the source refuses to leave without a row."""
        if not self.reads.inventory.keeps_references:
            return []
        return [
            self.rows_referring(other, key, limit=1 if other.name != table else None)
            for other in self.reads.inventory.tables
            for key in other.foreign_keys
            if key.referenced_table == table and (key.on_delete or "").upper() not in FOLLOWED
        ]

    def rows_referring(
        self, other: SourceTable, key: ForeignKey, limit: int | None = None
    ) -> ResolvedQuery:
        """Finds the rows of a table that refer to a row, by the columns of the row."""
        tests = tuple(
            ColumnTest(ColumnRef(other.name, name), "=", (Parameter(str(ref), ref),))
            for name, target in zip(key.columns, key.referenced_columns, strict=True)
            for ref in [ColumnRef(key.referenced_table, target)]
        )
        return ResolvedQuery(
            table=other.name, tests=tests, columns=self._identity(other.name), limit=limit
        )

    def rows_question(self, statement: Modification) -> ResolvedQuery:
        """Finds the rows by the statement's own tests."""
        return ResolvedQuery(
            table=statement.table, tests=statement.tests, columns=self._identity(statement.table)
        )

    def copies(self, statement: Modification) -> list[CopiedColumns]:
        """Of the types of items that must change with a row; those of other rows."""
        changed = {change.ref for change in statement.changes}
        if changed:
            self._refuse_taken_over(statement.table, changed)
        found = [] if changed else self._referring(statement.table)
        for _, entity in self.design.entities():
            if entity.source != statement.table and not entity.is_guard:
                found += self._repeating(entity, statement.table, changed)
        return list({one.place: one for one in reversed(found)}.values())[::-1]

    def _repeating(
        self, entity: Entity, table: str, changed: set[ColumnRef]
    ) -> list[CopiedColumns]:
        """One for each reference by which an entity's items repeat what is changed."""
        questions = [
            self._copies_question(entity, path)
            for attribute in entity.attributes
            if (path := self._path(entity, attribute, table))
            and (not changed or changed & self._read(entity, attribute))
        ]
        return [CopiedColumns(entity, fromkey) for fromkey in dict.fromkeys(questions)]

    def _read(self, entity: Entity, attribute: ItemAttribute) -> set[ColumnRef]:
        """What an attribute is made of, and the references that lead there."""
        followed = (ref for join in self.joins(attribute) for ref in (*join.before, *join.after))
        return {*columns_of(entity, attribute), *followed}

    def _refuse_taken_over(self, table: str, changed: set[ColumnRef]) -> None:
        """Rows that refer to a changed key change with it."""
        if not self.reads.inventory.keeps_references:
            return
        for other in self.reads.inventory.tables:
            for key in other.foreign_keys:
                rule = (key.on_update or "").upper()
                targets = {ColumnRef(table, name) for name in key.referenced_columns}
                if key.referenced_table == table and rule in FOLLOWED and targets & changed:
                    raise NotServed(
                        f"the rows of {other.name} that refer to {min(targets & changed)} change"
                        f" with it (ON UPDATE {rule}): a pattern that changes these is served"
                    )

    def _referring(self, table: str) -> list[CopiedColumns]:
        """What goes or loses its reference with a row that is deleted."""
        if not self.reads.inventory.keeps_references:
            return []
        found = []
        for other in self.reads.inventory.tables:
            for key in other.foreign_keys:
                rule = (key.on_delete or "").upper()
                if key.referenced_table != table or rule not in FOLLOWED:
                    continue
                if rule == CASCADE:
                    self._refuse_further(table, other)
                else:
                    self._refuse_repeated(other, key)
                entities = [one for _, one in self.design.entities() if one.source == other.name]
                own = [
                    entity for entity in entities if entity.rows == "each" and not entity.is_guard
                ]
                if not own:
                    raise NotServed(f"{other.name}, which changes with it, has no items of its own")
                found.append(CopiedColumns(own[0], self.rows_referring(other, key), rule))
        return found

    def _refuse_further(self, table: str, other: SourceTable) -> None:
        """Rows behind those that are deleted with a row."""
        if other.name == table:
            raise NotServed(
                f"the rows of {table} below one are deleted with it, at any depth (ON DELETE"
                " CASCADE): a pattern that finds them, and one that deletes each, are served"
            )
        if self._is_referred_to(other.name):
            raise NotServed(
                f"with a row of {table} those of {other.name} are deleted, and others refer to"
                " these: a pattern that deletes each is served"
            )

    def _is_referred_to(self, table: str) -> bool:
        return any(
            key.referenced_table == table
            for other in self.reads.inventory.tables
            for key in other.foreign_keys
        )

    def _refuse_repeated(self, other: SourceTable, key: ForeignKey) -> None:
        """Items that repeat a reference which is emptied."""
        emptied = {ColumnRef(other.name, name) for name in key.columns}
        for _, entity in self.design.entities():
            if entity.source != other.name and self._repeating(entity, other.name, emptied):
                raise NotServed(
                    f"the items of {entity.name} repeat {min(emptied)}, which is emptied with it"
                    " (ON DELETE SET NULL)"
                )

    def joins(self, attribute: ItemAttribute) -> list[ForeignKeyJoin]:
        return [join for text in attribute.through if (join := parse_join(text)) is not None]

    def _path(self, entity: Entity, attribute: ItemAttribute, table: str) -> list[ForeignKeyJoin]:
        """The joins from an entity's rows to a table's, if an attribute goes that way."""
        joins = self.joins(attribute)
        tables = [join.after[0].table for join in joins]
        return joins[: tables.index(table) + 1] if table in tables else []

    def _copies_question(self, entity: Entity, path: list[ForeignKeyJoin]) -> ResolvedQuery:
        joins = tuple(
            JoinedTable(join.after[0].table, tuple(zip(join.before, join.after, strict=True)))
            for join in path
        )
        # The last join's own columns tell the row: an earlier table is looked at only if needed.
        tests = tuple(
            ColumnTest(after, "=", (Parameter(str(after), after),)) for after in path[-1].after
        )
        question = ResolvedQuery(
            table=entity.source, joins=joins, tests=tests, columns=self._identity(entity.source)
        )
        if len(path) == 1:
            own = tuple(
                ColumnTest(before, "=", (Parameter(str(before), before),))
                for before in path[0].before
            )
            return ResolvedQuery(
                table=entity.source, tests=own, columns=self._identity(entity.source)
            )
        return question

    def _found(self, copies: CopiedColumns, pattern: str) -> list[PatternAccess]:
        try:
            return self.reads.plan(copies.question, pattern)
        except NotServed as reason:
            raise CopiesNotFound(copies.entity.name, str(reason)) from reason

    def _identity(self, name: str) -> tuple[ColumnRef, ...]:
        key = tuple(ColumnRef(name, column) for column in self._table(name).primary_key)
        return key or self._columns(name)

    def _columns(self, name: str) -> tuple[ColumnRef, ...]:
        table = self._table(name)
        return tuple(
            ColumnRef(name, column.name) for column in table.columns if not is_derived(column)
        )

    def _table(self, name: str) -> SourceTable:
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
                if any(ColumnRef.parse(name).table == table for name in attribute.collect):
                    raise NotServed(f"a new row of {table} would change {entity.name}'s items")
