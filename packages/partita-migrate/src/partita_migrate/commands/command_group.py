"""The group of commands, and what they share: a folder, progress, a password, a screen or JSON.

Stages are imported when they are called: SQLAlchemy, sqlglot and rich are slow to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.installation.optional_packages import packages_required

if TYPE_CHECKING:
    from rich.console import RenderableType

    from partita_migrate.workspace.migration_folder import Folder
    from partita_migrate.workspace.stage_progress import Progress

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


def stage(command: Callable[..., None]) -> Callable[..., None]:
    """What all stages take."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    folder = click.argument(
        "path", metavar="[FOLDER]", default=".", type=click.Path(path_type=Path)
    )
    return folder(as_json(command))


def checked_url(ctx: click.Context, option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} is not a URL such as http://127.0.0.1:8000.")
    return url


def password_prompt() -> Callable[[str], str] | None:
    """A prompt for the password, where there is a person to answer it."""
    if not sys.stdin.isatty():
        return None
    return lambda source: str(click.prompt(f"Password for {source}", hide_input=True, err=True))


def asked_once() -> Callable[[str], str]:
    """A prompt that remembers the answer."""
    prompt = password_prompt()
    return cache(lambda source: prompt(source) if prompt else "")


@contextmanager
def stage_run(path: Path) -> Iterator[tuple[Folder, Progress]]:
    """The migration folder, and bars that show how far a stage is."""
    with packages_required("partita-migrate"):
        from partita_migrate.workspace.migration_folder import Folder

        with progress_bars() as progress:
            yield Folder.open(path), progress


def _progress_line(description: str, done: int, total: int) -> None:
    """For a program that watches."""
    click.echo(f"{done}\t{total}\t{description}", err=True)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """On a terminal; where output is kept they would only be in the way."""
    if os.environ.get(PROGRESS) == "lines":
        yield _progress_line
        return
    from rich.console import Console

    from partita_migrate.report.terminal.progress_bars import ProgressBars

    bars = ProgressBars(Console(stderr=True))
    try:
        yield bars.show
    finally:
        bars.stop()


def show(as_json: bool, result: Any, summarize: Callable[[], Iterable[RenderableType]]) -> None:
    if as_json:
        from partita_migrate.workspace.migration_folder import to_json

        click.echo(to_json(result), nl=False)
        return
    from rich.console import Console

    # Names from a database are no markup.
    console = Console(markup=False, highlight=False, emoji=False)
    for part in summarize():
        console.print(part)
