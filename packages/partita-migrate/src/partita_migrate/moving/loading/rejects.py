"""What made no item that the target took: a file of it, and what puts it right.

A row is rejected for an entity that it makes no item of. An item that the target refused is
rejected by the name of its table and its key, without an entity.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from partita.database.item.values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.applying import Applier, ItemKey, item_key
from partita_migrate.moving.items import item_digest
from partita_migrate.moving.loading.reports import REPORT, SAME_KEY, TableLoad
from partita_migrate.moving.logs.changes import Change, Transaction
from partita_migrate.moving.moves import Move
from partita_migrate.moving.positions import ONLY_OVER_KNOWN, is_tombstone, key_of, stamped
from partita_migrate.moving.state import MOVE, StateStore
from partita_migrate.understanding.sources.connection import Source

REJECTS = "rejects.jsonl"
REPLAY = "Correct the row in the source, then run `partita migrate load {} --replay`."
REPLAY_ITEM = "Remove what is in its way, then run `partita migrate load {} --replay`."


class Reject(NamedTuple):
    table: str
    key: str
    entity: str
    reason: str
    row: Item
    """The item, where the target refused it."""


def rejects_of(move: Move) -> list[Reject]:
    return [Reject(*one) for one in move.state.rejects()]


def write_rejects(move: Move) -> str:
    """The name of the file, in the folder; empty when there is nothing to write."""
    rejects = rejects_of(move)
    path = f"{MOVE}/{REJECTS}"
    if not rejects:
        (move.folder.path / path).unlink(missing_ok=True)
        return ""
    lines = [
        msgspec.json.encode(
            {
                "table": one.table,
                "entity": one.entity,
                "reason": one.reason,
                "row" if one.entity else "item": one.row,
                "replay": (REPLAY if one.entity else REPLAY_ITEM).format(move.folder.path),
            }
        )
        for one in rejects
    ]
    move.folder.write_bytes(path, b"\n".join(lines) + b"\n")
    return path


# Items that the target refused.


def reject_item(state: StateStore, table: TableDesign, item: Item, reason: str) -> None:
    name, *key = item_key(table, item)
    state.reject(name, ", ".join(key), "", reason, item)


def accept_item(state: StateStore, key: ItemKey) -> None:
    state.accept(key[0], ", ".join(key[1:]), "")


def settle(move: Move) -> int:
    """Rejects that have been put right by now are none any more; the answer is how many are left.

    A row whose item is in the target, or which makes none any more; an item that is there as it
    was to be written.
    """
    rejects = rejects_of(move)
    with move.state.transaction():
        for one in rejects:
            if _is_right(move, one):
                move.state.accept(one.table, one.key, one.entity)
    write_rejects(move)
    return move.state.reject_count()


def _is_right(move: Move, one: Reject) -> bool:
    home, item = _home(move, one), one.row
    if one.entity:
        if not move.state.tables[one.table].primary_key:
            return False
        kept = move.state.find(one.table, one.key)
        if kept is None:
            return True
        number = _numbers(move)[one.table, one.entity]
        made = move.items.made(number, kept.row)
        if made is None:
            return not move.items.refusal(number, kept.row)
        item = made
    there = move.target.call(
        "GetItem", TableName=home.name, Key=key_of(home, item), ConsistentRead=True
    ).get("Item")
    if there is None or is_tombstone(there):
        return is_tombstone(item)
    return not is_tombstone(item) and item_digest(there) == item_digest(item)


def _numbers(move: Move) -> dict[tuple[str, str], int]:
    return {(entity.source, entity.name): n for n, (_, entity) in enumerate(move.homes)}


def _home(move: Move, one: Reject) -> TableDesign:
    if one.entity:
        return move.homes[_numbers(move)[one.table, one.entity]][0]
    return next(table for table in move.design.tables if table.name == one.table)


# Another try.


def replay(move: Move) -> int:
    """Tries the rejected rows again, as the source has them now where it is not followed, and then
    the items that were refused; the answer is how many rows have their items."""
    rejects = rejects_of(move)
    applier = Applier(move, move.position)
    numbers, left = _numbers(move), set[tuple[str, str]]()
    with move.origin.connect() as source, move.state.transaction():
        rows = [one for one in rejects if one.entity and move.state.tables[one.table].primary_key]
        if not move.begun.is_followed:
            known = {(one.table, one.key): one.row for one in rows}
            changes = [_change_now(move, source, *one) for one in known.items()]
            applier.apply(Transaction(move.position, "", time.time(), changes))
        for one in rows:
            kept = move.state.find(one.table, one.key)
            number = numbers[one.table, one.entity]
            reason = _put_again(move, applier, number, kept.row) if kept is not None else ""
            if kept is not None and reason:
                left.add((one.table, one.key))
                move.state.reject(one.table, one.key, one.entity, reason, kept.row)
            else:
                move.state.accept(one.table, one.key, one.entity)
        move.target.put_over_older(applier.taken_writes(), ONLY_OVER_KNOWN)
        _replay_items(move, [one for one in rejects if not one.entity])
        right = {(one.table, one.key) for one in rows} - left
        _recount(move, [table for table, _ in right])
    return len(right)


def _replay_items(move: Move, rejects: list[Reject]) -> None:
    writes = [(_home(move, one), one.row) for one in rejects]
    refused = move.target.put_over_older(writes, ONLY_OVER_KNOWN)
    for table, item in writes:
        accept_item(move.state, item_key(table, item))
    for table, item, reason in refused:
        reject_item(move.state, table, item, reason)


def _put_again(move: Move, applier: Applier, number: int, row: Item) -> str:
    """Writes the item of a row unless another's is there; why not, or empty."""
    table, _ = move.homes[number]
    item = move.items.made(number, row)
    if item is None:
        return move.items.refusal(number, row)
    applier.writes.pop(item_key(table, item), None)
    there = move.target.call(
        "GetItem", TableName=table.name, Key=key_of(table, item), ConsistentRead=True
    ).get("Item")
    if there is not None and not is_tombstone(there) and item_digest(there) != item_digest(item):
        return SAME_KEY
    refused = move.target.put_over_older([(table, stamped(item, move.position))], ONLY_OVER_KNOWN)
    return refused[0][2] if refused else ""


def _change_now(move: Move, source: Source, known: tuple[str, str], row: Item) -> Change:
    """What has become of a row in the source."""
    name = known[0]
    found = move.origin.rows_like(source, move.state.tables[name], [row])
    return Change(name, None, found[0]) if found else Change(name, row, None)


def _recount(move: Move, tables: list[str]) -> None:
    report = move.state.fact(REPORT, list[TableLoad]) or []
    for one in report:
        right = tables.count(one.table)
        one.failed -= right
        one.imported += right
    move.state.set_fact(REPORT, report)
