"""Auto scaling and schedules, minute by minute on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest

from partita import testing
from partita.database.capacity.scaling.capacity_schedules import scheduled_change
from partita.database.storage.branch_engine import BranchEngine

from .tables import NOON, create, index, item, make, once, provisioned


def scale(minimum: int, maximum: int, **tracking: Any) -> dict[str, Any]:
    configuration = {"TargetValue": 50.0, **tracking}
    return {
        "MinimumUnits": minimum,
        "MaximumUnits": maximum,
        "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": configuration},
    }


def units(client: Any) -> tuple[int, int]:
    described = client.describe_table(TableName="votes")["Table"]["ProvisionedThroughput"]
    return described["ReadCapacityUnits"], described["WriteCapacityUnits"]


def write_minutes(database: testing.Database, client: Any, rate: float, minutes: int) -> None:
    """Consume units at a constant rate for some minutes, with background jobs every minute."""
    for _ in range(minutes):
        kilobytes = round(rate * 60)
        for _ in range(kilobytes // 300):
            client.put_item(TableName="votes", Item=item("a", text="x" * (300 * 1024 - 20)))
        rest = kilobytes % 300
        if rest:
            client.put_item(TableName="votes", Item=item("b", text="x" * (rest * 1024 - 20)))
        database.clock.advance(minutes=1)
        database.settle()


@pytest.fixture
def observed() -> Any:
    with make("observe") as database:
        yield database


def test_writes_scale_out_after_two_minutes_and_in_after_fifteen(
    observed: testing.Database,
) -> None:
    client = once(observed)
    create(client, units=10)
    client.update_table_replica_auto_scaling(
        TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(5, 100)
    )
    write_minutes(observed, client, rate=20, minutes=1)
    assert units(client) == (10, 10)
    write_minutes(observed, client, rate=20, minutes=1)
    assert units(client) == (10, 40)
    write_minutes(observed, client, rate=4, minutes=14)
    assert units(client) == (10, 40)
    write_minutes(observed, client, rate=4, minutes=1)
    assert units(client) == (10, 8)


def test_the_maximum_and_the_minimum_are_kept(observed: testing.Database) -> None:
    client = once(observed)
    create(client, units=10)
    client.update_table_replica_auto_scaling(
        TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(8, 30)
    )
    write_minutes(observed, client, rate=50, minutes=2)
    assert units(client) == (10, 30)
    write_minutes(observed, client, rate=1, minutes=17)
    assert units(client) == (10, 8)


def test_units_outside_of_the_bounds_are_brought_inside(observed: testing.Database) -> None:
    client = once(observed)
    create(client, units=10)
    client.update_table_replica_auto_scaling(
        TableName="votes",
        ReplicaUpdates=[
            {
                "RegionName": "us-east-1",
                "ReplicaProvisionedReadCapacityAutoScalingUpdate": scale(25, 100),
            }
        ],
    )
    observed.settle()
    assert units(client) == (25, 10)


def test_it_works_where_capacity_is_off(observed: testing.Database) -> None:
    with make("off") as database:
        client = once(database)
        create(client, units=10)
        client.update_table_replica_auto_scaling(
            TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(5, 100)
        )
        write_minutes(database, client, rate=20, minutes=2)
        assert units(client) == (10, 40)
        client.update_table_replica_auto_scaling(
            TableName="votes",
            ProvisionedWriteCapacityAutoScalingUpdate={"AutoScalingDisabled": True},
        )
        write_minutes(database, client, rate=80, minutes=3)
        assert units(client) == (10, 40)


def test_a_cool_down_holds_the_next_change_back(observed: testing.Database) -> None:
    client = once(observed)
    create(client, units=10)
    client.update_table_replica_auto_scaling(
        TableName="votes",
        ProvisionedWriteCapacityAutoScalingUpdate=scale(5, 1000, ScaleOutCooldown=300),
    )
    write_minutes(observed, client, rate=20, minutes=2)
    assert units(client) == (10, 40)
    write_minutes(observed, client, rate=60, minutes=4)
    assert units(client) == (10, 40)
    write_minutes(observed, client, rate=60, minutes=1)
    assert units(client) == (10, 120)


def test_an_index_scales_on_its_own(observed: testing.Database) -> None:
    client = once(observed)
    create(client, units=500, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 10)])
    client.update_table_replica_auto_scaling(
        TableName="votes",
        GlobalSecondaryIndexUpdates=[
            {
                "IndexName": "by-g",
                "ProvisionedWriteCapacityAutoScalingUpdate": scale(10, 100),
            }
        ],
    )
    for _ in range(2):
        for number in range(8):
            text = f"{number}" * (100 * 1024)
            client.put_item(TableName="votes", Item=item("a", g="x", text=text))
        observed.clock.advance(minutes=1)
        observed.settle()
    described = client.describe_table(TableName="votes")["Table"]
    (found,) = described["GlobalSecondaryIndexes"]
    assert found["ProvisionedThroughput"]["WriteCapacityUnits"] == 27
    assert units(client) == (500, 500)


def test_scaling_in_keeps_to_the_decreases_of_a_day(
    database: testing.Database, client: Any
) -> None:
    create(client, units=10)
    for fewer in (9, 8, 7, 6):
        client.update_table(TableName="votes", ProvisionedThroughput=provisioned(fewer))
    client.update_table_replica_auto_scaling(
        TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(1, 3)
    )
    database.settle()
    assert units(client) == (6, 6)
    database.clock.advance(hours=1)
    database.settle()
    assert units(client) == (6, 3)


def test_policies_survive_a_branch_as_they_survive_a_restart(observed: testing.Database) -> None:
    create(once(observed), units=10)
    once(observed).update_table_replica_auto_scaling(
        TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(5, 100)
    )
    with observed.branch() as branch:
        write_minutes(branch, once(branch), rate=20, minutes=2)
        assert units(once(branch)) == (10, 40)
    assert units(once(observed)) == (10, 10)


def scheduled(*entries: dict[str, Any]) -> testing.Database:
    clock = testing.VirtualClock()
    clock.set(NOON)
    changes = [scheduled_change({"table": "votes"} | entry) for entry in entries]
    return testing.Database(BranchEngine(), clock, testing.Faults(), 0.0, schedules=changes)


def test_a_schedule_changes_units_when_it_is_due() -> None:
    entries = [
        {"schedule": "cron(0 14 * * ? *)", "write_minimum": 100},
        {"schedule": "cron(0 20 * * ? *)", "write_maximum": 20, "read_minimum": 11},
    ]
    with scheduled(*entries) as database:
        client = once(database)
        create(client, units=10)
        database.settle()
        assert units(client) == (10, 10)
        database.clock.advance(hours=2)
        database.settle()
        assert units(client) == (10, 100)
        database.clock.advance(hours=6)
        database.settle()
        assert units(client) == (11, 20)
        client.update_table(TableName="votes", ProvisionedThroughput=provisioned(12, 50))
        database.clock.advance(hours=12)
        database.settle()
        assert units(client) == (12, 50)


def test_a_schedule_moves_the_bounds_of_a_policy() -> None:
    entry = {"schedule": "cron(0 14 * * ? *)", "write_minimum": 50, "write_maximum": 60}
    with scheduled(entry) as database:
        client = once(database)
        create(client, units=10)
        client.update_table_replica_auto_scaling(
            TableName="votes", ProvisionedWriteCapacityAutoScalingUpdate=scale(5, 100)
        )
        database.clock.advance(hours=2)
        database.settle()
        assert units(client) == (10, 50)
        answer = client.describe_table_replica_auto_scaling(TableName="votes")
        (replica,) = answer["TableAutoScalingDescription"]["Replicas"]
        settings = replica["ReplicaProvisionedWriteCapacityAutoScalingSettings"]
        assert (settings["MinimumUnits"], settings["MaximumUnits"]) == (50, 60)
