"""Auto scaling of a table and its global indexes, as DynamoDB's own operation takes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from partita_migrate.handover.table_requests import KINDS, AutoScalingBounds, TableRequest


class TableUpdate(Struct, frozen=True, kw_only=True):
    """A request that makes a table what the design says."""

    operation: str
    request: dict[str, Any]


def scaling_update(table: TableRequest, region: str) -> TableUpdate:
    """UpdateTableReplicaAutoScaling: reads belong to a replica, writes to the table."""
    by_place = {(one.index, one.kind): _settings(one) for one in table.scaling}
    indexes = [index["IndexName"] for index in table.indexes]
    replica: dict[str, Any] = {
        "RegionName": region,
        "ReplicaProvisionedReadCapacityAutoScalingUpdate": by_place[None, "Read"],
    }
    request: dict[str, Any] = {
        "TableName": table.name,
        "ProvisionedWriteCapacityAutoScalingUpdate": by_place[None, "Write"],
        "ReplicaUpdates": [replica],
    }
    if indexes:
        replica["ReplicaGlobalSecondaryIndexUpdates"] = [
            {"IndexName": name, "ProvisionedReadCapacityAutoScalingUpdate": by_place[name, "Read"]}
            for name in indexes
        ]
        request["GlobalSecondaryIndexUpdates"] = [
            {
                "IndexName": name,
                "ProvisionedWriteCapacityAutoScalingUpdate": by_place[name, "Write"],
            }
            for name in indexes
        ]
    return TableUpdate(operation="UpdateTableReplicaAutoScaling", request=request)


def region_of(arn: str) -> str:
    return arn.split(":")[3]


def _settings(one: AutoScalingBounds) -> dict[str, Any]:
    return {
        "MinimumUnits": one.minimum,
        "MaximumUnits": one.maximum,
        "ScalingPolicyUpdate": {
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": one.target_percent}
        },
    }


def scaling_of(description: dict[str, Any]) -> list[AutoScalingBounds]:
    """What DescribeTableReplicaAutoScaling tells."""
    found = []
    for replica in description.get("Replicas", [])[:1]:
        places = [(None, replica)]
        places += [(one["IndexName"], one) for one in replica.get("GlobalSecondaryIndexes", [])]
        for index, place in places:
            for kind in KINDS:
                prefix = "" if index else "Replica"
                settings = place.get(f"{prefix}Provisioned{kind}CapacityAutoScalingSettings", {})
                policies = settings.get("ScalingPolicies", [])
                if policies:
                    target = policies[0]["TargetTrackingScalingPolicyConfiguration"]
                    found.append(
                        AutoScalingBounds(
                            index=index,
                            kind=kind,
                            minimum=settings["MinimumUnits"],
                            maximum=settings["MaximumUnits"],
                            target_percent=round(target["TargetValue"]),
                        )
                    )
    return found


def policies(table: TableRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What Application Auto Scaling is asked for: RegisterScalableTarget, PutScalingPolicy."""
    found = []
    for one in table.scaling:
        named = {
            "ServiceNamespace": "dynamodb",
            "ResourceId": one.resource(table.name),
            "ScalableDimension": one.dimension,
        }
        policy = {
            **named,
            "PolicyName": f"{one.metric}:{one.resource(table.name)}",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": one.target_percent,
                "PredefinedMetricSpecification": {"PredefinedMetricType": one.metric},
            },
        }
        found.append(({**named, "MinCapacity": one.minimum, "MaxCapacity": one.maximum}, policy))
    return found


def bounds_text(one: AutoScalingBounds) -> str:
    return f"from {one.minimum:,} to {one.maximum:,} units at {one.target_percent}% use"
