"""The cost model gives the thesis's figures, and takes other prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from page_hit_counter.aws import aws_costs
from page_hit_counter.aws.aws_costs import (
    analytics_month,
    aurora_month,
    aurora_reserved_month,
    consumer_calls_month,
    dynamodb_month,
    dynamodb_on_demand_month,
    dynamodb_reserved_month,
    fargate_all_month,
    fargate_all_month_as_printed,
    fargate_month,
    kinesis_month,
    lambda_month,
    read_prices,
)
from page_hit_counter.aws.delivery_costs import (
    dollars_month,
    longest_delay_seconds,
    mean_delay_seconds,
)
from partita.errors import PartitaError
from partita_migrate.costing.prices import price_list
from testkit.servers import processes

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
    assert round(aurora_reserved_month(DOCUMENT.aurora) or 0) == 25


def test_reserved_units_cost_less_than_provisioned_ones() -> None:
    # By hand: 2 blocks and 50 units read, 50 units written.
    reserved = DOCUMENT.dynamodb.reserved
    read_block = reserved.read_upfront_100 / 12 + reserved.read_hour_100 * 730
    write_block = reserved.write_upfront_100 / 12 + reserved.write_hour_100 * 730
    expected = 2 * read_block + min(read_block, 50 * 0.000147 * 730)
    expected += min(write_block, 50 * 0.000735 * 730) + 3 * 0.283
    assert dynamodb_reserved_month(DOCUMENT.dynamodb) == pytest.approx(expected)
    assert expected < dynamodb_month(DOCUMENT.dynamodb)


def test_on_demand_is_paid_by_requests() -> None:
    # By hand: 730 hours of 20 reads and a write a second.
    seconds = 730 * 3_600
    expected = 20 * seconds * 0.283e-6 + seconds * 1.4135e-6 + 3 * 0.283
    assert dynamodb_on_demand_month(DOCUMENT.dynamodb) == pytest.approx(expected)


def test_streams_are_paid_by_shards_and_units() -> None:
    assert kinesis_month(DOCUMENT.kinesis, 2, 0) == pytest.approx(2 * 0.015 * 730)
    assert analytics_month(DOCUMENT.analytics) == pytest.approx(0.11 * 730)


def test_of_the_four_ways_the_schedule_is_the_slowest() -> None:
    assert mean_delay_seconds("topic") == 30 and longest_delay_seconds("topic") == 60
    assert mean_delay_seconds("schedule") == 180 and longest_delay_seconds("schedule") == 360
    costs_of = {
        route: dollars_month(DOCUMENT.functions, DOCUMENT.delivery, route)
        for route in ("direct", "bucket", "topic", "schedule")
    }
    assert costs_of["direct"] < costs_of["bucket"] < costs_of["topic"]


def test_todays_prices_are_those_of_the_one_list() -> None:
    today, listed = read_prices("today"), price_list.read_prices()
    assert today.date == listed.date
    assert today.dynamodb.read_unit_hour == listed.standard.read_unit_hour
    assert (today.functions, today.fargate, today.aurora) == (
        listed.functions,
        listed.fargate,
        listed.aurora,
    )


def test_prices_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    text = Path(price_list.__file__).with_name(aws_costs.DOCUMENT).read_text()
    path.write_text(text.replace("instance_hour = 0.082", "instance_hour = 1.0"))
    assert aurora_month(read_prices(path).aurora) > 700
    path.write_text(text.replace("instance_hour", "instance_minute"))
    with pytest.raises(PartitaError, match="instance_minute"):
        read_prices(path)
    listed = Path(price_list.__file__).with_name(price_list.NEWEST)
    assert read_prices(listed).aurora == read_prices("today").aurora
    path.write_text(listed.read_text().replace("[kinesis]", "[ignored]"))
    with pytest.raises(PartitaError, match="ignored"):
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
        "Old and ne",
        "Figure 5.1",
    ]
    for figure in ("54.50", "85.26", "24.70", "40%"):
        assert figure in shown.stdout


def test_what_is_printed_and_what_is_assumed_can_be_told_apart() -> None:
    shown = processes.run("pagehits", "cost", "--prices", "document").stdout.splitlines()
    assert "  lambda.*, fargate.*: printed in the thesis, chapter 5.4.1" in shown
    assert any(line.startswith("  aurora.reserved_three_years_hour: assumed") for line in shown)
    storage = {line[2:52].strip(): line[52:].split() for line in shown if "  Aurora" in line}
    assert storage["Aurora's instance alone, for three years*"] == ["24.70", "25"]
    assert storage["Aurora, db.t3.medium, 50 I/O a second, 3 GB"] == ["85.26", "85"]
