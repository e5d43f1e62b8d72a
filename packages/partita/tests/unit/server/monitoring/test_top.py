"""The screen that `partita top` draws for two samples of /metrics."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from partita.errors import PartitaError
from partita.server.monitoring import top_command
from partita.server.monitoring.metrics_samples import MetricsSample, read_sample
from partita.server.monitoring.top_command import drawn

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


def seen(before: str, after: str, width: int = 200, height: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(drawn("http://here", read_sample(before), read_sample(after), width, height))
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


def requests(counts: dict[str, int]) -> list[str]:
    return [
        f'partita_requests_total{{operation="{name}",code="200"}} {count}'
        for name, count in counts.items()
    ]


def test_a_small_screen_has_the_busiest_of_everything() -> None:
    operations = requests({f"Operation{number}": number for number in range(20)})
    loads = [
        f'partita_hot_partition_load{{table="t00",index="",partition="{number}"}} {number + 1}'
        for number in range(9)
    ]
    after = metrics(10, {29: "500.0"}, *operations, *loads)
    lines = seen(metrics(0, {}), after, width=60, height=12)
    assert len(lines) == 12
    assert lines[2].split()[1] == "1.9"
    assert any(line.startswith("t29") for line in lines)
    assert "hot: partition 8 of t00 at 900% of its limits" in lines


def test_a_list_with_few_rows_leaves_its_room_to_the_others() -> None:
    lines = seen(metrics(0, {}), metrics(10, {}, *requests({"PutItem": 1})), width=80, height=24)
    assert len(lines) == 24


def test_long_names_of_a_table_and_its_index_can_be_told_apart() -> None:
    table, index = "table-" + "x" * 240 + "-a", "index-" + "y" * 240 + "-b"
    units = [
        f'partita_consumed_units_total{{table="{table}",index="{name}",kind="{kind}"}} 7'
        for name in ("", index)
        for kind in ("read", "write")
    ]
    narrow = seen(metrics(0, {}), metrics(10, {}, *units), width=80)
    names = [line.split()[0] for line in narrow if line.startswith("table-")]
    assert [name.count("…") for name in names] == [1, 2]
    assert names[1].endswith("-b")
    wide = seen(metrics(0, {}), metrics(10, {}, *units), width=1000)
    assert f"{table}/{index}" in [line.split()[0] for line in wide if line.startswith("table-")]


def test_a_server_that_was_restarted_begins_anew() -> None:
    before = metrics(1000, {0: "500.0"}, *requests({"PutItem": 5000}))
    lines = seen(before, metrics(10, {0: "20.0"}, *requests({"PutItem": 50})))
    (operation,) = [line for line in lines if line.startswith("PutItem")]
    (table,) = [line for line in lines if line.startswith("t00")]
    assert operation.split()[1] == "5.0"
    assert table.split()[4] == "2.0"


def test_a_table_that_was_made_again_begins_anew() -> None:
    lines = seen(metrics(100, {0: "500.0"}), metrics(110, {0: "20.0"}))
    (line,) = [line for line in lines if line.startswith("t00")]
    assert line.split()[4] == "2.0"


def test_a_server_that_is_gone_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> Iterator[MetricsSample | BaseException]:
        yield read_sample(metrics(100, {}))
        yield PartitaError("No answer from http://here: refused.")
        yield read_sample(metrics(3, {0: "6.0"}))
        yield KeyboardInterrupt()

    coming = looks()

    def look(endpoint: str) -> MetricsSample:
        found = next(coming)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(top_command, "_sample", look)
    top_command.show("http://here", 0.001, once=False)
    assert list(coming) == []


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_how_often_to_look_is_a_time(seconds: float) -> None:
    with pytest.raises(PartitaError, match="--seconds"):
        top_command.show("http://here", seconds, once=True)
