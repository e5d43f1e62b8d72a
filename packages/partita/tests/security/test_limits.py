"""Limits against abuse: wrong signatures, too many requests, too many connections."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from partita.errors import ThrottlingException
from partita.server.security.abuse_limits import (
    FAILURES_MAX,
    KNOWN_MAX,
    AbuseLimits,
    AbuseLimitSettings,
    RateWindow,
)
from partita.server.security.identities.user_directory import AccessKey, set_status
from testkit.servers import processes
from testkit.servers.users import ADMINISTRATOR, People, client_for, refusal, statement


def test_after_many_wrong_signatures_only_known_clients_are_verified(tmp_path: Path) -> None:
    people = People(tmp_path)
    known, new = (people.add(policies=[ADMINISTRATOR]) for _ in range(2))
    with processes.starting() as start:
        people.server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        owner = people.client(known)
        assert owner.list_tables()
        attacker = client_for(people.server.url, known.id, "wrong")
        codes = {refusal(attacker.list_tables)[0] for _ in range(FAILURES_MAX + 5)}
        assert codes == {"InvalidSignatureException"}
        stranger = client_for(people.server.url, "AKIAIOSFODNN7EXAMPLE", "wrong")
        assert refusal(stranger.list_tables)[0] == "ThrottlingException"
        assert refusal(people.client(new).list_tables)[0] == "ThrottlingException"
        assert owner.list_tables()
        pair = b64encode(f"{known.id}:{known.secret}".encode()).decode()
        request = urllib.request.Request(f"{people.server.url}/health")
        request.add_header("Authorization", f"Basic {pair}")
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200


def shows_metrics(people: People, key: AccessKey) -> int:
    assert people.server is not None
    pair = b64encode(f"{key.id}:{key.secret}".encode()).decode()
    request = urllib.request.Request(f"{people.server.url}/metrics")
    request.add_header("Authorization", f"Basic {pair}")
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_who_was_right_from_a_shared_address_is_not_locked_out_there(tmp_path: Path) -> None:
    people = People(tmp_path)
    known, scraping, new = (people.add(policies=[ADMINISTRATOR]) for _ in range(3))
    with processes.starting() as start:
        people.server = server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        owner = people.client(known)
        assert owner.list_tables()
        assert shows_metrics(people, scraping) == 200
        attacker = client_for(server.url, known.id, "wrong")

        def attack() -> None:
            for _ in range(FAILURES_MAX + 5):
                refusal(attacker.list_tables)
            stranger = client_for(server.url, "AKIAIOSFODNN7EXAMPLE", "wrong")
            assert refusal(stranger.list_tables)[0] == "ThrottlingException"

        attack()
        # Another scope, such as every day has one.
        elsewhere = boto3.client(
            "dynamodb",
            region_name="eu-west-1",
            aws_access_key_id=known.id,
            aws_secret_access_key=known.secret,
            endpoint_url=server.url,
            config=Config(retries={"total_max_attempts": 1}),
        )
        assert elsewhere.list_tables()
        assert people.client(known, "kinesis").list_streams()
        # A session that began after the attack did.
        session = people.client(known, "sts").get_session_token()["Credentials"]
        issued = session["AccessKeyId"], session["SecretAccessKey"]
        token = session["SessionToken"]
        assert client_for(server.url, *issued, token=token).list_tables()
        thief = client_for(server.url, "ASIAIOSFODNN7EXAMPLE", "wrong", token=token)
        assert refusal(thief.list_tables)[0] == "ThrottlingException"
        # Other policies.
        people.add(statement("s3:*"))
        attack()
        assert owner.list_tables()
        assert shows_metrics(people, scraping) == 200
        assert shows_metrics(people, new) == 401
        assert refusal(people.client(new).list_tables)[0] == "ThrottlingException"
        # A key that is not good any more.
        name = people.name_of(known)
        people.change(lambda found: set_status(found, name, None, is_active=False))
        attack()
        assert refusal(owner.list_tables)[0] == "UnrecognizedClientException"
        refused = refusal(client_for(server.url, *issued, token=token).list_tables)[0]
        assert refused in ("ThrottlingException", "UnrecognizedClientException")


def test_requests_and_connections_have_limits_where_they_are_asked_for(tmp_path: Path) -> None:
    people = People(tmp_path)
    key, other = (people.add(policies=[ADMINISTRATOR]) for _ in range(2))
    with processes.starting() as start:
        options = ("--limit-requests", "5", "--limit-connections", "8")
        people.server = server = start(
            *("serve", "--auth", "--port", "0", "--data", tmp_path, *options)
        )
        client = people.client(key)
        refused = 0
        for _ in range(12):
            try:
                client.list_tables()
            except client.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == "ThrottlingException"
                refused += 1
        assert refused
        assert people.client(other).list_tables()
        opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(12)]
        ended = 0
        for one in opened:
            one.settimeout(0.2)
            try:
                ended += one.recv(1) == b""
            except ConnectionError:
                ended += 1
            except TimeoutError:
                pass
            one.close()
        assert ended >= 4


def test_bytes_have_a_limit_for_a_key_and_for_an_address() -> None:
    limits = AbuseLimits(AbuseLimitSettings(bytes_max=1000))
    limits.check_bytes("key", 600)
    # As large as it likes, but then there is nothing left.
    limits.check_bytes("key", 5000)
    with pytest.raises(ThrottlingException):
        limits.check_bytes("key", 1)
    limits.check_bytes("other", 1)


def test_bytes_are_limited_where_it_is_asked_for(tmp_path: Path) -> None:
    people = People(tmp_path)
    key = people.add(policies=[ADMINISTRATOR])
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", tmp_path, "--limit-bytes", "500")
        )
        client = people.client(key)
        codes: list[str] = []
        # Two of them within a second, however busy the machine is.
        while "ThrottlingException" not in codes:
            assert len(codes) < 50
            codes.append(
                refusal(client.get_item, TableName="x" * 200, Key={"pk": {"S": "y" * 900}})[0]
            )
        assert codes[0] == "ResourceNotFoundException"


def test_a_window_ends_and_forgets() -> None:
    window = RateWindow(60)
    for second in range(5):
        window.add("a", second)
    assert window.count("a", 5) == 5
    assert window.count("a", 61) == 0
    assert window.add("a", 61) == 1
    for number in range(KNOWN_MAX + 10):
        window.add(f"address {number}", 62)
    assert window.count("address 0", 62) == 0


def test_an_address_does_not_pay_for_another() -> None:
    limits = AbuseLimits()
    limits.note_right("10.0.0.1", "right")
    for _ in range(FAILURES_MAX):
        assert not limits.is_closed("10.0.0.1", "new")
        limits.note_failure("10.0.0.1")
    assert limits.is_closed("10.0.0.1", "new")
    assert not limits.is_closed("10.0.0.1", "right")
    assert not limits.is_closed("10.0.0.2", "new")


def test_who_was_right_lately_is_remembered_longest() -> None:
    limits = AbuseLimits()
    for _ in range(FAILURES_MAX):
        limits.note_failure("10.0.0.1")
    for number in range(KNOWN_MAX):
        limits.note_right("10.0.0.1", f"key {number}")
    limits.note_right("10.0.0.1", "key 0")
    limits.note_right("10.0.0.1", "another")
    assert not limits.is_closed("10.0.0.1", "key 0")
    assert limits.is_closed("10.0.0.1", "key 1")
