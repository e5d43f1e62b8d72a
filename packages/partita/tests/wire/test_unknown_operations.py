"""Operations that are not built yet are refused as AWS refuses an unknown one."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.session import Session

BUILT = {
    *("CreateTable", "DescribeTable", "ListTables", "UpdateTable", "DeleteTable"),
    *("DescribeLimits", "DescribeEndpoints"),
    *("TagResource", "UntagResource", "ListTagsOfResource"),
    *("UpdateTimeToLive", "DescribeTimeToLive"),
    *("PutResourcePolicy", "GetResourcePolicy", "DeleteResourcePolicy"),
    *("PutItem", "GetItem", "UpdateItem", "DeleteItem"),
    *("BatchGetItem", "BatchWriteItem", "Query", "Scan"),
    *("TransactGetItems", "TransactWriteItems"),
    *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
    *("DescribeTableReplicaAutoScaling", "UpdateTableReplicaAutoScaling"),
    *("EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination"),
    *("DescribeKinesisStreamingDestination", "UpdateKinesisStreamingDestination"),
    *("DescribeContributorInsights", "ListContributorInsights", "UpdateContributorInsights"),
    *("CreateBackup", "DescribeBackup", "ListBackups", "DeleteBackup", "RestoreTableFromBackup"),
    *("UpdateContinuousBackups", "DescribeContinuousBackups", "RestoreTableToPointInTime"),
    *("ExportTableToPointInTime", "DescribeExport", "ListExports"),
    *("ImportTable", "DescribeImport", "ListImports"),
    *("StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations", "CancelBulkOperation"),
}
ALL = set(Session().get_service_model("dynamodb").operation_names)
UNKNOWN = {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_the_operations_of_this_release_are_operations_of_aws() -> None:
    assert BUILT <= ALL


@pytest.mark.parametrize("operation", sorted(ALL - BUILT))
def test_an_operation_that_is_not_built_is_unknown(raw: Any, operation: str) -> None:
    # dynalite: without a message
    answer = raw(operation, {"TableName": "table"})
    assert (answer.status, answer.body) == (400, UNKNOWN)


@pytest.mark.parametrize("operation", sorted(BUILT))
def test_an_operation_that_is_built_is_known(raw: Any, operation: str) -> None:
    assert raw(operation, {}).body != UNKNOWN


@pytest.mark.parametrize(
    "target",
    [
        *("", "ListTables", "DynamoDB_20120810.", "DynamoDB_20120810.ListTable"),
        *("DynamoDB_20120810.listtables", "DynamoDB_20120810.ListTables.x", "whatever"),
        *("DynamoDB_20990101.ListTables", "DynamoDBStreams_20990101.ListStreams"),
    ],
)
def test_other_targets_are_unknown(raw: Any, target: str) -> None:
    answer = raw("", {}, headers={"X-Amz-Target": target})
    assert (answer.status, answer.body) == (400, UNKNOWN)


def test_a_request_without_target_is_unknown(raw: Any) -> None:
    answer = raw("", {}, headers={"X-Amz-Target": None})
    assert (answer.status, answer.body) == (400, UNKNOWN)


def test_the_sdk_sees_the_error_that_it_knows(client: Any) -> None:
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.list_global_tables()
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"
