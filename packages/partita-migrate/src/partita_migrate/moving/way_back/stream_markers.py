"""Markers: items that the move writes and deletes at once, to find its own place in a stream."""

from __future__ import annotations

import time
from typing import Any

from partita.client import ClientError
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.target_access.item_positions import tombstone
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.way_back.table_streams import ItemChange, ItemChangeStream

MARK = "partita_mark"
SEEN_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
HELD = {"S": "partita_move", "N": "-9.87654321e125", "B": "cGFydGl0YV9tb3Zl"}


def marker_key(table: TableDesign) -> dict[str, Any]:
    """Returns a key that no application uses."""
    return {key.name: {key.type: HELD[key.type]} for key in table.keys}


def place_marker(target: TargetClient, table: TableDesign) -> str:
    """Writes and deletes a marker; returns the text by which its stream record is recognized."""
    text = str(time.time_ns())
    key = marker_key(table)
    try:
        item = {**tombstone(key, 0), MARK: {"S": text}}
        target.call("PutItem", TableName=table.name, Item=item)
        target.call("DeleteItem", TableName=table.name, Key=key)
    except ClientError as error:
        raise PartitaError(f"{target.endpoint} refused a marker: {error}") from error
    return text


def mark_of(change: ItemChange) -> str | None:
    """Returns the text of a marker's record; None for any other record."""
    mark = (change.new or change.old or {}).get(MARK)
    return None if mark is None else str(mark.get("S", ""))


def wait_for_marker(target: TargetClient, table: TableDesign, stream: ItemChangeStream) -> float:
    """Writes a marker and reads the stream up to it; returns its time by the target's clock."""
    text = place_marker(target, table)
    end = time.monotonic() + SEEN_SECONDS_MAX
    while time.monotonic() < end:
        changes = stream.read()
        for change in changes:
            if mark_of(change) == text:
                return change.at
        if changes:
            # Others have written to the stream, and the marker is further behind.
            end = time.monotonic() + SEEN_SECONDS_MAX
        else:
            time.sleep(POLL_SECONDS)
    raise PartitaError(
        f"Writes to {table.name} have not appeared in its stream within {SEEN_SECONDS_MAX:.0f} s,"
        " so there would be no way back; try again."
    )
