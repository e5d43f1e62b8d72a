"""Writes a stack of the AWS CDK, version 2, in Python."""

from __future__ import annotations

import json
from typing import Any

from partita_migrate.handover.emit.resource_names import distinct, pascal_case
from partita_migrate.handover.table_requests import TableRequest

TYPES = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
INDENT = "    "
RECOVERY = (
    "dynamodb.PointInTimeRecoverySpecification(\n"
    f"{INDENT * 4}point_in_time_recovery_enabled=True\n{INDENT * 3})"
)

HEAD = '''"""The tables of the migration {migration}: `cdk deploy --app "python tables_cdk.py"`."""

from aws_cdk import App, RemovalPolicy, Stack, Tags
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct


class {stack}(Stack):
    def __init__(self, scope: Construct, construct_id: str, **options) -> None:
        super().__init__(scope, construct_id, **options)
'''
TAIL = """

if __name__ == "__main__":
    app = App()
    {stack}(app, "{stack}")
    app.synth()
"""


def write(tables: list[TableRequest]) -> str:
    migration = tables[0].tags["migration"]
    stack = f"{pascal_case(migration)}Tables"
    ids = distinct((table.name for table in tables), pascal_case)
    lines = [line for table in tables for line in _table(table, ids[table.name])]
    body = "".join(f"{INDENT * 2}{line}".rstrip() + "\n" for line in lines)
    return HEAD.format(migration=migration, stack=stack) + body + TAIL.format(stack=stack)


def _table(table: TableRequest, construct: str) -> list[str]:
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in table.create["AttributeDefinitions"]
    }
    arguments = {
        "table_name": _text(table.name),
        **_keys(table.create, types),
        **_capacity(table.create, "billing_mode"),
        "table_class": f"dynamodb.TableClass.{table.create['TableClass']}",
        "deletion_protection": repr(table.create["DeletionProtectionEnabled"]),
        "removal_policy": "RemovalPolicy.RETAIN",
    }
    if stream := table.create.get("StreamSpecification"):
        arguments["stream"] = f"dynamodb.StreamViewType.{stream['StreamViewType']}"
    if table.time_to_live:
        arguments["time_to_live_attribute"] = _text(table.time_to_live)
    if table.point_in_time_recovery:
        arguments["point_in_time_recovery_specification"] = RECOVERY
    lines = ["", *_call("table = dynamodb.Table", ["self", _text(construct)], arguments)]
    for index in table.local_indexes:
        keys = _keys(index, types)
        lines += _call(
            "table.add_local_secondary_index",
            [],
            {
                "index_name": _text(index["IndexName"]),
                "sort_key": keys["sort_key"],
                **_projection(index),
            },
        )
    for index in table.indexes:
        lines += _call(
            "table.add_global_secondary_index",
            [],
            {
                "index_name": _text(index["IndexName"]),
                **_keys(index, types),
                **_projection(index),
                **_capacity(index, None),
            },
        )
    for bounds in table.scaling:
        called = (
            f"auto_scale_{'global_secondary_index_' if bounds.index else ''}{bounds.kind.lower()}"
        )
        lines += [
            f"table.{called}_capacity(",
            *([f"{INDENT}{_text(bounds.index)},"] if bounds.index else []),
            f"{INDENT}min_capacity={bounds.minimum},",
            f"{INDENT}max_capacity={bounds.maximum},",
            f").scale_on_utilization(target_utilization_percent={bounds.target_percent})",
        ]
    return [
        *lines,
        *(f"Tags.of(table).add({_text(key)}, {_text(value)})" for key, value in table.tags.items()),
    ]


def _text(value: str | list[str]) -> str:
    """Returns a literal in double quotes. Escapes in JSON are also valid in Python."""
    return json.dumps(value, ensure_ascii=False)


def _call(function: str, positional: list[str], named: dict[str, str]) -> list[str]:
    arguments = [*positional, *(f"{name}={value}" for name, value in named.items())]
    return [f"{function}(", *(f"{INDENT}{argument}," for argument in arguments), ")"]


def _keys(keyed: dict[str, Any], types: dict[str, str]) -> dict[str, str]:
    return {
        argument: f"dynamodb.Attribute(name={_text(key['AttributeName'])},"
        f" type=dynamodb.AttributeType.{TYPES[types[key['AttributeName']]]})"
        for argument, key in zip(("partition_key", "sort_key"), keyed["KeySchema"], strict=False)
    }


def _capacity(keyed: dict[str, Any], mode: str | None) -> dict[str, str]:
    arguments = {mode: f"dynamodb.BillingMode.{keyed['BillingMode']}"} if mode else {}
    if throughput := keyed.get("ProvisionedThroughput"):
        arguments |= {
            "read_capacity": str(throughput["ReadCapacityUnits"]),
            "write_capacity": str(throughput["WriteCapacityUnits"]),
        }
    return arguments


def _projection(index: dict[str, Any]) -> dict[str, str]:
    projection = index["Projection"]
    arguments = {"projection_type": f"dynamodb.ProjectionType.{projection['ProjectionType']}"}
    if names := projection.get("NonKeyAttributes"):
        arguments["non_key_attributes"] = _text(names)
    return arguments
