"""Policies that are there without being written, by the names of AWS's own."""

from __future__ import annotations

from typing import Final

from partita.server.security.policies.documents import CURRENT, Policy, parse_document

_READS: Final = [
    "dynamodb:BatchGetItem",
    "dynamodb:Describe*",
    "dynamodb:Get*",
    "dynamodb:List*",
    "dynamodb:PartiQLSelect",
    "dynamodb:Query",
    "dynamodb:Scan",
]
DOCUMENTS: Final[dict[str, list[str]]] = {
    "AdministratorAccess": ["*"],
    "AmazonDynamoDBFullAccess": ["dynamodb:*", "kinesis:ListStreams", "kinesis:DescribeStream"],
    "AmazonDynamoDBReadOnlyAccess": _READS,
    "AmazonKinesisFullAccess": ["kinesis:*"],
    "AmazonKinesisReadOnlyAccess": ["kinesis:Get*", "kinesis:List*", "kinesis:Describe*"],
    "AWSStepFunctionsFullAccess": ["states:*"],
    "AWSStepFunctionsReadOnlyAccess": ["states:List*", "states:Describe*", "states:GetE*"],
    "PartitaMonitoring": ["partita:Get*"],
}
"""What each allows, on everything."""

MANAGED: Final[dict[str, Policy]] = {
    name: parse_document(
        {
            "Version": CURRENT,
            "Statement": {"Effect": "Allow", "Action": actions, "Resource": "*"},
        },
        name,
    )
    for name, actions in DOCUMENTS.items()
}
