"""What the tests of tags share: tags in the API's form, and ARNs that all operations refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .refusals import INVALID

# From the ARN of a table: a wrong one, and what is said of it (catalogue).
WRONG_ARNS: dict[str, tuple[Callable[[str], str], str]] = {
    "no ARN": (lambda arn: "not-a-valid-arn", INVALID + "ARNs must start with 'arn:': {}"),
    "another service": (
        lambda arn: arn.replace(":dynamodb:", ":s3:"),
        INVALID + "Provided Arn is not a DynamoDB resource arn: {}",
    ),
    "no table": (
        lambda arn: arn.replace(":table/", ":backup/"),
        INVALID + "Invalid resource arn provided, only table or stream is accepted. "
        "Provided resource arn: {}",
    ),
    "another region": (
        lambda arn: arn.replace("us-east-1", "eu-central-1"),
        "Invalid TableArn: Invalid ResourceArn provided as input {}",
    ),
}
# recorded (ListTagsOfResource)
ANOTHER_ACCOUNT = "arn:aws:dynamodb:us-east-1:000000000000:table/nonexistent_table_xyz"


def wrong_arn(kind: str, arn: str) -> tuple[str, str]:
    """Returns an invalid ARN and the error for it."""
    spoil, text = WRONG_ARNS[kind]
    wrong = spoil(arn)
    return wrong, text.format(wrong)


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def listed(client: Any, arn: str) -> dict[str, str]:
    found = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}
