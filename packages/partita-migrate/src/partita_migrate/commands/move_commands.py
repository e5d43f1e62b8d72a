"""The commands of a move: load, follow, verify, cutover, rollback, finish, run, status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from partita_migrate.commands.command_group import (
    asked_once,
    checked_url,
    migrate,
    password_prompt,
    show,
    stage,
    stage_run,
)


def _move(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that all commands of the move have."""
    endpoint = click.option(
        "--endpoint",
        envvar="AWS_ENDPOINT_URL_DYNAMODB",
        metavar="URL",
        callback=checked_url,
        help="Where the tables are. Default: Amazon DynamoDB.",
    )
    region = click.option(
        "--region",
        envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
        default="us-east-1",
        show_default=True,
        help="The region to sign for.",
    )
    dry_run = click.option(
        "--dry-run", "is_dry_run", is_flag=True, help="Show what would be done, and do nothing."
    )
    return stage(endpoint(region(dry_run(command))))


_model_name = click.option("--model", "name", default="model.toml", help="The model file to use.")
_followed = click.option(
    "--follow/--no-follow",
    "is_followed",
    default=None,
    help="Remember the position in the log, for `follow`; SQLite gets triggers that write a log."
    " Default: yes, except for SQLite.",
)
_write_units = click.option(
    "--write-units", type=click.FloatRange(1), help="The maximum of write units to use per second."
)

_kinesis = click.option(
    "--kinesis",
    metavar="STREAM",
    help="A Kinesis stream for the way back, which keeps changes for longer than 24 hours.",
)


class StageCommand(NamedTuple):
    """A stage's function, and the function that prints its result."""

    run: Callable[..., Any]
    summarize: Callable[..., Any]


def _load() -> StageCommand:
    from partita_migrate.moving.loading.load import load as run
    from partita_migrate.report.terminal.moving_screen import summarize_load

    return StageCommand(run, summarize_load)


def _follow() -> StageCommand:
    from partita_migrate.moving.following.follow import follow as run
    from partita_migrate.report.terminal.moving_screen import summarize_follow

    return StageCommand(run, summarize_follow)


def _verify() -> StageCommand:
    from partita_migrate.moving.verifying.verify import verify as run
    from partita_migrate.report.terminal.moving_screen import summarize_verify

    return StageCommand(run, summarize_verify)


def _cutover() -> StageCommand:
    from partita_migrate.moving.switching.cutover import cutover as run
    from partita_migrate.report.terminal.switching_screen import summarize_cutover

    return StageCommand(run, summarize_cutover)


def _rollback() -> StageCommand:
    from partita_migrate.moving.switching.rollback import rollback as run
    from partita_migrate.report.terminal.switching_screen import summarize_rollback

    return StageCommand(run, summarize_rollback)


def _finish() -> StageCommand:
    from partita_migrate.moving.switching.finish import finish as run
    from partita_migrate.report.terminal.switching_screen import summarize_finish

    return StageCommand(run, summarize_finish)


def _run() -> StageCommand:
    from partita_migrate.moving.run_stages import run
    from partita_migrate.report.terminal.cockpit import summarize_run

    return StageCommand(run, summarize_run)


def _run_move(
    load: Callable[[], StageCommand],
    options: dict[str, Any],
    is_wrong: Callable[[Any], object] = lambda done: False,
) -> None:
    """Runs a stage of the move with its options. Exits with 1 when its result is wrong."""
    path, as_json = options.pop("path"), options.pop("as_json")
    with stage_run(path) as (folder, progress):
        stage = load()
        done = stage.run(folder, ask=password_prompt(), progress=progress, **options)
    show(as_json, done, lambda: stage.summarize(done))
    if is_wrong(done):
        sys.exit(1)


@migrate.command()
@_move
@_model_name
@_followed
@click.option(
    "--where",
    nargs=2,
    multiple=True,
    metavar="TABLE CONDITION",
    help="Move only these rows of a table, such as --where orders \"placed >= '2024-01-01'\".",
)
@click.option(
    "--through",
    type=click.Choice(["s3"]),
    help="Write files for ImportTable instead of items.",
)
@click.option(
    "--files",
    default="move/files",
    show_default=True,
    metavar="PLACE",
    help="Where to write these files: a folder, or s3://bucket/prefix.",
)
@click.option(
    "--replay",
    "is_replaying",
    is_flag=True,
    help="Load rejected rows again, after they were corrected.",
)
@_write_units
def load(
    where: tuple[tuple[str, str], ...], through: str | None, files: str, **options: Any
) -> None:
    """Load every row of the source into the target.

    Continues where it was stopped. Rows that cannot become an item are listed in
    move/rejects.jsonl, with the reason and how to replay them; exits with 1 if there are any.
    Writes load.json.
    """
    options |= {"where": dict(where), "files": files if through else ""}
    _run_move(_load, options, lambda done: done.failed)


