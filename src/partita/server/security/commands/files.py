"""Which directory a command changes, and how it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from partita.server.security.callers import Callers
from partita.server.security.directory import FILE_NAME, Directory, changing, load

DATA = Path("partita-data")


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data",
        default=DATA,
        show_default=True,
        envvar="PARTITA_SERVE_DATA",
        type=click.Path(path_type=Path),
        help="Folder that keeps the data, and its users.",
    )(command)


def opened(data: Path) -> Directory:
    return load(data / FILE_NAME)


class Change:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = load(path)


@contextmanager
def changed(data: Path) -> Iterator[Change]:
    """`with changed(data) as change: change.directory = ...` keeps it, if all in it is right."""
    path = data / FILE_NAME
    with changing(path) as save:
        change = Change(path)
        yield change
        # What a server could not read is not kept.
        Callers(change.directory)
        save(change.directory)
