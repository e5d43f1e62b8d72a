"""Every operation that the server registers, with no right, the wrong right, a right on something
else, and exactly the right. An operation without a row here fails the suite."""

from __future__ import annotations

import base64
import http.client
import json
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from partita.assembly.service_registry import READS, WRITES, forwarded_rights, rights
from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, signed_headers, split_target
from partita.server.backup_service import _OPERATIONS as COPYING
from partita.server.monitoring.monitoring_pages import PAGES, TABLE_PAGES
from partita.server.protocol.rest import request_for
from partita.server.security.administration.administration_api import _OPERATIONS as ADMINISTRATION
from partita.server.security.authentication.operator_pages import ACTIONS
from partita.server.security.authentication.sts import OPERATIONS as STS
from partita.server.security.identities.user_directory import AccessKey, Directory, add_user
from partita.server.security.rights.recovery_rights import COPY
from partita_services.functions.api.lambda_registry import OPERATIONS as REST
from partita_services.workflows.api.step_functions_registry import OPERATIONS as STATES
from testkit.servers.users import ACCOUNT, REGION, People, policy, statement, table_arn

BOOKS = table_arn("Books")
INDEX = f"{BOOKS}/index/by_title"
LABEL = "2026-01-01T00:00:00.000"
STREAM = f"{BOOKS}/stream/{LABEL}"
EVENTS = f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/events"
STATE = f"arn:aws:states:{REGION}:{ACCOUNT}:"
MACHINE, ACTIVITY = f"{STATE}stateMachine:orders", f"{STATE}activity:pick"
EXECUTION = f"{STATE}execution:orders:one"
LAMBDA_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:"
FUNCTION = f"{LAMBDA_ARN}function:thumbs"
SCHEDULE = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/jobs/nightly"
GROUP = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group/jobs"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/app"
BACKUP = f"{BOOKS}/backup/01489173575360-b308cd7d"
EXPORT = f"{BOOKS}/export/01695353076000-06e2188f"
IMPORT = f"{BOOKS}/import/01658528578619-c4d4e311"
BULK = f"{BOOKS}/bulk/01758528578619-c4d4e311"
COPIED = table_arn("Copied")
TABLES = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/*"
ACCESS = f"arn:aws:partita:{REGION}:{ACCOUNT}:access"
DATABASE = f"arn:aws:partita:{REGION}:{ACCOUNT}:database"
KEY = {"pk": {"S": "a"}}
ITERATOR = f"{STREAM}|1|{base64.urlsafe_b64encode(bytes(20)).decode()}"
EVENT_ITERATOR = base64.b64encode(struct.pack(">QIIQQ", 1, 1, 0, 0, 0) + b"events").decode()
SELECT = """SELECT * FROM "Books" WHERE pk = 'a'"""
THROUGHPUT = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
DEFINITION = '{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}'

Needed = tuple[str, str]


@dataclass(frozen=True)
class Row:
    request: dict[str, Any]
    needs: tuple[Needed, ...]
    """Actions without their service, and resources."""


def on(resource: str, action: str, request: dict[str, Any]) -> Row:
    return Row(request, ((action, resource),))


def on_table(action: str, **more: Any) -> Row:
    return on(BOOKS, action, {"TableName": "Books", **more})


def on_stream(action: str, **more: Any) -> Row:
    return on(EVENTS, action, {"StreamName": "events", **more})


def on_machine(action: str, **more: Any) -> Row:
    return on(MACHINE, action, {"stateMachineArn": MACHINE, **more})


def on_execution(action: str) -> Row:
    return on(EXECUTION, action, {"executionArn": EXECUTION})


def on_all(action: str, resource: str = "*", **request: Any) -> Row:
    return on(resource, action, request)


def restoring(action: str, resource: str, **request: Any) -> Row:
    copying = [(one, COPIED) for one in COPY]
    return Row({"TargetTableName": "Copied", **request}, ((action, resource), *copying))


KINESIS_DESTINATION = {"TableName": "Books", "StreamArn": EVENTS}
DYNAMODB_ROWS = {
    "BatchExecuteStatement": on(BOOKS, "PartiQLSelect", {"Statements": [{"Statement": SELECT}]}),
    "BatchGetItem": on(BOOKS, "BatchGetItem", {"RequestItems": {"Books": {"Keys": [KEY]}}}),
    "BatchWriteItem": on(
        BOOKS, "BatchWriteItem", {"RequestItems": {"Books": [{"DeleteRequest": {"Key": KEY}}]}}
    ),
    "CreateBackup": on_table("CreateBackup", BackupName="nightly"),
    "CreateTable": Row(
        {
            "TableName": "Books",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PROVISIONED",
            "Tags": [{"Key": "a", "Value": "b"}],
            "ResourcePolicy": "{}",
        },
        (("CreateTable", BOOKS), ("TagResource", BOOKS), ("PutResourcePolicy", BOOKS)),
    ),
    "DeleteBackup": on(BACKUP, "DeleteBackup", {"BackupArn": BACKUP}),
    "DeleteItem": on_table("DeleteItem", Key=KEY),
    "DeleteResourcePolicy": on(BOOKS, "DeleteResourcePolicy", {"ResourceArn": BOOKS}),
    "DeleteTable": on_table("DeleteTable"),
    "DescribeBackup": on(BACKUP, "DescribeBackup", {"BackupArn": BACKUP}),
    "DescribeContinuousBackups": on_table("DescribeContinuousBackups"),
    "DescribeContributorInsights": on(
        INDEX, "DescribeContributorInsights", {"TableName": "Books", "IndexName": "by_title"}
    ),
    "DescribeEndpoints": on_all("DescribeEndpoints"),
    "DescribeExport": on(EXPORT, "DescribeExport", {"ExportArn": EXPORT}),
    "DescribeBulkOperation": on(BULK, "DescribeBulkOperation", {"BulkOperationArn": BULK}),
    "CancelBulkOperation": on(BULK, "CancelBulkOperation", {"BulkOperationArn": BULK}),
    "ListBulkOperations": on_all("ListBulkOperations", f"{TABLES}/bulk/*"),
    "StartBulkPutItems": Row(
        {
            "TableName": "Books",
            "InputS3Configuration": {"S3Bucket": "files", "InputFormat": "ION"},
            "OutputS3Configuration": {"S3Bucket": "told", "OutputType": ["ERROR"]},
        },
        (
            ("StartBulkPutItems", BOOKS),
            ("s3:ListBucket", "arn:aws:s3:::files"),
            ("s3:GetObject", "arn:aws:s3:::files/*"),
            ("s3:PutObject", "arn:aws:s3:::told/*"),
        ),
    ),
    "DescribeImport": on(IMPORT, "DescribeImport", {"ImportArn": IMPORT}),
    "DescribeKinesisStreamingDestination": on_table("DescribeKinesisStreamingDestination"),
    "DescribeLimits": on_all("DescribeLimits"),
    "DescribeTable": on_table("DescribeTable"),
    "DescribeTableReplicaAutoScaling": on_table("DescribeTableReplicaAutoScaling"),
    "DescribeTimeToLive": on_table("DescribeTimeToLive"),
    "DisableKinesisStreamingDestination": on(
        BOOKS, "DisableKinesisStreamingDestination", KINESIS_DESTINATION
    ),
    "EnableKinesisStreamingDestination": Row(
        KINESIS_DESTINATION,
        (
            ("EnableKinesisStreamingDestination", BOOKS),
            ("kinesis:DescribeStream", EVENTS),
            ("kinesis:PutRecords", EVENTS),
        ),
    ),
    "ExecuteStatement": on(BOOKS, "PartiQLSelect", {"Statement": SELECT}),
    "ExecuteTransaction": Row(
        {
            "TransactStatements": [
                {"Statement": """INSERT INTO "Books" VALUE {'pk': 'a'}"""},
                {"Statement": """UPDATE "Books" SET n = 1 WHERE pk = 'b'"""},
                {"Statement": """DELETE FROM "Books" WHERE pk = 'c'"""},
            ]
        },
        (("PartiQLInsert", BOOKS), ("PartiQLUpdate", BOOKS), ("PartiQLDelete", BOOKS)),
    ),
    "ExportTableToPointInTime": Row(
        {"TableArn": BOOKS, "S3Bucket": "files"},
        (("ExportTableToPointInTime", BOOKS), ("s3:PutObject", "arn:aws:s3:::files/*")),
    ),
    "GetItem": on_table("GetItem", Key=KEY),
    "GetResourcePolicy": on(STREAM, "GetResourcePolicy", {"ResourceArn": STREAM}),
    "ListBackups": on_all("ListBackups", f"{TABLES}/backup/*"),
    "ImportTable": Row(
        {
            "S3BucketSource": {"S3Bucket": "files"},
            "InputFormat": "CSV",
            "TableCreationParameters": {
                "TableName": "Books",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            },
        },
        (
            ("ImportTable", f"{BOOKS}/import/*"),
            ("s3:ListBucket", "arn:aws:s3:::files"),
            ("s3:GetObject", "arn:aws:s3:::files/*"),
        ),
    ),
    "ListExports": on_all("ListExports", f"{TABLES}/export/*"),
    "ListImports": on_all("ListImports", f"{TABLES}/import/*"),
    "ListContributorInsights": on_all("ListContributorInsights", TABLES),
    "ListTables": on_all("ListTables", TABLES),
    "ListTagsOfResource": on(BOOKS, "ListTagsOfResource", {"ResourceArn": BOOKS}),
    "PutItem": on_table("PutItem", Item=KEY),
    "PutResourcePolicy": on(BOOKS, "PutResourcePolicy", {"ResourceArn": BOOKS, "Policy": "{}"}),
    "Query": on(
        INDEX,
        "Query",
        {
            "TableName": "Books",
            "IndexName": "by_title",
            "KeyConditionExpression": "title = :t",
            "ExpressionAttributeValues": {":t": {"S": "x"}},
        },
    ),
    "Scan": on_table("Scan"),
    "RestoreTableFromBackup": restoring("RestoreTableFromBackup", BACKUP, BackupArn=BACKUP),
    "RestoreTableToPointInTime": restoring(
        "RestoreTableToPointInTime", BOOKS, SourceTableName="Books", UseLatestRestorableTime=True
    ),
    "TagResource": on(
        BOOKS, "TagResource", {"ResourceArn": BOOKS, "Tags": [{"Key": "a", "Value": "b"}]}
    ),
    "TransactGetItems": on(
        BOOKS, "GetItem", {"TransactItems": [{"Get": {"TableName": "Books", "Key": KEY}}]}
    ),
    "TransactWriteItems": Row(
        {
            "TransactItems": [
                {"Put": {"TableName": "Books", "Item": KEY}},
                {"Delete": {"TableName": "Books", "Key": KEY}},
                {
                    "Update": {
                        "TableName": "Books",
                        "Key": KEY,
                        "UpdateExpression": "REMOVE a",
                    }
                },
                {
                    "ConditionCheck": {
                        "TableName": "Books",
                        "Key": KEY,
                        "ConditionExpression": "attribute_exists(a)",
                    }
                },
            ]
        },
        (
            ("PutItem", BOOKS),
            ("DeleteItem", BOOKS),
            ("UpdateItem", BOOKS),
            ("ConditionCheckItem", BOOKS),
        ),
    ),
    "UntagResource": on(BOOKS, "UntagResource", {"ResourceArn": BOOKS, "TagKeys": ["a"]}),
    "UpdateContinuousBackups": on_table(
        "UpdateContinuousBackups",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    ),
    "UpdateContributorInsights": on_table(
        "UpdateContributorInsights", ContributorInsightsAction="ENABLE"
    ),
    "UpdateItem": on_table("UpdateItem", Key=KEY),
    "UpdateKinesisStreamingDestination": on(
        BOOKS, "UpdateKinesisStreamingDestination", KINESIS_DESTINATION
    ),
    "UpdateTable": on_table("UpdateTable", ProvisionedThroughput=THROUGHPUT),
    "UpdateTableReplicaAutoScaling": on_table("UpdateTableReplicaAutoScaling"),
    "UpdateTimeToLive": on_table(
        "UpdateTimeToLive", TimeToLiveSpecification={"AttributeName": "t", "Enabled": True}
    ),
}
STREAM_ROWS = {
    "DescribeStream": on(STREAM, "DescribeStream", {"StreamArn": STREAM}),
    "GetRecords": on(STREAM, "GetRecords", {"ShardIterator": ITERATOR}),
    "GetShardIterator": on(
        STREAM,
        "GetShardIterator",
        {
            "StreamArn": STREAM,
            "ShardId": "shardId-00000000000000000001-00000001",
            "ShardIteratorType": "LATEST",
        },
    ),
    "ListStreams": on(f"{BOOKS}/stream/*", "ListStreams", {"TableName": "Books"}),
}
KINESIS_ROWS = {
    "AddTagsToStream": on_stream("AddTagsToStream", Tags={"a": "b"}),
    "CreateStream": on_stream("CreateStream", ShardCount=1),
    "DecreaseStreamRetentionPeriod": on_stream(
        "DecreaseStreamRetentionPeriod", RetentionPeriodHours=24
    ),
    "DeleteStream": on_stream("DeleteStream"),
    "DescribeLimits": on_all("DescribeLimits", f"{EVENTS[:-6]}*"),
    "DescribeStream": on_stream("DescribeStream"),
    "DescribeStreamSummary": on_stream("DescribeStreamSummary"),
    "GetRecords": on(EVENTS, "GetRecords", {"ShardIterator": EVENT_ITERATOR}),
    "GetShardIterator": on_stream(
        "GetShardIterator", ShardId="shardId-000000000000", ShardIteratorType="LATEST"
    ),
    "IncreaseStreamRetentionPeriod": on_stream(
        "IncreaseStreamRetentionPeriod", RetentionPeriodHours=48
    ),
    "ListShards": on_stream("ListShards"),
    "ListStreams": on_all("ListStreams", f"{EVENTS[:-6]}*"),
    "ListTagsForResource": on(EVENTS, "ListTagsForResource", {"ResourceARN": EVENTS}),
    "ListTagsForStream": on_stream("ListTagsForStream"),
    "MergeShards": on_stream(
        "MergeShards",
        ShardToMerge="shardId-000000000000",
        AdjacentShardToMerge="shardId-000000000001",
    ),
    "PutRecord": on_stream("PutRecord", Data="YQ==", PartitionKey="a"),
    "PutRecords": on_stream("PutRecords", Records=[{"Data": "YQ==", "PartitionKey": "a"}]),
    "RemoveTagsFromStream": on_stream("RemoveTagsFromStream", TagKeys=["a"]),
    "SplitShard": on_stream(
        "SplitShard", ShardToSplit="shardId-000000000000", NewStartingHashKey="1"
    ),
    "TagResource": on(EVENTS, "TagResource", {"ResourceARN": EVENTS, "Tags": {"a": "b"}}),
    "UntagResource": on(EVENTS, "UntagResource", {"ResourceARN": EVENTS, "TagKeys": ["a"]}),
    "UpdateMaxRecordSize": on(
        EVENTS, "UpdateMaxRecordSize", {"StreamARN": EVENTS, "MaxRecordSizeInKiB": 1024}
    ),
    "UpdateShardCount": on_stream(
        "UpdateShardCount", TargetShardCount=2, ScalingType="UNIFORM_SCALING"
    ),
    "UpdateStreamMode": on(
        EVENTS,
        "UpdateStreamMode",
        {"StreamARN": EVENTS, "StreamModeDetails": {"StreamMode": "ON_DEMAND"}},
    ),
}
MAP_RUN = f"{MACHINE.replace(':stateMachine:', ':mapRun:')}/Each:one-1"
ROUTE = {"stateMachineVersionArn": f"{MACHINE}:1", "weight": 100}
STATES_ROWS = {
    "CreateActivity": on(ACTIVITY, "CreateActivity", {"name": "pick"}),
    "CreateStateMachine": Row(
        {"name": "orders", "definition": "{}", "roleArn": ROLE},
        (("CreateStateMachine", MACHINE), ("iam:PassRole", ROLE)),
    ),
    "CreateStateMachineAlias": on(
        MACHINE, "CreateStateMachineAlias", {"name": "live", "routingConfiguration": [ROUTE]}
    ),
    "DeleteActivity": on(ACTIVITY, "DeleteActivity", {"activityArn": ACTIVITY}),
    "DeleteStateMachine": on_machine("DeleteStateMachine"),
    "DeleteStateMachineAlias": on(
        MACHINE, "DeleteStateMachineAlias", {"stateMachineAliasArn": f"{MACHINE}:live"}
    ),
    "DeleteStateMachineVersion": on(
        MACHINE, "DeleteStateMachineVersion", {"stateMachineVersionArn": f"{MACHINE}:1"}
    ),
    "DescribeActivity": on(ACTIVITY, "DescribeActivity", {"activityArn": ACTIVITY}),
    "DescribeExecution": on_execution("DescribeExecution"),
    "DescribeMapRun": on(MAP_RUN, "DescribeMapRun", {"mapRunArn": MAP_RUN}),
    "UpdateMapRun": on(MAP_RUN, "UpdateMapRun", {"mapRunArn": MAP_RUN}),
    "DescribeStateMachine": on_machine("DescribeStateMachine"),
    "DescribeStateMachineAlias": on(
        MACHINE, "DescribeStateMachineAlias", {"stateMachineAliasArn": f"{MACHINE}:live"}
    ),
    "DescribeStateMachineForExecution": on_execution("DescribeStateMachineForExecution"),
    "GetActivityTask": on(f"{ACTIVITY}2", "GetActivityTask", {"activityArn": f"{ACTIVITY}2"}),
    "GetExecutionHistory": on_execution("GetExecutionHistory"),
    "ListActivities": on_all("ListActivities"),
    "ListExecutions": on_machine("ListExecutions"),
    "ListMapRuns": on_execution("ListMapRuns"),
    "ListStateMachineAliases": on_machine("ListStateMachineAliases"),
    "ListStateMachineVersions": on_machine("ListStateMachineVersions"),
    "ListStateMachines": on_all("ListStateMachines"),
    "ListTagsForResource": on(MACHINE, "ListTagsForResource", {"resourceArn": MACHINE}),
    "PublishStateMachineVersion": on_machine("PublishStateMachineVersion"),
    "RedriveExecution": on_execution("RedriveExecution"),
    "SendTaskFailure": on_all("SendTaskFailure", taskToken="x"),
    "SendTaskHeartbeat": on_all("SendTaskHeartbeat", taskToken="x"),
    "SendTaskSuccess": on_all("SendTaskSuccess", taskToken="x", output="{}"),
    "StartExecution": on_machine("StartExecution"),
    "StartSyncExecution": on_machine("StartSyncExecution"),
    "StopExecution": on_execution("StopExecution"),
    "TagResource": on(
        MACHINE, "TagResource", {"resourceArn": MACHINE, "tags": [{"key": "a", "value": "b"}]}
    ),
    "TestState": Row(
        {"definition": '{"Type":"Pass","End":true}', "roleArn": ROLE},
        (("TestState", "*"), ("iam:PassRole", ROLE)),
    ),
    "UntagResource": on(MACHINE, "UntagResource", {"resourceArn": MACHINE, "tagKeys": ["a"]}),
    "UpdateStateMachine": Row(
        {"stateMachineArn": MACHINE, "roleArn": ROLE},
        (("UpdateStateMachine", MACHINE), ("iam:PassRole", ROLE)),
    ),
    "UpdateStateMachineAlias": on(
        MACHINE, "UpdateStateMachineAlias", {"stateMachineAliasArn": f"{MACHINE}:live"}
    ),
    "ValidateStateMachineDefinition": on_all(
        "ValidateStateMachineDefinition", definition=DEFINITION
    ),
}
UUID = "0c7e5e43-3c3e-4e33-9b1c-6c7a38a5a001"
MAPPING = f"{LAMBDA_ARN}event-source-mapping:{UUID}"


def on_function(action: str, **more: Any) -> Row:
    return on(FUNCTION, action, {"FunctionName": "thumbs", **more})


def on_version(action: str, **more: Any) -> Row:
    return on(f"{FUNCTION}:live", action, {"FunctionName": "thumbs", "Qualifier": "live", **more})


def on_mapping(action: str, **more: Any) -> Row:
    return on(MAPPING, action, {"UUID": UUID, **more})


def on_tagged(action: str, **more: Any) -> Row:
    return on(FUNCTION, action, {"Resource": FUNCTION, **more})


def on_schedule(action: str, **more: Any) -> Row:
    return on(SCHEDULE, action, {"Name": "nightly", "GroupName": "jobs", **more})


def on_group(action: str, **more: Any) -> Row:
    return on(GROUP, action, {"Name": "jobs", **more})


NEW_FUNCTION = {
    "FunctionName": "thumbs",
    "Runtime": "python3.12",
    "Handler": "app.handler",
    "Role": ROLE,
    "Code": {"ZipFile": "YQ=="},
}
NEW_SCHEDULE = {
    "Name": "nightly",
    "GroupName": "jobs",
    "ScheduleExpression": "rate(1 day)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": FUNCTION, "RoleArn": ROLE},
}
LAMBDA_ROWS = {
    "CreateAlias": on_function("CreateAlias", Name="live", FunctionVersion="1"),
    "CreateEventSourceMapping": on_all(
        "CreateEventSourceMapping", FunctionName="thumbs", EventSourceArn=EVENTS
    ),
    "CreateFunction": Row(
        {**NEW_FUNCTION, "Tags": {"a": "b"}},
        (("CreateFunction", FUNCTION), ("TagResource", FUNCTION), ("iam:PassRole", ROLE)),
    ),
    "DeleteAlias": on_function("DeleteAlias", Name="live"),
    "DeleteEventSourceMapping": on_mapping("DeleteEventSourceMapping"),
    "DeleteFunction": on_function("DeleteFunction"),
    "DeleteFunctionConcurrency": on_function("DeleteFunctionConcurrency"),
    "DeleteFunctionEventInvokeConfig": on_version("DeleteFunctionEventInvokeConfig"),
    "GetAccountSettings": on_all("GetAccountSettings"),
    "GetAlias": on_function("GetAlias", Name="live"),
    "GetEventSourceMapping": on_mapping("GetEventSourceMapping"),
    "GetFunction": on_version("GetFunction"),
    "GetFunctionConcurrency": on_function("GetFunctionConcurrency"),
    "GetFunctionConfiguration": on_version("GetFunctionConfiguration"),
    "GetFunctionEventInvokeConfig": on_version("GetFunctionEventInvokeConfig"),
    "Invoke": on_version("InvokeFunction"),
    "ListAliases": on_function("ListAliases"),
    "ListEventSourceMappings": on_all("ListEventSourceMappings"),
    "ListFunctionEventInvokeConfigs": on_function("ListFunctionEventInvokeConfigs"),
    "ListFunctions": on_all("ListFunctions"),
    "ListTags": on_tagged("ListTags"),
    "ListVersionsByFunction": on_function("ListVersionsByFunction"),
    "PublishVersion": on_function("PublishVersion"),
    "PutFunctionConcurrency": on_function("PutFunctionConcurrency", ReservedConcurrentExecutions=1),
    "PutFunctionEventInvokeConfig": on_version(
        "PutFunctionEventInvokeConfig", MaximumRetryAttempts=1
    ),
    "TagResource": on_tagged("TagResource", Tags={"a": "b"}),
    "UntagResource": on_tagged("UntagResource", TagKeys=["a"]),
    "UpdateAlias": on_function("UpdateAlias", Name="live"),
    "UpdateEventSourceMapping": on_mapping("UpdateEventSourceMapping", BatchSize=1),
    "UpdateFunctionCode": on_function("UpdateFunctionCode", ZipFile="YQ=="),
    "UpdateFunctionConfiguration": Row(
        {"FunctionName": "thumbs", "Role": ROLE},
        (("UpdateFunctionConfiguration", FUNCTION), ("iam:PassRole", ROLE)),
    ),
    "UpdateFunctionEventInvokeConfig": on_version(
        "UpdateFunctionEventInvokeConfig", MaximumRetryAttempts=1
    ),
}
SCHEDULER_ROWS = {
    "CreateSchedule": Row(NEW_SCHEDULE, (("CreateSchedule", SCHEDULE), ("iam:PassRole", ROLE))),
    "CreateScheduleGroup": on_group("CreateScheduleGroup"),
    "DeleteSchedule": on_schedule("DeleteSchedule"),
    "DeleteScheduleGroup": on_group("DeleteScheduleGroup"),
    "GetSchedule": on_schedule("GetSchedule"),
    "GetScheduleGroup": on_group("GetScheduleGroup"),
    "ListScheduleGroups": on_all("ListScheduleGroups", f"{GROUP[:-4]}*"),
    "ListSchedules": on_all("ListSchedules", f"{SCHEDULE[:-7]}*", GroupName="jobs"),
    "ListTagsForResource": on(GROUP, "ListTagsForResource", {"ResourceArn": GROUP}),
    "TagResource": on(
        GROUP, "TagResource", {"ResourceArn": GROUP, "Tags": [{"Key": "a", "Value": "b"}]}
    ),
    "UntagResource": on(GROUP, "UntagResource", {"ResourceArn": GROUP, "TagKeys": ["a"]}),
    "UpdateSchedule": Row(NEW_SCHEDULE, (("UpdateSchedule", SCHEDULE), ("iam:PassRole", ROLE))),
}
# By the service's name in the client.
ACCESS_ROWS = {
    **{name: on(ACCESS, "ListUsers", {}) for name in ("ListUsers", "ExplainDecision")},
    "ListEvents": on(ACCESS, "ListEvents", {}),
    **{
        name: on(ACCESS, "ChangeUsers", {})
        for name in (
            *("CreateUser", "DeleteUser", "UpdateUser", "CreateAccessKey", "UpdateAccessKey"),
            *("PutPolicy", "DeletePolicy", "AttachPolicy", "DetachPolicy"),
        )
    },
}
BACKUP_ROWS = {
    name: on(DATABASE, "BackUpDatabase", {})
    for name in ("Begin", "ReadKeys", "ReadCommits", "ListFiles", "ReadFile", "End")
}
ROWS: dict[str, dict[str, Row]] = {
    "dynamodb": DYNAMODB_ROWS,
    "dynamodbstreams": STREAM_ROWS,
    "access": ACCESS_ROWS,
    "backup": BACKUP_ROWS,
    "kinesis": KINESIS_ROWS,
    "lambda": LAMBDA_ROWS,
    "scheduler": SCHEDULER_ROWS,
    "states": STATES_ROWS,
}
PREFIXES = {"access": "partita", "backup": "partita", "dynamodbstreams": "dynamodb"}
CASES = [(service, operation) for service, rows in ROWS.items() for operation in rows]
WITHOUT_ONE = [
    (service, operation, place)
    for service, operation in CASES
    for place in range(len(ROWS[service][operation].needs))
]
"""Each need is taken away alone: all of them are needed."""


def test_every_operation_has_a_row_and_rights() -> None:
    named = {*DYNAMODB_ROWS, *STREAM_ROWS, *(f"Kinesis.{name}" for name in KINESIS_ROWS)}
    assert named == {*READS, *WRITES} == {*rights()}
    assert {*STATES_ROWS} == {*STATES} == {*forwarded_rights()["AWSStepFunctions"]}
    for service in REST:
        assert {*ROWS[service]} == {*REST[service]} == {*forwarded_rights()[service]}
    assert {*ACCESS_ROWS} == {*ADMINISTRATION} == {*forwarded_rights()["PartitaAccess"]}
    assert {*BACKUP_ROWS} == {*COPYING} == {*forwarded_rights()["PartitaBackup"]}
    others = {"AWSStepFunctions", "PartitaAccess", "PartitaBackup", *REST}
    assert {*forwarded_rights()} == others
    # tests/security/test_sts.py has the rights of each.
    assert {*STS} == {"AssumeRole", "GetCallerIdentity", "GetSessionToken"}


def test_every_page_has_a_right_of_its_own() -> None:
    assert {path.decode() for path in ACTIONS} == {*PAGES, *TABLE_PAGES, "/metrics", "/requests"}


def needs_of(service: str, row: Row) -> list[Needed]:
    prefix = PREFIXES.get(service, service)
    return [
        (action if ":" in action else f"{prefix}:{action}", resource)
        for action, resource in row.needs
    ]


def elsewhere(resource: str) -> str:
    """Another resource of the same kind."""
    if resource == "*":
        return table_arn("Other")
    return (
        resource.replace("Books", "Other")
        if "Books" in resource
        else f"{resource.rstrip('*')}Other"
    )


class Everybody:
    """For every operation users with exactly its rights, with all but them, and with them
    elsewhere."""

    def __init__(self, people: People) -> None:
        self.keys: dict[tuple[str, str, str], AccessKey] = {}
        assert people.server is not None
        self._connection = http.client.HTTPConnection(
            urlsplit(people.server.url).netloc, timeout=60
        )
        self._host = urlsplit(people.server.url).netloc
        people.change(self._with_all)

    def _with_all(self, directory: Directory) -> Directory:
        for service, operation in CASES:
            needs = needs_of(service, ROWS[service][operation])
            kinds = {
                "right": [statement(one, on_this) for one, on_this in needs],
                "nothing": [statement("s3:*")],
            }
            for place, (action, resource) in enumerate(needs):
                others = [statement(*need) for need in needs if need != needs[place]]
                kinds[f"wrong{place}"] = [{"Effect": "Allow", "NotAction": action, "Resource": "*"}]
                kinds[f"elsewhere{place}"] = [*others, statement(action, elsewhere(resource))]
            for kind, statements in kinds.items():
                name = f"{kind}-{service}-{operation}"[:64]
                kept = {**directory.policies, name: policy(*statements)}
                directory = replace(directory, policies=kept)
                directory, key = add_user(directory, name, time.time(), policies=(name,))
                self.keys[kind, service, operation] = key
        return directory

    def send(self, kind: str, service: str, operation: str) -> tuple[str, str]:
        """The type and the text of the error, or nothing."""
        row, key = ROWS[service][operation], self.keys[kind, service, operation]
        description = SERVICES[service]
        method, target, body = "POST", "/", json.dumps(row.request).encode()
        headers = {"Host": self._host, "Content-Type": description.content_type}
        if service in REST:
            method, target, more, body = request_for(service, operation, row.request)
            headers |= more
        else:
            headers["X-Amz-Target"] = f"{description.target}.{operation}"
        credentials = Credentials(key.id, key.secret)
        headers |= signed_headers(
            *(description, REGION, credentials, headers, body, time.time()),
            *(method, *split_target(target)),
        )
        self._connection.request(method, target, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status < 300:
            return "", ""
        error = json.loads(content)
        code = answer.headers.get("x-amzn-errortype") or str(error["__type"])
        text = error.get("message", error.get("Message", ""))
        return code.rpartition("#")[2], text

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def everybody(people: People) -> Iterator[Everybody]:
    them = Everybody(people)
    yield them
    them.close()


def check_denied(everybody: Everybody, kind: str, service: str, operation: str, place: int) -> None:
    code, text = everybody.send(kind, service, operation)
    assert code == "AccessDeniedException"
    action, resource = needs_of(service, ROWS[service][operation])[place]
    assert f" is not authorized to perform: {action} on resource: {resource} " in text


@pytest.mark.parametrize(("service", "operation"), CASES)
def test_without_any_right_an_operation_is_denied(
    everybody: Everybody, service: str, operation: str
) -> None:
    check_denied(everybody, "nothing", service, operation, 0)


@pytest.mark.parametrize("kind", ["wrong", "elsewhere"])
@pytest.mark.parametrize(("service", "operation", "place"), WITHOUT_ONE)
def test_without_its_right_an_operation_is_denied(
    everybody: Everybody, kind: str, service: str, operation: str, place: int
) -> None:
    check_denied(everybody, f"{kind}{place}", service, operation, place)


@pytest.mark.parametrize(("service", "operation"), CASES)
def test_its_right_is_all_that_an_operation_needs(
    everybody: Everybody, service: str, operation: str
) -> None:
    code, text = everybody.send("right", service, operation)
    assert code != "AccessDeniedException", text
