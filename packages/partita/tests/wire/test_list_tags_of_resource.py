"""ListTagsOfResource: the tags of a table, and errors for ARNs of other resources."""

from __future__ import annotations

from typing import Any

import pytest

from .refusals import VALIDATION, refusal
from .tagging import ANOTHER_ACCOUNT, WRONG_ARNS, listed, tags, wrong_arn


def test_a_table_without_tags_has_an_empty_list(raw: Any, arn: str) -> None:
    # dynalite
    answer = raw("ListTagsOfResource", {"ResourceArn": arn})
    assert (answer.status, answer.body) == (200, {"Tags": []})


def test_all_tags_are_listed(client: Any, arn: str) -> None:
    client.tag_resource(ResourceArn=arn, Tags=tags(a="1", b=""))
    assert listed(client, arn) == {"a": "1", "b": ""}


@pytest.mark.parametrize("kind", WRONG_ARNS)
def test_what_is_no_arn_of_a_table_here_is_refused(client: Any, arn: str, kind: str) -> None:
    wrong, text = wrong_arn(kind, arn)
    assert refusal(client.list_tags_of_resource, ResourceArn=wrong) == (VALIDATION, text)


def test_an_arn_of_another_account_is_not_ours_to_see(client: Any) -> None:
    code, _ = refusal(client.list_tags_of_resource, ResourceArn=ANOTHER_ACCOUNT)
    assert code == "AccessDeniedException"


def test_a_table_that_is_not_there_is_not_found(client: Any, arn: str) -> None:
    # dynalite; "ResourcArn" is the service's own spelling
    assert refusal(client.list_tags_of_resource, ResourceArn=f"{arn}_missing") == (
        "ResourceNotFoundException",
        f"Requested resource not found: ResourcArn: {arn}_missing not found",
    )


def test_a_request_without_an_arn_is_refused(client: Any) -> None:
    assert refusal(client.list_tags_of_resource)[0] == VALIDATION
