"""`partita migrate`: one command for each stage. Parsing only; a stage is one function.

Stages are imported when they are called: SQLAlchemy, sqlglot and rich are slow to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.errors import PartitaError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from partita.migrate.folder import Folder
    from partita.migrate.progress import Progress

PACKAGES = (
    "jinja2",
    "psycopg",
    "pymysql",
    "pymysqlreplication",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "tomli_w",
)
"""The packages of `partita[migrate]`."""


PROGRESS = "PARTITA_PROGRESS"
"""An environment variable: "lines" asks for lines instead of bars."""


@click.group()
def migrate() -> None:
    """Take a relational database to DynamoDB, one stage after the other.

    A migration is a folder with migration.toml; each stage writes its files beside it, and may be
    run again at any time. The source is only read; where it is followed, `load` makes what that
    needs there: a slot and a publication in PostgreSQL, a log and triggers in SQLite. `cutover`
    makes triggers and two tables, and `finish` removes it all.
    """


def _stage(command: Callable[..., None]) -> Callable[..., None]:
    """What all stages take."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    folder = click.argument(
        "path", metavar="[FOLDER]", default=".", type=click.Path(path_type=Path)
    )
    return folder(as_json(command))


def _checked_url(ctx: click.Context, option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} is not a URL such as http://127.0.0.1:8000.")
    return url


@migrate.command()
@_stage
def plan(path: Path, as_json: bool) -> None:
    """What the source holds, what suits, what is difficult.

    Writes inventory.json, plan.json and plan.md: tables and their relationships, candidates with
    reasons, difficulties with what to do about them, and the backup and recovery plan.
    """
    with _stage_run(path) as (folder, progress):
        from partita.migrate.report.terminal.plan import summarize
        from partita.migrate.understanding.plan import plan as run

        planned = run(folder, ask=_password_prompt(), progress=progress)
    _show(as_json, planned, lambda: summarize(folder, planned))


@migrate.command()
@_stage
def analyze(path: Path, as_json: bool) -> None:
    """What rows and statements tell: item sizes, skew, patterns.

    Writes analysis.json from sampled rows, and patterns.mined.toml from what the database has run;
    write patterns.toml to say it yourself.
    """
    with _stage_run(path) as (folder, progress):
        from partita.migrate.report.terminal.analysis import summarize
        from partita.migrate.understanding.analyze import analyze as run

        analysis = run(folder, ask=_password_prompt(), progress=progress)
    _show(as_json, analysis, lambda: summarize(folder, analysis))


@migrate.command()
@_stage
@click.option("--check", is_flag=True, help="Verify a model file instead of proposing designs.")
@click.option("--file", "name", default="model.toml", help="The file that --check verifies.")
@click.option("--workbench", is_flag=True, help="Write the designs for NoSQL Workbench too.")
def model(path: Path, as_json: bool, check: bool, name: str, workbench: bool) -> None:
    """Designs that serve every pattern, compared.

    Writes model.denormalized.toml and model.single-table.toml, and model.toml when there is none:
    the chosen one, yours to change. --check exits with 1 when a model has errors.
    """
    if check:
        _check(path, as_json, name)
        return
    with _stage_run(path) as (folder, progress):
        from partita.migrate.designing.model import model as run
        from partita.migrate.report.terminal.model import summarize

        models = run(folder, workbench=workbench, progress=progress)
    _show(as_json, models, lambda: summarize(models))


def _check(path: Path, as_json: bool, name: str) -> None:
    with _stage_run(path) as (folder, _):
        from partita.migrate.designing.model import check as run
        from partita.migrate.report.terminal.model import summarize_check

        findings = run(folder, name)
    _show(as_json, findings, lambda: summarize_check(name, findings))
    if any(finding.severity == "error" for finding in findings):
        sys.exit(1)


@migrate.command()
@_stage
@click.option("--model", "name", default=None, help="Only this model file of the folder.")
@click.option(
    "--prices",
    default=None,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of prices in place of the one that comes with Partita.",
)
def estimate(path: Path, as_json: bool, name: str | None, prices: Path | None) -> None:
    """Capacity, storage and the monthly bill of each model.

    Writes estimate.json and estimate.csv.
    """
    with _stage_run(path) as (folder, progress):
        from partita.migrate.costing.estimate import estimate as run
        from partita.migrate.report.terminal.estimate import summarize

        estimates = run(folder, name=name, prices=prices, progress=progress)
    _show(as_json, estimates, lambda: summarize(estimates))


