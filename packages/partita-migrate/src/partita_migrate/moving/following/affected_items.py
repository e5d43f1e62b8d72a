"""Finds the items that a row affects: its own, and those that are also made of other tables' rows.

An item is made of its row and of rows that foreign keys lead to from there. A path goes the
opposite way, from a row that changed to the rows whose items it is part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import Design, Entity, ItemAttribute, columns_of
from partita_migrate.model.items.item_maker import RowLookup
from partita_migrate.model.keys.key_templates import PATH, ROOT, template_fields
from partita_migrate.understanding.schema.column_refs import ColumnRef, ForeignKeyJoin, parse_join


class RelationStep(NamedTuple):
    """Leads from a row to the rows of a table whose columns have the same values."""

    values: tuple[str, ...]
    table: str
    columns: tuple[str, ...]


class RelationPath(NamedTuple):
    """The steps from rows of a table to the items of one entity."""

    entity: int
    """The entity's number in the design."""
    steps: tuple[RelationStep, ...]
    is_repeated: bool = False
    """True for a tree: the step is repeated from every row that it finds."""


class AffectedItems:
    """By table, the paths from its rows to the items that they are part of."""

    def __init__(self, design: Design) -> None:
        self.entities = [entity for _, entity in design.entities()]
        self._paths: dict[str, dict[RelationPath, set[str] | None]] = {}
        """For each path the columns that matter to it; None when all do."""
        for number, entity in enumerate(self.entities):
            self._add_own(number, entity)
            for attribute in entity.attributes:
                self._add_joined(number, entity, attribute)
            for way in entity.unless:
                self._add_way(number, _joins(way), ())

    def _add(self, table: str, path: RelationPath, columns: Iterable[str] | None) -> None:
        paths = self._paths.setdefault(table, {})
        earlier = paths.get(path, set())
        paths[path] = None if columns is None or earlier is None else earlier | set(columns)

    def _add_own(self, number: int, entity: Entity) -> None:
        self._add(entity.source, RelationPath(number, ()), None)
        if entity.tells_latest:
            per = tuple(ColumnRef.parse(name).column for name in entity.per)
            by = ColumnRef.parse(entity.latest_by or "").column
            step = RelationStep(per, entity.source, per)
            self._add(entity.source, RelationPath(number, (step,)), (*per, by))

    def _add_joined(self, number: int, entity: Entity, attribute: ItemAttribute) -> None:
        joins = _joins(attribute.through)
        if not joins:
            return
        formats = {part.format for part in template_fields(attribute.template or "")}
        if formats & {PATH, ROOT}:
            step = _reverse(joins[0])
            columns = (*step.values, *(ref.column for ref in joins[0].before))
            self._add(entity.source, RelationPath(number, (step,), is_repeated=True), columns)
            return
        self._add_way(number, joins, columns_of(entity, attribute))

    def _add_way(
        self, number: int, joins: Sequence[ForeignKeyJoin], refs: Sequence[ColumnRef]
    ) -> None:
        """Adds the paths of a chain of joins; `refs` are columns that matter besides the joined
        ones."""
        needed = [*refs, *(ref for join in joins for ref in (*join.before, *join.after))]
        for place, join in enumerate(joins):
            table = join.after[0].table
            columns = tuple(ref.column for ref in needed if ref.table == table)
            self._add(table, RelationPath(number, tuple(_reversed_path(joins, place))), columns)

    def paths(self, table: str, old: Item | None, new: Item | None) -> Iterator[RelationPath]:
        """Yields the paths that a change of a row may matter to."""
        for path, columns in self._paths.get(table, {}).items():
            if (
                columns is None
                or old is None
                or new is None
                or any(old.get(name) != new.get(name) for name in columns)
            ):
                yield path

    def reached(self, path: RelationPath, row: Item, rows: RowLookup) -> Sequence[Item]:
        """Returns the rows at the end of a path, whose items contain this row."""
        reached = [row]
        if path.is_repeated:
            return _descendants(path.steps[0], row, rows)
        for step in path.steps:
            reached = [
                other for reached_row in reached for other in _follow_step(step, reached_row, rows)
            ]
        return reached


def _joins(way: Sequence[str]) -> list[ForeignKeyJoin]:
    return [join for text in way if (join := parse_join(text)) is not None]


def _reversed_path(joins: Sequence[ForeignKeyJoin], place: int) -> Iterator[RelationStep]:
    """Yields the steps from the rows of a join's table back to the entity's own rows."""
    while True:
        join = joins[place]
        yield _reverse(join)
        table = join.before[0].table
        earlier = [n for n in range(place) if joins[n].after[0].table == table]
        if not earlier:
            return
        place = earlier[-1]


def _reverse(join: ForeignKeyJoin) -> RelationStep:
    return RelationStep(
        tuple(ref.column for ref in join.after),
        join.before[0].table,
        tuple(ref.column for ref in join.before),
    )


def _follow_step(step: RelationStep, row: Item, rows: RowLookup) -> Iterable[Item]:
    values = [row[name] for name in step.values if name in row]
    if len(values) < len(step.values):
        return ()
    return rows.matching(step.table, step.columns, values)


def _descendants(step: RelationStep, row: Item, rows: RowLookup) -> Sequence[Item]:
    descendants: list[Item] = []
    visited = {repr(row)}
    waiting = [row]
    while waiting:
        for other in _follow_step(step, waiting.pop(), rows):
            if repr(other) not in visited:
                visited.add(repr(other))
                descendants.append(other)
                waiting.append(other)
    return descendants
