"""Against abuse: wrong signatures, too many requests, too many connections."""

from __future__ import annotations

import socket
import urllib.request
from base64 import b64encode
from pathlib import Path

import pytest

from partita.errors import ThrottlingException
from partita.server.security.limits import FAILURES_MAX, KNOWN_MAX, Limits, LimitSettings, Window
from testkit import processes
from testkit.people import ADMINISTRATOR, People, client_for, refusal


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
    limits = Limits(LimitSettings(bytes_max=1000))
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
    window = Window(60)
    for second in range(5):
        window.add("a", second)
    assert window.count("a", 5) == 5
    assert window.count("a", 61) == 0
    assert window.add("a", 61) == 1
    for number in range(KNOWN_MAX + 10):
        window.add(f"address {number}", 62)
    assert window.count("address 0", 62) == 0


def test_an_address_does_not_pay_for_another() -> None:
    limits = Limits()
    for _ in range(FAILURES_MAX):
        limits.check_unknown("10.0.0.1")
        limits.note_failure("10.0.0.1")
    with pytest.raises(ThrottlingException):
        limits.check_unknown("10.0.0.1")
    limits.check_unknown("10.0.0.2")
