"""TagResource: tags are added and replaced; limits and errors."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION, refusal
from .tagging import ANOTHER_ACCOUNT, WRONG_ARNS, listed, tags, wrong_arn


def test_tags_are_added_and_replaced(client: Any, arn: str) -> None:
    client.tag_resource(ResourceArn=arn, Tags=tags(a="1", b="2"))
    client.tag_resource(ResourceArn=arn, Tags=tags(b="3", c=""))
    assert listed(client, arn) == {"a": "1", "b": "3", "c": ""}


def test_success_has_an_empty_body(raw: Any, arn: str) -> None:
    # recorded: zero bytes, not {}
    answer = raw("TagResource", {"ResourceArn": arn, "Tags": tags(a="1")})
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


@pytest.mark.parametrize("kind", WRONG_ARNS)
def test_what_is_no_arn_of_a_table_here_is_refused(client: Any, arn: str, kind: str) -> None:
    wrong, text = wrong_arn(kind, arn)
    assert refusal(client.tag_resource, ResourceArn=wrong, Tags=tags(a="1")) == (VALIDATION, text)


def test_an_arn_of_another_account_is_not_ours_to_see(client: Any) -> None:
    code, _ = refusal(client.tag_resource, ResourceArn=ANOTHER_ACCOUNT, Tags=tags(a="1"))
    assert code == "AccessDeniedException"


def test_a_table_that_is_not_there_is_not_found(client: Any, arn: str) -> None:
    # dynalite; "ResourcArn" is the service's own spelling
    assert refusal(client.tag_resource, ResourceArn=f"{arn}_missing", Tags=tags(a="1")) == (
        "ResourceNotFoundException",
        f"Requested resource not found: ResourcArn: {arn}_missing not found",
    )


def test_a_request_without_tags_is_refused(raw: Any, arn: str) -> None:
    # dynalite
    answer = raw("TagResource", {"ResourceArn": arn})
    assert (answer.status, answer.body["message"]) == (
        400,
        "1 validation error detected: Value null at 'tags' failed to satisfy constraint: "
        "Member must not be null",
    )


def test_a_request_without_an_arn_is_refused(client: Any) -> None:
    assert refusal(client.tag_resource, Tags=tags(a="1"))[0] == VALIDATION
