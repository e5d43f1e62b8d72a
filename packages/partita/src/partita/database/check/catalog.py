"""Whether a folder's lists are right: tables and their numbers, leftovers, client tokens.

And whether every key in the folder belongs to something that is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from partita.database.changes import layout as log_layout
from partita.database.changes.captures import capture_prefixes
from partita.database.check.captures import capture_logs
from partita.database.check.changes import stream_prefixes
from partita.database.check.events import event_prefixes
from partita.database.check.findings import Finding, Folder, at
from partita.database.recovery import layout as recovery_layout
from partita.database.storage.engine import prefix_end
from partita.database.tables import layout
from partita.database.tables.catalog import LAST_KEY, decode_table
from partita.database.tables.schema import Table
from partita.errors import StorageError

LEFTOVER_BYTES = {
    # A table's, and an index's or those of one TTL period.
    layout.STATISTICS: (5, 7),
    layout.COLLECTIONS: (5,),
    layout.EXPIRIES: (5, 9),
    layout.ITEMS: (5,),
    layout.ENTRIES: (5, 7),
    # Of changes that were on their way to a destination.
    log_layout.SEQUENCES: (5,),
    log_layout.CHANGES: (5,),
}
STRAY_GROUP_BYTES = 7
"""Strays of one space, table and index are one finding."""


def tables_are_readable(folder: Folder) -> Iterator[Finding]:
    """Every catalog entry is a table, under its own name."""
    for key, value in folder.under(layout.CATALOG):
        try:
            table = decode_table(key, value)
        except StorageError as error:
            folder.has_unreadable_entries = True
            name = key.removeprefix(layout.CATALOG).decode(errors="replace")
            yield Finding(f"table {name}", "the catalog entry cannot be read", found=str(error))
            continue
        folder.tables.append(table)
        if layout.catalog_key(table.name) != key:
            expected, found = layout.catalog_key(table.name).hex(), key.hex()
            yield Finding(at(table), "the catalog has it under another name", expected, found)


def numbers_are_given_once(folder: Folder) -> Iterator[Finding]:
    """Tables, and indexes within a table, have numbers of their own, none beyond the last given."""
    last = int.from_bytes(folder.snapshot.get(layout.NUMBERS_KEY) or b"", "big")
    owners: dict[int, Table] = {}
    for table in folder.tables:
        if not 0 < table.number <= last:
            yield Finding(
                at(table), "its number was never given", f"1 to {last}", f"{table.number}"
            )
        owner = owners.setdefault(table.number, table)
        if owner is not table:
            yield Finding(at(table), f"it has the number {table.number} of table {owner.name}")
        numbers = [index.number for index in table.indexes]
        if len(set(numbers)) < len(numbers) or not all(
            0 < number < table.next_index_number for number in numbers
        ):
            limit = f"different ones below {table.next_index_number}"
            yield Finding(at(table), "its indexes have wrong numbers", limit, f"{numbers}")


def leftovers_are_well_formed(folder: Folder) -> Iterator[Finding]:
    """What is listed for removal is the data of something that is gone."""
    living = [prefix for table in folder.tables for prefix in _prefixes(table)]
    for key, value in folder.under(layout.LEFTOVERS):
        prefix = layout.leftover_prefix(key)
        where = f"leftover {prefix.hex()}"
        if not _is_leftover(prefix) or value:
            yield Finding(where, "it is no prefix of a table's data")
        elif any(alive.startswith(prefix) or prefix.startswith(alive) for alive in living):
            yield Finding(where, "it would remove data that is in use")


def nothing_is_unknown(folder: Folder) -> Iterator[Finding]:
    """Every key belongs to a table, an index, the folder itself, or what is being removed."""
    if folder.has_unreadable_entries:
        return
    known = [layout.FORMAT_KEY, layout.NUMBERS_KEY, layout.SECRET_KEY, *layout.NOTES]
    known.append(recovery_layout.RECORDS)
    known += [layout.CATALOG, layout.TOKENS, layout.TOKEN_TIMES, layout.LEFTOVERS]
    known += [prefix for table in folder.tables for prefix in _prefixes(table)]
    known += [prefix for stream in folder.streams for prefix in stream_prefixes(stream)]
    known += event_prefixes(folder)
    leftovers = [layout.leftover_prefix(key) for key, _ in folder.under(layout.LEFTOVERS)]
    known += filter(_is_leftover, leftovers)
    position = b""
    for prefix in [*sorted(known), LAST_KEY]:
        if prefix > position:
            yield from _strays(folder.snapshot.range(position, prefix))
        position = max(position, prefix_end(prefix) if prefix != LAST_KEY else prefix)


def _strays(pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[Finding]:
    for prefix, group in groupby(pairs, key=lambda pair: pair[0][:STRAY_GROUP_BYTES]):
        count = sum(1 for _ in group)
        where = f"storage keys {prefix.hex()}..."
        yield Finding(where, "they belong to no table or index", found=f"{count}")


def _prefixes(table: Table) -> list[bytes]:
    """Where the data of a table may lie."""
    numbers = [0, *(index.number for index in table.indexes)]
    prefixes = [layout.statistics_key(table.number, number) for number in numbers]
    prefixes += [layout.entries_prefix(table.number, number) for number in numbers[1:]]
    prefixes.append(layout.items_prefix(table.number))
    if table.local_indexes:
        prefixes.append(layout.collections_prefix(table.number))
    if table.ttl_attribute is not None:
        prefixes.append(layout.expiries_prefix(table))
    return prefixes + [prefix for log in capture_logs(table) for prefix in capture_prefixes(log)]


def _is_leftover(prefix: bytes) -> bool:
    return len(prefix) in LEFTOVER_BYTES.get(prefix[:1], ())


class _UsedToken(msgspec.Struct):
    """A token as transactions store it."""

    used_at: float
    digest: str


def tokens_have_their_times(folder: Folder) -> Iterator[Finding]:
    """Every client token is found by the time of its use."""
    for key, value in folder.under(layout.TOKENS):
        token = key.removeprefix(layout.TOKENS).decode(errors="replace")
        used = _used(value)
        if used is None:
            yield Finding(f"client token {token}", "it cannot be read")
        elif folder.snapshot.get(layout.token_time_key(used.used_at, token)) != token.encode():
            expected = f"one of {used.used_at}"
            yield Finding(f"client token {token}", "no time entry leads to it", expected)


def token_times_have_their_tokens(folder: Folder) -> Iterator[Finding]:
    for key, value in folder.under(layout.TOKEN_TIMES):
        token = value.decode(errors="replace")
        used_value = folder.snapshot.get(layout.token_key(token))
        used = None if used_value is None else _used(used_value)
        if used_value is None:
            yield Finding(f"time entry of client token {token}", "there is no such token")
        elif used is not None and layout.token_time_key(used.used_at, token) != key:
            expected, found = layout.token_time_key(used.used_at, token).hex(), key.hex()
            yield Finding(
                f"time entry of client token {token}",
                "the token was used at another time",
                expected,
                found,
            )


def _used(value: bytes) -> _UsedToken | None:
    try:
        return msgspec.json.decode(value, type=_UsedToken)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