@migrate.command()
@_stage
@click.option("--model", "name", default="model.toml", help="The model file that is tested.")
@click.option("--endpoint", default=None, help="A server to test on instead of a private one.")
@click.option("--all", "is_all", is_flag=True, help="Load every row, however many there are.")
@click.option(
    "--sample", default=None, type=click.IntRange(1), help="Rows of each table to load at most."
)
@click.option("--resume", "is_resumed", is_flag=True, help="Go on where a run was stopped.")
def test(
    path: Path,
    as_json: bool,
    name: str,
    endpoint: str | None,
    is_all: bool,
    sample: int | None,
    is_resumed: bool,
) -> None:
    """Proves a model on the source's own rows.

    Loads them into a private server, runs every pattern on both sides and compares rows, order,
    limit and paging. Writes test.json, and each run under its date in tests/. Exits with 1 when a
    pattern differs or a key is wrong.
    """
    with _stage_run(path) as (folder, progress):
        from partita.migrate.proving.prove import test as run
        from partita.migrate.report.terminal.test import summarize

        tested = run(
            folder,
            name=name,
            endpoint=endpoint,
            is_all=is_all,
            sample=sample,
            is_resumed=is_resumed,
            ask=_password_prompt(),
            progress=progress,
        )
    _show(as_json, tested, lambda: summarize(tested))
    if not tested.is_passed:
        sys.exit(1)


@migrate.command()
@_stage
def report(path: Path, as_json: bool) -> None:
    """All that is known, on one page for the people who decide.

    Writes report.html, which needs nothing else: diagram, sizes, models with example items, bill
    and risks. Where a stage has not been run, the page says so.
    """
    with _stage_run(path) as (folder, progress):
        from partita.migrate.report.page import report as run
        from partita.migrate.report.terminal.report import summarize

        written = run(folder, progress=progress)
    _show(as_json, written, lambda: summarize(folder, written))


@migrate.command()
@_stage
@click.option("--model", "name", default="model.toml", help="The model file to take.")
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    metavar="URL",
    callback=_checked_url,
    help="Where to make the tables, such as http://127.0.0.1:8000.",
)
@click.option(
    "--region",
    envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
    default="us-east-1",
    show_default=True,
    help="The region to sign for.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--update", is_flag=True, help="Change tables that differ, where that is possible.")
@click.option(
    "--emit",
    "formats",
    multiple=True,
    type=click.Choice(["cloudformation", "terraform", "cdk", "boto3", "cli"]),
    help="Write the tables for another tool instead; may be given several times.",
)
def create(
    path: Path,
    as_json: bool,
    name: str,
    endpoint: str | None,
    region: str,
    dry_run: bool,
    update: bool,
    formats: tuple[str, ...],
) -> None:
    """Make the tables of a design, or write them out.

    Tables that are there are compared with the design and stay as they are; the exit code is 1 when
    one differs. Capacity, class and recovery are those of the estimate; [create] says otherwise.
    """
    if formats:
        _emit(path, as_json, name, formats)
        return
    if endpoint is None:
        raise click.UsageError(
            "Give --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or write with --emit."
        )
    with _stage_run(path) as (folder, progress):
        from partita.migrate.handover.create import create as run
        from partita.migrate.report.terminal.create import summarize

        created = run(
            folder,
            endpoint,
            name=name,
            region=region,
            is_dry_run=dry_run,
            update=update,
            progress=progress,
        )
    _show(as_json, created, lambda: summarize(created))
    if created.differs:
        sys.exit(1)


def _emit(path: Path, as_json: bool, name: str, formats: tuple[str, ...]) -> None:
    with _stage_run(path) as (folder, _):
        from partita.migrate.handover.emit import emit as run
        from partita.migrate.report.terminal.create import summarize_emitted

        emitted = run(folder, formats, name)
    _show(as_json, emitted, lambda: summarize_emitted(emitted))


def _move(command: Callable[..., None]) -> Callable[..., None]:
    """What all commands of the move take."""
    endpoint = click.option(
        "--endpoint",
        envvar="AWS_ENDPOINT_URL_DYNAMODB",
        metavar="URL",
        callback=_checked_url,
        help="Where the tables are; without it, Amazon.",
    )
    region = click.option(
        "--region",
        envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
        default="us-east-1",
        show_default=True,
        help="The region to sign for.",
    )
    dry_run = click.option(
        "--dry-run", "is_dry_run", is_flag=True, help="Say what would be done, and do nothing."
    )
    return _stage(endpoint(region(dry_run(command))))


