"""An archive with encrypted contents: each put or append is a frame, bound to its name and offset.

File names are not encrypted. A torn frame at the end of a file was never reported as written.
"""

from __future__ import annotations

from typing import Final

from partita.database.storage.archive import Archive
from partita.database.storage.sealing.cipher import CannotUnseal, DamagedValue
from partita.database.storage.sealing.keyring import ARCHIVES, Keyring

LENGTH_BYTES: Final = 4


class SealedArchive:
    def __init__(self, archive: Archive, keyring: Keyring) -> None:
        self._archive = archive
        self._keyring = keyring

    def put(self, name: str, content: bytes) -> None:
        self._archive.put(name, self._frame(name, 0, content))

    def append(self, name: str, content: bytes) -> None:
        self._archive.append(name, self._frame(name, self._archive.size(name), content))

    def get(self, name: str) -> bytes:
        sealed = self._archive.get(name)
        contents, place = [], 0
        while place < len(sealed):
            begin = place + LENGTH_BYTES
            end = begin + int.from_bytes(sealed[place:begin], "big")
            if end > len(sealed):
                break
            try:
                context = _context(name, place)
                contents.append(self._keyring.unwrap(ARCHIVES, sealed[begin:end], context))
            except CannotUnseal as error:
                raise DamagedValue(f"{name} of the archive cannot be opened. {error}") from None
            place = end
        return b"".join(contents)

    def size(self, name: str) -> int:
        return self._archive.size(name)

    def has(self, name: str) -> bool:
        return self._archive.has(name)

    def names(self, prefix: str) -> list[str]:
        return self._archive.names(prefix)

    def delete(self, name: str) -> None:
        self._archive.delete(name)

    def sync(self) -> None:
        self._archive.sync()

    def _frame(self, name: str, place: int, content: bytes) -> bytes:
        sealed = self._keyring.wrap(ARCHIVES, content, _context(name, place))
        return len(sealed).to_bytes(LENGTH_BYTES, "big") + sealed


def _context(name: str, place: int) -> bytes:
    return f"{name}\0{place}".encode()
