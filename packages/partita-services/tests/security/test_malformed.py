"""Requests that are signed rightly and malformed in every other way: refused, never with a 500."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, signed_headers
from partita.server.security.identities.user_directory import AccessKey
from testkit.servers.users import REGION, People, statement

from .test_operations import CASES, ROWS

NAMES = st.sampled_from(
    [
        *("TableName", "Key", "Item", "RequestItems", "TransactItems", "Statement", "Statements"),
        *("Get", "Put", "Update", "Delete", "PutRequest", "DeleteRequest", "Keys", "StreamArn"),
        *("ResourceArn", "ShardIterator", "Parameters", "KeyConditions", "Expected", "roleArn"),
        *("stateMachineArn", "tags", "routingConfiguration", "Tags", "StreamName", "NextToken"),
    ]
)
TEXTS = st.sampled_from(
    [
        "",
        "Books",
        "arn:aws:dynamodb:us-east-1:123456789012:table/Books",
        "SELECT * FROM x",
        "|",
        "é",
    ]
) | st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | TEXTS, inner, max_size=4),
    max_leaves=8,
)


class Sender:
    def __init__(self, url: str, key: AccessKey) -> None:
        self._host = urlsplit(url).netloc
        self._key = Credentials(key.id, key.secret)
        self.connection = http.client.HTTPConnection(self._host, timeout=30)

    def send(self, service: str, operation: str, request: Any) -> int:
        return self.send_bytes(service, operation, json.dumps(request).encode())

    def send_bytes(self, service: str, operation: str, body: bytes) -> int:
        description = SERVICES[service]
        headers = {
            "Host": self._host,
            "Content-Type": description.content_type,
            "X-Amz-Target": f"{description.target}.{operation}",
        }
        headers |= signed_headers(description, REGION, self._key, headers, body, time.time())
        self.connection.request("POST", "/", body, headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture(scope="module")
def sender(people: People) -> Iterator[Sender]:
    """A request of a user whose policies look at every condition key."""
    condition = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "*", "dynamodb:Attributes": "*"},
        "StringNotEqualsIfExists": {
            "dynamodb:Select": "x",
            "aws:ResourceTag/x": "x",
            "aws:RequestTag/x": "x",
        },
    }
    assert people.server is not None
    key = people.add(statement("*", Condition=condition))
    one = Sender(people.server.url, key)
    yield one
    one.connection.close()


def spoilt(request: dict[str, Any]) -> st.SearchStrategy[Any]:
    """The request with members replaced, or anything."""
    return (
        st.dictionaries(st.sampled_from(sorted(request)) | NAMES, VALUES, max_size=3).map(
            lambda changes: {**request, **changes}
        )
        if request
        else VALUES
    ) | VALUES


@settings(max_examples=150)
@given(st.data())
def test_nothing_malformed_is_answered_with_a_500(sender: Sender, data: st.DataObject) -> None:
    skipped = {"StartSyncExecution", "GetActivityTask"}
    cases = [case for case in CASES if case[1] not in skipped and case[0] != "states"]
    service, operation = data.draw(st.sampled_from(cases))
    request = data.draw(spoilt(ROWS[service][operation].request))
    assert sender.send(service, operation, request) in (200, 400), request


@settings(max_examples=30)
@given(st.data())
def test_so_it_is_with_workflows(sender: Sender, data: st.DataObject) -> None:
    operations = ["CreateStateMachineAlias", "ListExecutions", "TagResource", "DescribeActivity"]
    operation = data.draw(st.sampled_from(operations))
    request = data.draw(spoilt(ROWS["states"][operation].request))
    assert sender.send("states", operation, request) in (200, 400), request


DEEP = {
    "arrays": b'{"TableName":"x","Key":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "objects": b'{"TableName":"x","Key":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    "not closed": b'{"TableName":"x","Items":' + b"[" * 50_000,
    "not UTF-8": b'{"TableName":"\xff","Key":{"pk":{"S":"\xff"}}}',
    "names that are not UTF-8": b'{"TableName":"x","\xff":{}}',
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_so_it_is_with_bodies_that_no_decoder_takes(sender: Sender, body: bytes) -> None:
    for service, operation in CASES:
        assert sender.send_bytes(service, operation, body) == 400, operation


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_so_it_is_with_signing_in_at_the_console(people: People, body: bytes) -> None:
    assert people.server is not None
    connection = http.client.HTTPConnection("127.0.0.1", people.server.port, timeout=60)
    headers = {"Content-Type": "application/vnd.partita.console+json"}
    with contextlib.closing(connection):
        connection.request("POST", "/console/api/sign-in", body, headers)
        assert connection.getresponse().status == 400


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/metrics", "/2015-03-31/functions", "/schedules", "/?Action=x"),
        *("/?Action=x&X-Amz-Signature=0", "/?Action=x&X-Amz-Signature=0&X-Amz-Algorithm=x"),
        "/?Action=GetCallerIdentity&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"
        "&X-Amz-Credential=a/20260101/us-east-1/sts/aws4_request&X-Amz-Date=20260101T000000Z"
        "&X-Amz-SignedHeaders=host%E2%82%AC&X-Amz-Expires=" + "9" * 5000,
    ],
)
def test_a_form_that_is_not_posted_is_answered_and_lets_nobody_in(
    people: People, path: str
) -> None:
    assert people.server is not None
    is_open = path.partition("?")[0] == "/" and "Signature" not in path
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
        connection = http.client.HTTPConnection("127.0.0.1", people.server.port, timeout=60)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            status = connection.getresponse().status
        assert 400 <= status < 500 or (status == 200 and is_open), method
