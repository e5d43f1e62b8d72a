"""The key of a table and the indexes that serve everything asked of one type of item.

Every way to identify a row is a candidate, and so is every collection that a pattern asks for; the
candidate that serves the greatest rate without an index wins, if all writes know its columns and
none changes them. What it does not serve gets an index, the most frequent pattern first.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from partita.limits import KB
from partita.migrate.designing.naming import of_table
from partita.migrate.designing.proposals.needs import Need, Write
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.schema.column_refs import Ref
from partita.migrate.understanding.schema.graph import SchemaGraph

WRITE_UNIT_IN_READ_UNITS = 5
"""What a write unit costs, in read units: the ratio of AWS's prices in every region and class."""


class Key(Struct, frozen=True):
    partition: tuple[Ref, ...]
    sort: tuple[Ref, ...] = ()

    @property
    def columns(self) -> tuple[Ref, ...]:
        return (*self.partition, *self.sort)


class Match(Struct, frozen=True):
    """How a key serves a need: the sort columns that are given, and what is left to filter."""

    given: int
    filtered: tuple[Ref, ...] = ()
    is_whole: bool = False
    """All columns of the key are given."""


class IndexPlan(Struct):
    name: str
    kind: Literal["global", "local"]
    key: Key
    needs: list[Need] = field(default_factory=list)
    why: str = ""


class Served(Struct, frozen=True):
    need: Need
    index: str | None
    match: Match


class KeyPlan(Struct):
    base: Key
    why: str
    indexes: list[IndexPlan] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def match(key: Key, need: Need) -> Match | None:
    """None when the key does not lead to the items at all."""
    given = set(need.equality)
    if not set(key.partition) <= given:
        return None
    rest = given - set(key.partition)
    count = 0
    while count < len(key.sort) and key.sort[count] in rest:
        rest.discard(key.sort[count])
        count += 1
    following = key.sort[count : count + len(need.order)]
    if need.order and following != need.order:
        return None
    filtered = tuple(ref for ref in need.equality if ref in rest)
    return Match(count, filtered, not rest and count == len(key.sort) and not need.order)


