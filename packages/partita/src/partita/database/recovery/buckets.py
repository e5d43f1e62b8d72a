"""Buckets: folders that the settings name, and any others at an S3 endpoint.

Which endpoint, region and credentials are used for S3, its usual environment variables say
(AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on). Without an
endpoint in the environment there are only folders: no server turns to Amazon unasked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from partita.settings import Bucket as BucketSetting

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
INSTALL: Final = "it needs a package that is not installed: pip install 'partita[export]'"


class BucketError(Exception):
    """Why a bucket could not be read or written: AWS's code, and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Bucket(Protocol):
    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes: ...

    def read(self, key: str, start: int, length: int) -> bytes:
        """Some bytes of an object; fewer at its end, and none behind it."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """In order."""
        ...

    def sizes(self, prefix: str) -> dict[str, int]:
        """The keys with a prefix, and how large they are."""
        ...


class FolderBucket:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, content: bytes) -> None:
        path = self._path(key)
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(content)
            os.replace(part, path)
        except OSError as error:
            raise _failed(error) from None

    def get(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except OSError as error:
            raise _failed(error) from None

    def read(self, key: str, start: int, length: int) -> bytes:
        try:
            with self._path(key).open("rb") as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            raise _failed(error) from None

    def sizes(self, prefix: str) -> dict[str, int]:
        try:
            return {key: self._path(key).stat().st_size for key in self.keys(prefix)}
        except OSError as error:
            raise _failed(error) from None

    def keys(self, prefix: str) -> list[str]:
        found = [path for path in self._folder.rglob("*") if path.name[0] != "."]
        names = [path.relative_to(self._folder).as_posix() for path in found if path.is_file()]
        return sorted(name for name in names if name.startswith(prefix))

    def _path(self, key: str) -> Path:
        refused = BucketError("S3InvalidKey", f"{key!r} is not a key in a bucket that is a folder.")
        try:
            path = (self._folder / key).resolve()
        except ValueError:
            # A NUL, which no path has.
            raise refused from None
        if not path.is_relative_to(self._folder) or path == self._folder:
            raise refused
        return path


class S3Bucket:
    def __init__(self, name: str, endpoint: str | None, sse: dict[str, str]) -> None:
        """Without an endpoint, it is Amazon's."""
        try:
            from obstore.store import S3Store
        except ImportError:
            raise BucketError("S3Unavailable", f"S3 cannot be used here: {INSTALL}.") from None
        options: dict[str, Any] = dict(sse)
        if endpoint is not None:
            options["endpoint"] = endpoint
            if endpoint.startswith("http://"):
                options["client_options"] = {"allow_http": True}
        self._store = S3Store(name, **options)
        self._sizes: dict[str, int] = {}
        """Of objects that are being read."""

    def put(self, key: str, content: bytes) -> None:
        self._call(lambda: self._store.put(key, content))

    def get(self, key: str) -> bytes:
        return bytes(self._call(lambda: self._store.get(key).bytes()))

    def read(self, key: str, start: int, length: int) -> bytes:
        if start >= self._size(key):
            return b""
        piece = self._call(lambda: self._store.get_range(key, start=start, length=length))
        return bytes(piece)

    def _size(self, key: str) -> int:
        if key not in self._sizes:
            self._sizes[key] = int(self._call(lambda: self._store.head(key))["size"])
        return self._sizes[key]

    def keys(self, prefix: str) -> list[str]:
        return sorted(self.sizes(prefix))

    def sizes(self, prefix: str) -> dict[str, int]:
        """The keys with a prefix, and how large they are."""
        # The library lists below whole segments of a path only.
        folder = prefix.rpartition("/")[0]
        pages = self._call(lambda: list(self._store.list(folder or None)))
        found = {str(entry["path"]): int(entry["size"]) for page in pages for entry in page}
        return {key: size for key, size in found.items() if key.startswith(prefix)}

    def delete(self, key: str) -> None:
        self._call(lambda: self._store.delete(key))

    @staticmethod
    def _call(function: Any) -> Any:
        from obstore.exceptions import BaseError

        try:
            return function()
        except (BaseError, OSError) as error:
            first = str(error).splitlines()[0]
            code = "S3NoSuchBucket" if "NoSuchBucket" in str(error) else "S3Error"
            raise BucketError(code, f"S3 refused it: {first}") from None


class Buckets:
    def __init__(
        self,
        settings: Iterable[BucketSetting] = (),
        folder: Path = Path(),
        guarded: Callable[[Bucket], Bucket] | None = None,
    ) -> None:
        """`guarded` makes of a folder one whose objects are encrypted."""
        self._guarded = guarded
        self._folders = {one.name: (folder / one.folder).resolve() for one in settings}

    def is_folder(self, name: str) -> bool:
        return name in self._folders

    def find(self, name: str, sse: dict[str, str] | None = None) -> Bucket:
        folder = self._folders.get(name)
        if folder is not None:
            if not folder.is_dir():
                raise BucketError(
                    "S3NoSuchBucket", f"The bucket {name} does not exist: {folder} is no folder."
                )
            bucket: Bucket = FolderBucket(folder)
            return bucket if self._guarded is None else self._guarded(bucket)
        endpoint = next((os.environ[one] for one in ENDPOINTS if os.environ.get(one)), None)
        if endpoint is None:
            raise BucketError(
                "S3NoSuchBucket",
                f"The bucket {name} does not exist: the settings name no folder for it, and "
                "AWS_ENDPOINT_URL_S3 names no S3.",
            )
        return S3Bucket(name, endpoint, sse or {})


def _failed(error: OSError) -> BucketError:
    code = "S3NoSuchKey" if isinstance(error, FileNotFoundError) else "S3Error"
    return BucketError(code, f"{error.filename}: {error.strerror}.")
