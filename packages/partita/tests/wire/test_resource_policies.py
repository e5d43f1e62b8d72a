"""PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy on a server without authentication."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import TableFactory
from .refusals import refusal

NOT_FOUND = "Resource-based policy not found for the provided ResourceArn: "
INVALID = "One or more parameter values were invalid: "


def policy(arn: str, action: str = "dynamodb:GetItem") -> str:
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": "arn:aws:iam::123456789012:user/John"},
                    "Action": action,
                    "Resource": arn,
                }
            ],
        }
    )


def test_a_policy_is_returned_as_it_was_written(client: Any, arn: str) -> None:
    document = policy(arn)
    revision = client.put_resource_policy(ResourceArn=arn, Policy=document)["RevisionId"]
    found = client.get_resource_policy(ResourceArn=arn)
    assert (found["Policy"], found["RevisionId"]) == (document, revision)


def test_the_same_policy_keeps_its_revision_and_another_has_its_own(client: Any, arn: str) -> None:
    first = client.put_resource_policy(ResourceArn=arn, Policy=policy(arn))["RevisionId"]
    assert client.put_resource_policy(ResourceArn=arn, Policy=policy(arn))["RevisionId"] == first
    other = policy(arn, "dynamodb:PutItem")
    assert client.put_resource_policy(ResourceArn=arn, Policy=other)["RevisionId"] != first


def test_a_table_without_a_policy_says_so(client: Any, arn: str) -> None:
    assert refusal(client.get_resource_policy, ResourceArn=arn) == (
        "PolicyNotFoundException",
        NOT_FOUND + arn,
    )


def test_a_policy_that_is_deleted_is_gone(client: Any, arn: str) -> None:
    revision = client.put_resource_policy(ResourceArn=arn, Policy=policy(arn))["RevisionId"]
    assert client.delete_resource_policy(ResourceArn=arn)["RevisionId"] == revision
    assert refusal(client.get_resource_policy, ResourceArn=arn)[0] == "PolicyNotFoundException"
    assert client.delete_resource_policy(ResourceArn=arn)["RevisionId"] == ""


def test_an_expected_revision_counts(client: Any, arn: str) -> None:
    name = arn.rpartition("/")[2]
    asked = {"ResourceArn": arn, "Policy": policy(arn)}
    assert refusal(client.put_resource_policy, **asked, ExpectedRevisionId="1")[0] == (
        "PolicyNotFoundException"
    )
    first = client.put_resource_policy(**asked, ExpectedRevisionId="NO_POLICY")["RevisionId"]
    assert refusal(client.put_resource_policy, **asked, ExpectedRevisionId="NO_POLICY")[1] == (
        f"{NOT_FOUND}Requested policy update expecting none to be present for table {name}, but a "
        f"policy exists with revision id {first}."
    )
    other = {"ResourceArn": arn, "Policy": policy(arn, "dynamodb:Query")}
    second = client.put_resource_policy(**other, ExpectedRevisionId=first)["RevisionId"]
    assert refusal(client.delete_resource_policy, ResourceArn=arn, ExpectedRevisionId=first) == (
        "PolicyNotFoundException",
        f"{NOT_FOUND}Requested update for policy with revision id {first}, but the policy "
        f"associated to target table {name} has revision id {second}.",
    )
    client.delete_resource_policy(ResourceArn=arn, ExpectedRevisionId=second)


def test_a_stream_has_a_policy_of_its_own(client: Any, table: TableFactory) -> None:
    name = table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    described = client.describe_table(TableName=name)["Table"]
    stream, arn = described["LatestStreamArn"], described["TableArn"]
    document = policy(stream, "dynamodb:GetRecords")
    client.put_resource_policy(ResourceArn=stream, Policy=document)
    assert client.get_resource_policy(ResourceArn=stream)["Policy"] == document
    assert refusal(client.get_resource_policy, ResourceArn=arn)[0] == "PolicyNotFoundException"
    client.delete_resource_policy(ResourceArn=stream)
    missing = f"{arn}/stream/2000-01-01T00:00:00.000"
    assert refusal(client.get_resource_policy, ResourceArn=missing) == (
        "ResourceNotFoundException",
        "Requested resource not found: Stream: 2000-01-01T00:00:00.000 not found for Table: "
        f"{name}",
    )


def test_a_table_may_be_created_with_a_policy(client: Any, table: TableFactory) -> None:
    document = policy("*")
    name = table(ResourcePolicy=document)
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    assert client.get_resource_policy(ResourceArn=arn)["Policy"] == document


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("", "This is not JSON"),
        ("{}", "Statement is missing"),
        (policy("x"), "'x' must be in ARN format"),
        (policy("*").replace("Principal", "Nobody"), "A statement has no element 'Nobody'"),
    ],
)
def test_what_is_no_policy_is_refused(client: Any, arn: str, document: str, problem: str) -> None:
    code, message = refusal(client.put_resource_policy, ResourceArn=arn, Policy=document)
    assert code == "ValidationException"
    assert message.startswith(f"{INVALID}Invalid policy document: {problem}")


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        ("books", "ValidationException", f"{INVALID}ARNs must start with 'arn:': books"),
        (
            "arn:aws:dynamodb:us-east-1:123456789012:table/missing",
            "ResourceNotFoundException",
            "Requested resource not found: Table: missing not found",
        ),
        (
            "arn:aws:dynamodb:us-east-1:123456789012:table/missing/index/by",
            "ValidationException",
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided "
            "resource arn: arn:aws:dynamodb:us-east-1:123456789012:table/missing/index/by",
        ),
        (
            "arn:aws:dynamodb:us-east-1:999999999999:table/missing",
            "ValidationException",
            "This action is only supported by accounts that match the resource owner\u2019s "
            "account.",
        ),
        (
            "arn:aws:dynamodb:eu-west-1:123456789012:table/missing",
            "ValidationException",
            f"{INVALID}Invalid resource Arn: arn:aws:dynamodb:eu-west-1:123456789012:table/missing",
        ),
    ],
)
def test_what_a_policy_can_be_of(client: Any, resource: str, code: str, message: str) -> None:
    assert refusal(client.get_resource_policy, ResourceArn=resource) == (code, message)
