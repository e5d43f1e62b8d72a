"""Progress bars for a terminal; nothing is shown without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from partita.apps.metrics.migration.counts import Counts


class Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._migrating = progress.add_task("migrating", total=None, note="")
        self._verifying = progress.add_task("verifying", total=None, note="", visible=False)

    def migrating(self, counts: Counts, total: int) -> None:
        note = f"{counts.warnings} warnings, {len(counts.errors)} errors"
        self._progress.update(self._migrating, completed=counts.processed, total=total, note=note)

    def verifying(self, compared: int, total: int) -> None:
        self._progress.update(self._verifying, completed=compared, total=total, visible=True)


@contextmanager
def progress_bars() -> Iterator[Bars]:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield Bars(progress)
