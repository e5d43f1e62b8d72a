"""Which attribute of an item holds a column of a question, and what is looked up for each item."""

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
    """Of the items of one home, as one question asks for them."""

    def __init__(
        self, planner: DesignedSource, question: ResolvedQuery, home: ItemLocation
    ) -> None:
        self.planner = planner
        self.question = question
        self.home = home
        self.entity = home.entity

    def holder(self, ref: ColumnRef) -> ItemAttribute | None:
        """Of a column of the question, by the joins of the question."""
        same = self.question.same(ref)
        found: ItemAttribute | None = None
        for attribute in self.entity.attributes:
            if not attribute.column or ColumnRef.parse(attribute.column) not in same:
                continue
            if not attribute.through:
                # An outer join's column is NULL where the row that it repeats is not there.
                own = ColumnRef.parse(attribute.column)
                if own == ref or not self._is_outer(ref.table) or self._is_enforced(own, ref):
                    return attribute
                continue
            if self._is_followed(attribute) and (
                ColumnRef.parse(attribute.column) == ref or found is None
            ):
                found = attribute
        return found

    def _is_outer(self, table: str) -> bool:
        return any(join.is_outer and join.table == table for join in self.question.joins)

    def brought(self, ref: ColumnRef) -> ItemAttribute | None:
        """The attribute of an item that brings a column along."""
        attribute = self.holder(ref)
        return attribute if attribute is not None and self.home.has(attribute) else None

    def _lookups(self, pattern: str) -> list[PatternAccess]:
        """A request for each item that brings what it does not hold itself."""
        missing: dict[str, list[ColumnRef]] = {}
        for ref in self.question.columns:
            if self.brought(ref) is None:
                missing.setdefault(ref.table, []).append(ref)
        found: list[PatternAccess] = []
        known: set[ColumnRef] = set()
        waiting = dict(missing)
        others = [table for table in self.question.tables if table not in missing]
        while waiting:
            # One that lies between is looked up too, where only it leads on.
            for table in [*waiting, *others]:
                access = self._lookup(pattern, table, waiting.get(table, []), known)
                if access is not None:
                    break
            else:
                (first, *_) = next(iter(waiting.values()))
                raise NotServed(
                    f"the items of {self.entity.name} in {self.home.name} do not hold {first}"
                )
            found.append(access)
            known |= {ColumnRef(table, column.name) for column in self.planner.columns_of(table)}
            waiting.pop(table, None)
            others = [other for other in others if other != table]
        return found

    def _lookup(
        self, pattern: str, table: str, missing: list[ColumnRef], known: set[ColumnRef]
    ) -> PatternAccess | None:
        """By the key of a table's items, if what is known by then tells it."""
        if table == self.entity.source and not missing:
            return None
        for home, entity in self.planner.design.entities():
            if entity.source != table or entity.is_guard or entity.rows != "each":
                continue
            if not set(missing) <= own_attributes(entity).keys():
                continue
            keys = [entity.attribute(key.name) for key in home.keys]
            parts = [segments(entity, key) for key in keys if key is not None]
            fields = [field for part in parts for field in part.fields]
            if not all(self._is_known(field.ref, known) for field in fields):
                continue
            return PatternAccess(
                pattern=pattern,
                request="GetItem",
                table=home.name,
                entity=entity.name,
                key=[_whole(key, one) for key, one in zip(keys, parts, strict=True) if key],
                for_each=True,
                why=f"Once for each different key, what {self.home.name} does not hold of {table}"
                f"{self._joined_by(table)}.",
            )
        return None

    def _joined_by(self, table: str) -> str:
        """Which of the references it is, for there may be several."""
        pairs = [pair for join in self.question.joins for pair in join.pairs]
        turned = [one for left, right in pairs for one in ((left, right), (right, left))]
        names = [f"{left}" for left, right in turned if right.table == table]
        return f", by {' and '.join(names)}" if names else ""

    def _is_known(self, ref: ColumnRef, known: set[ColumnRef]) -> bool:
        same = self.question.same(ref)
        return bool(same & known) or any(self.brought(one) is not None for one in same)

    def _held(self, ref: ColumnRef) -> ItemAttribute:
        attribute = self.holder(ref)
        if attribute is None:
            raise NotServed(f"the items of {self.entity.name} do not hold {ref}")
        if not self.home.has(attribute):
            raise NotServed(f"{self.home.name} does not project {attribute.name}")
        return attribute

    def _is_followed(self, attribute: ItemAttribute) -> bool:
        """Whether the question goes the way by which an attribute reaches another table."""
        pairs = {frozenset(pair) for join in self.question.joins for pair in join.pairs}
        return all(
            frozenset(pair) in pairs
            for text in attribute.through
            if (join := parse_join(text)) is not None
            for pair in zip(join.before, join.after, strict=True)
        )

    def _is_enforced(self, own: ColumnRef, other: ColumnRef) -> bool:
        """Whether the source declares the reference."""
        table = self.planner.table(own.table)
        return table is not None and any(
            key.referenced_table == other.table and own.column in key.columns
            for key in table.foreign_keys
        )


def _whole(attribute: ItemAttribute, parts: KeySegments) -> AccessCondition:
    """A key of a row that is known: each field under the name of its own column."""
    text = parts.texts[0]
    for field, after in zip(parts.fields, parts.texts[1:], strict=True):
        shape = f":{field.format}" if field.format else ""
        text += f"{{{field.ref}{shape}}}" + after
    return AccessCondition(attribute=attribute.name, value=text)
