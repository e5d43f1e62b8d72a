"""A CloudFormation template of pagehits.toml: streams, tables, functions, API and Flink job.

    sites ─ API ─ processor ─ stream ─ Flink ─ stream of counts ─ consumer ─ table ─ api ─ lists

Streams and tables have the names of the settings, because the functions read the same file: one
stack is one instance of the service.
"""

from __future__ import annotations

from typing import Any

from partita.apps.pagehits.service.schema import descriptions
from partita.apps.pagehits.settings import Settings
from partita.apps.pagehits.spam.quarantine import quarantine_description

Resource = dict[str, Any]
HANDLERS = "partita.apps.pagehits.aws.lambda_functions"
RUNTIME = "python3.12"
FLINK_RUNTIME = "FLINK-1_20"
CONFIG = "/var/task/pagehits.toml"
COUNTS_SUFFIX = "-counts"
BATCH_SIZE = 100
RETENTION_HOURS = 24
LOG_DAYS = 14


def template(settings: Settings) -> dict[str, Any]:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "A page hit counter: from events to most-popular lists.",
        "Parameters": {
            "CodeBucket": _parameter("The bucket with the two packages of code."),
            "FunctionsKey": _parameter("Partita, its dependencies and pagehits.toml, as a zip."),
            "FlinkKey": _parameter("flink_application.py, job.json and connectors, as a zip."),
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


def _parameter(description: str) -> Resource:
    return {"Type": "String", "Description": description}


# Storage


def _streams(settings: Settings) -> dict[str, Resource]:
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


def _tables(settings: Settings) -> dict[str, Resource]:
    """The same tables that the parts create elsewhere."""
    found = [*descriptions(settings), quarantine_description(settings.spam.quarantine_table)]
    return {logical_id(description["TableName"]): _table(description) for description in found}


def _table(description: dict[str, Any]) -> Resource:
    return {
        "Type": "AWS::DynamoDB::Table",
        # Lists can be counted again, but what people catalogued or decided cannot.
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            **description,
            "TimeToLiveSpecification": {"AttributeName": "expirationTime", "Enabled": True},
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
        },
    }


def logical_id(name: str) -> str:
    """Logical ids of CloudFormation have letters and digits only."""
    words = "".join(letter if letter.isalnum() else " " for letter in name).split()
    return "".join(word.capitalize() for word in words) + "Table"


# Functions, API and Flink


def _function(
    name: str, handler: str, statements: list[Resource], memory: int = 128
) -> dict[str, Resource]:
    """A function, its role and its log."""
    log = {"Fn::Sub": f"/aws/lambda/${{AWS::StackName}}-{name}"}
    may_log = _allow(
        ["logs:CreateLogStream", "logs:PutLogEvents"], {"Fn::GetAtt": [f"{name}Log", "Arn"]}
    )
    return {
        name: {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": {"Fn::Sub": f"${{AWS::StackName}}-{name}"},
                "Runtime": RUNTIME,
                "Handler": handler,
                "MemorySize": memory,
                "Timeout": 60,
                "Role": {"Fn::GetAtt": [f"{name}Role", "Arn"]},
                "Code": {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "FunctionsKey"}},
                "Environment": {"Variables": {"PAGEHITS_CONFIG": CONFIG}},
                "LoggingConfig": {"LogGroup": {"Ref": f"{name}Log"}},
            },
        },
        f"{name}Role": _role("lambda.amazonaws.com", [*statements, may_log]),
        f"{name}Log": {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Delete",
            "UpdateReplacePolicy": "Delete",
            "Properties": {"LogGroupName": log, "RetentionInDays": LOG_DAYS},
        },
    }


def _processor_permissions(settings: Settings) -> list[Resource]:
    return [
        _allow(["kinesis:PutRecord", "kinesis:PutRecords"], _arn("Visits")),
        _allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], _table_arn(settings.assets_table)),
        _allow(["dynamodb:PutItem"], _table_arn(settings.state_table)),
        _allow(
            [
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
            _table_arn(settings.spam.quarantine_table),
        ),
    ]


def _api_permissions(settings: Settings) -> list[Resource]:
    names = (settings.table, settings.state_table, settings.windows_table)
    return [_allow(["dynamodb:GetItem", "dynamodb:Query"], [_table_arn(name) for name in names])]


def _consumer_permissions(settings: Settings) -> list[Resource]:
    return [
        _allow(
            ["dynamodb:PutItem"],
            [_table_arn(settings.table), _table_arn(settings.malformed_table)],
        ),
        _allow(_READ_STREAM, _arn("Counts")),
        # Cannot be limited to one stream.
        _allow(["kinesis:ListStreams"], "*"),
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
                "EventSourceArn": _arn("Counts"),
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
                "IntegrationUri": _arn(function),
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


def _flink(settings: Settings) -> dict[str, Resource]:
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
        "CounterRole": _role(
            "kinesisanalytics.amazonaws.com",
            [
                _allow(["s3:GetObject", "s3:GetObjectVersion"], file),
                _allow(_READ_STREAM, _arn("Visits")),
                _allow(
                    [
                        "kinesis:DescribeStream",
                        "kinesis:DescribeStreamSummary",
                        "kinesis:PutRecord",
                        "kinesis:PutRecords",
                    ],
                    _arn("Counts"),
                ),
            ],
        ),
    }


# Permissions


def _role(service: str, statements: list[Resource]) -> Resource:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": _policy(
                [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": service},
                        "Action": "sts:AssumeRole",
                    }
                ]
            ),
            "Policies": [{"PolicyName": "needed", "PolicyDocument": _policy(statements)}],
        },
    }


def _policy(statements: list[Resource]) -> Resource:
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(actions: list[str], resource: Any) -> Resource:
    return {"Effect": "Allow", "Action": actions, "Resource": resource}


def _arn(name: str) -> Resource:
    return {"Fn::GetAtt": [name, "Arn"]}


def _table_arn(name: str) -> Resource:
    return _arn(logical_id(name))
