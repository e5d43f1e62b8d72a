"""Objects sealed in the folder of a bucket, just as a server with an encryption key seals its
exports. Only such servers import this module."""

from __future__ import annotations

from partita.database.storage.sealing.cipher import CannotUnseal
from partita.database.storage.sealing.master_keys import KeySource
from partita.database.storage.sealing.sealed_object import is_sealed, open_object, seal_object
from partita_services.workflows.language.language_errors import StateError

FAILED = "S3.S3Exception"


class SealedObjects:
    """`bucket_key` is the member of a companion's first frame."""

    def __init__(self, bucket_key: str) -> None:
        kind, _, rest = bucket_key.partition(":")
        is_file = kind == "file"
        self._keys = KeySource(bucket_key) if is_file else KeySource("env:keys", {"keys": rest})

    def seal(self, key: str, content: bytes) -> bytes:
        return seal_object(self._keys.read()[0], key, content)

    def open(self, key: str, content: bytes) -> bytes:
        """The content of an object. Objects that others have put into the folder may be
        unsealed."""
        if not is_sealed(content):
            return content
        try:
            return open_object(self._keys.read(), key, content)
        except CannotUnseal as error:
            raise StateError(FAILED, f"{key!r} cannot be opened. {error}") from None
