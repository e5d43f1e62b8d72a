"""Functions, mappings and schedules behind the gate: they may do what their roles may."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from testkit.packaging.function_packages import create, wait_for
from testkit.servers import processes
from testkit.servers.users import ACCOUNT, ADMINISTRATOR, People, refusal, statement, table_arn

ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
WRITES = """
import boto3

def handler(event, context):
    client = boto3.client("dynamodb")
    for record in event.get("Records", [{"dynamodb": {"Keys": event.get("key")}}]):
        key = record["dynamodb"]["Keys"]
        client.put_item(TableName="written", Item={"pk": {"S": "from-" + key["pk"]["S"]}})
"""


def trusting(service: str) -> dict[str, Any]:
    principal = {"Service": f"{service}.amazonaws.com"}
    return {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}


@pytest.fixture(scope="module")
def functions(people: People, administrator: Any, admin: Any) -> Any:
    admin.create_table(
        TableName="written",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    written = table_arn("written")
    reads = [f"dynamodb:{name}" for name in ("GetRecords", "GetShardIterator", "DescribeStream")]
    people.add_role("writer", trusting("lambda"), statement("dynamodb:PutItem", written))
    people.add_role("reader", trusting("lambda"), statement("dynamodb:GetItem", written))
    people.add_role("stream-reader", trusting("lambda"), statement(reads, f"{written}/stream/*"))
    people.add_role("foreign", trusting("states"), statement("*"))
    people.add_role("scheduled", trusting("scheduler"), statement("dynamodb:PutItem", written))
    people.add_role("idle", trusting("scheduler"), statement("dynamodb:GetItem", written))
    return people.client(administrator, "lambda")


@pytest.fixture
def function(functions: Any) -> Iterator[Callable[[str], str]]:
    names: list[str] = []

    def make(role: str) -> str:
        names.append(f"f-{uuid4().hex[:12]}")
        create(functions, names[-1], WRITES, Role=f"{ROLE}{role}")
        return names[-1]

    yield make
    for name in names:
        functions.delete_function(FunctionName=name)


def invoked(functions: Any, name: str, key: str) -> tuple[bool, str]:
    event = json.dumps({"key": {"pk": {"S": key}}})
    answer = functions.invoke(FunctionName=name, Payload=event)
    return "FunctionError" not in answer, answer["Payload"].read().decode()


def find(admin: Any, key: str) -> Any:
    return admin.get_item(TableName="written", Key={"pk": {"S": key}}, ConsistentRead=True).get(
        "Item"
    )


def test_a_function_may_do_what_its_role_may(
    functions: Any, function: Callable[[str], str], admin: Any
) -> None:
    is_done, payload = invoked(functions, function("writer"), "a")
    assert is_done, payload
    assert find(admin, "from-a")


def test_a_function_may_do_no_more(
    functions: Any, function: Callable[[str], str], admin: Any
) -> None:
    is_done, payload = invoked(functions, function("reader"), "b")
    assert not is_done and "dynamodb:PutItem" in payload and "assumed-role/reader" in payload
    assert find(admin, "from-b") is None


@pytest.mark.parametrize("role", ["foreign", "missing"])
def test_a_role_that_does_not_trust_lambda_is_refused(functions: Any, role: str) -> None:
    with pytest.raises(functions.exceptions.InvalidParameterValueException, match="assumed"):
        create(functions, f"f-{uuid4().hex[:12]}", WRITES, Role=f"{ROLE}{role}")


def test_an_invocation_needs_the_right_on_the_function(
    people: People, functions: Any, function: Callable[[str], str]
) -> None:
    name, other = function("writer"), function("writer")
    arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{name}"
    client = people.client(people.add(statement("lambda:InvokeFunction", arn)), "lambda")
    assert invoked(client, name, "c")[0]
    assert invoked(client, arn, "c")[0]
    code, text = refusal(client.invoke, FunctionName=other)
    assert code == "AccessDeniedException" and f"function:{other}" in text
    code, _ = refusal(client.invoke, FunctionName=name, Qualifier="live")
    assert code == "AccessDeniedException"


def test_nobody_calls_a_function_without_a_signature(
    people: People, functions: Any, function: Callable[[str], str]
) -> None:
    name = function("writer")
    assert people.server is not None
    path = f"{people.server.url}/2015-03-31/functions/{name}"
    code = functions.get_function(FunctionName=name)["Code"]["Location"]
    other = code.replace(name, function("writer"))
    unsigned = {"Authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, "}
    for url, headers in (
        (f"{path}/invocations", {}),
        (f"{path}/invocations", unsigned),
        (f"{path}/code", unsigned),
        (code.partition("&")[0], {}),
        (f"{code[:-1]}{0 if code[-1] != '0' else 1}", {}),
        (code.replace("X-Amz-Expires=600", "X-Amz-Expires=6000"), {}),
        (other, {}),
        (code, {"X-Partita-Role": f"{ROLE}writer"}),
        (code, {"X-Amz-Target": "PartitaRights.Session", "X-Partita-Role": f"{ROLE}writer"}),
    ):
        data = b"{}" if url.endswith("invocations") else None
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(url, data, headers | {"Content-Type": "application/json"}))
        with caught.value as refused:
            assert refused.code == 403, url


def test_the_code_of_a_function_is_where_get_function_says(
    functions: Any, function: Callable[[str], str]
) -> None:
    got = functions.get_function(FunctionName=function("writer"))
    with urlopen(got["Code"]["Location"]) as download:
        content = download.read()
    assert b64encode(sha256(content).digest()).decode() == got["Configuration"]["CodeSha256"]


def test_a_url_that_a_user_signed_is_good_for_no_code(
    functions: Any, function: Callable[[str], str], administrator: Any
) -> None:
    location = functions.get_function(FunctionName=function("writer"))["Code"]["Location"]
    asked = AWSRequest("GET", location.partition("?")[0])
    asked.params = {"versionId": parse_qs(urlsplit(location).query)["versionId"][0]}
    credentials = Credentials(administrator.id, administrator.secret)
    SigV4QueryAuth(credentials, "lambda", "us-east-1", expires=600).add_auth(asked)
    with pytest.raises(HTTPError) as caught, urlopen(asked.prepare().url):
        pass
    with caught.value as refused:
        assert refused.code == 403


def test_a_mapping_reads_its_stream_with_the_rights_of_the_function(
    people: People, functions: Any, function: Callable[[str], str], admin: Any
) -> None:
    stream = admin.describe_table(TableName="written")["Table"]["LatestStreamArn"]
    asked = {"EventSourceArn": stream, "StartingPosition": "TRIM_HORIZON"}
    code, text = refusal(
        functions.create_event_source_mapping, FunctionName=function("writer"), **asked
    )
    assert code == "InvalidParameterValueException" and "Cannot access stream" in text
    created = functions.create_event_source_mapping(FunctionName=function("stream-reader"), **asked)
    admin.put_item(TableName="written", Item={"pk": {"S": "streamed"}})

    def result() -> str:
        found = functions.get_event_source_mapping(UUID=created["UUID"])
        return str(found["LastProcessingResult"])

    # It is called with what it may read, and fails with what it may not write.
    assert wait_for(result, lambda seen: seen != "No records processed").startswith("PROBLEM")
    functions.delete_event_source_mapping(UUID=created["UUID"])


def test_a_schedule_calls_its_target_with_the_rights_of_its_role(
    people: People, administrator: Any, functions: Any, admin: Any
) -> None:
    scheduler = people.client(administrator, "scheduler")
    soon = datetime.now(UTC) + timedelta(seconds=3)
    for role in ("idle", "scheduled"):
        item = {"TableName": "written", "Item": {"pk": {"S": f"by-{role}"}}}
        scheduler.create_schedule(
            Name=role,
            ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={
                "Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:putItem",
                "RoleArn": f"{ROLE}{role}",
                "Input": json.dumps(item),
                "RetryPolicy": {"MaximumRetryAttempts": 0},
            },
        )
    assert wait_for(lambda: find(admin, "by-scheduled"))
    time.sleep(0.5)
    assert find(admin, "by-idle") is None


def test_tags_of_a_schedule_group_take_the_right_on_that_group(
    people: People, administrator: Any, functions: Any
) -> None:
    """No other spelling of its ARN names it."""
    scheduler = people.client(administrator, "scheduler")
    own = scheduler.create_schedule_group(Name="tagged")["ScheduleGroupArn"]
    elsewhere = own.replace("us-east-1", "eu-west-1")
    spellings = [
        elsewhere,
        own.replace("us-east-1", ""),
        own.replace(ACCOUNT, "111122223333"),
        own.replace("arn:aws:", "arn:aws-cn:"),
    ]
    tags = [{"Key": "team", "Value": "a"}]
    allowed = statement("scheduler:*", [elsewhere, *spellings, "arn:aws:scheduler:eu-*:*:*"])
    stranger = people.client(people.add(allowed), "scheduler")
    for arn in spellings:
        for client in (stranger, scheduler):
            for call, more in (
                (client.tag_resource, {"Tags": tags}),
                (client.untag_resource, {"TagKeys": ["team"]}),
                (client.list_tags_for_resource, {}),
            ):
                code, _ = refusal(call, ResourceArn=arn, **more)
                if client is stranger:
                    assert code.startswith("AccessDenied")
                else:
                    assert code in ("ResourceNotFoundException", "ValidationException")
    assert scheduler.list_tags_for_resource(ResourceArn=own)["Tags"] == []
    of_own = statement(
        "scheduler:TagResource",
        own,
        Condition={"ForAllValues:StringEquals": {"aws:TagKeys": ["team"]}},
    )
    tagger = people.client(people.add(of_own), "scheduler")
    tagger.tag_resource(ResourceArn=own, Tags=tags)
    other = [{"Key": "owner", "Value": "a"}]
    assert refusal(tagger.tag_resource, ResourceArn=own, Tags=other)[0].startswith("AccessDenied")
    assert scheduler.list_tags_for_resource(ResourceArn=own)["Tags"] == tags


SETTINGS = """
[[functions]]
name = "named"
handler = "shop:handler"
role = "reader"

