"""Prints the results of `partita migrate load`, `follow`, `verify` and `status`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.moving.following.follow import FollowResult
from partita_migrate.moving.loading.load import LoadReport
from partita_migrate.moving.move_status import MoveStatus
from partita_migrate.moving.verifying.verify import VerifyReport
from partita_migrate.report.terminal.terminal_tables import bullets, grid

SHOWN_MAX = 20


def summarize_load(loaded: LoadReport) -> Iterator[RenderableType]:
    heads = ["table", "rows", "imported", "skipped", "failed", "stay", "items"]
    if loaded.is_dry_run:
        rows = [(table.table, f"{table.expected:,}", "", "", "", "", "") for table in loaded.tables]
        yield grid("Would be loaded", heads, rows, heads[1:])
        return
    rows = [
        (
            table.table,
            f"{table.rows:,}",
            f"{table.imported:,}",
            f"{table.skipped:,}",
            f"{table.failed:,}",
            f"{table.stay:,}",
            f"{table.items:,}",
        )
        for table in loaded.tables
    ]
    place = f"files in {loaded.files}" if loaded.files else loaded.endpoint
    yield grid(f"Loaded to {place}", heads, rows, heads[1:])
    yield from bullets(
        "Skipped",
        [f"{table.table}: {table.skipped_why}" for table in loaded.tables if table.skipped_why],
    )
    if loaded.rejects:
        yield Text(
            f"{loaded.failed:,} rows failed; {loaded.rejects} has the reasons. Correct the rows in"
            " the source: `follow` or `load --replay` then carries them over."
        )
    if loaded.on_source is not None:
        cost = loaded.on_source
        counted = "".join(f", {name} +{count:,}" for name, count in cost.counters.items())
        yield Text(
            f"The source was read for {cost.seconds:.1f} s, {cost.rows_per_second:,.0f} rows/s"
            f"{counted}."
        )
    if loaded.files:
        yield Text("Import each table with the request in its import-table.json.")
    if loaded.is_followed:
        yield Text("Next: `partita migrate follow`.")


def summarize_follow(followed: FollowResult) -> Iterator[RenderableType]:
    rate = followed.changes / followed.seconds if followed.seconds else 0.0
    behind = "" if followed.lag_bytes is None else f", {followed.lag_bytes:,} bytes"
    if followed.is_backwards:
        yield Text(
            f"Backwards, because the target is authoritative: {followed.changes:,} changes read,"
            f" {followed.writes:,} rows written; {followed.rejects:,} items cannot become rows."
        )
        return
    yield Text(
        f"{followed.changes:,} changes in {followed.transactions:,} transactions,"
        f" {followed.writes:,} items written, {rate:,.0f} changes/s;"
        f" {followed.lag_seconds:.1f} s{behind} behind."
    )
    if followed.rejects:
        yield Text(f"{followed.rejects:,} rows cannot become items that the target accepts.")
    if followed.verified_rows:
        yield Text(
            f"Verified in the meantime: {followed.verified_rows:,} rows,"
            f" {followed.verified_items:,} items; {followed.different:,} differences."
        )
        yield from bullets("Differences", followed.differences[:SHOWN_MAX])


def summarize_verify(verified: VerifyReport) -> Iterator[RenderableType]:
    kind = "A sample of both sides" if verified.is_sample else "Both sides"
    yield Text(
        f"{kind} at position {verified.position}: {verified.rows:,} rows, {verified.items:,} items,"
        f" {verified.tombstones:,} tombstones, {verified.rejected:,} rejected;"
        f" {verified.different:,} differences, {verified.repaired:,} repaired."
    )
    yield from bullets(
        "Differences",
        [
            f"{difference.side} of {difference.table}, {difference.key}: {difference.what}"
            for difference in verified.differences[:SHOWN_MAX]
        ],
    )


def summarize_status(status: MoveStatus) -> Iterator[RenderableType]:
    rows = [(stage.name, "done" if stage.is_done else "", stage.said) for stage in status.stages]
    yield grid(f"The move of {status.folder}", ["stage", "", ""], rows, [])
    if status.holder:
        yield Text(f"{status.holder} is working on it.")
    elif status.under_way:
        yield Text(f"A {status.under_way} was started and has not ended; run it again.")
    if status.refusal:
        yield Text(status.refusal)
    yield from bullets(
        f"{status.rejected:,} rows were rejected",
        [f"{reject.table}, {reject.key}: {reject.reason}" for reject in status.rejects[:SHOWN_MAX]],
    )
    if status.verified is not None:
        yield from summarize_verify(status.verified)
