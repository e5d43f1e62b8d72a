"""Encrypted objects that leave the data folder, such as the files of an export.

Each object has its own key, which is encrypted with the server's key: it can be decrypted anywhere
with that key, without the keyring of the data folder. It is bound to its file name and the name of
its folder. The format:

    mark, fingerprint of the server's key (16), encrypted object key (72), encrypted content
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.storage.sealing.cipher import (
    KEY_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    CannotUnseal,
    new_key,
    seal,
    unseal,
)
from partita.database.storage.sealing.master_keys import FINGERPRINT_BYTES, fingerprint

MARK: Final = b"partita sealed 1\n"
_FINGERPRINT_END: Final = len(MARK) + 2 * FINGERPRINT_BYTES
_KEY_END: Final = _FINGERPRINT_END + NONCE_BYTES + KEY_BYTES + TAG_BYTES
_SEGMENTS: Final = 2


def seal_object(master_key: bytes, name: str, content: bytes) -> bytes:
    key, context = new_key(), _context(name)
    wrapped = seal(master_key, key, MARK + context)
    return MARK + fingerprint(master_key).encode() + wrapped + seal(key, content, context)


def is_sealed(content: bytes) -> bool:
    return content.startswith(MARK)


def open_object(master_keys: Sequence[bytes], name: str, sealed: bytes) -> bytes:
    key_fingerprint = sealed[len(MARK) : _FINGERPRINT_END].decode("latin-1")
    for master_key in master_keys:
        if fingerprint(master_key) == key_fingerprint:
            context = _context(name)
            key = unseal(master_key, sealed[_FINGERPRINT_END:_KEY_END], MARK + context)
            return unseal(key, sealed[_KEY_END:], context)
    raise CannotUnseal(
        f"It was encrypted with the key {key_fingerprint}, which is not among the given keys."
    )


def _context(name: str) -> bytes:
    """The last two segments of a name: an export as a whole may be moved to another folder."""
    return "/".join(name.split("/")[-_SEGMENTS:]).encode()
