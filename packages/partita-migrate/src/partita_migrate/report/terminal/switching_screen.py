"""Prints the results of `partita migrate cutover`, `rollback` and `finish`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.moving.switching.cutover import CutoverResult
from partita_migrate.moving.switching.final_report import FinalReport
from partita_migrate.moving.switching.rollback import RollbackResult
from partita_migrate.report.terminal.terminal_tables import bullets

SHOWN_MAX = 20


def summarize_cutover(done: CutoverResult) -> Iterator[RenderableType]:
    if done.is_dry_run:
        yield Text(
            f"{done.source} would refuse writes, and {done.endpoint} would become authoritative."
        )
        yield from bullets("Tables with triggers", done.fenced)
        yield from bullets("Tables whose streams are read for the way back", done.streams)
    else:
        yield Text(
            f"{done.endpoint} is authoritative. {done.source} refused writes for"
            f" {done.refused_seconds:.1f} s before that, and refuses them from now on;"
            f" {done.compared:,} items were compared."
        )
        yield Text(
            "Next: `partita migrate follow`, which now goes backwards, item by item: a transaction"
            " of the target does not become a transaction of the source."
        )
    yield from bullets("Without a way back", done.one_way)
    yield from bullets(
        "Triggers of the source that also fire on the way back: disable those whose work the"
        " target's application does",
        done.triggers,
    )


def summarize_rollback(done: RollbackResult) -> Iterator[RenderableType]:
    if done.is_dry_run:
        yield Text(
            f"{done.changes:,} changes of {done.endpoint} were read just now, {done.rows:,} rows"
            " written; it is still authoritative."
        )
    else:
        yield Text(
            f"{done.source} is authoritative again. {done.endpoint} refused writes for"
            f" {done.refused_seconds:.1f} s before that, and refuses them from now on."
            f" {done.items:,} items follow their rows again."
        )
    if done.replaced:
        yield Text(
            f"{done.replaced:,} of them differed from the rows that they are made of;"
            f" {done.replaced_file} has their old content."
        )
    yield from bullets("Cannot become rows of the source", done.obstacles[:SHOWN_MAX])


def summarize_finish(done: FinalReport) -> Iterator[RenderableType]:
    if done.is_dry_run:
        yield from bullets("Would be removed", done.removed)
        return
    yield Text(
        f"The move is over: {done.rows:,} rows, {done.items:,} items, {done.different:,}"
        f" differences; {done.tombstones:,} tombstones removed. finish.md has the report."
    )
    yield from bullets("Not in the source", done.obstacles[:SHOWN_MAX])
