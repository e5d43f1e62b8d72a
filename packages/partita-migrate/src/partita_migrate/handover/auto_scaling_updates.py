"""Auto scaling of a table and its global indexes, for DynamoDB's own operation and for Application
Auto Scaling."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from partita_migrate.handover.table_requests import KINDS, AutoScalingBounds, TableRequest


class TableUpdate(Struct, frozen=True, kw_only=True):
    """A request that brings an existing table in line with the design."""

    operation: str
    request: dict[str, Any]


def scaling_update(table: TableRequest, region: str) -> TableUpdate:
    """Returns an UpdateTableReplicaAutoScaling request, where reads belong to a replica and writes
    to the table."""
    by_place = {(bounds.index, bounds.kind): _settings(bounds) for bounds in table.scaling}
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


def _settings(bounds: AutoScalingBounds) -> dict[str, Any]:
    return {
        "MinimumUnits": bounds.minimum,
        "MaximumUnits": bounds.maximum,
        "ScalingPolicyUpdate": {
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": bounds.target_percent}
        },
    }


def scaling_of(description: dict[str, Any]) -> list[AutoScalingBounds]:
    """Reads the answer of DescribeTableReplicaAutoScaling."""
    bounds = []
    # One Region only: the tables that we create have no replicas elsewhere.
    for replica in description.get("Replicas", [])[:1]:
        places = [(None, replica)]
        places += [
            (index["IndexName"], index) for index in replica.get("GlobalSecondaryIndexes", [])
        ]
        for index, place in places:
            for kind in KINDS:
                # Tables' fields are named Replica..., those of indexes are not.
                prefix = "" if index else "Replica"
                settings = place.get(f"{prefix}Provisioned{kind}CapacityAutoScalingSettings", {})
                policies = settings.get("ScalingPolicies", [])
                if policies:
                    target = policies[0]["TargetTrackingScalingPolicyConfiguration"]
                    bounds.append(
                        AutoScalingBounds(
                            index=index,
                            kind=kind,
                            minimum=settings["MinimumUnits"],
                            maximum=settings["MaximumUnits"],
                            target_percent=round(target["TargetValue"]),
                        )
                    )
    return bounds


def policies(table: TableRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns the RegisterScalableTarget and PutScalingPolicy requests for Application Auto
    Scaling."""
    requests = []
    for bounds in table.scaling:
        named = {
            "ServiceNamespace": "dynamodb",
            "ResourceId": bounds.resource(table.name),
            "ScalableDimension": bounds.dimension,
        }
        policy = {
            **named,
            "PolicyName": f"{bounds.metric}:{bounds.resource(table.name)}",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": bounds.target_percent,
                "PredefinedMetricSpecification": {"PredefinedMetricType": bounds.metric},
            },
        }
        requests.append(
            ({**named, "MinCapacity": bounds.minimum, "MaxCapacity": bounds.maximum}, policy)
        )
    return requests


def bounds_text(bounds: AutoScalingBounds) -> str:
    return f"from {bounds.minimum:,} to {bounds.maximum:,} units at {bounds.target_percent}% use"
