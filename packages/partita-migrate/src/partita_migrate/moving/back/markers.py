"""A marker: an item that the move writes and takes away again, to find its place in a stream."""

from __future__ import annotations

import time
from typing import Any

from partita.client import ClientError
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.back.records import Changed, ChangeStream
from partita_migrate.moving.positions import tombstone
from partita_migrate.moving.target import Target

MARK = "partita_mark"
SEEN_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
HELD = {"S": "partita_move", "N": "-9.87654321e125", "B": "cGFydGl0YV9tb3Zl"}


def marker_key(table: TableDesign) -> dict[str, Any]:
    """A key that no application has."""
    return {key.name: {key.type: HELD[key.type]} for key in table.keys}


def place_marker(target: Target, table: TableDesign) -> str:
    """What its record in the stream will say."""
    said = str(time.time_ns())
    key = marker_key(table)
    try:
        item = {**tombstone(key, 0), MARK: {"S": said}}
        target.call("PutItem", TableName=table.name, Item=item)
        target.call("DeleteItem", TableName=table.name, Key=key)
    except ClientError as error:
        raise PartitaError(f"{target.endpoint} refused a marker: {error}") from error
    return said


def mark_of(one: Changed) -> str | None:
    """What the record of a marker says."""
    mark = (one.new or one.old or {}).get(MARK)
    return None if mark is None else str(mark.get("S", ""))


def wait_for_marker(target: Target, table: TableDesign, stream: ChangeStream) -> float:
    """When a marker was written, by the target's clock; the stream is read up to it."""
    said = place_marker(target, table)
    end = time.monotonic() + SEEN_SECONDS_MAX
    while time.monotonic() < end:
        found = stream.read()
        for one in found:
            if mark_of(one) == said:
                return one.at
        if found:
            # Of a stream that others have written much to.
            end = time.monotonic() + SEEN_SECONDS_MAX
        else:
            time.sleep(POLL_SECONDS)
    raise PartitaError(
        f"What is written to {table.name} does not come out of its stream within"
        f" {SEEN_SECONDS_MAX:.0f} s, so that there would be no way back; try again."
    )
