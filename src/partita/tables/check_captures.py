"""Whether the changes that are on their way to destinations are all there, and no others."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from partita.changes.captures import SHARD, Destination, read_position
from partita.changes.log import read_changes
from partita.changes.streams import last_sequence
from partita.tables.findings import Finding, Folder, at
from partita.tables.schema import Table


def captures_belong_to_destinations(folder: Folder) -> Iterator[Finding]:
    """A table logs its changes for destinations while one is enabled, into the log of that one."""
    for table in folder.tables:
        logs = {one.log for one in table.destinations if one.last is None}
        found = {table.capture.number} if table.capture else set()
        if logs != found:
            what = "its capture is not that of its destinations"
            yield Finding(at(table), what, f"{sorted(logs)}", f"{sorted(found)}")


def captured_changes_wait_for_somebody(folder: Folder) -> Iterator[Finding]:
    for table in folder.tables:
        for log in capture_logs(table):
            where = f"{at(table)}, capture {log}"
            try:
                yield from _waits(folder, table, log, where)
            except struct.error as error:
                yield Finding(where, "a change cannot be read", found=str(error))


def capture_logs(table: Table) -> set[int]:
    """Where changes may lie that have not arrived everywhere."""
    return {one.log for one in table.destinations if not one.is_over}


def _waits(folder: Folder, table: Table, log: int, where: str) -> Iterator[Finding]:
    last = last_sequence(folder.snapshot, log)
    wanted: set[int] = set()
    for one in table.destinations:
        if one.log == log and not one.is_over:
            wanted.update(range(_position(folder, one), _last(one, last) + 1))
    found = {change.sequence for change in read_changes(folder.snapshot, log, SHARD, 0)}
    if missing := wanted - found:
        yield Finding(where, "changes are missing", f"{len(missing)}, from {min(missing)} on")
    if strays := found - wanted:
        yield Finding(where, "no destination waits for changes", found=f"{len(strays)}")


def _position(folder: Folder, destination: Destination) -> int:
    return max(destination.first, read_position(folder.snapshot, destination))


def _last(destination: Destination, last: int) -> int:
    return last if destination.last is None else min(last, destination.last)
