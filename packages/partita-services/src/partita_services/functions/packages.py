"""Code as it is uploaded: a zip archive, checked, and unpacked where a process can import it."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.errors import InvalidParameterValueException, RequestTooLargeException
from partita.limits import MB
from partita_services.functions.storage.store import Package, Store, code_of

UNPACKED_BYTES_MAX = 262_144_000
ZIPPED_BYTES_MAX = 50 * MB
"""(Lambda guide, "Quotas")"""
DAMAGED = "Could not unzip uploaded file. Please check your file, then try to upload again."


def sha256_of(content: bytes) -> str:
    """As Lambda shows it."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


def check(content: bytes) -> None:
    """Refuse what cannot be unpacked, or becomes too large."""
    if len(content) > ZIPPED_BYTES_MAX:
        raise RequestTooLargeException(f"Zipped size must be smaller than {ZIPPED_BYTES_MAX} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > UNPACKED_BYTES_MAX:
                raise InvalidParameterValueException(
                    f"Unzipped size must be smaller than {UNPACKED_BYTES_MAX} bytes"
                )
            damaged = archive.testzip()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, OSError):
        raise InvalidParameterValueException(DAMAGED) from None
    if damaged is not None:
        raise InvalidParameterValueException(DAMAGED)


class Packages:
    """Unpacked code, in a folder that only we may read and that goes with the process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = TemporaryDirectory(prefix="partita-functions-", ignore_cleanup_errors=True)

    async def folder(self, function: str, digest: str) -> Path:
        folder = Path(self._folder.name, function, digest)
        if not folder.exists():
            package = await self._store.find(code_of(function), digest, Package)
            if package is None:
                raise InvalidParameterValueException(f"The code of {function} is gone.")
            if not folder.exists():
                unpack(package.content, folder)
        return folder

    def close(self) -> None:
        self._folder.cleanup()


def unpack(content: bytes, folder: Path) -> None:
    """All or nothing: whoever finds the folder finds everything in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f"{folder.name}.part")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(beside)
    beside.rename(folder)
