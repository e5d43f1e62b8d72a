"""Tables, figures and lists on a terminal, all in one style."""

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
    """Makes a table. `numbers` names the columns that are aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    to_the_right = set(numbers)
    for head in heads:
        table.add_column(head, justify="right" if head in to_the_right else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def figure(number: float) -> str:
    """Formats a figure with five digits and without exponents: more would pretend precision."""
    return f"{number:,.0f}" if number >= 100_000 else f"{number:,.5g}"


def gigabytes(number: float) -> str:
    return f"{number:,.2f}" if number >= 0.01 or not number else "<0.01"


def more(count: int, file: str) -> str:
    """Says how many rows a table does not show."""
    left = count - ROWS_SHOWN_MAX
    return f"  and {left} more in {file}" if left > 0 else ""


def bullets(title: str, lines: Iterable[str]) -> Iterator[RenderableType]:
    """Yields a heading and its lines with a hanging indent; nothing if there are no lines."""
    texts = list(lines)
    if texts:
        yield Text(title, style="bold")
        for line in texts:
            yield Padding(Text(line), (0, 0, 0, 2))
        yield Text("")
