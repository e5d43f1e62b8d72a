"""UntagResource: keys that are removed, and which requests are refused."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION, refusal
from .tagging import ANOTHER_ACCOUNT, WRONG_ARNS, listed, tags, wrong_arn

KEYS = ["a"]


def test_tags_are_removed_by_their_keys(client: Any, arn: str) -> None:
    client.tag_resource(ResourceArn=arn, Tags=tags(a="1", b="3", c=""))
    client.untag_resource(ResourceArn=arn, TagKeys=["a", "c", "unknown"])
    assert listed(client, arn) == {"b": "3"}


def test_success_has_an_empty_body(raw: Any, arn: str) -> None:
    # recorded: zero bytes, not {}
    answer = raw("UntagResource", {"ResourceArn": arn, "TagKeys": KEYS})
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "0"


def test_a_key_is_named(client: Any, arn: str) -> None:
    # dynalite
    assert refusal(client.untag_resource, ResourceArn=arn, TagKeys=[]) == (
        VALIDATION,
        "Atleast one Tag Key needs to be provided as Input.",
    )


@pytest.mark.parametrize("kind", WRONG_ARNS)
def test_what_is_no_arn_of_a_table_here_is_refused(client: Any, arn: str, kind: str) -> None:
    wrong, text = wrong_arn(kind, arn)
    assert refusal(client.untag_resource, ResourceArn=wrong, TagKeys=KEYS) == (VALIDATION, text)


def test_an_arn_of_another_account_is_not_ours_to_see(client: Any) -> None:
    code, _ = refusal(client.untag_resource, ResourceArn=ANOTHER_ACCOUNT, TagKeys=KEYS)
    assert code == "AccessDeniedException"


def test_a_table_that_is_not_there_is_not_found(client: Any, arn: str) -> None:
    # dynalite: unlike the others, it names nothing
    assert refusal(client.untag_resource, ResourceArn=f"{arn}_missing", TagKeys=KEYS) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


def test_a_request_without_keys_is_refused(raw: Any, arn: str) -> None:
    # dynalite
    answer = raw("UntagResource", {"ResourceArn": arn})
    assert (answer.status, answer.body["message"]) == (
        400,
        "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: "
        "Member must not be null",
    )


def test_a_request_without_an_arn_is_refused(client: Any) -> None:
    assert refusal(client.untag_resource, TagKeys=KEYS)[0] == VALIDATION
