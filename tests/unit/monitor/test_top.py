"""What `partita top` draws of two looks at /metrics."""

from __future__ import annotations

import io

from rich.console import Console

from partita.monitor.samples import read_sample
from partita.monitor.top import drawn

TABLES = 30


def metrics(uptime_seconds: int, consumed: dict[int, str], *more: str) -> str:
    lines = [f"partita_uptime_seconds {uptime_seconds}", 'partita_capacity_mode{mode="enforce"} 1']
    for number in range(TABLES):
        labels = f'table="t{number:02}",index=""'
        write = consumed.get(number, "0.0")
        lines.append(f'partita_consumed_units_total{{{labels},kind="read"}} 0.0')
        lines.append(f'partita_consumed_units_total{{{labels},kind="write"}} {write}')
        lines.append(f'partita_entitled_units{{{labels},kind="write"}} 4000000.0')
    return "\n".join([*lines, *more])


def seen(before: str, after: str) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(drawn("http://here", read_sample(before), read_sample(after)))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_busiest_tables_come_first_and_none_of_them_is_left_out() -> None:
    lines = seen(metrics(100, {}), metrics(110, {29: "500.0", 5: "20.0"}))
    tables = [line.split() for line in lines if line.startswith("t") and line[1].isdigit()]
    assert [cells[0] for cells in tables[:2]] == ["t29", "t05"]
    assert tables[0][4:6] == ["50.0", "4000000"]


def test_rates_of_large_counters_are_exact() -> None:
    lines = seen(metrics(100, {0: "123456789.5"}), metrics(110, {0: "123456799.5"}))
    (line,) = [line for line in lines if line.startswith("t00")]
    assert line.split()[4] == "1.0"


def test_what_the_client_and_what_the_server_did_wrong_are_told_apart() -> None:
    counts = [
        f'partita_requests_total{{operation="PutItem",code="{code}"}} {count}'
        for code, count in (("200", 100), ("400", 20), ("500", 10))
    ]
    lines = seen(metrics(0, {}), metrics(10, {}, *counts))
    (line,) = [line for line in lines if line.startswith("PutItem")]
    assert line.split()[1:4] == ["13.0", "2.0", "1.0"]


def test_the_hottest_partitions_come_first() -> None:
    loads = [
        f'partita_hot_partition_load{{table="t00",index="",partition="{number}"}} {load}'
        for number, load in ((0, 0.8), (1, 1.5), (2, 0.9))
    ]
    lines = seen(metrics(0, {}), metrics(7200, {}, *loads))
    hot = [line for line in lines if line.startswith("hot")]
    assert [line.split()[2] for line in hot] == ["1", "2", "0"]
    assert lines[0] == "http://here  up 2 h  capacity enforce  the last 2 h"
