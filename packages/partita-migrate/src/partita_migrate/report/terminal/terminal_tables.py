"""Tables on a terminal, all of one look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

ROWS_SHOWN_MAX = 20


def grid(
    title: str, heads: list[str], rows: Iterable[tuple[str, ...]], numbers: Iterable[str] = ()
) -> Table:
    """`numbers` names the columns that stand to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    to_the_right = set(numbers)
    for head in heads:
        table.add_column(head, justify="right" if head in to_the_right else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def figure(number: float) -> str:
    """Five digits, as many as a mean deserves, and never a power of ten."""
    return f"{number:,.0f}" if number >= 100_000 else f"{number:,.5g}"


def gigabytes(number: float) -> str:
    return f"{number:,.2f}" if number >= 0.01 or not number else "<0.01"


def more(count: int, file: str) -> str:
    """What a table does not show."""
    left = count - ROWS_SHOWN_MAX
    return f"  and {left} more in {file}" if left > 0 else ""


def bullets(title: str, lines: Iterable[str]) -> Iterator[RenderableType]:
    """A heading and its lines, each with a hanging indent; nothing without lines."""
    found = list(lines)
    if found:
        yield Text(title, style="bold")
        for line in found:
            yield Padding(Text(line), (0, 0, 0, 2))
        yield Text("")
