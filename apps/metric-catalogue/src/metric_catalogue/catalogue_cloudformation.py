"""Builds a CloudFormation template of the catalogue on AWS: its tables, and the state machine of
the migration with its three functions.

    schedule ─ invoker ─ state machine ─ MigrateOneMetric ─ tables
                                       └ CleanUpDynamoDbFromMigratedMetricMetadata

The functions reach MariaDB or Aurora in a VPC, whose subnets need a way to DynamoDB's and Step
Functions' endpoints. `partita metrics migrate` finds the state machine by its name.
"""

from __future__ import annotations

import json
from typing import Any

from metric_catalogue.migration.step_functions.migration_functions import MACHINE, MYSQL, TABLE
from metric_catalogue.migration.step_functions.migration_machine import (
    CLEAN_UP,
    DEFINITION,
    HANDLERS,
    INVOKER,
    MIGRATE_ONE,
    NAME,
    RUNTIME,
    TIMEOUT_SECONDS,
    scoped_name,
)
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables, descriptions
from metric_catalogue.stores.mariadb.mariadb_connections import PASSWORD
from partita_services.cloudformation_resources import (
    Resource,
    allow,
    arn,
    lambda_function,
    logical_id,
    parameter,
    role,
    table,
    table_arn,
)
from partita_services.workflows.language import strip_comments

RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
MEMORY_MB = 256
CONCURRENCY = 50
"""Limits the connections to the database, because each running function has one. Step Functions
retries calls that exceed it."""


def template(tables: CatalogueTables) -> dict[str, Any]:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The metric catalogue: its tables, and its migration from MariaDB.",
        "Parameters": {
            "CodeBucket": parameter("The bucket with the package of code."),
            "CodeKey": parameter("Partita with partita[metrics], as a zip."),
            "MysqlUrl": parameter("mysql://user@host:port/database"),
            "MysqlPassword": {**parameter("The password of that user."), "NoEcho": True},
            "SubnetIds": _list("Subnet", "The subnets in which the functions run."),
            "SecurityGroupIds": _list("SecurityGroup", "Groups that may reach the database."),
        },
        "Resources": {
            **{
                logical_id(definition["TableName"]): table(definition, **RECOVERY)
                for definition in descriptions(tables)
            },
            **_function(MIGRATE_ONE, tables, [_may_write(tables)], CONCURRENCY),
            **_function(CLEAN_UP, tables, [_may_write(tables)], CONCURRENCY),
            **_function(INVOKER, tables, [allow(["states:StartExecution"], _machine_arn(tables))]),
            **_machine(tables),
            **_schedule(),
        },
        "Outputs": {
            "StateMachine": {
                "Description": "The ARN of the state machine.",
                "Value": {"Ref": "Migration"},
            },
        },
    }


def _list(kind: str, description: str) -> Resource:
    return {"Type": f"List<AWS::EC2::{kind}::Id>", "Description": description}


# Functions


def _function(
    base: str, tables: CatalogueTables, statements: list[Resource], concurrency: int | None = None
) -> dict[str, Resource]:
    variables: dict[str, Any] = {
        MYSQL: {"Ref": "MysqlUrl"},
        PASSWORD: {"Ref": "MysqlPassword"},
        TABLE: tables.metrics,
    }
    if base == INVOKER:
        variables[MACHINE] = _machine_arn(tables)
    properties: Resource = {
        "Runtime": RUNTIME,
        "Handler": HANDLERS[base],
        "MemorySize": MEMORY_MB,
        "Timeout": TIMEOUT_SECONDS,
        "Environment": {"Variables": variables},
        "VpcConfig": {
            "SubnetIds": {"Ref": "SubnetIds"},
            "SecurityGroupIds": {"Ref": "SecurityGroupIds"},
        },
    }
    if concurrency is not None:
        properties["ReservedConcurrentExecutions"] = concurrency
    # The network interfaces do not exist yet, so no ARN can name them.
    may_join_vpc = allow(
        [
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
        ],
        "*",
    )
    name = scoped_name(base, tables)
    return lambda_function(base, name, "CodeKey", [*statements, may_join_vpc], **properties)


def _may_write(tables: CatalogueTables) -> Resource:
    actions = ["ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"]
    names = (tables.metrics, tables.directory)
    return allow([f"dynamodb:{action}" for action in actions], [table_arn(name) for name in names])


# The state machine and what starts it


def _machine(tables: CatalogueTables) -> dict[str, Resource]:
    functions = (MIGRATE_ONE, CLEAN_UP)
    definition = json.loads(strip_comments(DEFINITION.read_text()))
    return {
        "Migration": {
            "Type": "AWS::StepFunctions::StateMachine",
            "Properties": {
                "StateMachineName": scoped_name(NAME, tables),
                "RoleArn": arn("MigrationRole"),
                "Definition": definition,
                "DefinitionSubstitutions": {f"{name}Arn": arn(name) for name in functions},
            },
        },
        "MigrationRole": role(
            "states.amazonaws.com",
            [allow(["lambda:InvokeFunction"], [arn(name) for name in functions])],
        ),
    }


def _machine_arn(tables: CatalogueTables) -> Resource:
    """Returns the machine's ARN, built from its name. A reference would be circular: the machine
    refers to the functions, and the invoker, which is a function too, refers to the machine."""
    machine = scoped_name(NAME, tables)
    prefix = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:"
    return {"Fn::Sub": prefix + machine}


def _schedule() -> dict[str, Resource]:
    """Returns a schedule that calls the invoker, switched off: `partita metrics migrate` calls the
    invoker itself, after it has changed the mode."""
    return {
        "Schedule": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {
                "ScheduleExpression": "rate(1 minute)",
                "State": "DISABLED",
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "Target": {"Arn": arn(INVOKER), "RoleArn": arn("ScheduleRole"), "Input": "{}"},
            },
        },
        "ScheduleRole": role(
            "scheduler.amazonaws.com", [allow(["lambda:InvokeFunction"], arn(INVOKER))]
        ),
    }
