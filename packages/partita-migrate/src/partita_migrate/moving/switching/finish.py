"""Stage `finish`: ends the move and removes everything of it from the source.

The last changes are carried back, both sides are compared a last time, and the move's tombstones
and streams are removed; then its slots, triggers and helper tables. After that there is no way
back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from typing import Any

from partita.client import ClientError
from partita.errors import PartitaError
from partita_migrate.costing.estimate_stage import ESTIMATE_JSON, Estimates, monthly
from partita_migrate.moving.following.move_samples import summarize_samples
from partita_migrate.moving.loading.load_report import LOAD_JSON, LoadReport
from partita_migrate.moving.move import Move, open_move
from partita_migrate.moving.switching.fences import fence_of
from partita_migrate.moving.switching.final_report import FinalReport, render_page
from partita_migrate.moving.switching.move_phase import (
    BACKWARD,
    DESTINATIONS_MADE,
    ENDING,
    FINISHED,
    PHASE,
    STREAMS_MADE,
    phase_of,
    under_way,
)
from partita_migrate.moving.switching.target_write_block import TargetWriteBlock
from partita_migrate.moving.target_access.item_positions import DELETED, is_tombstone, key_of
from partita_migrate.moving.verifying.verify import VerifyReport, compare_sides
from partita_migrate.moving.way_back.follow_back import PLACES, BackFollower
from partita_migrate.moving.way_back.kinesis_changes import destination_of
from partita_migrate.moving.way_back.table_streams import StreamCheckpoint
from partita_migrate.proving.proof_run.user_acceptance import read_acceptance
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

REPORT = "finish.md"


def finish(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    is_given_up: bool = False,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> FinalReport:
    """Ends the move. With `is_given_up` the source stays authoritative, without a cutover."""
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask) as move:
        phase = phase_of(move.state)
        report = FinalReport(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=move.position,
            is_dry_run=is_dry_run,
            is_given_up=is_given_up,
            turns=phase.turns,
            removed=_leftovers(move),
        )
        _check(phase.name, is_given_up=is_given_up)
        if phase.name == FINISHED:
            return folder.read_json("finish.json", FinalReport)
        gate = TargetWriteBlock(move, endpoint, region)
        if is_dry_run:
            return report
        with under_way(move.state, "finish"):
            # A finish was killed after its comparison; the log may be gone already.
            ended = move.state.fact(ENDING, FinalReport)
            if ended is not None:
                report = ended
            elif not is_given_up:
                _compare(move, report, progress)
            progress("Removing what the move has made", 0, 0)
            _remove(move, gate, report)
        report.seconds += round(time.monotonic() - began, 3)
        report.watched = summarize_samples(folder)
        report.monthly_cost = _monthly_cost(folder, move.begun.model)
        report.accepted = read_acceptance(folder)
        _add_load_report(folder, report)
        folder.write_json("finish.json", report)
        folder.write_text(REPORT, render_page(report))
        with move.state.transaction():
            phase.name = FINISHED
            move.state.set_fact(PHASE, phase)
            move.state.remove_fact(ENDING)
        return report


def _check(name: str, *, is_given_up: bool) -> None:
    if name == BACKWARD and is_given_up:
        raise PartitaError(
            "The target is authoritative: giving up the move would lose what was written there;"
            " roll back first."
        )
    if name not in (BACKWARD, FINISHED) and not is_given_up:
        raise PartitaError(
            "The source is authoritative; cut over first, or give up the move with --give-up."
        )


def _leftovers(move: Move) -> list[str]:
    """Returns what the move has created and `finish` removes."""
    leftovers = ["the tables partita_fence and partita_switch, and triggers named partita_fence"]
    leftovers += {
        "postgresql": ["the slot and the publication of the move"],
        "sqlite": ["the table partita_log and its triggers"],
    }.get(move.origin.family, [])
    leftovers += ["tombstones in the target"]
    streams = move.state.fact(STREAMS_MADE, list[str]) or []
    leftovers += [f"the stream of {name}, which cutover switched on" for name in streams]
    sent = move.state.fact(DESTINATIONS_MADE, dict[str, str]) or {}
    return leftovers + [f"{arn} as a destination of {name}" for name, arn in sent.items()]


def _compare(move: Move, report: FinalReport, progress: Progress) -> None:
    """Carries back the last changes, and compares both sides."""
    progress("Following back", 0, 0)
    back = BackFollower(move, fence_of(move.origin), progress)
    back.catch_up()
    report.obstacles = back.obstacles()
    verified: VerifyReport = compare_sides(move, progress)
    report.rows, report.items = verified.rows, verified.items
    report.different = verified.different
    report.checks = [
        ("Every row of the source is explained by an item, and each item by rows",
         verified.different == 0),
        ("Nothing that was written at the target is missing in the source", not report.obstacles),
        ("Every row that the design has items for became one", not move.state.rejects()),
    ]  # fmt: skip


def _remove(move: Move, gate: TargetWriteBlock, report: FinalReport) -> None:
    """Removes everything, the target's part first: after a kill, the rest can still be removed by
    running it again."""
    gate.open()
    for table in move.design.tables:
        for item in chain.from_iterable(move.target.pages(table.name)):
            if is_tombstone(item):
                _delete(move, table.name, key_of(table, item))
                report.tombstones += 1
    for name in move.state.fact(STREAMS_MADE, list[str]) or []:
        places = (move.state.fact(PLACES, dict[str, StreamCheckpoint]) or {}).get(name)
        described = move.target.call("DescribeTable", TableName=name)["Table"]
        if places is not None and described.get("LatestStreamArn") == places.arn:
            if described.get("StreamSpecification", {}).get("StreamEnabled"):
                off = {"StreamEnabled": False}
                move.target.call("UpdateTable", TableName=name, StreamSpecification=off)
    for name, arn in (move.state.fact(DESTINATIONS_MADE, dict[str, str]) or {}).items():
        if destination_of(move.target, name, arn, is_made=False):
            move.target.call("DisableKinesisStreamingDestination", TableName=name, StreamArn=arn)
    # From here on nothing can be followed any more; a repeated `finish` only removes the rest.
    with move.state.transaction():
        move.state.set_fact(ENDING, report)
    move.log.remove()
    fence_of(move.origin).remove()


def _delete(move: Move, table: str, key: dict[str, Any]) -> None:
    try:
        move.target.call(
            "DeleteItem",
            TableName=table,
            Key=key,
            ConditionExpression="attribute_exists(#deleted)",
            ExpressionAttributeNames={"#deleted": DELETED},
        )
    except ClientError as error:
        if error.code != "ConditionalCheckFailedException":
            raise PartitaError(f"{move.target.endpoint} refused: {error}") from error


def _add_load_report(folder: Folder, report: FinalReport) -> None:
    """Adds what became of each row when it was loaded."""
    if folder.has(LOAD_JSON):
        loaded = folder.read_json(LOAD_JSON, LoadReport)
        report.tables, report.load_seconds = loaded.tables, loaded.seconds


def _monthly_cost(folder: Folder, model: str) -> float | None:
    """Returns the cost that `estimate` stated; None when it was not run."""
    if not folder.has(ESTIMATE_JSON):
        return None
    estimates = folder.read_json(ESTIMATE_JSON, Estimates).estimates
    return next(
        (round(monthly(estimate), 2) for estimate in estimates if estimate.file == model), None
    )
