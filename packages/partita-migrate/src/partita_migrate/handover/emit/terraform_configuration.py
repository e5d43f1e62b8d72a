"""Writes Terraform's JSON: the resource `aws_dynamodb_table` of the AWS provider, version 5 or
later."""

from __future__ import annotations

import json
from typing import Any

from partita_migrate.handover.emit.resource_names import distinct, snake_case
from partita_migrate.handover.table_requests import TableRequest


def write(tables: list[TableRequest]) -> str:
    return json.dumps(configuration(tables), indent=2) + "\n"


def configuration(tables: list[TableRequest]) -> dict[str, Any]:
    names = distinct((table.name for table in tables), snake_case)
    return {
        "terraform": {
            "required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.0"}}
        },
        "resource": {
            "aws_dynamodb_table": {names[table.name]: _resource(table) for table in tables},
            **_scaling(tables, names),
        },
    }


def _resource(table: TableRequest) -> dict[str, Any]:
    create = table.create
    resource: dict[str, Any] = {
        "name": table.name,
        "billing_mode": create["BillingMode"],
        **_keys(create),
        **_units(create),
        "table_class": create["TableClass"],
        "deletion_protection_enabled": create["DeletionProtectionEnabled"],
        "attribute": [
            {"name": definition["AttributeName"], "type": definition["AttributeType"]}
            for definition in create["AttributeDefinitions"]
        ],
    }
    if table.indexes:
        resource["global_secondary_index"] = [
            {"name": index["IndexName"], **_keys(index), **_projection(index), **_units(index)}
            for index in table.indexes
        ]
    if table.local_indexes:
        # A local index has the partition key of its table; the block has no member for it.
        resource["local_secondary_index"] = [
            {
                "name": index["IndexName"],
                "range_key": _keys(index)["range_key"],
                **_projection(index),
            }
            for index in table.local_indexes
        ]
    if stream := create.get("StreamSpecification"):
        resource |= {"stream_enabled": True, "stream_view_type": stream["StreamViewType"]}
    if table.time_to_live:
        resource["ttl"] = [{"attribute_name": table.time_to_live, "enabled": True}]
    if table.scaling:
        # Units that auto scaling has changed are not set back.
        units = ("read_capacity", "write_capacity")
        resource["lifecycle"] = {"ignore_changes": [*units, "global_secondary_index"]}
    if table.point_in_time_recovery:
        resource["point_in_time_recovery"] = [{"enabled": True}]
    resource["tags"] = {_literal(key): _literal(value) for key, value in table.tags.items()}
    return resource


def _scaling(tables: list[TableRequest], names: dict[str, str]) -> dict[str, Any]:
    targets: dict[str, Any] = {}
    policies: dict[str, Any] = {}
    for table in tables:
        for bounds in table.scaling:
            place = f"_{snake_case(bounds.index)}" if bounds.index else ""
            name = f"{names[table.name]}{place}_{bounds.kind.lower()}"
            named = {
                "service_namespace": "dynamodb",
                "resource_id": bounds.resource(table.name),
                "scalable_dimension": bounds.dimension,
            }
            targets[name] = {
                **named,
                "min_capacity": bounds.minimum,
                "max_capacity": bounds.maximum,
                "depends_on": [f"aws_dynamodb_table.{names[table.name]}"],
            }
            policies[name] = {
                **named,
                "name": f"{bounds.metric}:{bounds.resource(table.name)}",
                "policy_type": "TargetTrackingScaling",
                "target_tracking_scaling_policy_configuration": [
                    {
                        "target_value": bounds.target_percent,
                        "predefined_metric_specification": [
                            {"predefined_metric_type": bounds.metric}
                        ],
                    }
                ],
                "depends_on": [f"aws_appautoscaling_target.{name}"],
            }
    if not targets:
        return {}
    return {"aws_appautoscaling_target": targets, "aws_appautoscaling_policy": policies}


def _keys(keyed: dict[str, Any]) -> dict[str, str]:
    names = ("hash_key", "range_key")
    return {
        name: key["AttributeName"] for name, key in zip(names, keyed["KeySchema"], strict=False)
    }


def _units(keyed: dict[str, Any]) -> dict[str, int]:
    throughput = keyed.get("ProvisionedThroughput")
    if throughput is None:
        return {}
    return {
        "read_capacity": throughput["ReadCapacityUnits"],
        "write_capacity": throughput["WriteCapacityUnits"],
    }


def _projection(index: dict[str, Any]) -> dict[str, Any]:
    projection = index["Projection"]
    block: dict[str, Any] = {"projection_type": projection["ProjectionType"]}
    if names := projection.get("NonKeyAttributes"):
        block["non_key_attributes"] = names
    return block


def _literal(text: str) -> str:
    """Escapes ${} and %{}, which Terraform would interpolate even in JSON texts."""
    return text.replace("${", "$${").replace("%{", "%%{")
