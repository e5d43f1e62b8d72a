"""Tests the bill: ways to pay, assumptions, and the effect of doubled figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita.foundation.service_limits import GB
from partita_migrate.costing.bill import Bill, EstimateSettings, bill
from partita_migrate.costing.capacity_estimate import CapacityEstimate, ResourceUnits, units
from partita_migrate.costing.prices import price_list
from partita_migrate.costing.prices.price_list import COMPARED, NEWEST, read_prices
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.keys.index_plans import WRITE_UNIT_IN_READ_UNITS
from partita_migrate.designing.proposals.propose import denormalized
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.analysis import Analysis

from ..games import expected, table_4
from ..schemas import inventory, table

HOURS = 730


def need(read: float, write: float, size_gb: float = 0) -> CapacityEstimate:
    resource = ResourceUnits(
        table="t",
        items=0,
        item_bytes=0,
        bytes=size_gb * GB,
        stored_bytes=size_gb * GB,
        read_units=read,
        write_units=write,
        partitions=1,
        partitions_by_size=1,
        partitions_by_throughput=1,
    )
    return CapacityEstimate(patterns=[], resources=[resource])


def made_out(needed: CapacityEstimate, **settings: object) -> Bill:
    return bill(needed, read_prices(), EstimateSettings(**settings))  # type: ignore[arg-type]


def test_provisioned_capacity_is_paid_by_the_hour() -> None:
    option = made_out(need(100, 10)).option("provisioned")
    assert option.throughput == pytest.approx((100 * 0.00013 + 10 * 0.00065) * HOURS)


def test_auto_scaling_follows_the_average_load_with_room_above_it() -> None:
    option = made_out(need(100, 10), load=0.35, utilization=0.7).option("auto scaling")
    assert option.throughput == pytest.approx((50 * 0.00013 + 5 * 0.00065) * HOURS)


def test_on_demand_is_paid_by_the_request() -> None:
    option = made_out(need(100, 10), load=0.5).option("on-demand")
    million = HOURS * 3600 / 1e6 * 0.5
    assert option.throughput == pytest.approx((100 * 0.125 + 10 * 0.625) * million)


def test_reserved_capacity_comes_in_blocks_of_a_hundred() -> None:
    option = made_out(need(230, 130)).option("reserved, one year")
    assert option.upfront == pytest.approx(2 * 30 + 1 * 150)
    hourly = 2 * 0.0025 + 1 * 0.0128 + 30 * 0.00013 + 30 * 0.00065
    assert option.throughput == pytest.approx(option.upfront / 12 + hourly * HOURS)


def test_a_block_that_is_not_used_up_may_cost_less_than_single_units() -> None:
    """A block of reads costs 4.33 a month, 50 units 4.75; of writes 21.84, 60 units 28.47."""
    option = made_out(need(250, 160)).option("reserved, one year")
    assert option.upfront == pytest.approx(3 * 30 + 2 * 150)
    assert option.throughput == pytest.approx(
        option.upfront / 12 + (3 * 0.0025 + 2 * 0.0128) * HOURS
    )


@pytest.mark.parametrize("term", ["one year", "three years"])
def test_no_other_number_of_blocks_costs_less(term: str) -> None:
    reserved = read_prices().reserved
    prices = reserved.one_year if term == "one year" else reserved.three_years
    months = 12 if term == "one year" else 36
    for needed in (1, 45, 46, 99, 100, 101, 146, 1987, 2000):
        option = made_out(need(needed, 1)).option(f"reserved, {term}")
        choices = [
            blocks * (prices.read_upfront_100 / months + prices.read_hour_100 * HOURS)
            + max(needed - 100 * blocks, 0) * 0.00013 * HOURS
            for blocks in range(needed // 100 + 3)
        ]
        assert option.throughput - 0.00065 * HOURS == pytest.approx(min(choices))


def test_reserved_prices_agree_with_what_aws_promises() -> None:
    full = made_out(need(100, 100)).option("provisioned").throughput
    one, three = (
        made_out(need(100, 100)).option(f"reserved, {term}").throughput / full
        for term in ("one year", "three years")
    )
    assert 1 - one == pytest.approx(0.54, abs=0.01)
    assert 1 - three == pytest.approx(0.77, abs=0.01)


def test_infrequent_access_pays_from_its_break_even_on() -> None:
    (point, *_) = made_out(need(1000, 1000, 10)).break_even
    assert not point.is_cheaper
    (below, *_) = made_out(need(1000, 1000, point.needed_gb * 0.99)).break_even
    (above, *_) = made_out(need(1000, 1000, point.needed_gb * 1.01)).break_even
    assert (below.is_cheaper, above.is_cheaper) == (False, True)


def test_what_comes_beside() -> None:
    extras = {
        extra.name: extra.monthly
        for extra in made_out(
            need(1000, 100, 100),
            backups_kept=3,
            stream_readers=2,
            kinesis=True,
            dax_nodes=3,
            dax_node="dax.t3.small",
            dax_hit_share=0.5,
        ).extras
    }
    assert extras["point-in-time recovery"] == pytest.approx(100 * 0.20)
    assert extras["on-demand backups"] == pytest.approx(3 * 100 * 0.10)
    assert extras["streams"] == pytest.approx(2 * HOURS * 3600 / 1e5 * 0.02)
    assert extras["changes to Kinesis"] == pytest.approx(100 * HOURS * 3600 / 1e6 * 0.10)
    assert extras["DAX"] == pytest.approx((3 * 0.04 - 500 * 0.00013) * HOURS)


def test_the_games_cost_what_their_capacity_and_storage_cost() -> None:
    needed = units(denormalized(expected(), table_4(), ModelSettings()), table_4(), expected())
    option = made_out(needed).option("provisioned")
    # 1087.5 read units cannot be provisioned: each table and index has whole ones.
    assert option.throughput == pytest.approx((1988 * 0.00013 + 450 * 0.00065) * HOURS)
    assert option.storage == pytest.approx(3 * 10**8 * (0.7 * 1024 + 100) / GB * 0.25)


def test_every_figure_says_where_it_comes_from() -> None:
    prices = read_prices()
    assert f"{prices.region}.{prices.date[:7]}.toml" == NEWEST
    named = {figure.partition(".")[0] for one in prices.sources for figure in one.figures}
    database = {"standard", "standard_ia", "reserved", "backup", "streams", "dax"}
    assert named == database | set(COMPARED)
    counted = {figure for one in prices.database_sources for figure in one.figures}
    assert {figure.partition(".")[0] for figure in counted} == database
    assert all(one.source and one.as_of for one in prices.sources)


def test_a_write_unit_is_taken_for_as_many_read_units_as_it_costs() -> None:
    prices = read_prices()
    for one in (prices.standard, prices.standard_ia):
        assert round(one.write_unit_hour / one.read_unit_hour) == WRITE_UNIT_IN_READ_UNITS


def test_prices_of_ones_own(tmp_path: Path) -> None:
    newest = Path(price_list.__file__).with_name(NEWEST)
    own = tmp_path / "mine.toml"
    own.write_text(newest.read_text().replace('region = "us-east-1"', 'region = "mars-1"'))
    assert read_prices(own).region == "mars-1"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("region = ", "are not valid TOML"),
        ('region = "x"', "do not have the expected form"),
    ],
)
def test_prices_that_are_none_are_refused_in_words(
    tmp_path: Path, content: str, sentence: str
) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(content)
    with pytest.raises(PartitaError, match=sentence):
        read_prices(own)
    with pytest.raises(PartitaError, match="Cannot read the prices"):
        read_prices(tmp_path / "absent.toml")


def test_an_idle_table_is_free_on_demand_and_one_unit_of_each_when_provisioned() -> None:
    idle = table("idle", "id, name string", "id")
    volumes = Volumes(inventory(idle), Analysis(tables=[]))
    found = made_out(units(denormalized(volumes, [], ModelSettings()), [], volumes))
    assert found.option("on-demand").throughput == 0
    assert found.option("provisioned").throughput == pytest.approx((0.00013 + 0.00065) * HOURS)
