"""Checks the catalog: tables and their numbers, leftovers, client tokens.

Also checks that every key belongs to a table, an index, or something else that is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from partita.database.at_rest.captures_check import capture_logs
from partita.database.at_rest.change_log_check import stream_prefixes
from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding, at
from partita.database.at_rest.event_log_check import event_prefixes
from partita.database.logs.change_log import change_log_layout as log_layout
from partita.database.logs.change_log.kinesis_captures import capture_prefixes
from partita.database.recovery import recovery_layout
from partita.database.storage.engine import prefix_end
from partita.database.tables import table_layout
from partita.database.tables.definition.table_catalog import LAST_KEY, decode_table
from partita.database.tables.definition.table_schema import Table
from partita.errors import StorageError

LEFTOVER_BYTES = {
    # The prefix of a table's data, and for some spaces that of an index or of a TTL period.
    table_layout.STATISTICS: (5, 7),
    table_layout.COLLECTIONS: (5,),
    table_layout.EXPIRIES: (5, 9),
    table_layout.ITEMS: (5,),
    table_layout.ENTRIES: (5, 7),
    # Prefixes of captured changes.
    log_layout.SEQUENCES: (5,),
    log_layout.CHANGES: (5,),
}
STRAY_GROUP_BYTES = 7
"""Stray keys with the same space, table and index are one finding."""


def tables_are_readable(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every catalog entry is a table, stored under its own name."""
    for key, value in folder.under(table_layout.CATALOG):
        try:
            table = decode_table(key, value)
        except StorageError as error:
            folder.has_unreadable_entries = True
            name = key.removeprefix(table_layout.CATALOG).decode(errors="replace")
            yield CheckFinding(
                f"table {name}", "the catalog entry cannot be read", found=str(error)
            )
            continue
        folder.tables.append(table)
        if table_layout.catalog_key(table.name) != key:
            expected, found = table_layout.catalog_key(table.name).hex(), key.hex()
            yield CheckFinding(at(table), "the catalog has it under another name", expected, found)


def numbers_are_given_once(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Numbers of tables, and of indexes within a table, are unique and not above the last one."""
    last = int.from_bytes(folder.snapshot.get(table_layout.NUMBERS_KEY) or b"", "big")
    owners: dict[int, Table] = {}
    for table in folder.tables:
        if not 0 < table.number <= last:
            yield CheckFinding(
                at(table), "its number was never assigned", f"1 to {last}", f"{table.number}"
            )
        owner = owners.setdefault(table.number, table)
        if owner is not table:
            yield CheckFinding(at(table), f"it has the number {table.number} of table {owner.name}")
        numbers = [index.number for index in table.indexes]
        if len(set(numbers)) < len(numbers) or not all(
            0 < number < table.next_index_number for number in numbers
        ):
            limit = f"different ones below {table.next_index_number}"
            yield CheckFinding(at(table), "its indexes have wrong numbers", limit, f"{numbers}")


def leftovers_are_well_formed(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Data that is listed for removal belongs to a deleted table or index."""
    living = [prefix for table in folder.tables for prefix in _prefixes(table)]
    for key, value in folder.under(table_layout.LEFTOVERS):
        prefix = table_layout.leftover_prefix(key)
        where = f"leftover {prefix.hex()}"
        if not _is_leftover(prefix) or value:
            yield CheckFinding(where, "it is not a prefix of a table's data")
        elif any(alive.startswith(prefix) or prefix.startswith(alive) for alive in living):
            yield CheckFinding(where, "it would remove data that is in use")


def nothing_is_unknown(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every key belongs to a table, an index, the folder itself, or data that is being removed."""
    if folder.has_unreadable_entries:
        return
    expected_prefixes = [
        table_layout.FORMAT_KEY,
        table_layout.NUMBERS_KEY,
        table_layout.SECRET_KEY,
        *table_layout.NOTES,
    ]
    expected_prefixes.append(recovery_layout.RECORDS)
    expected_prefixes += [
        table_layout.CATALOG,
        table_layout.TOKENS,
        table_layout.TOKEN_TIMES,
        table_layout.LEFTOVERS,
    ]
    expected_prefixes += [prefix for table in folder.tables for prefix in _prefixes(table)]
    expected_prefixes += [prefix for stream in folder.streams for prefix in stream_prefixes(stream)]
    expected_prefixes += event_prefixes(folder)
    leftovers = [
        table_layout.leftover_prefix(key) for key, _ in folder.under(table_layout.LEFTOVERS)
    ]
    expected_prefixes += filter(_is_leftover, leftovers)
    position = b""
    for prefix in [*sorted(expected_prefixes), LAST_KEY]:
        if prefix > position:
            yield from _strays(folder.snapshot.range(position, prefix))
        position = max(position, prefix_end(prefix) if prefix != LAST_KEY else prefix)


def _strays(pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[CheckFinding]:
    for prefix, group in groupby(pairs, key=lambda pair: pair[0][:STRAY_GROUP_BYTES]):
        count = sum(1 for _ in group)
        where = f"storage keys {prefix.hex()}..."
        yield CheckFinding(where, "they belong to no table or index", found=f"{count}")


def _prefixes(table: Table) -> list[bytes]:
    """All prefixes that the keys of a table may have."""
    numbers = [0, *(index.number for index in table.indexes)]
    prefixes = [table_layout.statistics_key(table.number, number) for number in numbers]
    prefixes += [table_layout.entries_prefix(table.number, number) for number in numbers[1:]]
    prefixes.append(table_layout.items_prefix(table.number))
    if table.local_indexes:
        prefixes.append(table_layout.collections_prefix(table.number))
    if table.ttl_attribute is not None:
        prefixes.append(table_layout.expiries_prefix(table))
    return prefixes + [prefix for log in capture_logs(table) for prefix in capture_prefixes(log)]


def _is_leftover(prefix: bytes) -> bool:
    return len(prefix) in LEFTOVER_BYTES.get(prefix[:1], ())


class _UsedToken(msgspec.Struct):
    """A client token as transactions store it."""

    used_at: float
    digest: str


def tokens_have_their_times(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Every client token has an entry for the time of its use, by which it is removed later."""
    for key, value in folder.under(table_layout.TOKENS):
        token = key.removeprefix(table_layout.TOKENS).decode(errors="replace")
        used = _used(value)
        if used is None:
            yield CheckFinding(f"client token {token}", "it cannot be read")
        elif (
            folder.snapshot.get(table_layout.token_time_key(used.used_at, token)) != token.encode()
        ):
            expected = f"an entry for {used.used_at}"
            yield CheckFinding(f"client token {token}", "it has no time entry", expected)


def token_times_have_their_tokens(folder: CheckedFolder) -> Iterator[CheckFinding]:
    for key, value in folder.under(table_layout.TOKEN_TIMES):
        token = value.decode(errors="replace")
        used_value = folder.snapshot.get(table_layout.token_key(token))
        used = None if used_value is None else _used(used_value)
        if used_value is None:
            yield CheckFinding(f"time entry of client token {token}", "its token does not exist")
        elif used is not None and table_layout.token_time_key(used.used_at, token) != key:
            expected, found = table_layout.token_time_key(used.used_at, token).hex(), key.hex()
            yield CheckFinding(
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
