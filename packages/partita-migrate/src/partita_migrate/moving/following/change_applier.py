"""Turns transactions of the source into writes of the target.

A transaction is applied to the state store row by row. The items that its rows affect are made
before and after; an item that differs is written with the transaction's position, and an item that
no row makes any more leaves a tombstone. After a kill, the same transactions are applied again to
the same state, so the same items are written at the same positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.following.affected_items import AffectedItems
from partita_migrate.moving.loading.distinct_keys import entities_by_value
from partita_migrate.moving.logs.source_changes import RowChange, SourceTransaction
from partita_migrate.moving.move import Move
from partita_migrate.moving.target_access.item_positions import key_of, stamp, tombstone
from partita_migrate.understanding.schema.inventory import ForeignKey

ItemKey = tuple[str, ...]
"""The table's name and the values of the item's key, for example `("orders", "order#7", "line#1")`.
"""
Touched = dict[tuple[int, str], tuple[ItemKey, Item, bytes] | None]
"""By entity and row, the item before the transaction: its key (as a tuple and as attributes) and
its JSON. Only these are kept, because a change of a parent row may touch a hundred thousand items.
"""


class Applier:
    """Applies transactions to the state store and collects the writes that the target needs."""

    def __init__(self, move: Move, read_until: int) -> None:
        """`read_until` is the last position at which the load read rows; later rows come from the
        log."""
        self.move = move
        self.state = move.state
        self.read_until = read_until
        self.reach = AffectedItems(move.design)
        self.changes = 0
        self.writes: dict[ItemKey, tuple[TableDesign, Item]] = {}
        """The last write of each item, for transactions that are applied but not yet written."""
        self._children: dict[str, list[tuple[str, ForeignKey]]] = {}
        for table in move.origin.tables:
            for key in table.foreign_keys:
                self._children.setdefault(key.referenced_table, []).append((table.name, key))
        self._by_value = entities_by_value(move.entities, move.inventory)

    def apply(self, transaction: SourceTransaction) -> None:
        """Applies a transaction to the state store and collects its writes."""
        touched: Touched = {}
        for change in transaction.changes:
            self.changes += 1
            for row_change in self._with_cascades(change):
                self._apply(row_change, transaction.position, touched)
        self._collect(touched, transaction.position)

    def take_writes(self) -> list[tuple[TableDesign, Item]]:
        """Returns the collected writes and forgets them."""
        writes = list(self.writes.values())
        self.writes.clear()
        return writes

    # Rows.

    def _apply(self, change: RowChange, position: int, touched: Touched) -> None:
        """Applies the change of one row, unless the row was read after it."""
        table = change.table
        if change.old is None and change.new is None:
            # TRUNCATE.
            for row in list(self.state.rows(table)):
                self._replace(table, row, None, position, touched)
            return
        named = change.old if change.old is not None else change.new
        assert named is not None
        old_key = self.state.key_text(table, named)
        old = self.state.find(table, old_key)
        new = change.new
        if new is not None and change.unsent:
            new = self._complete(change, new, old.row if old else None, position)
            if new is None:
                return
        # A row that was read at a later position contains this change already. Rows of this very
        # position do not: one transaction may change a row several times.
        if old is not None and old.position <= position:
            if new is None or self.state.key_text(table, new) != old_key:
                self._replace(table, old.row, None, position, touched)
        if new is not None:
            new_key = self.state.key_text(table, new)
            stored = old if new_key == old_key else self.state.find(table, new_key)
            if stored is not None and stored.position >= position:
                self._write_again(table, new_key, touched)
            if stored is None or stored.position <= position:
                self._replace(table, stored.row if stored else None, new, position, touched)

    def _write_again(self, table: str, key: str, touched: Touched) -> None:
        """Has the item of a row written again, although the row does not change.

        The row was read after this change. It may have a unique value that another row gives up
        later in the log; the tombstone of that row's item would then hide this row's item, so this
        item is written behind it.
        """
        for number in self._by_value.intersection(self.move.items.numbers.get(table, ())):
            touched.setdefault((number, key), None)

    def _complete(
        self, change: RowChange, new: Item, stored: Item | None, position: int
    ) -> Item | None:
        """Fills in the columns that the log does not repeat (PostgreSQL's unchanged TOAST values).

        Returns None for a row that was already gone when it was read; its delete follows in the
        log.
        """
        full = stored if stored is not None else change.old
        if full is None or (stored is None and position > self.read_until):
            if position <= self.read_until:
                return None
            raise PartitaError(
                f"The log changes a row of {change.table} that the load has never read, so the"
                " state store belongs to another source. Start over with a new load."
            )
        return {**new, **{name: full[name] for name in change.unsent if name in full}}

    def _replace(
        self, table: str, old: Item | None, new: Item | None, position: int, touched: Touched
    ) -> None:
        """Puts a row in the place of another one, and notes the items that either affects."""
        paths = list(self.reach.paths(table, old, new))
        # Items are made once before the row changes and once after it (in `_collect`), so every
        # item that either state of the row leads to has to be noted: by the old and the new foreign
        # keys now, and by those that only lead somewhere once the row is stored.
        for path in paths:
            for row in (old, new):
                if row is not None:
                    self._touch(path.entity, self.reach.reached(path, row, self.state), touched)
        if new is not None:
            self.state.put(table, new, position)
        elif old is not None:
            self.state.remove(table, self.state.key_text(table, old))
        for path in paths:
            if new is not None and path.steps:
                self._touch(path.entity, self.reach.reached(path, new, self.state), touched)

    def _touch(self, number: int, rows: Iterable[Item], touched: Touched) -> None:
        """Keeps the items of rows as they are before the transaction."""
        table, entity = self.move.entities[number]
        made_of = self.move.items.item_with_json
        for row in rows:
            key = self.state.key_text(entity.source, row)
            if (number, key) in touched:
                continue
            stored = self.state.find(entity.source, key)
            item_and_json = made_of(number, stored.row) if stored is not None else None
            touched[number, key] = (
                (
                    item_key(table, item_and_json[0]),
                    key_of(table, item_and_json[0]),
                    item_and_json[1],
                )
                if item_and_json is not None
                else None
            )

    def _collect(self, touched: Touched, position: int) -> None:
        """Compares the items of all touched rows with those before, and collects what differs."""
        before = {old[0]: old[2] for old in touched.values() if old is not None}
        after: set[ItemKey] = set()
        made_of = self.move.items.item_with_json
        for number, row_key in touched:
            table, entity = self.move.entities[number]
            stored = self.state.find(entity.source, row_key)
            item_and_json = made_of(number, stored.row) if stored is not None else None
            if item_and_json is not None:
                item, content = item_and_json
                key = item_key(table, item)
                # When two rows make the same key, the last one wins, as it does in the source's
                # log.
                if key in after or before.get(key) != content:
                    self.writes[key] = (table, stamp(item, position))
                after.add(key)
            self._note(number, row_key, stored.row if stored and not item_and_json else None)
        for (number, _), old in touched.items():
            # No row makes this key any more. The tombstone keeps its position, so that a write that
            # is repeated after a kill cannot bring the item back.
            if old is not None and old[0] not in after:
                self.writes[old[0]] = (self.move.entities[number][0], tombstone(old[1], position))

    def _note(self, number: int, key: str, row: Item | None) -> None:
        """Records that a row makes no item of an entity, or clears the record.

        `row` is the row when it makes no item, and None when it does.
        """
        entity = self.move.entities[number][1]
        reason = self.move.items.refusal(number, row) if row is not None else ""
        if reason and row is not None:
            self.state.reject(entity.source, key, entity.name, reason, row)
        else:
            self.state.accept(entity.source, key, entity.name)

    # MariaDB's storage engine carries out cascades without writing them to the binlog; they are
    # repeated here from the foreign keys.

    def _with_cascades(self, change: RowChange) -> Iterator[RowChange]:
        if change.has_cascades and change.old is not None:
            yield from self._cascades(change.table, change.old, change.new)
        yield change

    def _cascades(self, table: str, old: Item, new: Item | None) -> Iterator[RowChange]:
        """Yields the changes of child rows, and of their children."""
        for child, key in self._children.get(table, ()):
            rule = (key.on_delete if new is None else key.on_update) or ""
            values = [old.get(name) for name in key.referenced_columns]
            has_new_key = (
                new is None or [new.get(name) for name in key.referenced_columns] != values
            )
            if rule.upper() not in ("CASCADE", "SET NULL") or not has_new_key or None in values:
                continue
            parent_values: list[Any] = [value for value in values if value is not None]
            for row in list(self.state.matching(child, key.columns, parent_values)):
                after = _cascaded_row(key, rule, row, new)
                yield from self._cascades(child, row, after)
                yield RowChange(child, row, after)


def item_key(table: TableDesign, item: Item) -> ItemKey:
    return (table.name, *[value for key in table.keys for value in item[key.name].values()])


def _cascaded_row(key: ForeignKey, rule: str, row: Item, new: Item | None) -> Item | None:
    """Returns the child row after its parent's change: None for a deleted row."""
    if rule.upper() == "SET NULL":
        return {name: value for name, value in row.items() if name not in key.columns}
    if new is None:
        return None
    pairs = zip(key.columns, key.referenced_columns, strict=True)
    return {**row, **{own: new[theirs] for own, theirs in pairs if theirs in new}}
