"""Writes a CloudFormation template, in JSON."""

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
                # Deleting or replacing the stack must not delete the data.
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": properties(table),
            }
            for table in tables
        }
        | {
            name: resource
            for table in tables
            for name, resource in _scaling(table, ids[table.name])
        },
        "Outputs": {
            f"{ids[table.name]}Stream": {"Value": {"Fn::GetAtt": [ids[table.name], "StreamArn"]}}
            for table in tables
            if "StreamSpecification" in table.create
        },
    }


def _scaling(table: TableRequest, table_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a scalable target and a scaling policy for the reads and the writes of the table and
    of each index."""
    for bounds in table.scaling:
        name = f"{table_id}{pascal_case(bounds.index) if bounds.index else ''}{bounds.kind}Scaling"
        yield (
            f"{name}Target",
            {
                "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
                "DependsOn": table_id,
                "Properties": {
                    "ServiceNamespace": "dynamodb",
                    "ResourceId": bounds.resource(table.name),
                    "ScalableDimension": bounds.dimension,
                    "MinCapacity": bounds.minimum,
                    "MaxCapacity": bounds.maximum,
                },
            },
        )
        yield (
            f"{name}Policy",
            {
                "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "Properties": {
                    "PolicyName": f"{bounds.metric}:{bounds.resource(table.name)}",
                    "PolicyType": "TargetTrackingScaling",
                    "ScalingTargetId": {"Ref": f"{name}Target"},
                    "TargetTrackingScalingPolicyConfiguration": {
                        "TargetValue": bounds.target_percent,
                        "PredefinedMetricSpecification": {"PredefinedMetricType": bounds.metric},
                    },
                },
            },
        )


def properties(table: TableRequest) -> dict[str, Any]:
    """Returns the members of CreateTable, with changes where CloudFormation names them
    differently."""
    members = dict(table.create)
    if stream := members.pop("StreamSpecification", None):
        members["StreamSpecification"] = {"StreamViewType": stream["StreamViewType"]}
    if table.time_to_live:
        members["TimeToLiveSpecification"] = {
            "AttributeName": table.time_to_live,
            "Enabled": True,
        }
    if table.point_in_time_recovery:
        members["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}
    members["Tags"] = tag_list(table.tags)
    return members
