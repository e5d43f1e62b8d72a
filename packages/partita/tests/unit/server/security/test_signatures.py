"""AWS's published test vectors of Signature Version 4, read from the wire by our own reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from partita.errors import InvalidSignatureException
from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_connection import HttpConnection
from partita.server.http.http_messages import HttpRequest, Reply, Responses
from partita.server.http.listener import Listener
from partita.server.security.authentication.signature_verifier import (
    SignatureVerifier,
    canonical_query,
    derive_key,
    parse,
    request_date,
)

# From the suite's documentation.
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()
VECTORS = json.loads((Path(__file__).parent / "sigv4_vectors.json").read_text())


class Transport:
    """A transport that discards everything, with the methods that a connection needs."""

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return False


def read(text: str) -> HttpRequest:
    """Returns a request as a guarded listener passes it on."""
    head, _, body = text.partition("\n\n")
    # One vector has letters in its target that HTTP wants encoded.
    head = "".join(char if char.isascii() else quote(char) for char in head)
    handled: list[HttpRequest] = []

    def handle(request: HttpRequest, reply: Reply) -> None:
        handled.append(HttpRequest(request.method, request.target, request.headers, request.body))

    turns: list[Callable[[], None]] = []
    listener = Listener(
        handle, Responses(), hosts=AllowedHosts(["*"]), is_guarded=True, call_soon=turns.append
    )
    listener.hosts.listen_on(["127.0.0.1"])
    connection = HttpConnection(listener)
    connection.connection_made(cast("Any", Transport()))
    connection.data_received((head.replace("\n", "\r\n") + "\r\n\r\n" + body).encode())
    for turn in turns:
        turn()
    return handled[0]


def verify(vector: dict[str, str], secret: str = SECRET, now: float = NOW) -> None:
    request = read(vector["request"])
    verifier = SignatureVerifier()
    scope, signature = parse(vector["authorization"].encode())
    assert scope.access_key_id == "AKIDEXAMPLE"
    verifier.verify(
        scope,
        signature,
        secret,
        request_date(request.headers),
        request,
        request.body,
        now,
        canonical_query(request.target),
    )


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_of_awss_suite_is_right(name: str) -> None:
    verify(VECTORS[name])


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_with_another_secret_is_wrong(name: str) -> None:
    with pytest.raises(InvalidSignatureException):
        verify(VECTORS[name], SECRET[:-1] + "Z")


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_vector_out_of_its_time_is_wrong(seconds: int) -> None:
    verify(VECTORS["get-vanilla"], now=NOW + seconds * 299 // 301)
    with pytest.raises(InvalidSignatureException):
        verify(VECTORS["get-vanilla"], now=NOW + seconds)


def test_the_signing_key_of_awss_example() -> None:
    """(General reference, "Deriving the signing key")"""
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    key = derive_key(secret, "20150830", "us-east-1", "iam")
    assert key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
