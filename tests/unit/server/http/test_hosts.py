"""Which names a server answers to, by what it listens on."""

from __future__ import annotations

import pytest

from partita.server.http.hosts import Hosts


def hosts(*addresses: str, allowed: tuple[str, ...] = ()) -> Hosts:
    made = Hosts(allowed)
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
    assert not Hosts().allows(b"evil.example")


@pytest.mark.parametrize(
    "allowed", ["db.test", "DB.TEST.", "db.test:8000", "2001:db8::1", "[2001:db8::1]:80"]
)
def test_a_name_is_written_in_many_ways(allowed: str) -> None:
    named = hosts("127.0.0.1", allowed=(allowed,))
    host = b"[2001:db8::1]:8000" if "db8" in allowed else b"db.test:9000"
    assert named.allows(host)
    assert not named.allows(b"db.test.evil.example")


@pytest.mark.parametrize("host", [b"\xff\xfe", b"[", b"]", b"[::1", b"::::", b":", b"1.2.3.4.5"])
def test_what_is_no_name_is_refused_or_local(host: bytes) -> None:
    assert hosts("127.0.0.1").allows(host) == (host == b"[::1")
    assert isinstance(hosts("127.0.0.1").refusal(host), str)


def test_the_remedy_names_the_host() -> None:
    assert Hosts((), "set NAMES={name}").refusal(b"{db}:80") == (
        "This server does not answer to the name '{db}': ask for localhost, or set NAMES={db}."
    )
