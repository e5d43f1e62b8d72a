"""The differences between AWS services on the wire, from botocore's service descriptions."""

from __future__ import annotations

from typing import NamedTuple


class AwsService(NamedTuple):
    target: str
    """The prefix of the operation's name in X-Amz-Target; empty if the protocol is REST."""
    content_type: str
    host: str
    """The host of Amazon's endpoint, with {} for the region."""
    signing_name: str


JSON_1_0 = "application/x-amz-json-1.0"
JSON_1_1 = "application/x-amz-json-1.1"

SERVICES = {
    "dynamodb": AwsService("DynamoDB_20120810", JSON_1_0, "dynamodb.{}.amazonaws.com", "dynamodb"),
    "dynamodbstreams": AwsService(
        "DynamoDBStreams_20120810", JSON_1_0, "streams.dynamodb.{}.amazonaws.com", "dynamodb"
    ),
    "kinesis": AwsService("Kinesis_20131202", JSON_1_1, "kinesis.{}.amazonaws.com", "kinesis"),
    "access": AwsService("PartitaAccess", JSON_1_0, "", "partita"),
    "backup": AwsService("PartitaBackup", JSON_1_0, "", "partita"),
    "partita": AwsService("PartitaRights", JSON_1_0, "", "partita"),
    "states": AwsService("AWSStepFunctions", JSON_1_0, "states.{}.amazonaws.com", "states"),
    "lambda": AwsService("", "application/json", "lambda.{}.amazonaws.com", "lambda"),
    "scheduler": AwsService("", "application/json", "scheduler.{}.amazonaws.com", "scheduler"),
}

ROLE_HEADER = "X-Partita-Role"
"""The role for which a companion process of our own server sends a request."""
SIGN_IN_HEADER = "X-Partita-Sign-In"
"""Marks a request with which the console tries the credentials of a user who signs in."""
RIGHTS = "partita"
"""The service of our own server that tells its companion processes what a role may do."""

FUNCTIONS_TABLE, WORKFLOWS_TABLE = "partita-functions", "partita-workflows"
"""The tables in which our own server stores functions and workflows."""

REQUEST_TOKENS = {
    ("dynamodb", "TransactWriteItems"): "ClientRequestToken",
    ("dynamodb", "ExecuteTransaction"): "ClientRequestToken",
}
"""Members that make a request idempotent; the client fills them in unless the caller does."""
