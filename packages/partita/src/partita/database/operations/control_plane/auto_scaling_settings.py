"""UpdateTableReplicaAutoScaling and DescribeTableReplicaAutoScaling.

The service supports them for global tables only; here, every table counts as a global table with
one replica, in the server's region. The error messages, including those of Application Auto
Scaling, were recorded in October 2026. `database/capacity/scaling/auto_scaling.py` computes what
the policies do.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from partita.database.capacity.scaling.auto_scaling import ScalingPolicy
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.response_members import encode
from partita.database.tables.definition.table_schema import PAY_PER_REQUEST, Index, Table
from partita.errors import ResourceNotFoundException, ValidationException

ROLE = (
    "arn:aws:iam::{account}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
TARGET_PERCENT_MIN, TARGET_PERCENT_MAX = 10.0, 90.0
READ, WRITE = "Read", "Write"
FIELDS = {READ: "read_scaling", WRITE: "write_scaling"}
# The order is that in which the service lists them.
REQUIRED = ("MaximumUnits", "ScalingPolicyUpdate", "MinimumUnits")

Settings = Mapping[str, Any]
Update = tuple[str | None, str, Settings]
"""The index, or None for the table; Read or Write; and the requested settings."""


def describe_table_replica_auto_scaling(context: ReadContext, request: Request) -> bytes:
    return encode(_description(context.service, _find(context.service, request)))


def update_table_replica_auto_scaling(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table = _find(service, request)
    updates = _updates(service, table, request)
    for index_name, kind, settings in updates:
        owner = table.index(index_name) if index_name else table
        assert owner is not None
        changed = replace(owner, **{FIELDS[kind]: _policy(service, table, owner, kind, settings)})
        table = table.with_index(changed) if isinstance(changed, Index) else changed
    service.catalog.save(context.write_batch, table)
    return encode(_description(service, table))


def _find(service: DatabaseService, request: Request) -> Table:
    name = table_name(request["TableName"])
    table = service.catalog.find(name)
    if table is None:
        raise ResourceNotFoundException(f"Global table with name: '{name}' does not exist.")
    return table


def _updates(service: DatabaseService, table: Table, request: Request) -> list[Update]:
    """Returns all updates in a request; refuses those of missing indexes and replicas."""
    updates: list[Update] = []
    if "ProvisionedWriteCapacityAutoScalingUpdate" in request:
        updates.append((None, WRITE, request["ProvisionedWriteCapacityAutoScalingUpdate"]))
    for update in request.get("GlobalSecondaryIndexUpdates", ()):
        settings = update.get("ProvisionedWriteCapacityAutoScalingUpdate")
        updates += [(_index_name(update), WRITE, settings)] if settings is not None else []
    replicas = request.get("ReplicaUpdates", ())
    _check_regions(service, table, [replica["RegionName"] for replica in replicas])
    for replica in replicas:
        replica_updates: list[Update] = []
        settings = replica.get("ReplicaProvisionedReadCapacityAutoScalingUpdate")
        replica_updates += [(None, READ, settings)] if settings is not None else []
        for update in replica.get("ReplicaGlobalSecondaryIndexUpdates", ()):
            settings = update.get("ProvisionedReadCapacityAutoScalingUpdate")
            if settings is not None:
                replica_updates.append((_index_name(update), READ, settings))
        if not replica_updates:
            region = replica["RegionName"]
            raise ValidationException(
                f"{_failed(table)} because at least one update parameter must be specified for "
                f"region: ‘{region}’."  # noqa: RUF001
            )
        updates += replica_updates
    if not updates:
        raise ValidationException(
            f"{_failed(table)} because at least one update parameter must be specified."
        )
    _check_indexes(table, updates)
    return updates


def _index_name(update: Settings) -> str:
    """Returns the name of an index in an update.

    Without a name, it is "null", which no index has: None would stand for the table.
    """
    name: str = update.get("IndexName", "null")
    return name


def _check_regions(service: DatabaseService, table: Table, regions: list[str]) -> None:
    repeated = [region for region, count in Counter(regions).items() if count > 1]
    if repeated:
        raise ValidationException(
            f"{_failed(table)} because the regions: {_listed(repeated)} were specified more than "
            "once."
        )
    unknown = [region for region in regions if region != service.region]
    if unknown:
        raise ResourceNotFoundException(
            f"{_failed(table)} because a replica does not exist in regions: {_listed(unknown)}."
        )


def _check_indexes(table: Table, updates: list[Update]) -> None:
    names = {index.name for index in table.global_indexes}
    unknown = [name for name, _, _ in updates if name and name not in names]
    if unknown:
        raise ResourceNotFoundException(
            f"{_failed(table)} because the global secondary indexes with names: "
            f"{_listed(unknown)} do not exist."
        )


def _policy(
    service: DatabaseService, table: Table, owner: Table | Index, kind: str, settings: Settings
) -> ScalingPolicy | None:
    """Returns the policy that an update requests, or None if it disables auto scaling."""
    if settings.get("AutoScalingDisabled"):
        if surplus := [name for name in REQUIRED if name in settings]:
            raise ValidationException(
                f"{_failed(table).replace(':', '')}: Parameters {_quoted(surplus)} must be left "
                "blank when disabling auto scaling."
            )
        return None
    if missing := [name for name in REQUIRED if name not in settings]:
        raise ValidationException(
            f"{_failed(table)}: Parameters {_quoted(missing)} are required unless auto scaling is "
            "being disabled."
        )
    update = settings["ScalingPolicyUpdate"]
    tracking = update["TargetTrackingScalingPolicyConfiguration"]
    # A JSON integer can be larger than any double.
    target = max(-sys.float_info.max, min(tracking["TargetValue"], sys.float_info.max))
    _check_figures(service, kind, settings, target)
    resource = f"table/{table.name}"
    if isinstance(owner, Index):
        resource += f"/index/{owner.name}"
    return ScalingPolicy(
        minimum=settings["MinimumUnits"],
        maximum=settings["MaximumUnits"],
        target_percent=target,
        policy_name=update.get("PolicyName", f"DynamoDB{kind}CapacityUtilization:{resource}"),
        disable_scale_in=tracking.get("DisableScaleIn"),
        scale_in_cooldown=tracking.get("ScaleInCooldown"),
        scale_out_cooldown=tracking.get("ScaleOutCooldown"),
    )


def _check_figures(service: DatabaseService, kind: str, settings: Settings, target: float) -> None:
    if settings["MaximumUnits"] < settings["MinimumUnits"]:
        text = "Maximum capacity cannot be less than minimum capacity"
    elif target <= 0:
        text = (
            "For target tracking scaling, target value must be between '8.51592E-109' and "
            f"'1.174271E108', but was '{float(target)}'."
        )
    elif not TARGET_PERCENT_MIN <= target <= TARGET_PERCENT_MAX:
        text = (
            f"For predefined metric type DynamoDB{kind}CapacityUtilization, target value must be "
            f"between '{TARGET_PERCENT_MIN}' and '{TARGET_PERCENT_MAX}', but was "
            f"'{float(target)}'."
        )
    else:
        return
    raise ValidationException(
        f"{text} (Service: AWSApplicationAutoScaling; Status Code: 400; Error Code: "
        f"ValidationException; Request ID: {service.new_id()}; Proxy: null)"
    )


def _failed(table: Table) -> str:
    return f"Failed to update settings for global table with name: ‘{table.name}’"  # noqa: RUF001


def _listed(names: list[str]) -> str:
    return f"‘[{', '.join(names)}]’"  # noqa: RUF001


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _description(service: DatabaseService, table: Table) -> dict[str, Any]:
    replica = {
        "RegionName": service.region,
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "IndexStatus": index.status,
                "ProvisionedReadCapacityAutoScalingSettings": _settings(
                    service, table, index.read_scaling
                ),
                "ProvisionedWriteCapacityAutoScalingSettings": _settings(
                    service, table, index.write_scaling
                ),
            }
            for index in table.global_indexes
        ],
        "ReplicaProvisionedReadCapacityAutoScalingSettings": _settings(
            service, table, table.read_scaling
        ),
        "ReplicaProvisionedWriteCapacityAutoScalingSettings": _settings(
            service, table, table.write_scaling
        ),
        "ReplicaStatus": table.status(service.clock()),
    }
    return {
        "TableAutoScalingDescription": {
            "TableName": table.name,
            "TableStatus": table.status(service.clock()),
            "Replicas": [replica],
        }
    }


def _settings(
    service: DatabaseService, table: Table, policy: ScalingPolicy | None
) -> dict[str, Any]:
    if policy is None:
        return {"AutoScalingDisabled": True, "ScalingPolicies": []}
    tracking = {
        "DisableScaleIn": policy.disable_scale_in,
        "ScaleInCooldown": policy.scale_in_cooldown,
        "ScaleOutCooldown": policy.scale_out_cooldown,
        "TargetValue": float(policy.target_percent),
    }
    settings: dict[str, Any] = {
        "MinimumUnits": policy.minimum,
        "MaximumUnits": policy.maximum,
        "AutoScalingRoleArn": ROLE.format(account=service.account_id),
        "ScalingPolicies": [
            {
                "PolicyName": policy.policy_name,
                "TargetTrackingScalingPolicyConfiguration": {
                    name: value for name, value in tracking.items() if value is not None
                },
            }
        ],
    }
    if table.billing_mode == PAY_PER_REQUEST:
        # The policy is kept while the table is on demand, but shown as disabled (recorded).
        settings["AutoScalingDisabled"] = True
    return settings
