"""Every way into the server has its line in the audit log: who, what it was about, the outcome."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import cbor2
import pytest

from partita.foundation.service_limits import MB
from partita.server.security.identities.user_directory import AccessKey
from testkit.packaging.function_packages import create
from testkit.servers import processes
from testkit.servers.users import (
    ACCOUNT,
    ADMINISTRATOR,
    REGION,
    TABLE,
    Document,
    People,
    events,
    refusal,
    statement,
    table_arn,
)

from .test_attacks import CBOR, signed
from .test_functions import ROLE, trusting

CONSOLE = "application/vnd.partita.console+json"
LARGE = [
    {"PutRequest": {"Item": {"pk": {"S": f"{item}"}, "l": {"L": [{"S": "x"}] * 2000}}}}
    for item in range(20)
]
"""So many values that the request is decided in a process of its own."""
HANDLER = "def handler(event, context):\n    return event\n"


class Audited:
    """A server, and the lines that its audit log gets."""

    def __init__(self, people: People, key: AccessKey, folder: Path) -> None:
        self.people, self.key, self.folder = people, key, folder
        self._read = 0

    @property
    def url(self) -> str:
        assert self.people.server is not None
        return self.people.server.url

    def client(self, service: str = "dynamodb") -> Any:
        return self.people.client(self.key, service)

    def new_events(self) -> list[Document]:
        """The lines since the last call, without changes of users."""
        found = events(self.folder)
        new, self._read = found[self._read :], len(found)
        return [one for one in new if one["eventName"] != "UpdateUsers"]

    def new_event(self) -> Document:
        (event,) = self.new_events()
        return event


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    people = People(folder)
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role("runs", trusting("lambda"), statement("dynamodb:*"))
    settings = ("--limit-failures", "1000000", "--audit-data", "watched")
    with processes.starting() as start:
        people.server = start("serve", "--auth", "--port", "0", "--data", folder, *settings)
        yield Audited(people, key, folder)


@pytest.fixture
def audited(server: Audited) -> Audited:
    server.new_events()
    return server


def arns(event: Document) -> list[str]:
    return [one["ARN"] for one in event["resources"]]


def got(url: str, pair: str = "") -> int:
    headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"} if pair else {}
    try:
        with urlopen(Request(url, headers=headers)) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


# Pages


def test_a_page_that_is_refused_has_a_line(audited: Audited) -> None:
    key = audited.people.add(statement("s3:*"))
    for pair, status, code in (
        ("", 401, "MissingAuthenticationTokenException"),
        (f"{key.id}:wrong", 401, "UnrecognizedClientException"),
        (f"{key.id}:{key.secret}", 403, "AccessDeniedException"),
    ):
        assert got(f"{audited.url}/insights?table=watched", pair) == status
        event = audited.new_event()
        assert (event["eventName"], event["errorCode"]) == ("GetInsights", code)
        assert event["eventSource"] == "partita.amazonaws.com"
        assert event["userIdentity"]["type"] == ("IAMUser" if status == 403 else "Unknown")
        assert arns(event) == [f"arn:aws:partita:{REGION}:{ACCOUNT}:page/insights"]
        assert event["requestParameters"] == {"page": "/insights", "tableName": "watched"}


def test_a_page_that_is_shown_has_a_line_and_one_that_is_polled_has_one_an_hour(
    audited: Audited,
) -> None:
    key = audited.people.add(policies=[ADMINISTRATOR])
    pair = f"{key.id}:{key.secret}"
    audited.client().create_table(TableName="watched", **TABLE)
    audited.new_events()
    for _ in range(3):
        for path in ("/metrics", "/requests", "/partitions?table=watched"):
            assert got(f"{audited.url}{path}", pair) == 200
    assert got(f"{audited.url}/metrics", f"{audited.key.id}:{audited.key.secret}") == 200
    found = audited.new_events()
    names = [one["eventName"] for one in found]
    assert names == ["GetMetrics", "GetRequests", "GetPartitions", "GetMetrics"]
    assert [one["userIdentity"]["accessKeyId"] for one in found[2:]] == [key.id, audited.key.id]
    assert all("errorCode" not in one and one["readOnly"] for one in found)
    for _ in range(2):
        assert got(f"{audited.url}/explain?statement=SELECT%20*%20FROM%20watched", pair) == 200
    assert [one["eventName"] for one in audited.new_events()] == ["ExplainStatement"] * 2


def test_no_statement_is_written_down_with_its_values(audited: Audited) -> None:
    pair = f"{audited.key.id}:{audited.key.secret}"
    text = "SELECT%20*%20FROM%20watched%20WHERE%20pk='s3cr3t'"
    got(f"{audited.url}/explain?statement={text}", pair)
    assert audited.new_event()["requestParameters"] == {"page": "/explain"}


def test_open_pages_have_no_line(audited: Audited) -> None:
    for path in ("/", "/ping", "/health"):
        assert got(f"{audited.url}{path}") == 200
    assert audited.new_events() == []


# The console


@pytest.mark.parametrize("secret", ["wrong", "wrong é", "a\r\nb", "\x7f"])
@pytest.mark.parametrize("key_id", ["known", "AKIANOBODY", "a\r\nb", "é", "a b", ""])
def test_a_wrong_password_at_the_console_has_a_line(
    audited: Audited, key_id: str, secret: str
) -> None:
    given = {"AccessKeyId": key_id if key_id != "known" else audited.key.id}
    token = {} if secret == "wrong" else {"SessionToken": "é"}
    body = json.dumps({**given, "SecretAccessKey": secret, **token}).encode()
    connection = HTTPConnection(urlsplit(audited.url).netloc)
    connection.request("POST", "/console/api/sign-in", body, {"Content-Type": CONSOLE})
    assert connection.getresponse().status == 401
    connection.close()
    event = audited.new_event()
    assert event["eventName"] == "ConsoleLogin"
    assert event["eventSource"] == "signin.amazonaws.com"
    assert event["sourceIPAddress"] == "127.0.0.1"
    codes = ("SignatureDoesNotMatch", "InvalidClientTokenId", "IncompleteSignature")
    assert event["errorCode"] in codes


def test_a_right_password_has_one_too(audited: Audited) -> None:
    body = {"AccessKeyId": audited.key.id, "SecretAccessKey": audited.key.secret}
    connection = HTTPConnection(urlsplit(audited.url).netloc)
    sent = {"Content-Type": CONSOLE}
    connection.request("POST", "/console/api/sign-in", json.dumps(body).encode(), sent)
    assert connection.getresponse().status == 200
    connection.close()
    event = audited.new_event()
    assert event["eventName"] == "ConsoleLogin" and "errorCode" not in event
    assert event["userIdentity"]["accessKeyId"] == audited.key.id


# Functions


def test_functions_their_code_and_statuses_other_than_200(audited: Audited) -> None:
    functions = audited.client("lambda")
    create(functions, "coded", HANDLER, Role=f"{ROLE}runs")
    location = functions.get_function(FunctionName="coded")["Code"]["Location"]
    audited.new_events()
    with urlopen(location) as download:
        assert download.read()
    event = audited.new_event()
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:coded"
    assert (event["eventName"], arns(event)) == ("GetFunctionCode", [function])
    assert event["requestParameters"]["functionName"] == "coded"
    assert event["sourceIPAddress"] == "127.0.0.1" and "errorCode" not in event
    assert "X-Amz-Signature" not in json.dumps(event)
    assert got(f"{location[:-1]}{0 if location[-1] != '0' else 1}") == 403
    event = audited.new_event()
    assert (event["eventName"], event["userIdentity"]) == ("GetFunctionCode", {"type": "Unknown"})
    assert event["errorCode"] == "InvalidSignatureException"
    # 201 and 204 are successes, too.
    create(functions, "another", HANDLER, Role=f"{ROLE}runs")
    functions.delete_function(FunctionName="another")
    found = [one for one in audited.new_events() if one["eventName"] != "GetFunction"]
    assert [one["eventName"] for one in found] == ["CreateFunction", "DeleteFunction"]
    for event in found:
        assert "errorCode" not in event
        assert arns(event)[0].endswith(":function:another")
    with pytest.raises(functions.exceptions.ResourceNotFoundException):
        functions.delete_function(FunctionName="another")
    assert audited.new_event()["errorCode"] == "ResourceNotFoundException"


# What a request is about


def test_kinesis_in_cbor_has_its_stream_in_the_line(audited: Audited) -> None:
    arn = f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/events"

    def ask(operation: str, content: Document) -> Document:
        headers = {"Content-Type": CBOR, "X-Amz-Target": f"Kinesis_20131202.{operation}"}
        signed(audited.people, audited.key, "kinesis", headers, cbor2.dumps(content))
        return audited.new_event()

    event = ask("CreateStream", {"StreamName": "events", "ShardCount": 1})
    assert event["requestParameters"] == {"streamName": "events"} and arns(event) == [arn]
    event = ask("DescribeStreamSummary", {"StreamARN": arn})
    assert event["requestParameters"] == {"streamARN": arn} and arns(event) == [arn]
    event = ask("CreateStream", {"StreamName": "events", "ShardCount": 1})
    assert event["errorCode"] == "ResourceInUseException"
    headers = {"Content-Type": CBOR, "X-Amz-Target": "Kinesis_20131202.PutRecord"}
    for name in ("watched", "events"):
        body = cbor2.dumps({"StreamName": name, "Data": b"s3cr3t", "PartitionKey": "s3cr3t"})
        signed(audited.people, audited.key, "kinesis", headers, body)
    event = audited.new_event()
    assert (event["eventName"], event["requestParameters"]) == (
        "PutRecord",
        {"streamName": "watched"},
    )
    assert "s3cr3t" not in json.dumps(event)


def test_backups_restores_exports_and_imports_have_their_resources(audited: Audited) -> None:
    client = audited.client()
    client.create_table(TableName="kept", **TABLE)
    client.get_waiter("table_exists").wait(TableName="kept")
    table = table_arn("kept")
    backup = client.create_backup(TableName="kept", BackupName="first")
    arn = backup["BackupDetails"]["BackupArn"]
    missing = f"{table}/export/01234567890123-01234567"
    audited.new_events()
    for operation, parameters, expected in (
        (client.describe_backup, {"BackupArn": arn}, [arn]),
        (
            client.restore_table_from_backup,
            {"BackupArn": arn, "TargetTableName": "again"},
            [arn, table_arn("again")],
        ),
        (
            client.restore_table_to_point_in_time,
            {
                "SourceTableName": "kept",
                "TargetTableName": "again",
                "UseLatestRestorableTime": True,
            },
            [table, table_arn("again")],
        ),
        (
            client.export_table_to_point_in_time,
            {"TableArn": table, "S3Bucket": "exports"},
            [table, "arn:aws:s3:::exports/*"],
        ),
        (client.describe_export, {"ExportArn": missing}, [missing]),
        (
            client.import_table,
            {
                "S3BucketSource": {"S3Bucket": "imports"},
                "InputFormat": "DYNAMODB_JSON",
                "TableCreationParameters": {"TableName": "imported", **TABLE},
            },
            [
                f"{table_arn('imported')}/import/*",
                "arn:aws:s3:::imports",
                "arn:aws:s3:::imports/*",
            ],
        ),
        (client.delete_backup, {"BackupArn": arn}, [arn]),
    ):
        with suppress(client.exceptions.ClientError):
            operation(**parameters)
        event = audited.new_event()
        assert arns(event) == expected
        for name, value in parameters.items():
            if name.endswith(("Arn", "Name", "Bucket")):
                assert event["requestParameters"][name[0].lower() + name[1:]] == value


def test_a_request_without_rights_says_what_it_was_about(audited: Audited) -> None:
    stranger = audited.people.client(audited.people.add(statement("s3:*")))
    audited.new_events()
    arn = f"{table_arn('kept')}/backup/01234567890123-01234567"
    refusal(stranger.delete_backup, BackupArn=arn)
    event = audited.new_event()
    assert (event["errorCode"], arns(event)) == ("AccessDeniedException", [arn])


def test_a_transaction_names_its_tables(audited: Audited) -> None:
    put = {"Put": {"TableName": "watched", "Item": {"pk": {"S": "s3cr3t"}}}}
    check = {"Delete": {"TableName": "kept", "Key": {"pk": {"S": "s3cr3t"}}}}
    audited.client().transact_write_items(TransactItems=[put, check])
    event = audited.new_event()
    assert set(arns(event)) == {table_arn("watched"), table_arn("kept")}
    assert "s3cr3t" not in json.dumps(event)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("GetItem", '{"TableName":"watched","Key":{"pk":{"S":"a"}},"BackupArn":{}}'),
        ("GetItem", '{"\\u0054ableName":"watched","Key":{"pk":{"S":"a"}}}'),
        ("GetItem", '{"TableName":"kept","TableName":"watched","Key":{"pk":{"S":"a"}}}'),
        (
            "TransactGetItems",
            '{"TransactItems":[{"Get":{"TableName":"watched","Key":{"pk":{"S":"a"}}},"X":7}]}',
        ),
        ("BatchWriteItem", json.dumps({"RequestItems": {"watched": LARGE}})),
        ("ExecuteStatement", f'{" " * 2 * MB}{{"Statement":"SELECT * FROM watched"}}'),
    ],
)
def test_nothing_hides_a_request_for_a_watched_table(
    audited: Audited, operation: str, body: str
) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
    }
    status, answer = signed(audited.people, audited.key, "dynamodb", headers, body.encode())
    assert status == 200, answer
    event = audited.new_event()
    assert event["eventName"] == operation
    assert arns(event) == [table_arn("watched")]
