"""`partita top`: a live view of operations, latency, consumed and throttled units, hot partitions.

It is drawn with rich, which is only imported here. Rates are per second since the last sample;
those of the first screen are since the server started. If the screen is too small, each list shows
its busiest rows.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

from partita.errors import PartitaError
from partita.installation.optional_packages import packages_required
from partita.server.monitoring.display_format import shortened, shown_number, shown_seconds
from partita.server.monitoring.metrics_samples import (
    MetricsSample,
    percentile_seconds,
    read_sample,
    since_start,
)
from partita.server.monitoring.page_fetching import fetch

ROWS_MAX = 20
SECONDS_MAX = 3600
PIPE_CHARS = 1000
"""The width of output that is not a terminal: enough for the names of a table and an index, with
255 characters each."""
FIGURES_CHARS = 56
"""The width of the columns beside a table's name."""
NAME_CHARS_MIN = 16

Key = TypeVar("Key", bound=Hashable)
Owner = tuple[str, str]
"""A table and an index, which is "" for the table itself."""


def show(endpoint: str, seconds: float, *, once: bool) -> None:
    """Draws until interrupted, or once."""
    if not 0 < seconds <= SECONDS_MAX:
        raise PartitaError(f"--seconds is from above 0 to {SECONDS_MAX}, not {seconds:g}.")
    with packages_required("partita[monitor]"):
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text
    before, console = _sample(endpoint), Console()
    if once:
        time.sleep(seconds)
        if not console.is_terminal:
            console = Console(width=PIPE_CHARS)
        console.print(drawn(endpoint, before, _sample(endpoint), console.width))
        return

    def screen(before: MetricsSample, after: MetricsSample) -> Any:
        return drawn(endpoint, before, after, console.width, console.height)

    with Live(screen(since_start(before), before), console=console, screen=True) as live:
        try:
            while True:
                time.sleep(seconds)
                try:
                    after = _sample(endpoint)
                except PartitaError as error:
                    # The server may be restarting.
                    live.update(Text(f"{error} Looking again every {shown_seconds(seconds)}."))
                    continue
                live.update(screen(before, after))
                before = after
        except KeyboardInterrupt:
            return


def drawn(
    endpoint: str,
    before: MetricsSample,
    after: MetricsSample,
    width: int,
    height: int | None = None,
) -> Any:
    """Returns the screen for two samples, as rich renders it. Without a height, it has all rows."""
    from rich.console import Group
    from rich.text import Text

    if after.uptime_seconds < before.uptime_seconds:
        # The server was restarted and its counters began at zero.
        before = since_start(after)
    seconds = max(after.uptime_seconds - before.uptime_seconds, 0.001)
    title = (
        f"{endpoint}  up {shown_seconds(after.uptime_seconds)}  capacity {after.mode}  "
        f"the last {shown_seconds(seconds)}"
    )
    operations = _busiest_operations(before, after)
    owners = _busiest_owners(before, after)
    hottest = sorted(after.hot_partitions.items(), key=lambda pair: -pair[1])
    # Three rows are taken by the title and the two header rows.
    rows = _shared_out([len(operations), len(owners), len(hottest)], height and height - 3)
    parts = [
        Text(title, no_wrap=True, overflow="ellipsis"),
        _operations(before, after, seconds, operations[: rows[0]]),
    ]
    if owners:
        parts.append(_units(before, after, seconds, owners[: rows[1]], width))
    elif after.mode == "off":
        parts.append(
            Text("Units are not counted: start the server with --capacity observe or enforce.")
        )
    for (table, index, number), load in hottest[: rows[2]]:
        text = f" at {load:.0%} of its limits"
        start = f"hot: partition {number} of "
        name = _shown_name((table, index), width - len(start) - len(text))
        parts.append(Text(start + name + text, no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _shared_out(lengths: list[int], room: int | None) -> list[int]:
    """Divides the rows of the screen among lists of these lengths. Short lists are served first."""
    rows = [min(length, ROWS_MAX) for length in lengths]
    if room is None:
        return rows
    for served, position in enumerate(sorted(range(len(rows)), key=rows.__getitem__)):
        share = max(1, room // (len(rows) - served))
        rows[position] = min(rows[position], share)
        room -= rows[position]
    return rows


def _sample(endpoint: str) -> MetricsSample:
    return read_sample(fetch(endpoint, "/metrics").decode())


def _busiest_operations(before: MetricsSample, after: MetricsSample) -> list[str]:
    return sorted(after.requests, key=lambda name: -_growth(before.requests, after.requests, name))


def _operations(
    before: MetricsSample, after: MetricsSample, seconds: float, names: list[str]
) -> Any:
    table = _table("operation", "per second", "4xx/s", "5xx/s", "mean ms", "99 % within ms")
    for name in names:
        count = _growth(before.requests, after.requests, name)
        refused = _growth(before.refused, after.refused, name) / seconds
        failed = _growth(before.failed, after.failed, name) / seconds
        spent = _growth(before.seconds, after.seconds, name)
        mean = f"{spent / count * 1000:.2f}" if count else ""
        bound = percentile_seconds(before, after, name, 99)
        within = "" if bound is None else f"{bound * 1000:g}"
        table.add_row(
            name, f"{count / seconds:.1f}", f"{refused:.1f}", f"{failed:.1f}", mean, within
        )
    return table


def _busiest_owners(before: MetricsSample, after: MetricsSample) -> list[Owner]:
    """Returns tables and indexes by requested units, which were consumed or throttled."""

    def requested_units(owner: Owner) -> float:
        counts = [(before.consumed, after.consumed), (before.throttled, after.throttled)]
        return sum(
            _growth(then, now, (*owner, kind)) for then, now in counts for kind in ("read", "write")
        )

    owners = sorted({key[:2] for key in after.consumed})
    return sorted(owners, key=requested_units, reverse=True)


def _units(
    before: MetricsSample, after: MetricsSample, seconds: float, owners: list[Owner], width: int
) -> Any:
    table = _table("table", "RCU/s", "of", "throttled/s", "WCU/s", "of", "throttled/s")
    for owner in owners:
        cells = []
        for kind in ("read", "write"):
            key = (*owner, kind)
            used = _growth(before.consumed, after.consumed, key) / seconds
            lost = _growth(before.throttled, after.throttled, key) / seconds
            cells += [f"{used:.1f}", shown_number(after.entitled.get(key, 0.0)), f"{lost:.1f}"]
        table.add_row(_shown_name(owner, width - FIGURES_CHARS), *cells)
    return table


def _growth(before: Mapping[Key, float], after: Mapping[Key, float], key: Key) -> float:
    """Returns the growth of a counter. A counter that became smaller has begun at zero again,
    because its table was created anew."""
    then, now = before.get(key, 0.0), after.get(key, 0.0)
    return now - then if now >= then else now


def _shown_name(owner: Owner, chars: int) -> str:
    """Returns `table` or `table/index`, both shortened so that each can still be recognized."""
    table, index = owner
    chars = max(chars, NAME_CHARS_MIN)
    if not index:
        return shortened(table, chars)
    table = shortened(table, max(chars // 2, chars - len(index) - 1))
    return f"{table}/{shortened(index, chars - len(table) - 1)}"


def _table(first: str, *others: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        # A column that does not wrap keeps its width, so that no number loses a digit.
        table.add_column(name, justify="right", no_wrap=True)
    return table
