"""Authentication: requests with correct, wrong, late, early, incomplete and missing signatures."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.server.security.identities.user_directory import AccessKey, set_status
from testkit.requirements import needs_services
from testkit.servers.users import REGION, People, client_for, refusal

TARGET = "DynamoDB_20120810.ListTables"
NO_MATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)
Answer = tuple[int, dict[str, Any]]


class Raw:
    """Makes requests that are signed correctly and then changed."""

    def __init__(self, url: str, key: AccessKey) -> None:
        self.url = url
        self.key = key
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def signed(
        self, body: bytes = b"{}", service: str = "dynamodb", secret: str = "", **headers: str
    ) -> dict[str, str]:
        given = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = AWSRequest("POST", f"{self.url}/", given, body)
        credentials = Credentials(self.key.id, secret or self.key.secret)
        SigV4Auth(credentials, service, REGION).add_auth(request)
        return dict(request.headers.items())

    def send(
        self, headers: dict[str, str] | list[tuple[str, str]], body: bytes = b"{}", path: str = "/"
    ) -> Answer:
        self.connection.putrequest("POST", path, skip_accept_encoding=True)
        for name, value in headers.items() if isinstance(headers, dict) else headers:
            self.connection.putheader(name, value)
        self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders(body)
        response = self.connection.getresponse()
        content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, {"text": content.decode()}


@pytest.fixture(scope="module")
def raw(people: People, administrator: AccessKey) -> Iterator[Raw]:
    assert people.server is not None
    requests = Raw(people.server.url, administrator)
    yield requests
    requests.connection.close()


def kind(answer: Answer) -> str:
    return str(answer[1]["__type"]).rpartition("#")[2]


def text(answer: Answer) -> str:
    return str(answer[1].get("message"))


def test_a_request_that_is_signed_rightly_is_answered(raw: Raw) -> None:
    assert raw.send(raw.signed())[0] == 200


@pytest.mark.parametrize(
    "service",
    ["dynamodb", "dynamodbstreams", "kinesis", pytest.param("stepfunctions", marks=needs_services)],
)
def test_every_service_asks_for_a_signature(people: People, service: str) -> None:
    assert people.server is not None
    stranger = client_for(people.server.url, "AKIAIOSFODNN7EXAMPLE", "secret", service)
    calls = {
        "dynamodb": "list_tables",
        "dynamodbstreams": "list_streams",
        "kinesis": "list_streams",
        "stepfunctions": "list_state_machines",
    }
    code, message = refusal(getattr(stranger, calls[service]))
    assert code == "UnrecognizedClientException"
    assert message == "The security token included in the request is invalid."


@pytest.mark.parametrize("service", ["dynamodb", "dynamodbstreams", "kinesis"])
def test_boto3_is_answered_by_every_service(
    people: People, administrator: AccessKey, service: str
) -> None:
    client = people.client(administrator, service)
    answer = client.list_tables() if service == "dynamodb" else client.list_streams()
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_wrong_secret_is_refused_in_awss_words(raw: Raw) -> None:
    answer = raw.send(raw.signed(secret="x" * 40))
    assert (kind(answer), text(answer)) == ("InvalidSignatureException", NO_MATCH)


def test_no_signature_at_all(raw: Raw) -> None:
    answer = raw.send({"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET})
    assert kind(answer) == "MissingAuthenticationTokenException"
    assert text(answer) == "Request is missing Authentication Token"


def test_a_changed_body_is_refused(raw: Raw) -> None:
    headers = raw.signed(b'{"Limit":1}')
    assert kind(raw.send(headers, b'{"Limit":2}')) == "InvalidSignatureException"


@pytest.mark.parametrize("claim", ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"])
def test_payloads_of_s3_are_refused(raw: Raw, claim: str) -> None:
    # botocore signs what the header claims to be the hash of the body.
    headers = raw.signed(X_Amz_Content_SHA256=claim)
    assert (kind(raw.send(headers))) == "InvalidSignatureException"


def test_the_true_hash_of_the_body_may_be_given(raw: Raw) -> None:
    headers = raw.signed(X_Amz_Content_SHA256=hashlib.sha256(b"{}").hexdigest())
    assert raw.send(headers)[0] == 200


def test_a_body_is_hashed_as_it_was_packed(raw: Raw) -> None:
    body = gzip.compress(b"{}")
    assert raw.send(raw.signed(body, Content_Encoding="gzip"), body)[0] == 200
    assert kind(raw.send(raw.signed(b"{}", Content_Encoding="gzip"), body)) == (
        "InvalidSignatureException"
    )


def dated(raw: Raw, monkeypatch: pytest.MonkeyPatch, seconds: float) -> dict[str, str]:
    moment = datetime.fromtimestamp(time.time() + seconds, UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment, raising=False)
    monkeypatch.setattr(
        "botocore.auth.datetime",
        type("Fixed", (), {"datetime": type("F", (), {"utcnow": staticmethod(lambda: moment)})}),
        raising=False,
    )
    return raw.signed()


def test_a_signature_is_good_for_five_minutes(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raw.send(dated(raw, monkeypatch, -290))[0] == 200
    answer = raw.send(dated(raw, monkeypatch, -310))
    assert kind(answer) == "InvalidSignatureException"
    assert text(answer).startswith("Signature expired: ")
    assert " is now earlier than " in text(answer) and text(answer).endswith(" - 5 min.)")


def test_a_signature_of_the_future_is_refused(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raw.send(dated(raw, monkeypatch, 290))[0] == 200
    answer = raw.send(dated(raw, monkeypatch, 320))
    assert kind(answer) == "InvalidSignatureException"
    assert text(answer).startswith("Signature not yet current: ")
    assert text(answer).endswith(" + 5 min.)")


def test_the_service_of_the_scope_counts(raw: Raw) -> None:
    answer = raw.send(raw.signed(service="kinesis"))
    assert kind(answer) == "InvalidSignatureException"
    assert text(answer) == "Credential should be scoped to correct service: 'dynamodb'. "


def test_the_day_of_the_scope_counts(raw: Raw) -> None:
    headers = raw.signed()
    day = datetime.now(UTC).strftime("%Y%m%d")
    headers["Authorization"] = headers["Authorization"].replace(day, "20150830", 1)
    answer = raw.send(headers)
    assert kind(answer) == "InvalidSignatureException"
    assert text(answer).startswith("Date in Credential scope does not match YYYYMMDD from ISO-8601")


def test_sigv4a_is_refused_by_its_name(raw: Raw) -> None:
    headers = raw.signed()
    headers["Authorization"] = headers["Authorization"].replace(
        "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"
    )
    answer = raw.send(headers)
    assert kind(answer) == "IncompleteSignatureException"
    assert "'AWS4-ECDSA-P256-SHA256'" in text(answer)


@pytest.mark.parametrize("part", ["Credential", "SignedHeaders", "Signature"])
def test_a_part_of_the_header_that_is_missing_is_named(raw: Raw, part: str) -> None:
    headers = raw.signed()
    headers["Authorization"] = headers["Authorization"].replace(f"{part}=", f"{part}-")
    answer = raw.send(headers)
    assert kind(answer) == "IncompleteSignatureException"
    assert f"Authorization header requires '{part}' parameter." in text(answer)


def test_a_credential_of_too_few_parts(raw: Raw) -> None:
    headers = raw.signed()
    headers["Authorization"] = headers["Authorization"].replace("/aws4_request", "")
    answer = raw.send(headers)
    assert kind(answer) == "IncompleteSignatureException"
    assert text(answer).startswith("Credential must have exactly 5 slash-delimited elements")


def test_host_must_be_signed(raw: Raw) -> None:
    headers = raw.signed()
    headers["Authorization"] = headers["Authorization"].replace(";host", "")
    answer = raw.send(headers)
    assert kind(answer) == "InvalidSignatureException"
    assert text(answer) == (
        "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
    )


# As an attacker who has seen a signed request


def test_the_target_cannot_be_put_there_unsigned(raw: Raw) -> None:
    """A signed request must not become another operation."""
    headers = raw.signed()
    headers["X-Amz-Target"] = "DynamoDB_20120810.DescribeLimits"
    assert kind(raw.send(headers)) == "InvalidSignatureException"
    signed_without = AWSRequest("POST", f"{raw.url}/", {}, b"{}")
    SigV4Auth(Credentials(raw.key.id, raw.key.secret), "dynamodb", REGION).add_auth(signed_without)
    added = {**dict(signed_without.headers.items()), "X-Amz-Target": TARGET}
    answer = raw.send({**added, "Content-Type": "application/x-amz-json-1.0"})
    assert kind(answer) == "InvalidSignatureException"
    assert "'X-Amz-Target' must be a 'SignedHeader'" in text(answer)


@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("name", ["X-Amz-Target", "x-amz-target", "Host", "X-Amz-Date"])
def test_a_second_header_beside_a_signed_one_is_noticed(raw: Raw, name: str, place: str) -> None:
    signed = list(raw.signed().items())
    values = {"host": "localhost", "x-amz-date": "20300101T000000Z"}
    extra = (name, values.get(name.lower(), "DynamoDB_20120810.DescribeLimits"))
    both = [extra, *signed] if place == "before" else [*signed, extra]
    if name == "Host":
        both = [*both, ("Host", urlsplit(raw.url).netloc)]
    assert raw.send(both)[0] != 200


def test_another_path_is_another_request(raw: Raw) -> None:
    for path in ("//", "/./", "/../"):
        # Normalised, it is the path that was signed.
        assert raw.send(raw.signed(), path=path)[0] == 200
    for path in ("/x", "/%2F", "/?a=b", "/?Action=GetCallerIdentity"):
        assert raw.send(raw.signed(), path=path)[0] == 400


def test_a_presigned_request_is_not_for_dynamodb(raw: Raw) -> None:
    query = "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a/b/c/d/aws4_request"
    query += "&X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Date=20300101T000000Z"
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET}
    assert raw.send(headers, path=query)[0] == 400
    assert raw.send(raw.signed(), path=query)[0] == 400


def test_errors_tell_no_secret(raw: Raw) -> None:
    headers = raw.signed()
    spoilt = {**headers, "Authorization": headers["Authorization"][:-1] + "x"}
    for answer in (raw.send(spoilt), raw.send(headers, b'{"Limit":0}')):
        assert raw.key.secret not in json.dumps(answer[1])


@settings(max_examples=120)
@given(st.data())
def test_any_header_is_answered_with_an_error_of_awss(raw: Raw, data: st.DataObject) -> None:
    """Generates parts of a correct header: cut, doubled, and mixed with anything a header may
    contain.
    """
    headers = raw.signed()
    authorization = headers["Authorization"]
    pieces = st.sampled_from(
        [*authorization.replace(",", " , ").split(" "), "Signature=", "=", ","]
    )
    printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
    parts = data.draw(st.lists(pieces | printable, max_size=8))
    spoilt = " ".join(parts)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(authorization)))
        spoilt = authorization[:at] + spoilt + authorization[at + len(spoilt) :]
    answer = raw.send({**headers, "Authorization": spoilt.strip()})
    if spoilt.strip() != authorization:
        assert answer[0] == 400
        assert kind(answer).endswith("Exception")


# Keys that come and go while the server runs


def test_a_disabled_user_is_out_with_the_next_request(people: People) -> None:
    key = people.add(policies=["AdministratorAccess"])
    client = people.client(key)
    assert client.list_tables()
    name = people.name_of(key)
    people.change(lambda directory: set_status(directory, name, None, is_active=False))
    assert refusal(client.list_tables)[0] == "UnrecognizedClientException"
    people.change(lambda directory: set_status(directory, name, None, is_active=True))
    assert client.list_tables()
    people.change(lambda directory: set_status(directory, name, key.id, is_active=False))
    assert refusal(client.list_tables)[0] == "UnrecognizedClientException"
