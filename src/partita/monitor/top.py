"""`partita top`: operations, latency, consumed and throttled units, hot partitions, live.

Drawn with rich, which is imported only here. Rates are those since the last look; the first look
of many has those since the server started.
"""

from __future__ import annotations

import time
from typing import Any

from partita.errors import PartitaError
from partita.monitor.pages import fetch
from partita.monitor.samples import Sample, percentile_seconds, read_sample, since_start
from partita.monitor.wording import shown_number, shown_seconds

ROWS_MAX = 20


def show(endpoint: str, seconds: float, *, once: bool) -> None:
    """Draw until interrupted, or once."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError as error:
        raise PartitaError("`partita top` needs rich: pip install 'partita[monitor]'.") from error
    before = _look(endpoint)
    if once:
        time.sleep(seconds)
        Console().print(drawn(endpoint, before, _look(endpoint)))
        return
    with Live(drawn(endpoint, since_start(before), before), screen=True) as live:
        try:
            while True:
                time.sleep(seconds)
                after = _look(endpoint)
                live.update(drawn(endpoint, before, after))
                before = after
        except KeyboardInterrupt:
            return


def drawn(endpoint: str, before: Sample, after: Sample) -> Any:
    """What there is to see between two looks, for rich."""
    from rich.console import Group
    from rich.text import Text

    seconds = max(after.uptime_seconds - before.uptime_seconds, 0.001)
    title = (
        f"{endpoint}  up {shown_seconds(after.uptime_seconds)}  capacity {after.mode}  "
        f"the last {shown_seconds(seconds)}"
    )
    parts = [Text(title), _operations(before, after, seconds)]
    if after.consumed:
        parts.append(_units(before, after, seconds))
    elif after.mode == "off":
        parts.append(Text("Units are not counted: --capacity observe or enforce does so."))
    hottest = sorted(after.hot_partitions.items(), key=lambda pair: -pair[1])
    for (table, index, number), load in hottest[:ROWS_MAX]:
        name = f"{table}/{index}" if index else table
        parts.append(Text(f"hot: partition {number} of {name} at {load:.0%} of its limits"))
    return Group(*parts)


def _look(endpoint: str) -> Sample:
    return read_sample(fetch(endpoint, "/metrics").decode())


def _operations(before: Sample, after: Sample, seconds: float) -> Any:
    table = _table("operation", "per second", "4xx/s", "5xx/s", "mean ms", "99 % within ms")
    rates = {
        name: (count - before.requests.get(name, 0.0)) / seconds
        for name, count in after.requests.items()
    }
    for name, rate in sorted(rates.items(), key=lambda pair: -pair[1])[:ROWS_MAX]:
        refused = (after.refused.get(name, 0.0) - before.refused.get(name, 0.0)) / seconds
        failed = (after.failed.get(name, 0.0) - before.failed.get(name, 0.0)) / seconds
        spent = after.seconds.get(name, 0.0) - before.seconds.get(name, 0.0)
        mean = f"{spent / (rate * seconds) * 1000:.2f}" if rate else ""
        bound = percentile_seconds(before, after, name, 99)
        within = "" if bound is None else f"{bound * 1000:g}"
        table.add_row(name, f"{rate:.1f}", f"{refused:.1f}", f"{failed:.1f}", mean, within)
    return table


def _units(before: Sample, after: Sample, seconds: float) -> Any:
    table = _table("table", "RCU/s", "of", "throttled/s", "WCU/s", "of", "throttled/s")

    def asked_for(owner: tuple[str, str]) -> float:
        counts = [(after.consumed, before.consumed), (after.throttled, before.throttled)]
        return sum(
            now.get((*owner, kind), 0.0) - then.get((*owner, kind), 0.0)
            for now, then in counts
            for kind in ("read", "write")
        )

    owners = sorted({key[:2] for key in after.consumed})
    for owner in sorted(owners, key=asked_for, reverse=True)[:ROWS_MAX]:
        cells = []
        for kind in ("read", "write"):
            key = (*owner, kind)
            used = (after.consumed[key] - before.consumed.get(key, 0.0)) / seconds
            lost = (after.throttled.get(key, 0.0) - before.throttled.get(key, 0.0)) / seconds
            cells += [f"{used:.1f}", shown_number(after.entitled.get(key, 0.0)), f"{lost:.1f}"]
        table.add_row("/".join(filter(None, owner)), *cells)
    return table


def _table(first: str, *others: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
