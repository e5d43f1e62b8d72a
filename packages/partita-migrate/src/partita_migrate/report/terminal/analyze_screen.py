"""Prints the result of `partita migrate analyze`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.report.terminal.terminal_tables import (
    ROWS_SHOWN_MAX,
    bullets,
    figure,
    grid,
    more,
)
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.patterns.access_patterns import Patterns
from partita_migrate.understanding.patterns.pattern_files import MINED, read_patterns
from partita_migrate.understanding.planning.plan_page import bytes_text
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.workspace.migration_folder import ANALYSIS, Folder


def summarize(folder: Folder, analysis: Analysis) -> Iterator[RenderableType]:
    yield grid(
        "Items that rows become",
        ["table", "rows", "sampled", "mean", "p50", "p95", "p99", "max"],
        (
            (
                table.table,
                f"{table.rows:,}",
                f"{table.sampled:,}",
                bytes_text(round(table.item_bytes.mean)),
                bytes_text(table.item_bytes.p50),
                bytes_text(table.item_bytes.p95),
                bytes_text(table.item_bytes.p99),
                bytes_text(table.item_bytes.max),
            )
            for table in analysis.tables[:ROWS_SHOWN_MAX]
        ),
        numbers=["rows", "sampled", "mean", "p50", "p95", "p99", "max"],
    )
    if rest := more(len(analysis.tables), ANALYSIS):
        yield Text(rest)
    yield from bullets("Hot keys", _hot_keys(analysis)[:ROWS_SHOWN_MAX])
    yield from _patterns(folder)
    yield from bullets(
        "Not analyzed", [f"{problem.subject}: {problem.reason}" for problem in analysis.problems]
    )
    written = [name for name in (ANALYSIS, MINED) if folder.has(name)]
    yield Text(f"Written: {', '.join(written)}")


def _hot_keys(analysis: Analysis) -> list[str]:
    return [
        f"{table.table} by {', '.join(key.columns)}: {key.reason}"
        for table in analysis.tables
        for key in table.keys
        if key.is_hot
    ]


def _patterns(folder: Folder) -> Iterator[RenderableType]:
    patterns = read_patterns(folder, read_inventory(folder))
    if patterns.patterns:
        yield from _busiest(patterns)
    else:
        yield Text(
            "No access patterns yet: write patterns.toml, or let the server keep statement"
            " statistics."
        )
    yield from bullets(
        "Joined by statements without a foreign key: name those that are references under"
        " references in [source], and run plan and analyze again",
        patterns.references[:ROWS_SHOWN_MAX],
    )
    if patterns.unexplained:
        count = len(patterns.unexplained)
        counted = "1 statement is" if count == 1 else f"{count} statements are"
        yield Text(f"{counted} not among the patterns; {MINED} has the reasons.")


def _busiest(patterns: Patterns) -> Iterator[RenderableType]:
    busiest = sorted(
        patterns.patterns, key=lambda pattern: (-pattern.calls_per_second, pattern.name)
    )
    yield grid(
        "Access patterns",
        ["pattern", "category", "calls/s", "items"],
        (
            (
                pattern.name,
                pattern.category,
                figure(pattern.calls_per_second),
                figure(pattern.items),
            )
            for pattern in busiest[:ROWS_SHOWN_MAX]
        ),
        numbers=["calls/s", "items"],
    )
    if rest := more(len(busiest), MINED):
        yield Text(rest)
    if patterns.origin:
        yield Text(f"Mined from {patterns.origin}.")
