"""Uploaded code: zip archives, checked, and unpacked where a process can import them.

An archive comes from a stranger. Nothing that its directory says is believed until the content
confirms it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from partita.errors import InvalidParameterValueException, RequestTooLargeException
from partita.foundation.service_limits import MB
from partita_services.functions.function_store import FunctionStore, StoredPackage, code_of
from partita_services.functions.message_sinks import in_thread
from partita_services.functions.runtime.code_folder import CodeFolder, CodeFolderUnavailable
from partita_services.functions.runtime.function_supervisor import remove

UNPACKED_BYTES_MAX = 262_144_000
ZIPPED_BYTES_MAX = 50 * MB
"""(Lambda guide, "Quotas")"""
ENTRIES_MAX = 65_535
"""The maximum of an archive without Zip64 extensions."""
NAME_BYTES_MAX, PATH_BYTES_MAX = 255, 1024
"""The longest name and path that file systems accept."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other compression methods may use any amount of memory."""
LOCAL_HEADER_BYTES = 30
DIRECTORY_MARK = b"PK\x01\x02"
"""The signature of each entry of an archive's central directory."""
ENCRYPTED = 0x1
PART_BYTES = MB
AT_ONCE = 2
"""The number of archives that are read at the same time; the others wait."""
DAMAGED = "Could not unzip uploaded file. Please check your file, then try to upload again."
UNZIPPABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
"""The errors that zipfile raises for malformed archives."""


def sha256_of(content: bytes) -> str:
    """The CodeSha256 of an archive."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


def check(content: bytes) -> None:
    """Refuse an archive that cannot be unpacked or is too large. This takes time: run it in a
    thread."""
    if len(content) > ZIPPED_BYTES_MAX:
        raise RequestTooLargeException(f"Zipped size must be smaller than {ZIPPED_BYTES_MAX} bytes")
    # zipfile would read a directory with a million entries before anybody could refuse it.
    if content.count(DIRECTORY_MARK) > ENTRIES_MAX:
        raise InvalidParameterValueException(DAMAGED)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = _checked(archive)
            for entry in entries:
                for _ in _parts(archive, entry):
                    pass
    except UNZIPPABLE:
        raise InvalidParameterValueException(DAMAGED) from None


def _checked(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The entries of an archive, if they can be unpacked without leaving their folder or replacing
    each other."""
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > UNPACKED_BYTES_MAX:
        raise InvalidParameterValueException(
            f"Unzipped size must be smaller than {UNPACKED_BYTES_MAX} bytes"
        )
    for entry in entries:
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise InvalidParameterValueException(
                f"The package has a symbolic link, {entry.filename[:NAME_BYTES_MAX]}, which this "
                "server does not unpack: put the file itself into it."
            )
        if entry.flag_bits & ENCRYPTED or entry.compress_type not in METHODS:
            raise ValueError(entry.filename)
    _check_places(entries, archive.start_dir)
    _check_names(entries)
    return entries


def _check_places(entries: list[zipfile.ZipInfo], end: int) -> None:
    """Refuse entries that share bytes: that is how a small archive unpacks to a huge one (zip
    bomb)."""
    for entry in sorted(entries, key=lambda entry: entry.header_offset, reverse=True):
        if entry.header_offset + LOCAL_HEADER_BYTES + entry.compress_size > end:
            raise ValueError(entry.filename)
        end = entry.header_offset


def _check_names(entries: list[zipfile.ZipInfo]) -> None:
    files, folders = set(), {""}
    for entry in entries:
        # zipfile cuts `filename` at a NUL; the original name shows it.
        path = entry.orig_filename
        parts = path.removesuffix("/").split("/")
        if len(path.encode()) > PATH_BYTES_MAX or "\0" in path:
            raise ValueError(path)
        for part in parts:
            if part in ("", ".", "..") or len(part.encode()) > NAME_BYTES_MAX:
                raise ValueError(path)
        if entry.is_dir():
            folders.add("/".join(parts))
        else:
            files.add(path)
        folders.update("/".join(parts[:length]) for length in range(1, len(parts)))
    if files & folders:
        raise ValueError("a file is also a folder")


def _parts(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of an entry, in parts. Raises ValueError when its size is not the one in the
    directory."""
    size = 0
    with archive.open(entry) as file:
        while part := file.read(PART_BYTES):
            size += len(part)
            yield part
    if size != entry.file_size:
        raise ValueError(entry.filename)


class CodePackages:
    """Unpacked code, in a folder of our own for as long as somebody uses it."""

    def __init__(self, store: FunctionStore, own: CodeFolder) -> None:
        self._store = store
        self._own = own
        self._users: Counter[Path] = Counter()
        self._places: dict[Path, asyncio.Lock] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def place(self) -> Path:
        """The folder for all code. Raises InvalidParameterValueException when there is no suitable
        folder."""
        try:
            return self._own.path
        except CodeFolderUnavailable as error:
            raise InvalidParameterValueException(str(error)) from None

    async def check(self, content: bytes) -> None:
        self.place()
        async with self._turns:
            await in_thread(partial(check, content))

    async def folder(self, function: str, digest: str) -> Path:
        """The folder with unpacked code. It is kept until `release` was called as often as this."""
        folder = self.place() / "code" / function / digest
        # Counted before the folder exists, so that nobody removes it while it is unpacked.
        self._users[folder] += 1
        try:
            async with self._places.setdefault(folder, asyncio.Lock()):
                if not folder.exists():
                    await self._fill(folder, function, digest)
        except BaseException:
            self._users[folder] -= 1
            raise
        return folder

    async def _fill(self, folder: Path, function: str, digest: str) -> None:
        package = await self._store.find(code_of(function), digest, StoredPackage)
        if package is None:
            raise InvalidParameterValueException(f"The code of {function} no longer exists.")
        try:
            async with self._turns:
                await in_thread(partial(unpack, package.content, folder))
        except UNZIPPABLE as error:
            raise InvalidParameterValueException(
                f"The code of {function} could not be unpacked: {error}"
            ) from None

    async def release(self, folder: Path) -> None:
        """Remove the folder when nobody uses it any more. Folders of the settings are never
        removed."""
        if folder not in self._users:
            return
        self._users[folder] -= 1
        async with self._places[folder]:
            if not self._users[folder]:
                del self._users[folder]
                await in_thread(partial(remove, folder))

    def close(self) -> None:
        self._own.close()


def unpack(content: bytes, folder: Path) -> None:
    """Unpack into a temporary folder and rename it: a folder that exists is complete."""
    beside = folder.with_name(f"{folder.name}.part")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            beside.mkdir(mode=0o700, parents=True)
            for entry in _checked(archive):
                path = beside / entry.filename
                if entry.is_dir():
                    path.mkdir(mode=0o700, parents=True, exist_ok=True)
                    continue
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with path.open("wb") as file:
                    for part in _parts(archive, entry):
                        file.write(part)
        # All or nothing, also after a kill: `exists` is the sign that the folder is complete.
        beside.rename(folder)
    except BaseException:
        remove(beside)
        raise
