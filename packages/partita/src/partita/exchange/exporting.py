"""`partita export`: writes a table into a file, as it is or as it was."""

from __future__ import annotations

from partita.client import Client
from partita.exchange.files import format_of, writing
from partita.exchange.progress import Progress
from partita.exchange.tables import at, describe, scan


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
    progress = Progress("exported", table.item_count)
    with writing(path, format_of(path, kind), table, is_plain=is_plain) as file:
        async with at(client, name, moment) as source:
            async for items in scan(client, source):
                file.write(items)
                progress.add(len(items))
    progress.end(f" to {path}")
    return progress.count
