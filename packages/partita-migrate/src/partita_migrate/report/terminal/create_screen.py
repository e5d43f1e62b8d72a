"""Prints the result of `partita migrate create`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.handover.create_stage import Action, CreateResult
from partita_migrate.handover.emit import EmittedFile
from partita_migrate.report.terminal.terminal_tables import bullets
from partita_migrate.workspace.readable_lists import number_of

ACTIONS: dict[Action, str] = {
    "create": "would be created",
    "created": "was created",
    "unchanged": "is as the design says and was not changed",
    "differs": "differs from the design and was left as it is",
    "update": "would be changed",
    "updated": "was changed",
}


def summarize(created: CreateResult) -> Iterator[RenderableType]:
    for table in created.tables:
        lines = [difference.what for difference in table.differences] + table.notes
        title = f"{table.table} {ACTIONS[table.action]}."
        if lines:
            yield from bullets(title, lines)
        else:
            yield Text(title, style="bold")
    if all(table.action == "unchanged" for table in created.tables):
        count = number_of(len(created.tables), "table")
        yield Text(f"Nothing to do: {count} of {created.model} at {created.endpoint}.")
    if any(difference.update for table in created.tables for difference in table.differences):
        if created.differs:
            yield Text("`partita migrate create --update` changes what can be changed in place.")


def summarize_emitted(emitted: list[EmittedFile]) -> Iterator[RenderableType]:
    for file in emitted:
        yield Text(f"Written: {file.file} ({file.format}, {number_of(len(file.tables), 'table')})")
