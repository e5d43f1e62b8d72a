"""Finds the attributes that hold a query's columns, and the lookups of columns that items lack."""

from __future__ import annotations

from partita_migrate.designing.requests.item_locations import (
    DesignedSource,
    ItemLocation,
    NotServed,
    own_attributes,
)
from partita_migrate.designing.requests.key_segments import KeySegments, segments
from partita_migrate.model.design import AccessCondition, ItemAttribute, PatternAccess
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.statements.resolved_statements import ResolvedQuery


class ItemColumns:
    """The columns of one query, as the items of one location hold them."""

    def __init__(self, planner: DesignedSource, query: ResolvedQuery, home: ItemLocation) -> None:
        self.planner = planner
        self.query = query
        self.home = home
        self.entity = home.entity

    def holder(self, ref: ColumnRef) -> ItemAttribute | None:
        """Returns the attribute that holds a column of the query, by way of the query's joins."""
        same = self.query.same(ref)
        joined: ItemAttribute | None = None
        for attribute in self.entity.attributes:
            if not attribute.column or ColumnRef.parse(attribute.column) not in same:
                continue
            if not attribute.through:
                # In an outer join, the other table's column is NULL when its row is missing, while
                # the item's own column is not.
                own = ColumnRef.parse(attribute.column)
                if own == ref or not self._is_outer(ref.table) or self._is_enforced(own, ref):
                    return attribute
                continue
            if self._is_followed(attribute) and (
                ColumnRef.parse(attribute.column) == ref or joined is None
            ):
                joined = attribute
        return joined

    def _is_outer(self, table: str) -> bool:
        return any(join.is_outer and join.table == table for join in self.query.joins)

    def brought(self, ref: ColumnRef) -> ItemAttribute | None:
        """Returns the attribute that brings a column in the items of this location."""
        attribute = self.holder(ref)
        return attribute if attribute is not None and self.home.has(attribute) else None

    def _lookups(self, pattern: str) -> list[PatternAccess]:
        """Returns a lookup for each table with columns that the items lack."""
        missing: dict[str, list[ColumnRef]] = {}
        for ref in self.query.columns:
            if self.brought(ref) is None:
                missing.setdefault(ref.table, []).append(ref)
        lookups: list[PatternAccess] = []
        available: set[ColumnRef] = set()
        waiting = dict(missing)
        others = [table for table in self.query.tables if table not in missing]
        while waiting:
            # A table in between is looked up too, if the missing one can only be reached by way of
            # it.
            for table in [*waiting, *others]:
                access = self._lookup(pattern, table, waiting.get(table, []), available)
                if access is not None:
                    break
            else:
                (first, *_) = next(iter(waiting.values()))
                raise NotServed(
                    f"the items of {self.entity.name} in {self.home.name} do not hold {first}"
                )
            lookups.append(access)
            available |= {
                ColumnRef(table, column.name) for column in self.planner.columns_of(table)
            }
            waiting.pop(table, None)
            others = [other for other in others if other != table]
        return lookups

    def _lookup(
        self, pattern: str, table: str, missing: list[ColumnRef], available: set[ColumnRef]
    ) -> PatternAccess | None:
        """Returns a GetItem by the table's key, if the columns known so far give that key."""
        if table == self.entity.source and not missing:
            return None
        for home, entity in self.planner.design.entities():
            # Only items of all rows can be looked up: guards hold just a value, the others just
            # some rows.
            if entity.source != table or entity.is_guard or entity.rows != "each":
                continue
            if not set(missing) <= own_attributes(entity).keys():
                continue
            keys = [entity.attribute(key.name) for key in home.keys]
            parts = [segments(entity, key) for key in keys if key is not None]
            fields = [field for part in parts for field in part.fields]
            if not all(self._is_known(field.ref, available) for field in fields):
                continue
            return PatternAccess(
                pattern=pattern,
                request="GetItem",
                table=home.name,
                entity=entity.name,
                key=[_whole(key, part) for key, part in zip(keys, parts, strict=True) if key],
                for_each=True,
                why=f"Once for each different key: the columns of {table} that {self.home.name}"
                f" lacks{self._joined_by(table)}.",
            )
        return None

    def _joined_by(self, table: str) -> str:
        """Says which foreign key the lookup follows, since there can be several."""
        pairs = [pair for join in self.query.joins for pair in join.pairs]
        turned = [pair for left, right in pairs for pair in ((left, right), (right, left))]
        names = [f"{left}" for left, right in turned if right.table == table]
        return f", by {' and '.join(names)}" if names else ""

    def _is_known(self, ref: ColumnRef, available: set[ColumnRef]) -> bool:
        same = self.query.same(ref)
        return bool(same & available) or any(self.brought(other) is not None for other in same)

    def _held(self, ref: ColumnRef) -> ItemAttribute:
        attribute = self.holder(ref)
        if attribute is None:
            raise NotServed(f"the items of {self.entity.name} do not hold {ref}")
        if not self.home.has(attribute):
            raise NotServed(f"{self.home.name} does not project {attribute.name}")
        return attribute

    def _is_followed(self, attribute: ItemAttribute) -> bool:
        """True when the query's joins follow the same foreign keys as the attribute."""
        pairs = {frozenset(pair) for join in self.query.joins for pair in join.pairs}
        return all(
            frozenset(pair) in pairs
            for text in attribute.through
            if (join := parse_join(text)) is not None
            for pair in zip(join.before, join.after, strict=True)
        )

    def _is_enforced(self, own: ColumnRef, other: ColumnRef) -> bool:
        """True when the source declares the foreign key, so that the joined row exists."""
        table = self.planner.table(own.table)
        return table is not None and any(
            key.referenced_table == other.table and own.column in key.columns
            for key in table.foreign_keys
        )


def _whole(attribute: ItemAttribute, parts: KeySegments) -> AccessCondition:
    """Returns the condition for a whole key. Each field is named after its own column."""
    text = parts.texts[0]
    for field, after in zip(parts.fields, parts.texts[1:], strict=True):
        shape = f":{field.format}" if field.format else ""
        text += f"{{{field.ref}{shape}}}" + after
    return AccessCondition(attribute=attribute.name, value=text)
