"""Rows that made no item: their file, and another try when they have been corrected."""

from __future__ import annotations

import time

import msgspec

from partita.database.item.values import Item
from partita.migrate.moving.applying import Applier, item_key
from partita.migrate.moving.items import item_digest
from partita.migrate.moving.loading.reports import REPORT, SAME_KEY, TableLoad
from partita.migrate.moving.logs.changes import Change, Transaction
from partita.migrate.moving.moves import Move
from partita.migrate.moving.positions import ONLY_OVER_KNOWN, is_tombstone, key_of, stamped
from partita.migrate.moving.state import MOVE
from partita.migrate.understanding.sources import Source

REJECTS = "rejects.jsonl"
REPLAY = "Correct the row in the source, then run `partita migrate load {} --replay`."


def write_rejects(move: Move) -> str:
    """The name of the file, in the folder; empty when there is nothing to write."""
    rejects = move.state.rejects()
    path = f"{MOVE}/{REJECTS}"
    if not rejects:
        (move.folder.path / path).unlink(missing_ok=True)
        return ""
    replay = REPLAY.format(move.folder.path)
    lines = [
        msgspec.json.encode(
            {"table": table, "entity": entity, "reason": reason, "row": row, "replay": replay}
        )
        for table, _, entity, reason, row in rejects
    ]
    move.folder.write_bytes(path, b"\n".join(lines) + b"\n")
    return path


def replay(move: Move) -> int:
    """Tries the rejected rows again, as the source has them now where it is not followed; the
    answer is how many have their items."""
    numbers = {(entity.source, entity.name): n for n, (_, entity) in enumerate(move.homes)}
    applier = Applier(move, move.position)
    left: set[tuple[str, str]] = set()
    with move.origin.connect() as source, move.state.transaction():
        rejects = [one for one in move.state.rejects() if move.state.tables[one[0]].primary_key]
        if not move.begun.is_followed:
            rows = {(table, key): row for table, key, _, _, row in rejects}
            changes = [_change_now(move, source, *one) for one in rows.items()]
            applier.apply(Transaction(move.position, "", time.time(), changes))
        for table, key, entity, _, _ in rejects:
            number = numbers[table, entity]
            kept = move.state.find(table, key)
            reason = _put_again(move, applier, number, kept.row) if kept is not None else ""
            if kept is not None and reason:
                left.add((table, key))
                move.state.reject(table, key, entity, reason, kept.row)
            else:
                move.state.accept(table, key, entity)
        move.target.put_over_older(applier.taken_writes(), ONLY_OVER_KNOWN)
        right = {(table, key) for table, key, _, _, _ in rejects} - left
        _recount(move, [table for table, _ in right])
    return len(right)


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
