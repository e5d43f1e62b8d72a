"""UpdateTableReplicaAutoScaling and DescribeTableReplicaAutoScaling.

Texts: recorded in October 2026 from global tables; here every table is its own replica.
"""

from __future__ import annotations

from typing import Any

import pytest

UNITS = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 10}
GSI = {
    "IndexName": "by-g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
    "ProvisionedThroughput": UNITS,
}
POLICY = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}}
FULL = {"MinimumUnits": 5, "MaximumUnits": 100, "ScalingPolicyUpdate": POLICY}
OFF = {"AutoScalingDisabled": True, "ScalingPolicies": []}
ROLE = (
    "arn:aws:iam::123456789012:role/aws-service-role/dynamodb.application-autoscaling."
    "amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
WRITE = "ProvisionedWriteCapacityAutoScalingUpdate"


@pytest.fixture
def name(table: Any) -> str:
    made: str = table(
        attributes={"g": "S"}, ProvisionedThroughput=UNITS, GlobalSecondaryIndexes=[GSI]
    )
    return made


def replica(answer: dict[str, Any]) -> dict[str, Any]:
    (only,) = answer["TableAutoScalingDescription"]["Replicas"]
    found: dict[str, Any] = only
    return found


def described(client: Any, name: str) -> dict[str, Any]:
    return replica(client.describe_table_replica_auto_scaling(TableName=name))


def read_update(update: dict[str, Any], region: str = "us-east-1") -> list[dict[str, Any]]:
    return [{"RegionName": region, "ReplicaProvisionedReadCapacityAutoScalingUpdate": update}]


def test_a_table_without_auto_scaling(client: Any, name: str) -> None:
    answer = client.describe_table_replica_auto_scaling(TableName=name)
    description = answer["TableAutoScalingDescription"]
    assert (description["TableName"], description["TableStatus"]) == (name, "ACTIVE")
    assert replica(answer) == {
        "RegionName": "us-east-1",
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by-g",
                "IndexStatus": "ACTIVE",
                "ProvisionedReadCapacityAutoScalingSettings": OFF,
                "ProvisionedWriteCapacityAutoScalingSettings": OFF,
            }
        ],
        "ReplicaProvisionedReadCapacityAutoScalingSettings": OFF,
        "ReplicaProvisionedWriteCapacityAutoScalingSettings": OFF,
        "ReplicaStatus": "ACTIVE",
    }


