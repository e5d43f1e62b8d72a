"""Checks the captures: changes that wait for delivery to Kinesis destinations."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding, at
from partita.database.logs.change_log.change_records import read_changes
from partita.database.logs.change_log.change_streams import last_sequence
from partita.database.logs.change_log.kinesis_captures import SHARD
from partita.database.tables.definition.table_schema import Table


def captures_belong_to_destinations(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """A table captures its changes exactly while a destination is enabled, in that one's log."""
    for table in folder.tables:
        expected = {
            destination.log
            for destination in table.destinations
            if not destination.is_disabled and not destination.is_over
        }
        captured = {table.capture.number} if table.capture else set()
        if expected != captured:
            what = "its capture is not that of its destinations"
            yield CheckFinding(at(table), what, f"{sorted(expected)}", f"{sorted(captured)}")


def captured_changes_are_in_order(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """The changes that were not delivered yet have no gaps, up to the last change."""
    for table in folder.tables:
        for log in capture_logs(table):
            where = f"{at(table)}, capture {log}"
            try:
                changes = read_changes(folder.snapshot, log, SHARD, 0)
                sequences = [change.sequence for change in changes]
            except struct.error as error:
                yield CheckFinding(where, "a change cannot be read", found=str(error))
                continue
            last = last_sequence(folder.snapshot, log)
            if sequences and sequences != list(range(sequences[0], last + 1)):
                expected = f"{sequences[0]} to {last}"
                yield CheckFinding(
                    where, "captured changes are missing", expected, f"{len(sequences)}"
                )


def capture_logs(table: Table) -> set[int]:
    """The logs that may contain changes that were not delivered yet."""
    return {destination.log for destination in table.destinations if not destination.is_over}
