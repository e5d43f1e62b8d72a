"""What tells one AWS service from another on the wire. (botocore's service descriptions)"""

from __future__ import annotations

from typing import NamedTuple


class AwsService(NamedTuple):
    target: str
    """What goes before the operation's name in X-Amz-Target; nothing where the protocol is REST."""
    content_type: str
    host: str
    """Of Amazon's endpoint in a region."""
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
"""For which role a part of our own server sends a request."""
SIGN_IN_HEADER = "X-Partita-Sign-In"
"""With it, the console says that somebody's credentials are tried who signs in to it."""
RIGHTS = "partita"
"""Our own server's service to its parts, which says whether a role may do something."""

FUNCTIONS_TABLE, WORKFLOWS_TABLE = "partita-functions", "partita-workflows"
"""Where functions and workflows of our own server keep what they know."""

REQUEST_TOKENS = {
    ("dynamodb", "TransactWriteItems"): "ClientRequestToken",
    ("dynamodb", "ExecuteTransaction"): "ClientRequestToken",
}
"""Members that make a repeated request count once; filled in where the caller has not."""
