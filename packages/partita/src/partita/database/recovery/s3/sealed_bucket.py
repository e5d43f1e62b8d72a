"""A folder's bucket on a server with an encryption key: it encrypts the objects that it writes, and
reads both encrypted and plain ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from partita.database.recovery.s3.object_buckets import BucketError, ObjectBucket
from partita.database.storage.sealing.cipher import CannotUnseal
from partita.database.storage.sealing.sealed_object import is_sealed, open_object, seal_object


class SealedBucket:
    def __init__(self, bucket: ObjectBucket, read_keys: Callable[[], Sequence[bytes]]) -> None:
        """`read_keys` returns the server's keys, the one for encrypting first; it may be slow."""
        self._bucket = bucket
        self._keys = cache(read_keys)
        self._opened = "", b""
        """The key and content of the last object read, because callers read it in pieces."""

    def put(self, key: str, content: bytes) -> None:
        self._bucket.put(key, seal_object(self._keys()[0], key, content))

    def get(self, key: str) -> bytes:
        content = self._bucket.get(key)
        if not is_sealed(content):
            return content
        try:
            return open_object(self._keys(), key, content)
        except CannotUnseal as error:
            raise BucketError("S3Error", f"{key} cannot be opened. {error}") from None

    def read(self, key: str, start: int, length: int) -> bytes:
        """Reads a piece of an object; an encrypted object can only be decrypted as a whole."""
        if self._opened[0] != key or not start:
            self._opened = key, self.get(key)
        piece = self._opened[1][start : start + length]
        if len(piece) < length:
            self._opened = "", b""
        return piece

    def keys(self, prefix: str) -> list[str]:
        return self._bucket.keys(prefix)

    def sizes(self, prefix: str) -> dict[str, int]:
        """The sizes of the stored objects, encrypted."""
        return self._bucket.sizes(prefix)
