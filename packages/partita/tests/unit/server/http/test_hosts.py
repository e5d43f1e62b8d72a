"""The host names that a server answers to, by the addresses that it listens on."""

from __future__ import annotations

import pytest

from partita.errors import PartitaError
from partita.server.http.host_header import AllowedHosts


def hosts(*addresses: str, allowed: tuple[str, ...] = ()) -> AllowedHosts:
    made = AllowedHosts(allowed)
    made.listen_on(addresses)
    return made


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("::1",), ("127.0.0.1", "::1")])
def test_on_loopback_addresses_only_local_names_count(addresses: tuple[str, ...]) -> None:
    assert hosts(*addresses).allows(b"localhost:8000")
    assert not hosts(*addresses).allows(b"evil.example:8000")


@pytest.mark.parametrize("addresses", [("0.0.0.0",), ("::",), ("127.0.0.1", "192.0.2.1")])
def test_elsewhere_every_name_does(addresses: tuple[str, ...]) -> None:
    assert hosts(*addresses).allows(b"dynamodb:8000")


def test_until_it_is_known_only_local_names_count() -> None:
    assert not AllowedHosts().allows(b"evil.example")


@pytest.mark.parametrize(
    "allowed", ["db.test", "DB.TEST.", "db.test:8000", "2001:db8::1", "[2001:db8::1]:80"]
)
def test_a_name_is_written_in_many_ways(allowed: str) -> None:
    named = hosts("127.0.0.1", allowed=(allowed,))
    host = b"[2001:db8::1]:8000" if "db8" in allowed else b"db.test:9000"
    assert named.allows(host)
    assert not named.allows(b"db.test.evil.example")


@pytest.mark.parametrize("host", [b"\xff\xfe", b"[", b"]", b"[::1", b"::::", b":", b"1.2.3.4.5"])
def test_what_is_no_name_is_refused(host: bytes) -> None:
    assert not hosts("127.0.0.1").allows(host)
    assert isinstance(hosts("127.0.0.1").refusal(host), str)


def test_the_remedy_names_the_host() -> None:
    assert AllowedHosts((), "set NAMES={name}").refusal(b"{db}:80") == (
        "This server does not answer to the name '{db}': ask for localhost, or set NAMES={db}."
    )


@pytest.mark.parametrize(
    "host", [b"[::1]evil.com", b"localhost:1@evil.com", b"localhost:a", b"localhost:80:80"]
)
def test_what_follows_a_name_is_nothing_but_a_port(host: bytes) -> None:
    assert not hosts("127.0.0.1").allows(host)


def test_a_loopback_address_may_be_written_as_one_of_ipv6() -> None:
    assert hosts("127.0.0.1").allows(b"[::ffff:127.0.0.1]:8000")
    assert hosts("::ffff:127.0.0.1").allows(b"localhost")
    assert not hosts("::ffff:127.0.0.1").allows(b"evil.example")


def test_a_server_for_others_answers_to_addresses_besides_the_names_it_is_given() -> None:
    named = hosts("0.0.0.0", allowed=("db.example",))
    for host in (b"db.example:8000", b"sync-db.example", b"10.0.0.7:8000", b"[2001:db8::1]"):
        assert named.allows(host)
    assert not named.allows(b"evil.example")
    assert not hosts("127.0.0.1", allowed=("db.example",)).allows(b"10.0.0.7")


@pytest.mark.parametrize(
    "wrong", ["http://x", "*.example.com", "", "a b", "x/y", "[::1", "[]", "x:y", "a@b"]
)
def test_what_is_no_host_is_refused(wrong: str) -> None:
    with pytest.raises(PartitaError, match="is not a host: give a name"):
        AllowedHosts((wrong,))


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        (b"evil.com", False),
        (b"evil.com:8000", False),
        (b"10.0.0.7.evil.com", False),
        (b"dynamodb:8000", True),
        (b"10.0.0.7:8000", True),
        (b"[2001:db8::1]:8000", True),
        (b"printer.local", True),
        (b"db.default.svc.cluster.local:8000", True),
        (b"ip-10-0-0-7.ec2.internal", True),
        (None, True),
    ],
)
def test_data_is_not_shown_under_a_public_name(host: bytes | None, is_allowed: bool) -> None:
    assert hosts("0.0.0.0").allows(host)
    assert hosts("0.0.0.0").allows_data(host) == is_allowed
    assert hosts("0.0.0.0", allowed=("*",)).allows_data(host)


def test_unless_it_is_given() -> None:
    named = hosts("0.0.0.0", allowed=("db.example",))
    assert named.allows_data(b"db.example")
    assert not named.allows_data(b"sync-db.example"), "which somebody else may own"
