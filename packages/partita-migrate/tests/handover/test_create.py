"""Tests `partita migrate create` on a running server: tables are created once, then compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.errors import PartitaError
from partita_migrate.handover.create_stage import CreateResult, create
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.processes import Server, run

from .conftest import MODEL, ORDERS, SESSIONS, SETTINGS, MakeDesign


def outcomes(created: CreateResult) -> dict[str, str]:
    return {one.table: one.action for one in created.tables}


def differences(created: CreateResult, table: str = ORDERS) -> list[str]:
    (found,) = (one for one in created.tables if one.table == table)
    return [one.what for one in found.differences]


def described(client: Any, name: str) -> dict[str, Any]:
    return dict(client.describe_table(TableName=name)["Table"])


def tags(client: Any, name: str) -> dict[str, str]:
    arn = described(client, name)["TableArn"]
    return {
        one["Key"]: one["Value"] for one in client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    }


def expiry(client: Any, name: str) -> str | None:
    found: str | None = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"].get(
        "AttributeName"
    )
    return found


def units(described: dict[str, Any]) -> tuple[int, int]:
    throughput = described["ProvisionedThroughput"]
    return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]


def test_tables_are_made_as_the_design_says(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    folder = design()
    assert outcomes(create(folder, server.url)) == {ORDERS: "created", SESSIONS: "created"}
    orders = described(dynamodb, ORDERS)
    assert orders["TableStatus"] == "ACTIVE"
    assert orders["KeySchema"] == [
        {"AttributeName": "customer_id", "KeyType": "HASH"},
        {"AttributeName": "id", "KeyType": "RANGE"},
    ]
    types = {one["AttributeName"]: one["AttributeType"] for one in orders["AttributeDefinitions"]}
    assert types == {"customer_id": "N", "id": "N", "placed_at": "S", "status": "S"}
    (local,) = orders["LocalSecondaryIndexes"]
    assert local["IndexName"] == "by-time"
    projections = {one["IndexName"]: one["Projection"] for one in orders["GlobalSecondaryIndexes"]}
    assert projections == {
        "by-status": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]},
        "by-day": {"ProjectionType": "KEYS_ONLY"},
    }
    # 120 queries a second of a page of up to 10 small orders, half a unit each; 30 small puts.
    assert units(orders) == (60, 60)
    assert {one["IndexName"]: units(one) for one in orders["GlobalSecondaryIndexes"]} == {
        "by-status": (1, 30), "by-day": (1, 30),
    }  # fmt: skip
    assert units(described(dynamodb, SESSIONS)) == (450, 1)
    assert orders["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert tags(dynamodb, ORDERS) == {"migration": "shop", "team": "shop", "cost centre": "4711"}
    assert (expiry(dynamodb, SESSIONS), expiry(dynamodb, ORDERS)) == ("expires", None)


def test_a_second_run_changes_nothing_and_says_so(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    folder = design()
    first = run("migrate", "create", folder.path, "--endpoint", server.url)
    assert first.returncode == 0 and f"{ORDERS} was created" in first.stdout
    before = [described(dynamodb, name) for name in (ORDERS, SESSIONS)]
    again = run("migrate", "create", folder.path, "--endpoint", server.url)
    assert again.returncode == 0
    assert f"{ORDERS} is as the design says and was not changed." in again.stdout
    assert "Nothing to do: 2 tables" in again.stdout
    assert [described(dynamodb, name) for name in (ORDERS, SESSIONS)] == before


def test_a_dry_run_makes_nothing(server: Server, dynamodb: Any, design: MakeDesign) -> None:
    folder = design()
    dry = run("migrate", "create", folder.path, "--endpoint", server.url, "--dry-run", "--json")
    assert dry.returncode == 0
    answer = json.loads(dry.stdout)
    assert answer["is_dry_run"] is True
    assert [(one["table"], one["action"]) for one in answer["tables"]] == [
        (ORDERS, "create"), (SESSIONS, "create"),
    ]  # fmt: skip
    assert dynamodb.list_tables()["TableNames"] == []


def test_what_was_lost_is_made_again(server: Server, dynamodb: Any, design: MakeDesign) -> None:
    folder = design()
    create(folder, server.url)
    dynamodb.delete_table(TableName=SESSIONS)
    dynamodb.get_waiter("table_not_exists").wait(
        TableName=SESSIONS, WaiterConfig={"Delay": 0.02, "MaxAttempts": 1500}
    )
    assert outcomes(create(folder, server.url)) == {ORDERS: "unchanged", SESSIONS: "created"}
    assert expiry(dynamodb, SESSIONS) == "expires"


def made_otherwise(client: Any) -> None:
    """Creates the table by hand, with small differences from the design."""
    client.create_table(
        TableName=ORDERS,
        AttributeDefinitions=[
            {"AttributeName": "customer_id", "AttributeType": "N"},
            {"AttributeName": "id", "AttributeType": "N"},
            {"AttributeName": "placed_at", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "customer_id", "KeyType": "HASH"},
            {"AttributeName": "id", "KeyType": "RANGE"},
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-time",
                "KeySchema": [
                    {"AttributeName": "customer_id", "KeyType": "HASH"},
                    {"AttributeName": "placed_at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        Tags=[{"Key": "team", "Value": "billing"}],
    )
    client.create_table(
        TableName=SESSIONS,
        AttributeDefinitions=[{"AttributeName": "token", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "token", "KeyType": "HASH"}],
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 1},
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        DeletionProtectionEnabled=True,
    )


def test_every_difference_is_named_and_nothing_is_changed(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    made_otherwise(dynamodb)
    before = [described(dynamodb, name) for name in (ORDERS, SESSIONS)]
    folder = design()
    created = create(folder, server.url)
    assert outcomes(created) == {ORDERS: "differs", SESSIONS: "differs"}
    assert differences(created) == [
        "It is paid on demand, and the design says for provisioned capacity.",
        "The index by-status is missing.",
        "The index by-day is missing.",
        "Its stream is none, and the design says NEW_AND_OLD_IMAGES.",
        "Of its tags, migration = 'shop' is missing; team is 'billing' and not 'shop';"
        " cost centre = '4711' is missing.",
        "Its point-in-time recovery is off, and the design says on.",
    ]
    assert differences(created, SESSIONS) == [
        "It has 5 read and 1 write units, and the design says 450 read and 1 write units.",
        "Its stream is KEYS_ONLY, and the design says NEW_AND_OLD_IMAGES; switch it off first, when"
        " nobody reads it any more.",
        "Items expire by no attribute, and the design says expires.",
        "Of its tags, migration = 'shop' is missing; team = 'shop' is missing;"
        " cost centre = '4711' is missing.",
        "Its protection from deletion is on, and the design says off.",
        "Its point-in-time recovery is off, and the design says on.",
    ]
    assert [described(dynamodb, name) for name in (ORDERS, SESSIONS)] == before
    shown = run("migrate", "create", folder.path, "--endpoint", server.url)
    assert shown.returncode == 1
    assert "The index by-status is missing." in shown.stdout


def test_update_changes_what_can_be_changed_in_place(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    made_otherwise(dynamodb)
    folder = design()
    assert outcomes(create(folder, server.url, update=True, is_dry_run=True))[ORDERS] == "update"
    assert "GlobalSecondaryIndexes" not in described(dynamodb, ORDERS)
    created = create(folder, server.url, update=True)
    # A stream with another view has to be switched off by somebody who knows its readers.
    assert outcomes(created) == {ORDERS: "updated", SESSIONS: "differs"}
    dynamodb.update_table(TableName=SESSIONS, StreamSpecification={"StreamEnabled": False})
    assert outcomes(create(folder, server.url, update=True))[SESSIONS] == "updated"
    assert outcomes(create(folder, server.url)) == {ORDERS: "unchanged", SESSIONS: "unchanged"}
    assert tags(dynamodb, ORDERS)["team"] == "shop"
    assert expiry(dynamodb, SESSIONS) == "expires"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            'sort_key = { name = "id", type = "N" }',
            'sort_key = { name = "total", type = "N" }',
            "Its key is customer_id (N), id (N), and the design says customer_id (N), total (N):"
            " the table has to be created anew.",
        ),
        (
            'include = ["total"]',
            'include = ["total", "id"]',
            "The projection of by-status is INCLUDE total, and the design says INCLUDE id, total:"
            " the index has to be created anew.",
        ),
        (
            '\n[[tables.indexes]]\nname = "by-day"\npartition_key = { name = "placed_at", type ='
            ' "S" }\nprojection = "KEYS_ONLY"\n',
            "",
            "Its index by-day is not in the design; every write pays for it.",
        ),
        (
            'name = "by-time"\nkind = "local"',
            'name = "by-moment"\nkind = "local"',
            "The local index by-moment is missing, and can only be created together with its"
            " table.",
        ),
    ],
)
def test_what_cannot_be_changed_in_place_stays_also_with_update(
    server: Server, dynamodb: Any, design: MakeDesign, old: str, new: str, sentence: str
) -> None:
    create(design(), server.url)
    before = described(dynamodb, ORDERS)
    assert old in MODEL
    changed = design(MODEL.replace(old, new).replace('index = "by-time"', ""), settings="")
    created = create(changed, server.url, update=True)
    assert outcomes(created)[ORDERS] == "differs"
    assert sentence in differences(created)
    assert described(dynamodb, ORDERS) == before


def test_settings_decide_over_the_estimate(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    settings = """
[create]
capacity = "on-demand"
table_class = "STANDARD_INFREQUENT_ACCESS"
stream = "none"
deletion_protection = true
"""
    create(design(settings=settings), server.url)
    orders = described(dynamodb, ORDERS)
    assert orders["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert orders["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert orders["DeletionProtectionEnabled"] is True
    assert "StreamSpecification" not in orders
    assert tags(dynamodb, ORDERS) == {"migration": "shop"}


def test_capacity_is_what_costs_least(server: Server, dynamodb: Any, design: MakeDesign) -> None:
    """At a hundredth of the stated rates, provisioned capacity would not pay off."""
    create(design(settings="\n[estimate]\nload = 0.01\n"), server.url)
    mode = described(dynamodb, ORDERS)["BillingModeSummary"]["BillingMode"]
    assert mode == "PAY_PER_REQUEST"


SCALED = "\n[create]\ncapacity = 'auto scaling'\n\n[estimate]\nload = 0.5\n"


def test_auto_scaling_keeps_units_between_the_usual_load_and_a_peak(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    create(design(settings=SCALED), server.url)
    told = dynamodb.describe_table_replica_auto_scaling(TableName=SESSIONS)
    (replica,) = told["TableAutoScalingDescription"]["Replicas"]
    reads = replica["ReplicaProvisionedReadCapacityAutoScalingSettings"]
    # 900 calls a second of half a unit: half of them usually, twice as many at 70% in a peak.
    assert (reads["MinimumUnits"], reads["MaximumUnits"]) == (225, 1286)
    (policy,) = reads["ScalingPolicies"]
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 70
    units = described(dynamodb, SESSIONS)["ProvisionedThroughput"]
    assert units["ReadCapacityUnits"] == 322
    (orders,) = dynamodb.describe_table_replica_auto_scaling(TableName=ORDERS)[
        "TableAutoScalingDescription"
    ]["Replicas"]
    assert all(
        one[f"Provisioned{kind}CapacityAutoScalingSettings"]["ScalingPolicies"]
        for one in orders["GlobalSecondaryIndexes"]
        for kind in ("Read", "Write")
    )


def test_scaling_that_differs_is_named_and_units_that_were_scaled_are_not(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    folder = design(settings=SCALED)
    create(folder, server.url)
    scaled = {"ReadCapacityUnits": 400, "WriteCapacityUnits": 1}
    dynamodb.update_table(TableName=SESSIONS, ProvisionedThroughput=scaled)
    assert outcomes(create(folder, server.url)) == {ORDERS: "unchanged", SESSIONS: "unchanged"}
    dynamodb.update_table_replica_auto_scaling(
        TableName=SESSIONS,
        ProvisionedWriteCapacityAutoScalingUpdate={"AutoScalingDisabled": True},
    )
    created = create(folder, server.url)
    assert outcomes(created)[SESSIONS] == "differs"
    said = "Its writes scale not at all, and the design says from 1 to 1 units at 70% use."
    assert said in differences(created, SESSIONS)
    assert outcomes(create(folder, server.url, update=True))[SESSIONS] == "updated"
    assert outcomes(create(folder, server.url))[SESSIONS] == "unchanged"


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        (MODEL, "\n[create]\ntags = { a = 'b;c' }", "tags has 'b;c'"),
        (MODEL, "\n[create]\ncapacity = 'much'", "capacity"),
        (MODEL.replace('"Sessions"', '"My Sessions"'), SETTINGS, "'My Sessions' cannot be"),
        (
            MODEL.replace('"status", type = "S" }\nsort_key = { name = "placed_at", type = "S"',
                          '"status", type = "S" }\nsort_key = { name = "placed_at", type = "N"'),
            SETTINGS,
            "'placed_at' is S, but the key of shop.Orders says N",
        ),
        ('name = "empty"\nkind = "single-table"\n', SETTINGS, "no tables to create"),
        (
            MODEL.replace('column = "orders.total"', 'column = "orders.sum"'),
            SETTINGS,
            "shop.Orders, orders, total: the source has no column 'orders.sum'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_before_anything_is_made(
    server: Server, dynamodb: Any, design: MakeDesign, model: str, settings: str, sentence: str
) -> None:
    with pytest.raises(PartitaError, match=sentence):
        create(design(model, settings), server.url)
    assert dynamodb.list_tables()["TableNames"] == []


def test_where_nobody_answers(design: MakeDesign) -> None:
    folder: Folder = design()
    refused = run("migrate", "create", folder.path, "--endpoint", "http://127.0.0.1:1")
    assert refused.returncode == 1
    assert "No answer from http://127.0.0.1:1" in refused.stderr
    assert run("migrate", "create", folder.path, "--endpoint", "127.0.0.1").returncode == 2
