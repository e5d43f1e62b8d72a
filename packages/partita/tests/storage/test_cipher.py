"""XAES-256-GCM against the test vectors of C2SP."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.storage.sealing import cipher
from partita.database.storage.sealing.cipher import (
    EPOCH_BYTES,
    CannotUnseal,
    derive_cipher,
    new_key,
)

NONCE = b"ABCDEFGHIJKLMNOPQRSTUVWX"
PLAIN = b"XAES-256-GCM"


@pytest.mark.parametrize(
    ("key", "context", "expected"),
    [
        (b"\x01" * 32, b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
        (
            b"\x03" * 32,
            b"c2sp.org/XAES-256-GCM",
            "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d",
        ),
    ],
)
def test_the_published_vectors_hold(key: bytes, context: bytes, expected: str) -> None:
    found = derive_cipher(key, NONCE[:EPOCH_BYTES]).encrypt(NONCE[EPOCH_BYTES:], PLAIN, context)
    assert found.hex() == expected


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_what_is_sealed_opens_in_its_context_alone(content: bytes, context: bytes) -> None:
    key = new_key()
    sealed = cipher.seal(key, content, context)
    assert cipher.unseal(key, sealed, context) == content
    for wrong_key, wrong in ((key, context + b"x"), (new_key(), context)):
        with pytest.raises(CannotUnseal):
            cipher.unseal(wrong_key, sealed, wrong)


@given(st.binary(max_size=60), st.data())
def test_no_byte_can_be_changed_or_cut_off(content: bytes, data: st.DataObject) -> None:
    key = new_key()
    sealed = bytearray(cipher.seal(key, content, b""))
    place = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(CannotUnseal):
        cipher.unseal(key, bytes(sealed[:place]), b"")
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CannotUnseal):
        cipher.unseal(key, bytes(sealed), b"")