def test_reads_writes_and_indexes_in_one_request(client: Any, name: str) -> None:
    tracking = {
        "TargetValue": 40.0,
        "DisableScaleIn": True,
        "ScaleInCooldown": 60,
        "ScaleOutCooldown": 30,
    }
    named = {"PolicyName": "mine", "TargetTrackingScalingPolicyConfiguration": tracking}
    client.update_table_replica_auto_scaling(
        TableName=name,
        ProvisionedWriteCapacityAutoScalingUpdate=FULL,
        GlobalSecondaryIndexUpdates=[{"IndexName": "by-g", WRITE: FULL}],
        ReplicaUpdates=[
            {
                **read_update({**FULL, "ScalingPolicyUpdate": named})[0],
                "ReplicaGlobalSecondaryIndexUpdates": [
                    {"IndexName": "by-g", "ProvisionedReadCapacityAutoScalingUpdate": FULL}
                ],
            }
        ],
    )
    shown = described(client, name)
    (index,) = shown["GlobalSecondaryIndexes"]

    def settings(policy: str, tracking: dict[str, Any]) -> dict[str, Any]:
        return {
            "MinimumUnits": 5,
            "MaximumUnits": 100,
            "AutoScalingRoleArn": ROLE,
            "ScalingPolicies": [
                {"PolicyName": policy, "TargetTrackingScalingPolicyConfiguration": tracking}
            ],
        }

    plain = {"TargetValue": 70.0}
    assert shown["ReplicaProvisionedReadCapacityAutoScalingSettings"] == settings("mine", tracking)
    write = f"DynamoDBWriteCapacityUtilization:table/{name}"
    assert shown["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == settings(write, plain)
    assert index["ProvisionedWriteCapacityAutoScalingSettings"] == settings(
        f"{write}/index/by-g", plain
    )
    read = f"DynamoDBReadCapacityUtilization:table/{name}/index/by-g"
    assert index["ProvisionedReadCapacityAutoScalingSettings"] == settings(read, plain)


def test_switched_off_again(client: Any, name: str) -> None:
    client.update_table_replica_auto_scaling(TableName=name, ReplicaUpdates=read_update(FULL))
    for _ in range(2):
        client.update_table_replica_auto_scaling(
            TableName=name, ReplicaUpdates=read_update({"AutoScalingDisabled": True})
        )
    assert described(client, name)["ReplicaProvisionedReadCapacityAutoScalingSettings"] == OFF


def test_on_demand_it_is_kept_and_shown_as_disabled(client: Any, table: Any) -> None:
    name = table()
    client.update_table_replica_auto_scaling(TableName=name, ReplicaUpdates=read_update(FULL))
    settings = described(client, name)["ReplicaProvisionedReadCapacityAutoScalingSettings"]
    assert settings["AutoScalingDisabled"] is True
    assert settings["MinimumUnits"] == 5


def refusal(raw: Any, request: dict[str, Any]) -> tuple[str, str]:
    answer = raw("UpdateTableReplicaAutoScaling", request)
    assert answer.status == 400
    return answer.body["__type"].partition("#")[2], answer.body["message"]


FAILED = "Failed to update settings for global table with name: ‘{name}’"  # noqa: RUF001
BOUNDS = "target value must be between '10.0' and '90.0', but was"


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        ({}, "Validation", FAILED + " because at least one update parameter must be specified."),
        (
            {"ReplicaUpdates": [{"RegionName": "us-east-1"}]},
            "Validation",
            FAILED + " because at least one update parameter must be specified for region: "
            "‘us-east-1’.",  # noqa: RUF001
        ),
        (
            {"ReplicaUpdates": read_update(FULL) * 2},
            "Validation",
            FAILED + " because the regions: ‘[us-east-1]’ were specified more than once.",  # noqa: RUF001
        ),
        (
            {"ReplicaUpdates": read_update({})},
            "Validation",
            FAILED + ": Parameters 'MaximumUnits', 'ScalingPolicyUpdate', 'MinimumUnits' are "
            "required unless auto scaling is being disabled.",
        ),
        (
            {"ReplicaUpdates": read_update({"ScalingPolicyUpdate": POLICY})},
            "Validation",
            FAILED + ": Parameters 'MaximumUnits', 'MinimumUnits' are required unless auto "
            "scaling is being disabled.",
        ),
        (
            {WRITE: {"AutoScalingDisabled": True, "MinimumUnits": 1, "MaximumUnits": 2}},
            "Validation",
            FAILED.replace(":", "") + ": Parameters 'MaximumUnits', 'MinimumUnits' must be left "
            "blank when disabling auto scaling.",
        ),
        (
            {WRITE: {**FULL, "MinimumUnits": 101}},
            "Validation",
            "Maximum capacity cannot be less than minimum capacity (Service: "
            "AWSApplicationAutoScaling; Status Code: 400; ",
        ),
        (
            {
                WRITE: {
                    **FULL,
                    "ScalingPolicyUpdate": {
                        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 90.1}
                    },
                }
            },
            "Validation",
            "For predefined metric type DynamoDBWriteCapacityUtilization, "
            f"{BOUNDS} '90.1'. (Service: AWSApplicationAutoScaling; ",
        ),
        ({"ReplicaUpdates": read_update(FULL, "eu-west-1")}, "ResourceNotFound", FAILED),
        (
            {"GlobalSecondaryIndexUpdates": [{"IndexName": "nope", WRITE: FULL}]},
            "ResourceNotFound",
            FAILED,
        ),
        ({"GlobalSecondaryIndexUpdates": [{WRITE: FULL}]}, "ResourceNotFound", FAILED),
        ({WRITE: {**FULL, "MinimumUnits": 0}}, "Validation", "1 validation error detected"),
    ],
)
def test_refusals(raw: Any, name: str, request_: dict[str, Any], code: str, text: str) -> None:
    found, message = refusal(raw, {"TableName": name, **request_})
    assert found == f"{code}Exception"
    assert message.startswith(text.format(name=name))


@pytest.mark.parametrize(
    "operation", ["DescribeTableReplicaAutoScaling", "UpdateTableReplicaAutoScaling"]
)
def test_a_table_that_is_not_there(raw: Any, operation: str) -> None:
    answer = raw(operation, {"TableName": "nope"})
    assert answer.status == 400
    assert answer.body["message"] == "Global table with name: 'nope' does not exist."


def test_a_target_larger_than_any_double(raw: Any, name: str) -> None:
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 10**400}}
    update = {**FULL, "ScalingPolicyUpdate": policy}
    request = {"TableName": name, "ProvisionedWriteCapacityAutoScalingUpdate": update}
    assert BOUNDS in refusal(raw, request)[1]


@pytest.mark.parametrize("target", [10.0, 19.9, 90.0])
def test_targets_from_10_to_90_percent(client: Any, name: str, target: float) -> None:
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": target}}
    client.update_table_replica_auto_scaling(
        TableName=name,
        ProvisionedWriteCapacityAutoScalingUpdate={**FULL, "ScalingPolicyUpdate": policy},
    )
