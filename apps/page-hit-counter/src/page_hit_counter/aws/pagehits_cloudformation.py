"""Builds a CloudFormation template from pagehits.toml: streams, tables, functions, API, Flink job.

    sites ─ API ─ processor ─ stream ─ Flink ─ stream of counts ─ consumer ─ table ─ api ─ lists

Streams and tables have the names in the settings, because the functions read the same file. One
stack is therefore one instance of the service.
"""

from __future__ import annotations

from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.stream_and_tables import descriptions
from page_hit_counter.spam.quarantine import quarantine_description
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

HANDLERS = "page_hit_counter.aws.lambda_functions"
RUNTIME = "python3.12"
FLINK_RUNTIME = "FLINK-1_20"
CONFIG = "/var/task/pagehits.toml"
COUNTS_SUFFIX = "-counts"
BATCH_SIZE = 100
RETENTION_HOURS = 24


def template(settings: PageHitSettings) -> dict[str, Any]:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "A page hit counter: from events to most-popular lists.",
        "Parameters": {
            "CodeBucket": parameter("The bucket with the two packages of code."),
            "FunctionsKey": parameter("Partita, its dependencies and pagehits.toml, as a zip."),
            "FlinkKey": parameter("flink_application.py, job.json and connectors, as a zip."),
        },
        "Resources": {
            **_streams(settings),
            **_tables(settings),
            **_function("Processor", f"{HANDLERS}.processor", _processor_permissions(settings)),
            **_function("Api", f"{HANDLERS}.api", _api_permissions(settings)),
            **_function(
                "Consumer",
                f"{HANDLERS}.stream_consumer",
                _consumer_permissions(settings),
                memory=256,
            ),
            **_counts_to_consumer(),
            **_http_api(),
            **_flink(settings),
        },
        "Outputs": {
            "Endpoint": {
                "Description": "POST /events, GET /?brand=...&period=...",
                "Value": {"Fn::GetAtt": ["HttpApi", "ApiEndpoint"]},
            },
        },
    }


# Storage


def _streams(settings: PageHitSettings) -> dict[str, Resource]:
    return {
        "Visits": _stream(settings.stream, settings.shards),
        "Counts": _stream(settings.stream + COUNTS_SUFFIX, 1),
    }


def _stream(name: str, shards: int) -> Resource:
    return {
        "Type": "AWS::Kinesis::Stream",
        "Properties": {
            "Name": name,
            "ShardCount": shards,
            "RetentionPeriodHours": RETENTION_HOURS,
            "StreamEncryption": {"EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"},
        },
    }


def _tables(settings: PageHitSettings) -> dict[str, Resource]:
    """Returns the same tables that the parts create where they run without AWS."""
    quarantine = settings.spam.quarantine_table
    # Counts can be restored from the stream and the delivered files, but not what people have
    # catalogued or decided.
    recovered = {settings.assets_table, quarantine}
    requests = [*descriptions(settings), quarantine_description(quarantine)]
    return {
        logical_id(description["TableName"]): table(
            description,
            TimeToLiveSpecification={"AttributeName": "expirationTime", "Enabled": True},
            PointInTimeRecoverySpecification={
                "PointInTimeRecoveryEnabled": description["TableName"] in recovered
            },
        )
        for description in requests
    }


# Functions, API and Flink


def _function(
    name: str, handler: str, statements: list[Resource], memory: int = 128
) -> dict[str, Resource]:
    return lambda_function(
        name,
        f"${{AWS::StackName}}-{name}",
        "FunctionsKey",
        statements,
        Runtime=RUNTIME,
        Handler=handler,
        MemorySize=memory,
        Timeout=60,
        Environment={"Variables": {"PAGEHITS_CONFIG": CONFIG}},
    )


def _processor_permissions(settings: PageHitSettings) -> list[Resource]:
    return [
        allow(["kinesis:PutRecord", "kinesis:PutRecords"], arn("Visits")),
        allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], table_arn(settings.assets_table)),
        allow(["dynamodb:PutItem"], table_arn(settings.state_table)),
        allow(
            [
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
            table_arn(settings.spam.quarantine_table),
        ),
    ]


def _api_permissions(settings: PageHitSettings) -> list[Resource]:
    names = (settings.table, settings.state_table, settings.windows_table)
    return [allow(["dynamodb:GetItem", "dynamodb:Query"], [table_arn(name) for name in names])]


def _consumer_permissions(settings: PageHitSettings) -> list[Resource]:
    return [
        allow(
            ["dynamodb:PutItem"],
            [table_arn(settings.table), table_arn(settings.malformed_table)],
        ),
        allow(_READ_STREAM, arn("Counts")),
        # IAM cannot limit this action to one stream.
        allow(["kinesis:ListStreams"], "*"),
    ]


