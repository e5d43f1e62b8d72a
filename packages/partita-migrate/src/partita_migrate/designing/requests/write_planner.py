"""Plans writes: the items of the changed rows, and every item that repeats their columns.

Rows are found as a read finds them. Items of other types that repeat columns of a changed row are
found by the row's own key. If no key leads to them, the pattern is not served.
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
"""The rules by which a source itself changes rows that refer to a deleted row."""
EXACT = ("integer", "decimal")
WHY_FOUND = {CASCADE: "that are deleted with it", "SET NULL": "that lose their reference to it"}


@dataclass(frozen=True)
class CopiedColumns:
    """Items of one type that repeat columns of another table's rows."""

    entity: Entity
    query: ResolvedQuery
    """Finds these items by the key of the row that they repeat."""
    rule: str = ""
    """What the source does with these rows when the other row is deleted."""

    @property
    def place(self) -> tuple[str, tuple[JoinedTable, ...], tuple[ColumnRef, ...]]:
        """Returns what one request can find: copies with an equal place need only one."""
        tested = tuple(test.ref for test in self.query.tests)
        return self.entity.name, self.query.joins, tested


class CopiesNotFound(NotServed):
    """Raised when items repeat what a write changes, and no key leads to them."""

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(
            f"the items of {entity} repeat what it changes, and no key leads to them ({reason})"
        )
        self.entity = entity


def written_with(design: Design, access: PatternAccess) -> list[tuple[TableDesign, Entity]]:
    """Returns what a transaction writes besides: guard items, and the copy of the latest row."""
    table = design.table(access.table)
    entity = table.entity(access.entity) if table is not None else None
    if entity is None or access.request != "TransactWriteItems":
        return []
    return [
        (home, other)
        for home, other in design.entities()
        if other.source == entity.source
        and other.name != entity.name
        and (other.is_guard or "latest" in (other.rows, entity.rows))
    ]


