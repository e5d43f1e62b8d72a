"""TagResource, UntagResource, ListTagsOfResource."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

VALIDATION = "ValidationException"
INVALID = "One or more parameter values were invalid: "


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The type and the text of the error that answers the request."""
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


@pytest.fixture
def arn(client: Any, table: Any) -> str:
    return str(client.describe_table(TableName=table())["Table"]["TableArn"])


def listed(client: Any, arn: str) -> dict[str, str]:
    found = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}


def test_a_table_without_tags_has_an_empty_list(raw: Any, arn: str) -> None:
    # dynalite
    answer = raw("ListTagsOfResource", {"ResourceArn": arn})
    assert (answer.status, answer.body) == (200, {"Tags": []})


def test_tags_are_added_replaced_and_removed(client: Any, arn: str) -> None:
    client.tag_resource(ResourceArn=arn, Tags=tags(a="1", b="2"))
    client.tag_resource(ResourceArn=arn, Tags=tags(b="3", c=""))
    assert listed(client, arn) == {"a": "1", "b": "3", "c": ""}
    client.untag_resource(ResourceArn=arn, TagKeys=["a", "c", "unknown"])
    assert listed(client, arn) == {"b": "3"}


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [("TagResource", {"Tags": tags(a="1")}), ("UntagResource", {"TagKeys": ["a"]})],
)
def test_success_has_an_empty_body(raw: Any, arn: str, operation: str, parameters: Any) -> None:
    # recorded: zero bytes, not {}
    answer = raw(operation, {"ResourceArn": arn, **parameters})
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "0"


def test_a_table_has_up_to_50_tags(client: Any, arn: str) -> None:
    client.tag_resource(ResourceArn=arn, Tags=tags(**{f"k{n}": "v" for n in range(50)}))
    client.tag_resource(ResourceArn=arn, Tags=tags(k7="other"))
    # catalogue
    assert refusal(client.tag_resource, ResourceArn=arn, Tags=tags(one="more")) == (
        VALIDATION,
        "Number of Tags exceed the current limit for the provided ResourceArn",
    )
    found = listed(client, arn)
    assert len(found) == 50
    assert found["k7"] == "other"


def test_keys_and_values_of_full_length(client: Any, arn: str) -> None:
    # Guide, "Tagging restrictions": 128 and 256 characters
    client.tag_resource(ResourceArn=arn, Tags=tags(**{"k" * 128: "v" * 256, "é": "ü"}))
    assert listed(client, arn) == {"k" * 128: "v" * 256, "é": "ü"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "Atleast one Tag needs to be provided as Input."),  # dynalite
        (tags(**{"aws:x": "1"}), "Tag Key cannot be prefixed with aws:, Key: aws:x"),
        (
            [*tags(x="1"), *tags(x="2")],
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found x",
        ),
        ([{"Key": "x"}], "The Tag Value provided is invalid, Value: null"),
        (tags(**{"": "1"}), "The Tag Key provided is invalid, Key: "),
        (tags(**{"k" * 129: "1"}), f"The Tag Key provided is invalid, Key: {'k' * 129}"),
        (tags(x="v" * 257), f"The Tag Value provided is invalid, Value: {'v' * 257}"),
    ],
    ids=["none", "reserved", "duplicate", "no value", "empty key", "long key", "long value"],
)
def test_tags_are_checked(client: Any, arn: str, given: list[dict[str, str]], text: str) -> None:
    # catalogue
    assert refusal(client.tag_resource, ResourceArn=arn, Tags=given) == (VALIDATION, text)
    assert listed(client, arn) == {}


def test_untagging_names_a_key(client: Any, arn: str) -> None:
    # dynalite
    assert refusal(client.untag_resource, ResourceArn=arn, TagKeys=[]) == (
        VALIDATION,
        "Atleast one Tag Key needs to be provided as Input.",
    )


CALLS: dict[str, dict[str, Any]] = {
    "tag_resource": {"Tags": tags(a="1")},
    "untag_resource": {"TagKeys": ["a"]},
    "list_tags_of_resource": {},
}


@pytest.mark.parametrize(("operation", "parameters"), CALLS.items())
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ("not-a-valid-arn", "ARNs must start with 'arn:': not-a-valid-arn"),
        (
            "arn:aws:s3:us-east-1:123456789012:table/x",
            "Provided Arn is not a DynamoDB resource arn: "
            "arn:aws:s3:us-east-1:123456789012:table/x",
        ),
        (
            "arn:aws:dynamodb:us-east-1:123456789012:backup/x",
            "Invalid resource arn provided, only table or stream is accepted. Provided resource "
            "arn: arn:aws:dynamodb:us-east-1:123456789012:backup/x",
        ),
    ],
    ids=["no ARN", "another service", "no table"],
)
def test_what_is_no_arn_of_a_table_is_refused(
    client: Any, operation: str, parameters: Any, wrong: str, text: str
) -> None:
    # catalogue
    call = getattr(client, operation)
    assert refusal(call, ResourceArn=wrong, **parameters) == (VALIDATION, INVALID + text)


@pytest.mark.parametrize(("operation", "parameters"), CALLS.items())
def test_an_arn_of_another_region_is_refused(
    client: Any, arn: str, operation: str, parameters: Any
) -> None:
    # catalogue
    other = arn.replace("us-east-1", "eu-central-1")
    assert refusal(getattr(client, operation), ResourceArn=other, **parameters) == (
        VALIDATION,
        f"Invalid TableArn: Invalid ResourceArn provided as input {other}",
    )


@pytest.mark.parametrize(("operation", "parameters"), CALLS.items())
def test_an_arn_of_another_account_is_not_ours_to_see(
    client: Any, operation: str, parameters: Any
) -> None:
    # recorded (ListTagsOfResource)
    other = "arn:aws:dynamodb:us-east-1:000000000000:table/nonexistent_table_xyz"
    code, _ = refusal(getattr(client, operation), ResourceArn=other, **parameters)
    assert code == "AccessDeniedException"


@pytest.mark.parametrize(("operation", "parameters"), CALLS.items())
def test_a_table_that_is_not_there_is_not_found(
    client: Any, arn: str, operation: str, parameters: Any
) -> None:
    # dynalite; "ResourcArn" is the service's own spelling, and UntagResource names nothing
    other = f"{arn}_missing"
    text = f"Requested resource not found: ResourcArn: {other} not found"
    if operation == "untag_resource":
        text = "Requested resource not found"
    assert refusal(getattr(client, operation), ResourceArn=other, **parameters) == (
        "ResourceNotFoundException",
        text,
    )


@pytest.mark.parametrize(
    ("operation", "missing"), [("TagResource", "tags"), ("UntagResource", "tagKeys")]
)
def test_a_request_without_tags_is_refused(
    raw: Any, arn: str, operation: str, missing: str
) -> None:
    # dynalite
    answer = raw(operation, {"ResourceArn": arn})
    assert (answer.status, answer.body["message"]) == (
        400,
        f"1 validation error detected: Value null at '{missing}' failed to satisfy constraint: "
        "Member must not be null",
    )


@pytest.mark.parametrize(("operation", "parameters"), CALLS.items())
def test_a_request_without_an_arn_is_refused(client: Any, operation: str, parameters: Any) -> None:
    assert refusal(getattr(client, operation), **parameters)[0] == VALIDATION