class KeyChooser:
    def __init__(
        self,
        schema: SchemaGraph,
        volumes: Volumes,
        entity: str,
        identities: list[list[Ref]],
        needs: list[Need],
        writes: list[Write],
        neighbours: list[Need],
        *,
        fixed: Key | None = None,
        is_checked: bool = True,
        is_whole_row: bool = False,
    ) -> None:
        """`fixed`: the key that a pattern of design asks for. `is_checked`: the key must refuse a
        second row with the same identity, because nothing else does. `is_whole_row`: nothing less
        than all columns tells rows apart."""
        self.schema = schema
        self.volumes = volumes
        self.entity = entity
        self.identities = identities
        self.needs = [self._reduced(need) for need in needs]
        self.writes = writes
        self.fixed = fixed
        self.is_checked = is_checked
        self.is_whole_row = is_whole_row
        self.neighbours = neighbours
        """What is asked of other entities: their root items may lie in the same collection."""

    def _reduced(self, need: Need) -> Need:
        """What identifies an item is enough; the rest can only agree or not."""
        for identity in self.identities:
            if set(identity) <= set(need.equality):
                return replace(need, equality=tuple(identity), order=())
        return need

    def choose(self) -> KeyPlan:
        base = max(enumerate(self._candidates()), key=lambda found: self._worth(*found))[1]
        plan = KeyPlan(base=base, why=self._why(base))
        # Both directions of a many-to-many relationship first: others may do without an index then.
        for need in sorted(self.needs, key=lambda need: not self._is_inverted(base, need)):
            self._serve(plan, need)
        self._advise(plan)
        return plan

    def _is_inverted(self, base: Key, need: Need) -> bool:
        return not need.order and need.equality == base.sort

    # The table's own key.

    def _candidates(self) -> list[Key]:
        if self.fixed is not None:
            return [self.fixed]
        found = [Key(tuple(self.identities[0]))] if self.is_whole_row else self._rotations()
        for need in self.needs:
            if need.is_one:
                continue
            for identity in self.identities:
                partition = need.equality
                sort = (*need.order, *(ref for ref in identity if ref not in partition))
                key = Key(partition, tuple(dict.fromkeys(sort)))
                if not self.is_checked or set(key.columns) == set(identity):
                    found.append(key)
        unique = list(dict.fromkeys(found))
        return [key for key in unique if self._is_possible(key)] or unique[:1]

    def _rotations(self) -> list[Key]:
        """Each column of an identity as partition key, the others as sort key."""
        return [
            Key((ref,), tuple(other for other in identity if other != ref))
            for identity in self.identities
            for ref in identity
        ]

    def _is_possible(self, key: Key) -> bool:
        changed = {ref for write in self.writes for ref in self._changed(write)}
        if changed & set(key.columns) or not set(key.columns) <= self._own_columns():
            return False
        if self.is_whole_row and key.columns == tuple(self.identities[0]):
            return True
        declared = {ref for identity in self.identities for ref in identity}
        if not self.is_whole_row and set(key.columns) <= declared:
            return True
        return not any(self._may_be_null(ref) for ref in key.columns if ref not in declared)

    def _own_columns(self) -> set[Ref]:
        """What a row says itself: a column of another row may change without this one."""
        columns = self.schema.table(self.entity).columns
        own = {self.schema.canonical(Ref(self.entity, column.name)) for column in columns}
        return own | {ref for identity in self.identities for ref in identity}

    def _may_be_null(self, ref: Ref) -> bool:
        """What the sample shows; without one, what the source allows."""
        ref = self._own(ref)
        if self.volumes.column(ref) is not None:
            return self.volumes.null_share(ref) > 0
        column = self.schema.column(ref)
        return column is not None and column.is_nullable

    def _own(self, ref: Ref) -> Ref:
        """The entity's own column that means the same: a reference may be NULL, the key that it
        names never is."""
        columns = self.schema.table(self.entity).columns
        own = (Ref(self.entity, column.name) for column in columns)
        return next((one for one in own if self.schema.canonical(one) == ref), ref)

    def _changed(self, write: Write) -> frozenset[Ref]:
        return write.changed if write.pattern.operation == "update" else frozenset()

    def _worth(self, position: int, key: Key) -> tuple[float, ...]:
        unknown = sum(
            write.rate
            for write in self.writes
            if write.pattern.operation != "insert" and not set(key.columns) <= write.known
        )
        served = [need for need in self.needs if self._is_exact(key, need)]
        consistent = sum(need.rate for need in served if need.pattern.is_consistent)
        beside = sum(need.rate for need in self.neighbours if need.equality == key.partition)
        return (
            -unknown,
            consistent,
            beside + sum(need.rate for need in served),
            -len(key.columns),
            -position,
        )

    def _is_exact(self, key: Key, need: Need) -> bool:
        found = match(key, need)
        return found is not None and not found.filtered

    def _why(self, base: Key) -> str:
        rates: dict[str, float] = {}
        beside = [need for need in self.neighbours if need.equality == base.partition]
        for need in [*self.needs, *beside]:
            # All below a row of a tree: its own item was asked for already.
            is_again = need.is_beside and bool(need.pattern.hierarchy)
            for ref in () if is_again else need.equality[:1]:
                rates[str(ref)] = rates.get(str(ref), 0.0) + need.rate
        own = rates.pop(str(base.partition[0]), 0.0)
        if not self.needs:
            return f"No pattern reads {self.entity}: its items are found by what identifies a row."
        text = f"{self._names(base.partition)} is asked for {own:g} times a second"
        others = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        if others and own >= max(rates.values()):
            text += f", more than others ({others})"
        elif others:
            text += f"; {others} times, but that cannot be a key that identifies one item"
        if base.sort:
            text += f"; with {self._names(base.sort)} it identifies an item"
        return text + "."

    def _names(self, refs: tuple[Ref, ...]) -> str:
        return " and ".join(
            ref.column if ref.table == self.entity else of_table(ref.table, ref.column)
            for ref in refs
        )

    # Indexes.

    def _serve(self, plan: KeyPlan, need: Need) -> None:
        for index, key in self._paths(plan, need):
            found = match(key, need)
            if found is not None and not found.filtered:
                self._note(plan, index, need, found)
                return
        filtered = self._filtered(plan, need)
        if filtered is not None:
            index, found = filtered
            self._note(plan, index, need, found)
            return
        index = self._new_index(plan, need)
        plan.indexes.append(index)
        found = match(index.key, need)
        assert found is not None
        self._note(plan, index, need, found)

    def _paths(self, plan: KeyPlan, need: Need) -> list[tuple[IndexPlan | None, Key]]:
        paths: list[tuple[IndexPlan | None, Key]] = [(None, plan.base)]
        paths += [
            (index, index.key)
            for index in plan.indexes
            if not need.pattern.is_consistent or index.kind == "local"
        ]
        return paths

    def _note(self, plan: KeyPlan, index: IndexPlan | None, need: Need, found: Match) -> None:
        if index is not None:
            index.needs.append(need)
        plan.served.append(Served(need, index.name if index else None, found))

    def _filtered(self, plan: KeyPlan, need: Need) -> tuple[IndexPlan | None, Match] | None:
        """A filter instead of an index, where reading too much costs less than writing more."""
        for index, key in self._paths(plan, need):
            found = match(key, need)
            if found is not None and self._filter_cost(key, need) < self._index_cost():
                return index, found
        return None

    def _filter_cost(self, key: Key, need: Need) -> float:
        """Read units a second for the items that are read and then filtered out."""
        rows = self._collection_rows(key)
        if need.pattern.limit:
            # Items come in order: reading stops when enough have passed the filter.
            rows = min(rows, need.pattern.limit * 10)
        extra = max(rows - need.pattern.items, 0)
        return need.rate * extra * self.volumes.row_bytes(self.entity) / (4 * KB) / 2

    def _collection_rows(self, key: Key) -> float:
        columns = [ref.column for ref in key.partition if ref.table == self.entity]
        if len(columns) == len(key.partition):
            return self.volumes.rows_per_value(self.entity, columns)
        return self.volumes.rows(self.entity)

    def _index_cost(self) -> float:
        """Read units a second that one more index costs in writes."""
        units = max(self.volumes.row_bytes(self.entity) / KB, 1)
        rate = sum(write.rate * write.pattern.items for write in self.writes)
        return rate * units * WRITE_UNIT_IN_READ_UNITS

    def _new_index(self, plan: KeyPlan, need: Need) -> IndexPlan:
        key, why = self._index_key(plan, need)
        is_local = need.pattern.is_consistent and key.partition == plan.base.partition
        number = 1 + sum(
            index.kind == ("local" if is_local else "global") for index in plan.indexes
        )
        return IndexPlan(
            name=f"{'LSI' if is_local else 'GSI'}{number}",
            kind="local" if is_local else "global",
            key=key,
            why=why,
        )

    def _index_key(self, plan: KeyPlan, need: Need) -> tuple[Key, str]:
        names = self._names(need.equality)
        shortest = self._shortest_partition(plan, need)
        if shortest != need.equality:
            rest = tuple(ref for ref in need.equality if ref not in shortest)
            sort = (*rest, *need.order)
            return Key(shortest, sort), (
                f"The sort key is a hierarchy ({self._names(sort)}): one index serves every level"
                f" of it under {self._names(shortest)}."
            )
        if need.pattern.hierarchy and need.is_beside:
            return Key(need.equality, need.order), (
                "The sort key is the path from the root of a tree to the row, so that one query"
                " reads all below a row; moving a row changes the paths of all below it."
            )
        if need.order:
            how = "between two values" if need.pattern.range else "in order"
            return Key(need.equality, need.order), (
                f"{need.pattern.name!r} asks for the items of one {names}, {how} of"
                f" {self._names(need.order)}."
            )
        rest = tuple(ref for ref in plan.base.columns if ref not in need.equality)
        if self._is_inverted(plan.base, need):
            return Key(need.equality, plan.base.partition), (
                f"An inverted index: the table's key with its halves exchanged, for all items of"
                f" one {names}."
            )
        return Key(need.equality, rest[:1]), (
            f"{need.pattern.name!r} asks by {names}, which the table's key does not lead to."
        )

    def _shortest_partition(self, plan: KeyPlan, need: Need) -> tuple[Ref, ...]:
        """Fewer columns, when another pattern that nothing serves yet asks by only those."""
        waiting = [
            other.equality
            for other in self.needs
            if not other.order
            and set(other.equality) < set(need.equality)
            and match(plan.base, other) is None
        ]
        return min(waiting, key=len, default=need.equality)

    def _advise(self, plan: KeyPlan) -> None:
        for index in plan.indexes:
            for other in plan.indexes:
                if other is index or not index.needs or index.kind != other.kind:
                    continue
                matches = [match(other.key, need) for need in index.needs]
                if all(found is not None and not found.filtered for found in matches):
                    plan.advice.append(
                        f"{self.entity}: {other.name} could also serve what {index.name} serves"
                        f" ({', '.join(repr(need.pattern.name) for need in index.needs)}), in the"
                        f" order of {self._names(other.key.sort) or 'nothing'}; without"
                        f" {index.name} every write costs one index less."
                    )
                    return