class WritePlanner:
    def __init__(self, design: Design, reads: ReadPlanner) -> None:
        self.design = design
        self.reads = reads

    def plan(
        self, statement: Insertion | Modification, pattern: str, drafted: list[PatternAccess]
    ) -> list[PatternAccess]:
        """Returns the requests of a write: those that find its items, the write, and those that
        find items with copies."""
        self._refuse_without_items(statement.table)
        if isinstance(statement, Insertion):
            self._refuse_collected(statement.table)
            writes = [self._telling_copies(write, statement.table, set()) for write in drafted]
            return self._upserting(statement, pattern, writes)
        changed = {change.ref for change in statement.changes}
        if changed:
            drafted = [self._telling_copies(write, statement.table, changed) for write in drafted]
        reads = self.reads.plan(self.rows_query(statement), pattern)
        (first, *others) = reads
        if others:
            raise NotServed(f"no item holds all columns of {statement.table}")
        # With the whole key in the statement, the write itself needs no read before it.
        is_direct = first.request == "GetItem" and first.requests == 1
        if is_direct and not first.filter and not first.tested:
            requests: list[PatternAccess] = []
        else:
            why = f"Finds the items to change. {first.why}".strip()
            requests = [replace(first, why=why)]
        if not statement.changes:
            requests += self._forbidding(statement.table, pattern)
        own = [self._conditional(write, statement, first) for write in drafted]
        return [*requests, *own, *self._copying(statement, pattern)]

    def _conditional(
        self, access: PatternAccess, statement: Modification, finding: PatternAccess
    ) -> PatternAccess:
        """Repeats the filters of the read as the write's condition, since the item can change in
        between."""
        home = self.design.table(access.table)
        entity = home.entity(access.entity) if home is not None else None
        if home is None or entity is None or access.entity != finding.entity:
            return access
        kind = type_attribute(home)
        tested = [condition for condition in finding.filter if condition.attribute != kind]
        adds = self._adds(entity, statement) if access.request != "DeleteItem" else []
        return replace(access, filter=tested, adds=adds)

    def _adds(self, entity: Entity, statement: Modification) -> list[str]:
        """Returns sums that DynamoDB can make: exact ones, of attributes that always exist and are
        not repeated in the item."""
        own = own_attributes(entity)
        sums = []
        for change in statement.changes:
            column = self.reads.column(change.ref)
            # SQLite computes DECIMAL in floating point, DynamoDB exactly: the sums could differ.
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
                sums.append(f"{own[change.ref]} {'-' if change.sign < 0 else '+'} {text}")
        return sums

    def _telling_copies(
        self, access: PatternAccess, table: str, changed: set[ColumnRef]
    ) -> PatternAccess:
        """Says which other rows an item repeats columns of: the application has to read them first.

        With `changed` the row exists already, so only rows behind changed references count.
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
            by = " and ".join(ref.column for ref in joins[0].before)
            repeated.setdefault((ref.table, by), []).append(ref.column)
        hints = [
            f"The item repeats {' and '.join(columns)} of {other}, by {by}: read that row first."
            for (other, by), columns in repeated.items()
        ]
        return replace(access, why=" ".join([access.why, *hints]).strip())

    def _copying(self, statement: Modification, pattern: str) -> list[PatternAccess]:
        requests = []
        for copies in self.copies(statement):
            (access, *_) = self._found(copies, pattern)
            why = WHY_FOUND.get(copies.rule, "that repeat what is changed")
            requests.append(replace(access, why=f"Finds the items of {copies.entity.name} {why}."))
        return requests

    # A row that exists already.

    def _upserting(
        self, statement: Insertion, pattern: str, drafted: list[PatternAccess]
    ) -> list[PatternAccess]:
        if statement.on_conflict not in ("update", "replace"):
            return drafted
        existing = self.existing(statement)
        (first, *others) = self.reads.plan(self.rows_query(existing), pattern)
        copying = self._copying(existing, pattern)
        if others:
            raise NotServed(f"no item holds all columns of {statement.table}")
        if statement.on_conflict == "replace" and (copying or self.restricting(statement.table)):
            raise NotServed("it deletes the existing row, and other rows refer to it")
        why = "Finds an existing row; if there is none, the new row is inserted."
        return [replace(first, why=why), *drafted, *copying]

    def existing(self, statement: Insertion) -> Modification:
        """Returns the modification of the row that already has the key of a new one."""
        values = dict(zip(statement.columns, statement.values, strict=True))
        given_columns = {ref.column for ref, value in values.items() if value is not None}
        tests = []
        for column in statement.conflict or self._conflict(statement.table, given_columns):
            ref = ColumnRef(statement.table, column)
            value = values.get(ref)
            if value is None:
                raise NotServed(f"it does not give the {column} of the row")
            tests.append(ColumnTest(ref, "=", (value,)))
        return Modification(statement.table, tuple(tests), statement.changes)

    def _conflict(self, name: str, given_columns: set[str]) -> list[str]:
        """Returns the only unique key that a new row can have in common with an existing one."""
        table = self._table(name)
        keys = [table.primary_key, *(index.columns for index in table.indexes if index.is_unique)]
        conflicts = {tuple(key) for key in keys if key and set(key) <= given_columns}
        if len(conflicts) != 1:
            which = "several unique keys" if conflicts else "no unique key"
            raise NotServed(f"{which} of {name} can identify the existing row")
        return list(conflicts.pop())

    # Rows that others refer to.

    def _forbidding(self, table: str, pattern: str) -> list[PatternAccess]:
        """Looks for rows that refer to a deleted row. Where no key finds them, the design says that
        the rule is lost."""
        requests = []
        for query in self.restricting(table):
            try:
                (access, *_) = self.reads.plan(query, pattern)
            except NotServed:
                continue
            why = f"Nothing is deleted if this returns an item of {query.table}."
            requests.append(replace(access, forbids=True, why=why))
        return requests

    def restricting(self, table: str) -> list[ResolvedQuery]:
        """Returns queries for the rows whose foreign keys make the source refuse a delete."""
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
        """Returns the query for the rows of a table that refer to a row."""
        tests = tuple(
            ColumnTest(ColumnRef(other.name, name), "=", (Parameter(str(ref), ref),))
            for name, target in zip(key.columns, key.referenced_columns, strict=True)
            for ref in [ColumnRef(key.referenced_table, target)]
        )
        return ResolvedQuery(
            table=other.name, tests=tests, columns=self._identity(other.name), limit=limit
        )

    def rows_query(self, statement: Modification) -> ResolvedQuery:
        """Returns the query that finds the rows by the statement's own tests."""
        return ResolvedQuery(
            table=statement.table, tests=statement.tests, columns=self._identity(statement.table)
        )

    def copies(self, statement: Modification) -> list[CopiedColumns]:
        """Returns the items of other rows that must change with a row."""
        changed = {change.ref for change in statement.changes}
        if changed:
            self._refuse_taken_over(statement.table, changed)
        copies = [] if changed else self._referring(statement.table)
        for _, entity in self.design.entities():
            if entity.source != statement.table and not entity.is_guard:
                copies += self._repeating(entity, statement.table, changed)
        return list({copy.place: copy for copy in reversed(copies)}.values())[::-1]

    def _repeating(
        self, entity: Entity, table: str, changed: set[ColumnRef]
    ) -> list[CopiedColumns]:
        """Returns the copies of one entity, once for each reference by which its items repeat a
        change."""
        queries = [
            self._copies_query(entity, path)
            for attribute in entity.attributes
            if (path := self._path(entity, attribute, table))
            and (not changed or changed & self._read(entity, attribute))
        ]
        return [CopiedColumns(entity, query) for query in dict.fromkeys(queries)]

    def _read(self, entity: Entity, attribute: ItemAttribute) -> set[ColumnRef]:
        """Returns an attribute's columns, and the columns of the references that lead to them."""
        followed = (ref for join in self.joins(attribute) for ref in (*join.before, *join.after))
        return {*columns_of(entity, attribute), *followed}

    def _refuse_taken_over(self, table: str, changed: set[ColumnRef]) -> None:
        """Refuses a change of a key if the source changes the rows that refer to it (ON UPDATE
        CASCADE)."""
        if not self.reads.inventory.keeps_references:
            return
        for other in self.reads.inventory.tables:
            for key in other.foreign_keys:
                rule = (key.on_update or "").upper()
                targets = {ColumnRef(table, name) for name in key.referenced_columns}
                if key.referenced_table == table and rule in FOLLOWED and targets & changed:
                    raise NotServed(
                        f"the rows of {other.name} that refer to {min(targets & changed)} change"
                        f" with it (ON UPDATE {rule}): write a pattern that changes these rows"
                    )

    def _referring(self, table: str) -> list[CopiedColumns]:
        """Returns the rows that are deleted, or lose their reference, together with a row."""
        if not self.reads.inventory.keeps_references:
            return []
        copies = []
        for other in self.reads.inventory.tables:
            for key in other.foreign_keys:
                # RESTRICT and NO ACTION change nothing in other tables; `_forbidding` looks after
                # them.
                rule = (key.on_delete or "").upper()
                if key.referenced_table != table or rule not in FOLLOWED:
                    continue
                if rule == CASCADE:
                    self._refuse_further(table, other)
                else:
                    self._refuse_repeated(other, key)
                entities = [
                    entity for _, entity in self.design.entities() if entity.source == other.name
                ]
                own = [
                    entity for entity in entities if entity.rows == "each" and not entity.is_guard
                ]
                if not own:
                    raise NotServed(f"{other.name}, which changes with it, has no items of its own")
                copies.append(CopiedColumns(own[0], self.rows_referring(other, key), rule))
        return copies

    def _refuse_further(self, table: str, other: SourceTable) -> None:
        """Refuses a delete that the source cascades over more than one step."""
        if other.name == table:
            raise NotServed(
                f"the rows of {table} below one are deleted with it, at any depth (ON DELETE"
                " CASCADE): write a pattern that finds them, and one that deletes each of them"
            )
        if self._is_referred_to(other.name):
            raise NotServed(
                f"rows of {other.name} are deleted with a row of {table}, and other rows refer to"
                " them: write a pattern that deletes each of them"
            )

    def _is_referred_to(self, table: str) -> bool:
        return any(
            key.referenced_table == table
            for other in self.reads.inventory.tables
            for key in other.foreign_keys
        )

    def _refuse_repeated(self, other: SourceTable, key: ForeignKey) -> None:
        """Refuses a delete that sets a repeated reference to NULL."""
        emptied = {ColumnRef(other.name, name) for name in key.columns}
        for _, entity in self.design.entities():
            if entity.source != other.name and self._repeating(entity, other.name, emptied):
                raise NotServed(
                    f"the items of {entity.name} repeat {min(emptied)}, which is set to NULL with"
                    " it (ON DELETE SET NULL)"
                )

    def joins(self, attribute: ItemAttribute) -> list[ForeignKeyJoin]:
        return [join for text in attribute.through if (join := parse_join(text)) is not None]

    def _path(self, entity: Entity, attribute: ItemAttribute, table: str) -> list[ForeignKeyJoin]:
        """Returns the joins from an entity's rows to a table, if an attribute follows them."""
        joins = self.joins(attribute)
        tables = [join.after[0].table for join in joins]
        return joins[: tables.index(table) + 1] if table in tables else []

    def _copies_query(self, entity: Entity, path: list[ForeignKeyJoin]) -> ResolvedQuery:
        joins = tuple(
            JoinedTable(join.after[0].table, tuple(zip(join.before, join.after, strict=True)))
            for join in path
        )
        # The last join's own columns identify the row, so an earlier table is read only if needed.
        tests = tuple(
            ColumnTest(after, "=", (Parameter(str(after), after),)) for after in path[-1].after
        )
        query = ResolvedQuery(
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
        return query

    def _found(self, copies: CopiedColumns, pattern: str) -> list[PatternAccess]:
        try:
            return self.reads.plan(copies.query, pattern)
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
        own = [entity for _, entity in self.design.entities() if entity.source == table]
        if not any(entity.rows == "each" and not entity.is_guard for entity in own):
            raise NotServed(f"{table} has no items of its own")

    def _refuse_collected(self, table: str) -> None:
        for _, entity in self.design.entities():
            for attribute in entity.attributes:
                if any(ColumnRef.parse(name).table == table for name in attribute.collect):
                    raise NotServed(f"a new row of {table} would change {entity.name}'s items")
