"""Buckets for exports and imports: folders that the settings name, or buckets at an S3 endpoint.

S3's usual environment variables give its endpoint, region and credentials (AWS_ENDPOINT_URL_S3 or
AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on). A server only uses S3 if an endpoint is
set: without one it would contact Amazon unasked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from partita.foundation.server_settings import BucketSettings as BucketSetting

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
INSTALL: Final = "it needs a package that is not installed: pip install 'partita[export]'"


class BucketError(Exception):
    """Raised when a bucket cannot be read or written; `code` is the failure code of AWS's API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ObjectBucket(Protocol):
    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes: ...

    def read(self, key: str, start: int, length: int) -> bytes:
        """Reads `length` bytes of an object from `start`; fewer if the object ends before."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """The keys with a prefix, sorted."""
        ...

    def sizes(self, prefix: str) -> dict[str, int]:
        """The sizes of the objects whose keys have a prefix, by key."""
        ...


class FolderBucket:
    """A bucket whose objects are the files of a folder."""

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
        paths = [path for path in self._folder.rglob("*") if path.name[0] != "."]
        names = [path.relative_to(self._folder).as_posix() for path in paths if path.is_file()]
        return sorted(name for name in names if name.startswith(prefix))

    def _path(self, key: str) -> Path:
        invalid = BucketError("S3InvalidKey", f"{key!r} is not a key in a bucket that is a folder.")
        try:
            path = (self._folder / key).resolve()
        except ValueError:
            # The key contains a NUL character.
            raise invalid from None
        # A key such as ../secret must not leave the folder.
        if not path.is_relative_to(self._folder) or path == self._folder:
            raise invalid
        return path


class S3Bucket:
    def __init__(self, name: str, endpoint: str | None, sse: dict[str, str]) -> None:
        """Uses Amazon S3 if `endpoint` is None."""
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
        """The sizes of objects that are being read."""

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
        # obstore only lists below complete path segments, so the prefix is applied again here.
        folder = prefix.rpartition("/")[0]
        pages = self._call(lambda: list(self._store.list(folder or None)))
        sizes = {str(entry["path"]): int(entry["size"]) for page in pages for entry in page}
        return {key: size for key, size in sizes.items() if key.startswith(prefix)}

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


class ObjectBuckets:
    """All buckets that exports, imports and bulk puts may name."""

    def __init__(
        self,
        settings: Iterable[BucketSetting] = (),
        folder: Path = Path(),
        sealed: Callable[[ObjectBucket], ObjectBucket] | None = None,
    ) -> None:
        """`sealed` wraps a folder's bucket in one that encrypts its objects."""
        self._sealed = sealed
        self._folders = {bucket.name: (folder / bucket.folder).resolve() for bucket in settings}

    def is_folder(self, name: str) -> bool:
        return name in self._folders

    def find(self, name: str, sse: dict[str, str] | None = None) -> ObjectBucket:
        """Returns the bucket; `sse` has the settings of server-side encryption for S3."""
        folder = self._folders.get(name)
        if folder is not None:
            if not folder.is_dir():
                raise BucketError(
                    "S3NoSuchBucket",
                    f"The bucket {name} does not exist: {folder} is not a folder.",
                )
            bucket: ObjectBucket = FolderBucket(folder)
            return bucket if self._sealed is None else self._sealed(bucket)
        endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
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
