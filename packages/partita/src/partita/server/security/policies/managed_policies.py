"""Managed policies: built-in policies with the names of AWS's."""

from __future__ import annotations

from typing import Any, Final

from partita.server.security.policies.policy_documents import CURRENT, Policy, parse_document

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
"""The actions that each policy allows, on all resources."""


def document_of(name: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": DOCUMENTS[name], "Resource": "*"}
    return {"Version": CURRENT, "Statement": statement}


MANAGED: Final[dict[str, Policy]] = {
    name: parse_document(document_of(name), name) for name in DOCUMENTS
}
