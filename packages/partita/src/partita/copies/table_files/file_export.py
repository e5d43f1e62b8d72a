"""`partita export`: writes a table into a file, as it is or as it was."""

from __future__ import annotations

from partita.client import Client
from partita.copies.progress_line import ProgressLine
from partita.copies.table_files.item_file_formats import format_of, writing
from partita.copies.table_files.table_reading import at, describe, scan


async def export(
    client: Client,
    name: str,
    path: str,
    *,
    kind: str | None = None,
    moment: float | None = None,
    is_plain: bool = False,
) -> int:
    """Exports the table `name` to the file `path`; returns the number of items written."""
    table = await describe(client, name)
    progress = ProgressLine("exported", table.item_count)
    with writing(path, format_of(path, kind), table, is_plain=is_plain) as file:
        async with at(client, name, moment) as source:
            async for items in scan(client, source):
                file.write(items)
                progress.add(len(items))
    progress.end(f" to {path}")
    return progress.count