[[triggers]]
name = "copies"
table = "orders"
function = "shop:copy"
role = "copier"
"""
SHOP = """
import boto3

def handler(event, context):
    boto3.client("dynamodb").put_item(TableName="copied", Item={"pk": {"S": "from-handler"}})

def copy(event, context):
    for record in event["Records"]:
        item = record["dynamodb"]["Keys"]
        boto3.client("dynamodb").put_item(TableName="copied", Item=item)
"""


def test_what_the_settings_name_has_the_rights_of_the_role_that_they_give(tmp_path: Path) -> None:
    people = People(tmp_path / "data")
    key = people.add(policies=[ADMINISTRATOR])
    orders, copied = table_arn("orders"), table_arn("copied")
    reads = [f"dynamodb:{name}" for name in ("GetRecords", "GetShardIterator", "DescribeStream")]
    people.add_role("reader", trusting("lambda"), statement("dynamodb:GetItem", copied))
    people.add_role(
        *("copier", trusting("lambda"), statement("dynamodb:PutItem", copied)),
        *(statement(reads, f"{orders}/stream/*"), statement("dynamodb:ListStreams")),
    )
    (tmp_path / "partita.toml").write_text(SETTINGS)
    (tmp_path / "shop.py").write_text(SHOP)
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", tmp_path / "data"),
            *("--config", tmp_path / "partita.toml"),
        )
        admin = people.client(key)
        for name in ("orders", "copied"):
            admin.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            )
        functions = people.client(key, "lambda")
        described = functions.get_function(FunctionName="named")["Configuration"]
        assert described["Role"] == f"{ROLE}reader"
        is_done, payload = invoked(functions, "named", "a")
        assert not is_done and "assumed-role/reader" in payload
        admin.put_item(TableName="orders", Item={"pk": {"S": "first"}})
        asked = {"TableName": "copied", "Key": {"pk": {"S": "first"}}, "ConsistentRead": True}
        assert wait_for(lambda: admin.get_item(**asked).get("Item"))
