"""XAES-256-GCM (C2SP): AES-256-GCM with 24-byte nonces, which are long enough to be random.

A key is derived from the first twelve bytes of the nonce; the other twelve are AES-GCM's nonce with
that key. With random first bytes and a counter in the others, no nonce ever repeats, and no counter
has to be stored: after a restart, a kill or a copy of the folder, new first bytes are drawn.
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
"""The part of the nonce that a key is derived from."""
NONCE_BYTES: Final = 24
TAG_BYTES: Final = 16
_BLOCK_BITS: Final = 128


class CannotUnseal(PartitaError):
    """Raised for content that was encrypted with another key or for another name, or changed."""


class DamagedValue(StorageError):
    """Raised for a stored value that cannot be decrypted."""


def new_key() -> bytes:
    return token_bytes(KEY_BYTES)


def derive_cipher(key: bytes, epoch: bytes) -> AESGCM:
    """AES-256-GCM with the key for all nonces that begin with `epoch`."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = _subkey(encryptor.update(bytes(16)))
    pads = [b"\x00" + bytes([number]) + b"X\x00" + epoch for number in (1, 2)]
    return AESGCM(b"".join(encryptor.update(_xor(pad, blocks)) for pad in pads))


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """Encrypts with a random nonce; decrypting needs the same `context`."""
    nonce = token_bytes(NONCE_BYTES)
    cipher = derive_cipher(key, nonce[:EPOCH_BYTES])
    return nonce + cipher.encrypt(nonce[EPOCH_BYTES:], content, context)


def unseal(key: bytes, sealed: bytes, context: bytes) -> bytes:
    if len(sealed) < NONCE_BYTES + TAG_BYTES:
        raise CannotUnseal("It is too short to be sealed.")
    cipher = derive_cipher(key, sealed[:EPOCH_BYTES])
    try:
        return cipher.decrypt(sealed[EPOCH_BYTES:NONCE_BYTES], sealed[NONCE_BYTES:], context)
    except InvalidTag:
        raise CannotUnseal("It was changed, moved, or encrypted with another key.") from None


def _subkey(block: bytes) -> bytes:
    """CMAC's first subkey: the block doubled in GF(2^128)."""
    doubled = int.from_bytes(block, "big") << 1
    if doubled >> _BLOCK_BITS:
        doubled ^= 1 << _BLOCK_BITS | 0x87
    return doubled.to_bytes(16, "big")


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(16, "big")
