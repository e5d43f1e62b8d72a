"""The cost model gives the thesis's figures, and takes other prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.apps.pagehits import cost
from partita.apps.pagehits.cost import (
    aurora_month,
    consumer_calls_month,
    dynamodb_month,
    fargate_all_month,
    fargate_all_month_as_printed,
    fargate_month,
    lambda_month,
    read_prices,
)
from partita.errors import PartitaError

from ... import processes

DOCUMENT = read_prices("document")


def test_the_consumer_runs_28800_times_a_month() -> None:
    assert consumer_calls_month() == 28_800


@pytest.mark.parametrize(
    ("duration_ms", "dollars"),
    # By hand: 28,800 * (started tenths of a second * 0.0000002083 + 0.20 / 1,000,000)
    [(1, 0.01175904), (100, 0.01175904), (101, 0.01775808), (10_000, 0.605664), (60_000, 3.605184)],
)
def test_figure_5_2_lambda(duration_ms: int, dollars: float) -> None:
    assert lambda_month(DOCUMENT.functions, 28_800, duration_ms) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("duration_ms", "dollars"),
    # By hand: 28,800 * max(60, seconds) / 3,600 * (0.04048 * 0.25 + 0.004445 * 0.5)
    [(100, 5.9244), (60_000, 5.9244), (120_000, 11.8488)],
)
def test_figure_5_2_fargate(duration_ms: int, dollars: float) -> None:
    assert fargate_month(DOCUMENT.fargate, 28_800, duration_ms) == pytest.approx(dollars)


def test_lambda_is_cheaper_for_the_consumer_below_a_minute() -> None:
    for duration_ms in range(100, 60_000, 100):
        on_lambda = lambda_month(DOCUMENT.functions, 28_800, duration_ms)
        assert on_lambda < fargate_month(DOCUMENT.fargate, 28_800, duration_ms)


def test_the_document_says_260_85_for_a_task_that_always_runs() -> None:
    assert f"{fargate_all_month_as_printed():.2f}" == "260.85"
    assert f"{fargate_all_month(DOCUMENT.fargate):.2f}" == "8.89"


def test_figure_5_3_stays_below_the_documents_sum_for_fargate() -> None:
    dollars = lambda_month(DOCUMENT.functions, 100_000_000, 1_000)
    assert dollars == pytest.approx(228.30)
    assert dollars < fargate_all_month_as_printed()


def test_storage_costs_55_and_85_dollars() -> None:
    assert round(dynamodb_month(DOCUMENT.dynamodb)) == 55
    assert round(aurora_month(DOCUMENT.aurora)) == 85
    assert DOCUMENT.aurora.reserved_three_years_month == 25


def test_todays_prices_are_dated() -> None:
    assert read_prices("today").date == "2026-11"


def test_prices_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    text = Path(cost.__file__).with_name("prices").joinpath("today.2026-11.toml").read_text()
    path.write_text(text.replace("instance_hour = 0.082", "instance_hour = 1.0"))
    assert aurora_month(read_prices(path).aurora) > 700
    path.write_text(text.replace("instance_hour", "instance_minute"))
    with pytest.raises(PartitaError, match="instance_minute"):
        read_prices(path)
    with pytest.raises(PartitaError, match="Cannot read the prices"):
        read_prices(tmp_path / "none.toml")


def test_the_command_shows_both_and_speaks_json() -> None:
    shown = processes.run("pagehits", "cost")
    assert shown.returncode == 0, shown.stderr
    assert "54.50" in shown.stdout and "85.26" in shown.stdout and "260.85" in shown.stdout
    answered = processes.run("pagehits", "cost", "--prices", "today", "--json")
    (found,) = json.loads(answered.stdout)
    assert found["prices"]["name"] == "today"
    assert [table["title"][:10] for table in found["tables"]] == [
        "Figure 5.2",
        "Figure 5.3",
        "Chapter 5.",
    ]