_model_name = click.option("--model", "name", default="model.toml", help="The model file to take.")
_followed = click.option(
    "--follow/--no-follow",
    "is_followed",
    default=None,
    help="Note where the log is, for `follow`; SQLite gets triggers that write one. Default: yes,"
    " except for SQLite.",
)
_write_units = click.option(
    "--write-units", type=click.FloatRange(1), help="Write units a second to use at most."
)

_kinesis = click.option(
    "--kinesis",
    metavar="STREAM",
    help="A Kinesis stream for the way back, which keeps changes for longer than 24 hours.",
)


def _run_move(
    stage: str,
    summarize: str,
    given: dict[str, Any],
    is_wrong: Callable[[Any], object] = lambda done: False,
) -> None:
    """A stage of the move with its options; exits with 1 when what came of it is wrong."""
    path, as_json = given.pop("path"), given.pop("as_json")
    module, _, name = stage.rpartition(".")
    with _stage_run(path) as (folder, progress):
        run = getattr(import_module(f"partita.migrate.moving.{module}"), name)
        done = run(folder, ask=_password_prompt(), progress=progress, **given)
    screen, _, show = summarize.rpartition(".")
    screens = "partita.migrate.report.terminal"
    _show(as_json, done, lambda: getattr(import_module(f"{screens}.{screen}"), show)(done))
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
    help="Move only those rows of a table, such as --where orders \"placed >= '2024-01-01'\".",
)
@click.option(
    "--through",
    type=click.Choice(["s3"]),
    help="Write files for ImportTable, in place of items into tables.",
)
@click.option(
    "--files",
    default="move/files",
    show_default=True,
    metavar="PLACE",
    help="Where those files go: a folder, or s3://bucket/prefix.",
)
@click.option(
    "--replay",
    "is_replaying",
    is_flag=True,
    help="Try rejected rows again, after they were corrected.",
)
@_write_units
def load(where: tuple[tuple[str, str], ...], through: str | None, files: str, **given: Any) -> None:
    """Every row of the source, as items of the target.

    Goes on where it was stopped. Rows that make no item are in move/rejects.jsonl, with the reason
    and how to replay them; exits with 1 when there are any. Writes load.json.
    """
    given |= {"where": dict(where), "files": files if through else ""}
    _run_move("load.load", "moving.summarize_load", given, lambda done: done.failed)


@migrate.command()
@_move
@click.option("--once", "is_once", is_flag=True, help="Stop where the log ends now.")
@click.option(
    "--verify", "is_verifying", is_flag=True, help="Compare both sides meanwhile, over and over."
)
@_write_units
def follow(**given: Any) -> None:
    """Every change that was committed since the load, until interrupted.

    Goes on where it was stopped. A change of the schema ends it with a sentence. With --verify it
    exits with 1 when something differed.
    """
    _run_move("follow.follow", "moving.summarize_follow", given, lambda done: done.different)


@migrate.command()
@_move
@click.option("--sample", type=click.IntRange(1), help="Only so many rows of each table.")
@click.option("--repair", "is_repairing", is_flag=True, help="Correct what differs.")
def verify(**given: Any) -> None:
    """Compares both sides at one position, each way.

    Follows the log up to that position first, in place of a running `follow`. Exits with 1 when
    something differs. Writes verify.json.
    """
    _run_move("verify.verify", "moving.summarize_verify", given, lambda done: not done.is_right)


@migrate.command()
@_move
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for transactions of the source that have written.",
)
@click.option(
    "--one-way", "is_one_way", is_flag=True, help="Although some rows would have no way back."
)
@_kinesis
def cutover(**given: Any) -> None:
    """The target becomes authoritative; the source refuses writes from then on.

    What was written up to then is at the target, and compared. `follow` goes backwards afterwards,
    from the target's streams into the source, and `rollback` turns back. Writes cutover.json.
    """
    _run_move("switching.cutover.cutover", "switching.summarize_cutover", given)


