"""The command group and what its commands share: folder, progress, password, screen or JSON.

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
"""An environment variable; "lines" prints lines in place of bars."""


@click.group()
def migrate() -> None:
    """Move a relational database to DynamoDB, one stage after the other.

    A migration is a folder with migration.toml. Each stage writes its files there, and can be run
    again at any time. The source is only read, with two exceptions: to follow its changes, `load`
    creates a slot and a publication in PostgreSQL, or a log and triggers in SQLite; and `cutover`
    creates triggers and two tables. `finish` removes all of these.
    """


def stage(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the arguments that all stages have."""
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
    """Returns a prompt for the password, or None if nobody can answer it."""
    if not sys.stdin.isatty():
        return None
    return lambda source: str(click.prompt(f"Password for {source}", hide_input=True, err=True))


def asked_once() -> Callable[[str], str]:
    """Returns a prompt that remembers the answer."""
    prompt = password_prompt()
    return cache(lambda source: prompt(source) if prompt else "")


@contextmanager
def stage_run(path: Path) -> Iterator[tuple[Folder, Progress]]:
    """Opens the migration folder and shows the progress of the stage."""
    with packages_required("partita-migrate"):
        from partita_migrate.workspace.migration_folder import Folder

        with progress_bars() as progress:
            yield Folder.open(path), progress


def _progress_line(description: str, done: int, total: int) -> None:
    """Prints the progress for a program that watches."""
    click.echo(f"{done}\t{total}\t{description}", err=True)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Shows bars on a terminal. Where output goes to a file they would only be in the way."""
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

    # Names from a database can contain brackets, which must not be taken for rich's markup.
    console = Console(markup=False, highlight=False, emoji=False)
    for part in summarize():
        console.print(part)