_READ_STREAM = [
    "kinesis:DescribeStream",
    "kinesis:DescribeStreamSummary",
    "kinesis:GetRecords",
    "kinesis:GetShardIterator",
    "kinesis:ListShards",
]


def _counts_to_consumer() -> dict[str, Resource]:
    return {
        "CountsToConsumer": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": arn("Counts"),
                "FunctionName": {"Ref": "Consumer"},
                "StartingPosition": "TRIM_HORIZON",
                "BatchSize": BATCH_SIZE,
                "MaximumBatchingWindowInSeconds": 1,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            },
        }
    }


ROUTES = {"Processor": "POST /events", "Api": "GET /"}


def _http_api() -> dict[str, Resource]:
    resources: dict[str, Resource] = {
        "HttpApi": {
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": {
                "Name": {"Ref": "AWS::StackName"},
                "ProtocolType": "HTTP",
                "CorsConfiguration": {
                    "AllowOrigins": ["*"],
                    "AllowMethods": ["GET", "POST"],
                    "AllowHeaders": ["content-type", "idempotency-key"],
                },
            },
        },
        "HttpApiStage": {
            "Type": "AWS::ApiGatewayV2::Stage",
            "Properties": {
                "ApiId": {"Ref": "HttpApi"},
                "StageName": "$default",
                "AutoDeploy": True,
            },
        },
    }
    for function, route in ROUTES.items():
        resources |= _route(function, route)
    return resources


def _route(function: str, route: str) -> dict[str, Resource]:
    source = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${HttpApi}/*"
    return {
        f"{function}Integration": {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {
                "ApiId": {"Ref": "HttpApi"},
                "IntegrationType": "AWS_PROXY",
                "IntegrationUri": arn(function),
                "PayloadFormatVersion": "1.0",
            },
        },
        f"{function}Route": {
            "Type": "AWS::ApiGatewayV2::Route",
            "Properties": {
                "ApiId": {"Ref": "HttpApi"},
                "RouteKey": route,
                "Target": {"Fn::Sub": f"integrations/${{{function}Integration}}"},
            },
        },
        f"{function}Permission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "FunctionName": {"Ref": function},
                "Action": "lambda:InvokeFunction",
                "Principal": "apigateway.amazonaws.com",
                "SourceArn": {"Fn::Sub": source},
            },
        },
    }


def _flink(settings: PageHitSettings) -> dict[str, Resource]:
    code = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${CodeBucket}"}
    file = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${CodeBucket}/${FlinkKey}"}
    return {
        "Counter": {
            "Type": "AWS::KinesisAnalyticsV2::Application",
            "Properties": {
                "ApplicationName": {"Fn::Sub": "${AWS::StackName}-Counter"},
                "RuntimeEnvironment": FLINK_RUNTIME,
                "ServiceExecutionRole": {"Fn::GetAtt": ["CounterRole", "Arn"]},
                "ApplicationConfiguration": {
                    "ApplicationCodeConfiguration": {
                        "CodeContentType": "ZIPFILE",
                        "CodeContent": {
                            "S3ContentLocation": {
                                "BucketARN": code,
                                "FileKey": {"Ref": "FlinkKey"},
                            }
                        },
                    },
                    "EnvironmentProperties": {
                        "PropertyGroups": [
                            {
                                "PropertyGroupId": "kinesis.analytics.flink.run.options",
                                "PropertyMap": {
                                    "python": "flink_application.py",
                                    "jarfile": "lib/connectors.jar",
                                },
                            }
                        ]
                    },
                    "FlinkApplicationConfiguration": {
                        "CheckpointConfiguration": {"ConfigurationType": "DEFAULT"},
                        "ParallelismConfiguration": {
                            "ConfigurationType": "CUSTOM",
                            "Parallelism": settings.shards,
                            "ParallelismPerKPU": 1,
                            "AutoScalingEnabled": True,
                        },
                    },
                },
            },
        },
        "CounterRole": role(
            "kinesisanalytics.amazonaws.com",
            [
                allow(["s3:GetObject", "s3:GetObjectVersion"], file),
                allow(_READ_STREAM, arn("Visits")),
                allow(
                    [
                        "kinesis:DescribeStream",
                        "kinesis:DescribeStreamSummary",
                        "kinesis:PutRecord",
                        "kinesis:PutRecords",
                    ],
                    arn("Counts"),
                ),
            ],
        ),
    }
