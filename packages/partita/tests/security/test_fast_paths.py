"""Rights are also checked for reads without decoding, and for requests that another process
decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testkit.servers.users import People, refusal, statement, table_arn

VALUES = 45_000
LEADING = "dynamodb:LeadingKeys"
WRITE = "dynamodb:BatchWriteItem"


def key(pk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": "a"}}


def limited(action: str, name: str, pk: str) -> dict[str, Any]:
    condition = {"ForAllValues:StringEquals": {LEADING: [pk]}}
    return statement(action, table_arn(name), Condition=condition)


def test_a_plain_read_needs_its_right(
    people: People, admin: Any, table: Callable[..., str]
) -> None:
    name = table()
    admin.put_item(TableName=name, Item=key("mine"))
    admin.put_item(TableName=name, Item=key("theirs"))
    stranger = people.client(people.add(statement("dynamodb:GetItem", table_arn("Other"))))
    owner = people.client(people.add(limited("dynamodb:GetItem", name, "mine")))
    # Twice: the second answer is in the response cache.
    for _ in range(2):
        for pk in ("mine", "theirs", "nobody's"):
            assert refusal(stranger.get_item, TableName=name, Key=key(pk))[0] == (
                "AccessDeniedException"
            )
        assert owner.get_item(TableName=name, Key=key("mine"))["Item"] == key("mine")
        code, text = refusal(owner.get_item, TableName=name, Key=key("theirs"))
        assert code == "AccessDeniedException" and "dynamodb:GetItem" in text
        assert admin.get_item(TableName=name, Key=key("theirs"))["Item"] == key("theirs")


def test_a_read_is_judged_by_what_it_reads(
    people: People, admin: Any, table: Callable[..., str]
) -> None:
    """Members that a GetItem does not have are ignored, and of two members with one name the last
    counts.
    """
    name = table()
    admin.put_item(TableName=name, Item=key("mine"))
    client = people.client(
        people.add(
            statement("dynamodb:GetItem", [f"{table_arn(name)}/index/any", table_arn("Other")])
        )
    )
    asked = json.dumps(key("mine"))
    for body in (
        f'{{"TableName": "{name}", "IndexName": "any", "Key": {asked}}}',
        f'{{"TableName": "Other", "Key": {asked}, "TableName": "{name}"}}',
    ):
        # The second time, an administrator has had the same answer.
        for _ in range(2):
            code, _text = refusal(sent_as_is(client, body))
            assert code == "AccessDeniedException"
            assert sent_as_is(admin, body)()["Item"] == key("mine")


def sent_as_is(client: Any, body: str) -> Callable[[], Any]:
    """A GetItem whose body no client would write."""

    def send() -> Any:
        def replace(request: Any, **_: Any) -> None:
            request.data = body.encode()
            request.headers["Content-Length"] = str(len(body))

        client.meta.events.register_first("before-sign.dynamodb.GetItem", replace, "replaced")
        try:
            return client.get_item(TableName="any", Key=key("any"))
        finally:
            client.meta.events.unregister("before-sign.dynamodb.GetItem", unique_id="replaced")

    return send


def put_large(client: Any, name: str, pk: str) -> Any:
    item = {**key(pk), "list": {"L": [{"N": "1"}] * VALUES}}
    return client.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": item}}]})


def test_a_large_request_needs_its_right(
    people: People, admin: Any, table: Callable[..., str]
) -> None:
    name = table()
    stranger = people.client(people.add(statement(WRITE, table_arn("Other"))))
    owner = people.client(people.add(limited(WRITE, name, "mine")))
    code, text = refusal(put_large, client=stranger, name=name, pk="mine")
    assert code == "AccessDeniedException"
    assert f"is not authorized to perform: {WRITE} on resource: {table_arn(name)}" in text
    assert refusal(put_large, client=owner, name=name, pk="theirs")[0] == "AccessDeniedException"
    assert put_large(owner, name, "mine")["UnprocessedItems"] == {}
    assert [item["pk"]["S"] for item in admin.scan(TableName=name)["Items"]] == ["mine"]
    assert people.server is not None
    assert "partita.server.large_requests.large_request_worker" in children_of(
        people.server.process.pid
    )


def test_a_large_request_needs_a_signature_first(people: People, table: Callable[..., str]) -> None:
    known = people.add(statement("*"))

    class Forged:
        id, secret = known.id, "wrong"

    code, _ = refusal(put_large, client=people.client(Forged), name=table(), pk="mine")
    assert code == "InvalidSignatureException"


def test_a_resource_policy_counts_for_large_requests(
    people: People, admin: Any, table: Callable[..., str]
) -> None:
    name = table()
    user = people.add(statement(WRITE, table_arn(name)))
    client = people.client(user)
    assert put_large(client, name, "before")
    denied = {**statement(WRITE, table_arn(name), "Deny"), "Principal": "*"}
    admin.put_resource_policy(
        ResourceArn=table_arn(name),
        Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]}),
    )
    code, text = refusal(put_large, client=client, name=name, pk="after")
    assert code == "AccessDeniedException" and "explicit deny in a resource-based policy" in text


def children_of(pid: int) -> str:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        pytest.skip("This system does not show the children of a process.")
    return " ".join(Path(f"/proc/{one}/cmdline").read_text() for one in children)
