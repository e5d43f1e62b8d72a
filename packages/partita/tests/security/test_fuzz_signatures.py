"""Randomly damaged signatures, in headers and URLs: none is accepted, and none fails the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest

from partita.client.aws_services import AwsService
from partita.client.request_signing import Credentials, presigned_query
from testkit.attacks import corpus
from testkit.attacks.corpus import JSON_1_0, Body, Case
from testkit.attacks.fuzzing import Signing, both_lengths, fuzz, spoilt
from testkit.servers.users import ADMINISTRATOR, REGION, People

WORDS = (
    *(b"AWS4-HMAC-SHA256 ", b"AWS4-ECDSA-P256-SHA256 ", b"Credential=", b"SignedHeaders="),
    *(b"Signature=", b",", b", ", b"=", b"/", b";", b"host", b"x-amz-date;", b"aws4_request"),
    *(b"us-east-1", b"dynamodb", b"\xff", b"\t", b"  ", b"%2F", b"&", b"X-Amz-Expires=604800&"),
    *(b"20260101", b"99999999T999999Z", b"0" * 64, b"0001-01-01", b"UNSIGNED-PAYLOAD", b"9" * 5000),
    *(b"Mon, 01 Jan 99999 00:00:00 GMT", b"-9999", b"+9999", b":" * 50, b"(((("),
)
PATHS = (
    "/",
    "/",
    "/metrics",
    "/2015-03-31/functions",
    "/schedules",
    "/tags/x",
    "/console/api/heat",
)
HEADERS = (
    *("Authorization", "X-Amz-Date", "Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"),
    *("Host", "X-Amz-Target", "Content-Type", "X-Partita-Role", "Cookie", "Origin", "Expect"),
)
HEADER_BYTES = 6_000


@pytest.fixture(scope="module")
def signing(people: People) -> Signing:
    return Signing(people.add(policies=[ADMINISTRATOR]), "dynamodb")


def written(value: bytes) -> str:
    """Returns a value that fits into a header line; the parser may still refuse it."""
    kept = value[:HEADER_BYTES].replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
    return kept.decode("latin-1")


def spoilt_header(signing: Signing) -> Callable[[Random], Case]:
    def make(random: Random) -> Case:
        target = "DynamoDB_20120810.ListTables"
        path = random.choice(PATHS)
        method = random.choice(("POST", "POST", "GET", "PUT"))
        case = corpus.case("", method, path, Body(JSON_1_0, b"{}"), target)
        headers = dict(signing.signed(case).headers)
        for _ in range(random.choice((1, 1, 2, 3))):
            name = random.choice(HEADERS)
            value = headers.get(name, random.choice(WORDS).decode("latin-1"))
            headers[name] = written(spoilt(random, value.encode("latin-1"), WORDS))
        given = list(headers.items())
        if random.random() < 0.1:
            given.append((random.choice(HEADERS), written(random.choice(WORDS))))
        return case._replace(headers=tuple(given))

    return make


@both_lengths
def test_no_header_fails_the_server(people: People, signing: Signing, rounds: int) -> None:
    assert people.server is not None
    fuzz(people.server.port, rounds, spoilt_header(signing), lambda answer: answer.status < 500)


@both_lengths
def test_no_url_fails_the_server(people: People, signing: Signing, rounds: int) -> None:
    assert people.server is not None
    credentials = Credentials(signing.key.id, signing.key.secret)

    def make(random: Random) -> Case:
        path, service, action = random.choice(
            (
                ("/", "sts", {"Action": "GetCallerIdentity"}),
                ("/2015-03-31/functions/f/code", "lambda", {}),
            )
        )
        query = presigned_query(
            *(AwsService("", "", "", service), REGION, credentials, "localhost", path),
            *(action, time.time(), 600),
        )
        spoiled = (
            written(spoilt(random, query.encode(), WORDS)).replace(" ", "+").replace("\t", "+")
        )
        ascii_only = spoiled.encode("ascii", "ignore").decode()
        return Case("", random.choice(("GET", "GET", "POST")), f"{path}?{ascii_only}", ())

    fuzz(people.server.port, rounds, make, lambda answer: answer.status < 500)


@both_lengths
def test_no_other_signature_is_right(people: People, signing: Signing, rounds: int) -> None:
    """Changes a digit of the signature, a byte of the body, or a letter of a signed header."""
    assert people.server is not None

    def make(random: Random) -> Case:
        target = "DynamoDB_20120810.ListTables"
        case = corpus.case("", "POST", "/", Body(JSON_1_0, b'{"Limit":10}'), target)
        headers = dict(signing.signed(case).headers)
        body = case.body
        match random.randrange(4):
            case 0:
                start, digits = headers["Authorization"][:-64], headers["Authorization"][-64:]
                place = random.randrange(64)
                other = random.choice("0123456789abcdefABCDEF".replace(digits[place], ""))
                headers["Authorization"] = start + digits[:place] + other + digits[place + 1 :]
            case 1:
                place = random.randrange(len(body))
                body = (
                    body[:place]
                    + bytes([body[place] ^ 1 << random.randrange(8)])
                    + body[place + 1 :]
                )
            case 2:
                headers["X-Amz-Target"] = "DynamoDB_20120810.DescribeLimits"
            case _:
                headers["Authorization"] = headers["Authorization"].replace(
                    signing.key.id, signing.key.id[:-1] + random.choice("abc")
                )
        return case._replace(headers=tuple(headers.items()), body=body)

    fuzz(
        people.server.port,
        rounds,
        make,
        lambda answer: answer.status == 400 and b"TableNames" not in answer.body,
    )