@migrate.command()
@_move
@click.option(
    "--writers-stopped",
    "is_stopped",
    is_flag=True,
    help="Nobody writes at the target, which cannot be made to refuse writes.",
)
def rollback(**given: Any) -> None:
    """The source becomes authoritative again, with all that was written at the target.

    What cannot be in the source is said before anything changes; the exit code is 1 then. Writes
    rollback.json.
    """
    _run_move(
        "switching.rollback.rollback",
        "switching.summarize_rollback",
        given,
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
def finish(**given: Any) -> None:
    """The move is over: nothing of it is left in the source, and there is no way back.

    Compares both sides a last time; the exit code is 1 when something differs. Writes finish.json
    and finish.md.
    """
    _run_move(
        "switching.finish.finish",
        "switching.summarize_finish",
        given,
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
def run(**given: Any) -> None:
    """All of the move: load, verify, follow, and what you press keys for.

    Goes on where it was, whichever stage was killed. On a terminal, v verifies, c cuts over, r
    rolls back, f finishes and q quits. Exits with 1 when rows failed or something differed.
    """
    is_watched = sys.stdin.isatty() and sys.stderr.isatty() and not given["as_json"]
    if not is_watched or given["is_dry_run"]:
        _run_move("run.run", "cockpit.summarize_run", given, lambda done: done.is_wrong)
        return
    path, as_json = given.pop("path"), given.pop("as_json")
    with _stage_run(path) as (folder, _):
        from partita.migrate.moving.run import run as run_stages
        from partita.migrate.report.terminal.cockpit import cockpit, summarize_run
        from partita.migrate.understanding.sources.connection import connect

        password = _asked_once()
        # Before the screen is drawn, which a prompt would be lost in.
        with connect(folder, password):
            pass
        with cockpit(folder) as screen:
            ran = run_stages(
                folder, ask=password, progress=screen.bars.show, seat=screen.seat(), **given
            )
    _show(as_json, ran, lambda: summarize_run(ran))
    if ran.is_wrong:
        sys.exit(1)


@migrate.command()
@_stage
@click.option("--designs", "with_designs", is_flag=True, help="With the designs, for --json.")
def status(path: Path, as_json: bool, with_designs: bool) -> None:
    """How far a migration is, from the files of its folder alone."""
    with _stage_run(path) as (folder, _):
        from partita.migrate.moving.status import status as run
        from partita.migrate.report.designs import designs
        from partita.migrate.report.terminal.moving import summarize_status

        told = run(folder)
        found = designs(folder) if with_designs else []
    shown = {"status": told, "designs": found, "commands": sorted(migrate.commands)}
    _show(as_json, shown, lambda: summarize_status(told))


def _password_prompt() -> Callable[[str], str] | None:
    """A prompt for the password, where there is a person to answer it."""
    if not sys.stdin.isatty():
        return None
    return lambda source: str(click.prompt(f"Password for {source}", hide_input=True, err=True))


def _asked_once() -> Callable[[str], str]:
    """A prompt that remembers the answer."""
    prompt = _password_prompt()
    return cache(lambda source: prompt(source) if prompt else "")


@contextmanager
def _stage_run(path: Path) -> Iterator[tuple[Folder, Progress]]:
    """The migration folder, and bars that show how far a stage is."""
    try:
        from partita.migrate.folder import Folder

        with _progress_bars() as progress:
            yield Folder.open(path), progress
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise PartitaError(
            f"{error.name} is not installed; pip install 'partita[migrate]' has it."
        ) from error


def _progress_line(description: str, done: int, total: int) -> None:
    """For a program that watches."""
    click.echo(f"{done}\t{total}\t{description}", err=True)


@contextmanager
def _progress_bars() -> Iterator[Progress]:
    """On a terminal; where output is kept they would only be in the way."""
    if os.environ.get(PROGRESS) == "lines":
        yield _progress_line
        return
    from rich.console import Console

    from partita.migrate.report.terminal.bars import Bars

    bars = Bars(Console(stderr=True))
    try:
        yield bars.show
    finally:
        bars.stop()


def _show(as_json: bool, result: Any, summarize: Callable[[], Iterable[RenderableType]]) -> None:
    if as_json:
        from partita.migrate.folder import to_json

        click.echo(to_json(result), nl=False)
        return
    from rich.console import Console

    # Names from a database are no markup.
    console = Console(markup=False, highlight=False, emoji=False)
    for part in summarize():
        console.print(part)
