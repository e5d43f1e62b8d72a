"""The challenges of the whitepaper's table 3, with the strategies that it gives for each."""

from __future__ import annotations

from collections.abc import Iterator

from partita.foundation.service_limits import GB
from partita_migrate.understanding.planning.difficulties.difficulty import (
    Difficulty,
    first_few,
    number_of,
)
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.schema.inventory import Inventory

BITS_PER_BYTE = 8
SECONDS_PER_HOUR = 3600


def find_challenges(
    inventory: Inventory, goals: Goals, difficulties: list[Difficulty]
) -> list[Difficulty]:
    return [
        *_writes_continue(inventory, goals),
        *_volume(inventory, goals),
        *_transformation(inventory, difficulties),
        *_key_structure(difficulties),
    ]


def transfer_hours(inventory: Inventory, goals: Goals) -> float:
    """Returns how long the bytes of all tables take over the network that [goals] describes."""
    data_bytes = sum(table.data_bytes or 0 for table in inventory.tables)
    bits_per_second = goals.bandwidth_mbit_per_second * 1_000_000
    return data_bytes * BITS_PER_BYTE / bits_per_second / SECONDS_PER_HOUR


def _writes_continue(inventory: Inventory, goals: Goals) -> Iterator[Difficulty]:
    if goals.writes_continue and inventory.tables:
        yield Difficulty(
            kind="writes continue",
            severity="care",
            what="Writes to the source continue before and during the migration.",
            strategy="Besides the bulk load, write to both databases, or follow the source's"
            " changes and apply them to DynamoDB until the cutover.",
        )


def _volume(inventory: Inventory, goals: Goals) -> Iterator[Difficulty]:
    hours = transfer_hours(inventory, goals)
    if hours > goals.transfer_hours_max:
        size = sum(table.data_bytes or 0 for table in inventory.tables) / GB
        yield Difficulty(
            kind="volume",
            severity="obstacle",
            what=f"{size:,.1f} GB take {hours:,.1f} hours at"
            f" {goals.bandwidth_mbit_per_second:g} Mbit/s, more than the"
            f" {goals.transfer_hours_max:g} hours allowed.",
            strategy="Ship the data on disks to S3 and import it from there, or move only rows"
            " after a point in time and leave the older ones in the source.",
        )


def _transformation(inventory: Inventory, difficulties: list[Difficulty]) -> Iterator[Difficulty]:
    tables = sorted(
        {
            difficulty.table
            for difficulty in difficulties
            if difficulty.kind == "type" and difficulty.table is not None
        }
    )
    joined = sorted(
        {
            relationship.through
            for relationship in inventory.relationships
            if relationship.through is not None
        }
    )
    if tables or joined:
        parts = []
        if tables:
            parts.append(f"types of {number_of(len(tables), 'table')} ({first_few(tables)})")
        if joined:
            parts.append(f"{number_of(len(joined), 'intersection table')} ({first_few(joined)})")
        yield Difficulty(
            kind="transformation",
            severity="care",
            what=f"The data has to be transformed on its way: {' and '.join(parts)}.",
            strategy="Transform it in the program that reads the source and writes to DynamoDB, as"
            " the model file says, or in a job between an export to S3 and the import.",
        )


def _key_structure(difficulties: list[Difficulty]) -> Iterator[Difficulty]:
    tables = sorted(
        {
            difficulty.table
            for difficulty in difficulties
            if difficulty.kind in ("no primary key", "key structure")
            and difficulty.table is not None
        }
    )
    if tables:
        yield Difficulty(
            kind="key structure",
            severity="care",
            what=f"The primary keys of {number_of(len(tables), 'table')} are not portable to"
            f" DynamoDB: {first_few(tables)}.",
            strategy="Find columns that make a suitable partition key and sort key, or add a"
            " surrogate key such as a UUID.",
        )
