"""A template of CloudFormation, in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from partita_migrate.handover.emit.resource_names import distinct, pascal_case
from partita_migrate.handover.table_requests import TableRequest, tag_list


def write(tables: list[TableRequest]) -> str:
    return json.dumps(template(tables), indent=2) + "\n"


def template(tables: list[TableRequest]) -> dict[str, Any]:
    ids = distinct((table.name for table in tables), lambda name: f"{pascal_case(name)}Table")
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Tables of the migration {tables[0].tags['migration']}",
        "Resources": {
            ids[table.name]: {
                "Type": "AWS::DynamoDB::Table",
                # A stack that is deleted or replaced leaves the data alone.
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": properties(table),
            }
            for table in tables
        }
        | {name: one for table in tables for name, one in _scaling(table, ids[table.name])},
        "Outputs": {
            f"{ids[table.name]}Stream": {"Value": {"Fn::GetAtt": [ids[table.name], "StreamArn"]}}
            for table in tables
            if "StreamSpecification" in table.create
        },
    }


def _scaling(table: TableRequest, table_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A target and a policy for the reads and the writes of the table and of each index."""
    for one in table.scaling:
        name = f"{table_id}{pascal_case(one.index) if one.index else ''}{one.kind}Scaling"
        yield (
            f"{name}Target",
            {
                "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
                "DependsOn": table_id,
                "Properties": {
                    "ServiceNamespace": "dynamodb",
                    "ResourceId": one.resource(table.name),
                    "ScalableDimension": one.dimension,
                    "MinCapacity": one.minimum,
                    "MaxCapacity": one.maximum,
                },
            },
        )
        yield (
            f"{name}Policy",
            {
                "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "Properties": {
                    "PolicyName": f"{one.metric}:{one.resource(table.name)}",
                    "PolicyType": "TargetTrackingScaling",
                    "ScalingTargetId": {"Ref": f"{name}Target"},
                    "TargetTrackingScalingPolicyConfiguration": {
                        "TargetValue": one.target_percent,
                        "PredefinedMetricSpecification": {"PredefinedMetricType": one.metric},
                    },
                },
            },
        )


def properties(table: TableRequest) -> dict[str, Any]:
    """CreateTable's own members, but for what CloudFormation calls otherwise."""
    found = dict(table.create)
    if stream := found.pop("StreamSpecification", None):
        found["StreamSpecification"] = {"StreamViewType": stream["StreamViewType"]}
    if table.time_to_live:
        found["TimeToLiveSpecification"] = {
            "AttributeName": table.time_to_live,
            "Enabled": True,
        }
    if table.point_in_time_recovery:
        found["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}
    found["Tags"] = tag_list(table.tags)
    return found
