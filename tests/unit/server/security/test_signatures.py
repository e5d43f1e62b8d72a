"""AWS's published test vectors of Signature Version 4, read from the wire by our own reader."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from partita.errors import InvalidSignatureException
from partita.server.http.listener import Listener
from partita.server.http.messages import HttpRequest, Responses
from partita.server.http.reading import RequestReader
from partita.server.security.signatures import (
    Verifier,
    canonical_query,
    derive_key,
    parse,
    request_date,
)

# From the suite's documentation.
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()
VECTORS = json.loads((Path(__file__).parent / "sigv4_vectors.json").read_text())


class Taker:
    """A connection as far as a reader needs one."""

    takes_more = True
    is_refused = False
    peer = None

    def __init__(self) -> None:
        self.since = 0.0
        self.taken: list[HttpRequest] = []
        self.refused: list[str] = []

    def take(self, request: HttpRequest) -> None:
        self.taken.append(request)

    def refuse(self, status: int, detail: str) -> None:
        self.refused.append(detail)


def read(text: str) -> HttpRequest:
    head, _, body = text.partition("\n\n")
    # One vector has letters in its target that HTTP wants encoded.
    head = "".join(char if char.isascii() else quote(char) for char in head)
    taker = Taker()
    listener = Listener(lambda *_: None, Responses(), is_guarded=True)
    reader = RequestReader(cast("Any", taker), listener)
    reader.feed((head.replace("\n", "\r\n") + "\r\n\r\n" + body).encode())
    assert not taker.refused
    return taker.taken[0]


def verify(vector: dict[str, str], secret: str = SECRET, now: float = NOW) -> None:
    request = read(vector["request"])
    verifier = Verifier()
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