@migrate.command()
@_move
@click.option("--once", "is_once", is_flag=True, help="Stop at the current end of the log.")
@click.option(
    "--verify", "is_verifying", is_flag=True, help="Compare both sides again and again meanwhile."
)
@_write_units
def follow(**options: Any) -> None:
    """Apply every change that was committed since the load, until interrupted.

    Continues where it was stopped. A schema change ends it with a message. With --verify it exits
    with 1 when something differed.
    """
    _run_move(_follow, options, lambda done: done.different)


@migrate.command()
@_move
@click.option("--sample", type=click.IntRange(1), help="Compare only this many rows of each table.")
@click.option("--repair", "is_repairing", is_flag=True, help="Correct differences in the target.")
def verify(**options: Any) -> None:
    """Compare both sides at one position, in both directions.

    Follows the log up to that position first, so stop a running `follow`. Exits with 1 when
    something differs. Writes verify.json.
    """
    _run_move(_verify, options, lambda done: not done.is_right)


@migrate.command()
@_move
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for the source's open transactions that have written.",
)
@click.option(
    "--one-way",
    "is_one_way",
    is_flag=True,
    help="Go ahead even though some rows could not be moved back.",
)
@_kinesis
def cutover(**options: Any) -> None:
    """Make the target authoritative; the source refuses writes from then on.

    Everything that was written before is carried over and compared first. Afterwards `follow` goes
    backwards, from the target's streams into the source, and `rollback` turns back. Writes
    cutover.json.
    """
    _run_move(_cutover, options)


@migrate.command()
@_move
@click.option(
    "--writers-stopped",
    "is_stopped",
    is_flag=True,
    help="Confirm that nobody writes to the target, if it cannot be made to refuse writes.",
)
def rollback(**options: Any) -> None:
    """Make the source authoritative again, with everything that was written to the target.

    Items that cannot become rows are listed before anything changes; exits with 1 then. Writes
    rollback.json.
    """
    _run_move(
        _rollback,
        options,
        lambda done: done.obstacles,
    )


@migrate.command()
@_move
@click.option(
    "--give-up",
    "is_given_up",
    is_flag=True,
    help="End the move without a cutover; the source stays as it is.",
)
def finish(**options: Any) -> None:
    """End the move: remove everything of it from the source. There is no way back then.

    Compares both sides a last time; exits with 1 when something differs. Writes finish.json and
    finish.md.
    """
    _run_move(
        _finish,
        options,
        lambda done: done.different or done.obstacles,
    )


@migrate.command()
@_move
@_model_name
@_followed
@_write_units
@_kinesis
@click.option(
    "--until",
    type=click.Choice(["load", "verify", "follow", "cutover", "finish"]),
    help="The last stage to run. Without it, changes are followed until you press q.",
)
def run(**options: Any) -> None:
    """Run the whole move: load, verify, follow, and the stages that you press keys for.

    Continues where it was, whichever stage was killed. On a terminal, v verifies, c cuts over, r
    rolls back, f finishes and q quits. Exits with 1 when rows failed or something differed.
    """
    is_watched = sys.stdin.isatty() and sys.stderr.isatty() and not options["as_json"]
    if not is_watched or options["is_dry_run"]:
        _run_move(_run, options, lambda done: done.is_wrong)
        return
    path, as_json = options.pop("path"), options.pop("as_json")
    with stage_run(path) as (folder, _):
        from partita_migrate.moving.run_stages import run as run_stages
        from partita_migrate.report.terminal.cockpit import cockpit, summarize_run
        from partita_migrate.understanding.sources.source_connection import connect

        password = asked_once()
        # Asks for the password before the screen is drawn, where a prompt would be lost.
        with connect(folder, password):
            pass
        with cockpit(folder) as screen:
            ran = run_stages(
                folder, ask=password, progress=screen.bars.show, seat=screen.seat(), **options
            )
    show(as_json, ran, lambda: summarize_run(ran))
    if ran.is_wrong:
        sys.exit(1)


@migrate.command()
@stage
@click.option("--designs", "with_designs", is_flag=True, help="Include the designs, for --json.")
def status(path: Path, as_json: bool, with_designs: bool) -> None:
    """Show how far a migration is, from the files of its folder alone."""
    with stage_run(path) as (folder, _):
        from partita_migrate.moving.move_status import status as run
        from partita_migrate.report.modeler_designs import designs
        from partita_migrate.report.terminal.moving_screen import summarize_status

        move_status = run(folder)
        design_list = designs(folder) if with_designs else []
    shown = {"status": move_status, "designs": design_list, "commands": sorted(migrate.commands)}
    show(as_json, shown, lambda: summarize_status(move_status))
