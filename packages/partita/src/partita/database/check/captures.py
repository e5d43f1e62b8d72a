"""Whether the changes that are on their way to destinations are all there, and no others."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from partita.database.changes.captures import SHARD
from partita.database.changes.log import read_changes
from partita.database.changes.streams import last_sequence
from partita.database.check.findings import Finding, Folder, at
from partita.database.tables.schema import Table


def captures_belong_to_destinations(folder: Folder) -> Iterator[Finding]:
    """A table logs its changes for destinations while one is enabled, into the log of that one."""
    for table in folder.tables:
        logs = {one.log for one in table.destinations if not one.is_disabled and not one.is_over}
        found = {table.capture.number} if table.capture else set()
        if logs != found:
            what = "its capture is not that of its destinations"
            yield Finding(at(table), what, f"{sorted(logs)}", f"{sorted(found)}")


def captured_changes_are_in_order(folder: Folder) -> Iterator[Finding]:
    """What has not arrived is there without gaps, up to the last change."""
    for table in folder.tables:
        for log in capture_logs(table):
            where = f"{at(table)}, capture {log}"
            try:
                changes = read_changes(folder.snapshot, log, SHARD, 0)
                found = [change.sequence for change in changes]
            except struct.error as error:
                yield Finding(where, "a change cannot be read", found=str(error))
                continue
            last = last_sequence(folder.snapshot, log)
            if found and found != list(range(found[0], last + 1)):
                expected = f"{found[0]} to {last}"
                yield Finding(where, "captured changes are missing", expected, f"{len(found)}")


def capture_logs(table: Table) -> set[int]:
    """Where changes may lie that have not arrived."""
    return {one.log for one in table.destinations if not one.is_over}
