"""The requests that change nothing, which a read-only console forwards."""

from __future__ import annotations

from typing import Any

import orjson

READS = {
    "access": frozenset(("ExplainDecision", "ListEvents", "ListUsers")),
    "dynamodb": frozenset(
        (
            "BatchGetItem",
            "DescribeBackup",
            "DescribeContinuousBackups",
            "DescribeContributorInsights",
            "DescribeEndpoints",
            "DescribeKinesisStreamingDestination",
            "DescribeLimits",
            "DescribeTable",
            "DescribeTimeToLive",
            "GetItem",
            "ListBackups",
            "ListContributorInsights",
            "ListTables",
            "ListTagsOfResource",
            "Query",
            "Scan",
            "TransactGetItems",
        )
    ),
    "dynamodbstreams": frozenset(
        ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    ),
    "kinesis": frozenset(
        ("DescribeStreamSummary", "GetRecords", "GetShardIterator", "ListShards", "ListStreams")
    ),
    "states": frozenset(
        (
            "DescribeExecution",
            "DescribeStateMachine",
            "DescribeStateMachineForExecution",
            "GetExecutionHistory",
            "ListExecutions",
            "ListStateMachines",
        )
    ),
}


def only_reads(service: str, operation: str, body: bytes) -> bool:
    """True when a request changes nothing; for PartiQL, when all its statements are SELECTs."""
    if operation in READS.get(service, ()):
        return True
    if service != "dynamodb" or operation not in _STATEMENTS:
        return False
    try:
        request = orjson.loads(body)
        statements = _STATEMENTS[operation](request)
        return bool(statements) and all(_is_select(statement) for statement in statements)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_select(statement: str) -> bool:
    return statement.split(None, 1)[:1] != [] and statement.split(None, 1)[0].upper() == "SELECT"


def _single(request: Any) -> list[str]:
    return [request["Statement"]]


def _batch(request: Any) -> list[str]:
    return [statement["Statement"] for statement in request["Statements"]]


def _transaction(request: Any) -> list[str]:
    return [statement["Statement"] for statement in request["TransactStatements"]]


_STATEMENTS = {
    "ExecuteStatement": _single,
    "BatchExecuteStatement": _batch,
    "ExecuteTransaction": _transaction,
}
