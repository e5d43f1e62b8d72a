"""XAES-256-GCM (C2SP): AES-256-GCM with nonces of 24 bytes, long enough to be drawn at random.

The first twelve bytes of a nonce derive a key of their own, the other twelve are AES-GCM's nonce
under that key. Whoever draws the first ones at random and counts in the others repeats no nonce,
without keeping a counter: a restart, a kill or a copy of a folder draws anew.
"""

from __future__ import annotations

from secrets import token_bytes
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from partita.errors import PartitaError, StorageError

KEY_BYTES: Final = 32
EPOCH_BYTES: Final = 12
"""The part of a nonce that a key is derived from."""
NONCE_BYTES: Final = 24
TAG_BYTES: Final = 16
_BLOCK_BITS: Final = 128


class NotSealedHere(PartitaError):
    """What was to be opened was sealed under another key, for another place, or was changed."""


class Damaged(StorageError):
    """A stored value that does not open."""


def new_key() -> bytes:
    return token_bytes(KEY_BYTES)


def derived(key: bytes, epoch: bytes) -> AESGCM:
    """AES-256-GCM under the key for all nonces that begin with `epoch`."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = _subkey(encryptor.update(bytes(16)))
    pads = [b"\x00" + bytes([number]) + b"X\x00" + epoch for number in (1, 2)]
    return AESGCM(b"".join(encryptor.update(_xor(pad, blocks)) for pad in pads))


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """Seal under a nonce drawn at random; `context` has to be the same to open it."""
    nonce = token_bytes(NONCE_BYTES)
    cipher = derived(key, nonce[:EPOCH_BYTES])
    return nonce + cipher.encrypt(nonce[EPOCH_BYTES:], content, context)


def unseal(key: bytes, sealed: bytes, context: bytes) -> bytes:
    if len(sealed) < NONCE_BYTES + TAG_BYTES:
        raise NotSealedHere("It is too short to be sealed.")
    cipher = derived(key, sealed[:EPOCH_BYTES])
    try:
        return cipher.decrypt(sealed[EPOCH_BYTES:NONCE_BYTES], sealed[NONCE_BYTES:], context)
    except InvalidTag:
        raise NotSealedHere("It was changed, moved, or sealed under another key.") from None


def _subkey(block: bytes) -> bytes:
    """CMAC's first subkey: a doubling in GF(2^128)."""
    doubled = int.from_bytes(block, "big") << 1
    if doubled >> _BLOCK_BITS:
        doubled ^= 1 << _BLOCK_BITS | 0x87
    return doubled.to_bytes(16, "big")


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(16, "big")
