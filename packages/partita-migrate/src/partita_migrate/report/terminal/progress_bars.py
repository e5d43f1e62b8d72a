"""Shows the progress of a stage on a terminal: bars with rate and time left."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class ProgressRate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class ProgressBars:
    """Progress bars; their `show` is a `partita_migrate.workspace.stage_progress.Progress`."""

    def __init__(self, console: Console, *, is_started: bool = True) -> None:
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            ProgressRate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._is_started = is_started
        self._tasks: dict[str, TaskID] = {}

    def show(self, description: str, done: int, total: int) -> None:
        name = description.partition(",")[0]
        # The bars start with the first progress, because their redrawing would wipe out a password
        # prompt.
        if not self._tasks and self._is_started:
            self.bars.start()
        if name not in self._tasks:
            self._tasks[name] = self.bars.add_task(description, total=total or None)
        self.bars.update(
            self._tasks[name], description=description, completed=done, total=total or None
        )

    def clear(self) -> None:
        for task in self._tasks.values():
            self.bars.remove_task(task)
        self._tasks.clear()

    def stop(self) -> None:
        self.bars.stop()
