"""Whether the changes that are on their way to destinations are all there, and no others."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding, at
from partita.database.logs.change_log.change_records import read_changes
from partita.database.logs.change_log.change_streams import last_sequence
from partita.database.logs.change_log.kinesis_captures import SHARD
from partita.database.tables.definition.table_schema import Table


def captures_belong_to_destinations(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """A table logs its changes for destinations while one is enabled, into the log of that one."""
    for table in folder.tables:
        logs = {one.log for one in table.destinations if not one.is_disabled and not one.is_over}
        found = {table.capture.number} if table.capture else set()
        if logs != found:
            what = "its capture is not that of its destinations"
            yield CheckFinding(at(table), what, f"{sorted(logs)}", f"{sorted(found)}")


def captured_changes_are_in_order(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """What has not arrived is there without gaps, up to the last change."""
    for table in folder.tables:
        for log in capture_logs(table):
            where = f"{at(table)}, capture {log}"
            try:
                changes = read_changes(folder.snapshot, log, SHARD, 0)
                found = [change.sequence for change in changes]
            except struct.error as error:
                yield CheckFinding(where, "a change cannot be read", found=str(error))
                continue
            last = last_sequence(folder.snapshot, log)
            if found and found != list(range(found[0], last + 1)):
                expected = f"{found[0]} to {last}"
                yield CheckFinding(where, "captured changes are missing", expected, f"{len(found)}")


def capture_logs(table: Table) -> set[int]:
    """Where changes may lie that have not arrived."""
    return {one.log for one in table.destinations if not one.is_over}
