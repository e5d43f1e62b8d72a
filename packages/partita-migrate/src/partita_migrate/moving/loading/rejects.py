"""Rejects: rows without an item and items that the target refused, with the reason and the remedy.

A rejected row is recorded by its table, key and entity. An item that the target refused is recorded
by the target's table and its key, with an empty entity.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.following.change_applier import Applier, ItemKey, item_key
from partita_migrate.moving.loading.load_report import REPORT, SAME_KEY, TableLoad
from partita_migrate.moving.logs.source_changes import RowChange, SourceTransaction
from partita_migrate.moving.move import Move
from partita_migrate.moving.target_access.item_positions import (
    ONLY_OVER_KNOWN,
    is_tombstone,
    key_of,
    stamp,
)
from partita_migrate.moving.target_access.target_items import item_digest
from partita_migrate.row_store.state_store import MOVE, StateStore
from partita_migrate.understanding.sources.source_connection import SourceDatabase

REJECTS = "rejects.jsonl"
REPLAY = "Correct the row in the source, then run `partita migrate load {} --replay`."
REPLAY_ITEM = "Remove the item in its place, then run `partita migrate load {} --replay`."


class RejectedRow(NamedTuple):
    """One reject, as the state store has it."""

    table: str
    key: str
    entity: str
    reason: str
    row: Item
    """The row, or the item that the target refused."""


def rejects_of(move: Move) -> list[RejectedRow]:
    return [RejectedRow(*reject) for reject in move.state.rejects()]


def write_rejects(move: Move) -> str:
    """Writes `move/rejects.jsonl` and returns its name; removes it and returns "" without
    rejects."""
    rejects = rejects_of(move)
    path = f"{MOVE}/{REJECTS}"
    if not rejects:
        (move.folder.path / path).unlink(missing_ok=True)
        return ""
    lines = [
        msgspec.json.encode(
            {
                "table": reject.table,
                "entity": reject.entity,
                "reason": reject.reason,
                "row" if reject.entity else "item": reject.row,
                "replay": (REPLAY if reject.entity else REPLAY_ITEM).format(move.folder.path),
            }
        )
        for reject in rejects
    ]
    move.folder.write_bytes(path, b"\n".join(lines) + b"\n")
    return path


# Items that the target refused.


def reject_item(state: StateStore, table: TableDesign, item: Item, reason: str) -> None:
    """Records an item that the target refused."""
    name, *key = item_key(table, item)
    state.reject(name, ", ".join(key), "", reason, item)


def accept_item(state: StateStore, key: ItemKey) -> None:
    """Drops the record of a refused item."""
    state.accept(key[0], ", ".join(key[1:]), "")


def settle(move: Move) -> int:
    """Drops rejects that have been put right meanwhile, and returns how many are left.

    A reject is right when its row makes no item any more, or when the item is in the target as it
    should be.
    """
    rejects = rejects_of(move)
    with move.state.transaction():
        for reject in rejects:
            if _is_right(move, reject):
                move.state.accept(reject.table, reject.key, reject.entity)
    write_rejects(move)
    return move.state.reject_count()


def _is_right(move: Move, reject: RejectedRow) -> bool:
    """True when a reject has been put right meanwhile."""
    home, item = _home(move, reject), reject.row
    if reject.entity:
        if not move.state.tables[reject.table].primary_key:
            return False
        stored = move.state.find(reject.table, reject.key)
        if stored is None:
            return True
        number = _numbers(move)[reject.table, reject.entity]
        expected = move.items.item_of(number, stored.row)
        if expected is None:
            return not move.items.refusal(number, stored.row)
        item = expected
    existing = move.target.call(
        "GetItem", TableName=home.name, Key=key_of(home, item), ConsistentRead=True
    ).get("Item")
    if existing is None or is_tombstone(existing):
        return is_tombstone(item)
    return not is_tombstone(item) and item_digest(existing) == item_digest(item)


def _numbers(move: Move) -> dict[tuple[str, str], int]:
    return {(entity.source, entity.name): n for n, (_, entity) in enumerate(move.entities)}


def _home(move: Move, reject: RejectedRow) -> TableDesign:
    if reject.entity:
        return move.entities[_numbers(move)[reject.table, reject.entity]][0]
    return next(table for table in move.design.tables if table.name == reject.table)


# Another try.


def replay(move: Move) -> int:
    """Tries rejected rows and refused items again, and returns how many rows have their items now.

    Rows of a source that is not followed are read again first.
    """
    rejects = rejects_of(move)
    applier = Applier(move, move.position)
    numbers, still_rejected = _numbers(move), set[tuple[str, str]]()
    with move.origin.connect() as source, move.state.transaction():
        rows = [
            reject
            for reject in rejects
            if reject.entity and move.state.tables[reject.table].primary_key
        ]
        if not move.begun.is_followed:
            keyed_rows = {(reject.table, reject.key): reject.row for reject in rows}
            changes = [_change_now(move, source, *reject) for reject in keyed_rows.items()]
            applier.apply(SourceTransaction(move.position, "", time.time(), changes))
        for reject in rows:
            stored = move.state.find(reject.table, reject.key)
            number = numbers[reject.table, reject.entity]
            reason = _put_again(move, applier, number, stored.row) if stored is not None else ""
            if stored is not None and reason:
                still_rejected.add((reject.table, reject.key))
                move.state.reject(reject.table, reject.key, reject.entity, reason, stored.row)
            else:
                move.state.accept(reject.table, reject.key, reject.entity)
        move.target.put_over_older(applier.take_writes(), ONLY_OVER_KNOWN)
        _replay_items(move, [reject for reject in rejects if not reject.entity])
        right = {(reject.table, reject.key) for reject in rows} - still_rejected
        _recount(move, [table for table, _ in right])
    return len(right)


def _replay_items(move: Move, rejects: list[RejectedRow]) -> None:
    writes = [(_home(move, reject), reject.row) for reject in rejects]
    refused = move.target.put_over_older(writes, ONLY_OVER_KNOWN)
    for table, item in writes:
        accept_item(move.state, item_key(table, item))
    for table, item, reason in refused:
        reject_item(move.state, table, item, reason)


def _put_again(move: Move, applier: Applier, number: int, row: Item) -> str:
    """Writes the item of a row unless another row's item has its key; returns why not, or ""."""
    table, _ = move.entities[number]
    item = move.items.item_of(number, row)
    if item is None:
        return move.items.refusal(number, row)
    applier.writes.pop(item_key(table, item), None)
    existing = move.target.call(
        "GetItem", TableName=table.name, Key=key_of(table, item), ConsistentRead=True
    ).get("Item")
    if (
        existing is not None
        and not is_tombstone(existing)
        and item_digest(existing) != item_digest(item)
    ):
        return SAME_KEY
    refused = move.target.put_over_older([(table, stamp(item, move.position))], ONLY_OVER_KNOWN)
    return refused[0][2] if refused else ""


def _change_now(move: Move, source: SourceDatabase, key: tuple[str, str], row: Item) -> RowChange:
    """Returns what has changed in a row since it was rejected."""
    name = key[0]
    rows = move.origin.rows_with_keys_of(source, move.state.tables[name], [row])
    return RowChange(name, None, rows[0]) if rows else RowChange(name, row, None)


def _recount(move: Move, tables: list[str]) -> None:
    report = move.state.fact(REPORT, list[TableLoad]) or []
    for table_load in report:
        right = tables.count(table_load.table)
        table_load.failed -= right
        table_load.imported += right
    move.state.set_fact(REPORT, report)
