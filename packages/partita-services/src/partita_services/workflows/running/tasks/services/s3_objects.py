"""Buckets of S3: folders that the settings name, whose files are the objects."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita.errors import PartitaError
from partita.foundation.server_settings import BucketSettings
from partita_services.iso_time import iso_time
from partita_services.workflows.language.json_values import json_text
from partita_services.workflows.language.language_errors import StateError

if TYPE_CHECKING:
    from partita_services.workflows.running.tasks.services.sealed_objects import SealedObjects

LIST_MAX = 1000
PREFIX = "S3"


def _refused(code: str, text: str, status: int) -> StateError:
    return StateError(f"{PREFIX}.{code}", f"{text} (Service: S3, Status Code: {status})")


class S3Buckets:
    """The operations of S3 that tasks and map runs use.

    Where encryption is on, objects are sealed when they are written. Objects that are read may be
    sealed or not.
    """

    def __init__(
        self, buckets: Iterable[BucketSettings], folder: Path, sealed: SealedObjects | None = None
    ) -> None:
        self._sealed = sealed
        self._folders = {bucket.name: (folder / bucket.folder).resolve() for bucket in buckets}

    def read(self, bucket: str, key: str) -> bytes:
        path = self._path(bucket, key)
        try:
            content = path.read_bytes()
        except OSError:
            raise _refused("NoSuchKeyException", f"The key {key!r} does not exist.", 404) from None
        return content if self._sealed is None else self._sealed.open(key, content)

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """Write an object; after a crash, it is there as a whole or not at all."""
        path = self._path(bucket, key)
        if self._sealed is not None:
            content = self._sealed.seal(key, content)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content)
        # Readers see the old object or the new one, never a part of it.
        os.replace(part, path)

    def remove(self, bucket: str, key: str) -> None:
        self._path(bucket, key).unlink(missing_ok=True)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        folder = self._folder(bucket)
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
        names = [path.relative_to(folder).as_posix() for path in paths]
        return sorted(name for name in names if name.startswith(prefix))

    def described(self, bucket: str, key: str) -> dict[str, Any]:
        """An object as ListObjectsV2 shows it."""
        content = self.read(bucket, key)
        changed_at = self._path(bucket, key).stat().st_mtime
        return {
            "Key": key,
            "Size": len(content),
            "ETag": etag(content),
            "LastModified": iso_time(changed_at, "seconds"),
            "StorageClass": "STANDARD",
        }

    def _folder(self, bucket: str) -> Path:
        folder = self._folders.get(bucket)
        if folder is None:
            text = f"The bucket {bucket!r} does not exist: name a folder for it in the settings."
            raise _refused("NoSuchBucketException", text, 404)
        return folder

    def _path(self, bucket: str, key: str) -> Path:
        folder = self._folder(bucket)
        # Path.resolve() raises ValueError for a NUL.
        path = folder if "\0" in key else (folder / key).resolve()
        if not key or not path.is_relative_to(folder) or path == folder:
            raise _refused("S3Exception", f"{key!r} is not a valid key for this bucket.", 400)
        return path


def etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def get_object(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    content = buckets.read(request["Bucket"], request["Key"])
    described = buckets.described(request["Bucket"], request["Key"])
    chosen, answer = content, {}
    if "Range" in request:
        first, last = _range(request["Range"], len(content))
        chosen = content[first : last + 1]
        answer["ContentRange"] = f"bytes {first}-{last}/{len(content)}"
    return {
        **answer,
        "Body": chosen.decode("utf-8", "replace"),
        "ContentLength": len(chosen),
        "ETag": described["ETag"],
        "LastModified": described["LastModified"],
        "Metadata": {},
    }


def _range(text: str, size: int) -> tuple[int, int]:
    """The first and the last byte of `bytes=0-99`, `bytes=100-` or `bytes=-100`."""
    match = _BYTES.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise ValueError(f"Range is {text!r}, not such as bytes=0-99")
    if not match[1]:
        first, last = max(size - int(match[2]), 0), size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size), size - 1)
    if first > last:
        raise _refused("S3Exception", "The requested range is not satisfiable", 416)
    return first, last


def head_object(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    answer = get_object(buckets, request)
    del answer["Body"]
    return answer


def get_object_attributes(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    """The attributes that the request asks for."""
    buckets.read(request["Bucket"], request["Key"])
    described = buckets.described(request["Bucket"], request["Key"])
    attributes = {
        "ETag": described["ETag"].strip('"'),
        "ObjectSize": described["Size"],
        "StorageClass": described["StorageClass"],
    }
    names = [name for name in request["ObjectAttributes"] if name in attributes]
    return {
        "LastModified": described["LastModified"],
        **{name: attributes[name] for name in names},
    }


def put_object(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    body = request.get("Body", "")
    content = (body if isinstance(body, str) else json_text(body)).encode()
    buckets.write(request["Bucket"], request["Key"], content)
    return {"ETag": etag(content)}


def delete_object(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    buckets.remove(request["Bucket"], request["Key"])
    return {}


def delete_objects(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    keys = [object["Key"] for object in request["Delete"]["Objects"]]
    for key in keys:
        buckets.remove(request["Bucket"], key)
    return {"Deleted": [{"Key": key} for key in keys]}


def copy_object(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    source, _, key = request["CopySource"].lstrip("/").partition("/")
    content = buckets.read(source, key)
    buckets.write(request["Bucket"], request["Key"], content)
    return {"CopyObjectResult": {"ETag": etag(content)}}


def list_objects(buckets: S3Buckets, request: dict[str, Any]) -> dict[str, Any]:
    """A page; its token is the last key."""
    bucket, prefix = request["Bucket"], request.get("Prefix", "")
    start = request.get("ContinuationToken") or request.get("StartAfter") or ""
    keys = [key for key in buckets.keys(bucket, prefix) if key > start]
    most = min(int(request.get("MaxKeys", LIST_MAX)), LIST_MAX)
    shown = keys[:most]
    answer: dict[str, Any] = {
        "Contents": [buckets.described(bucket, key) for key in shown],
        "IsTruncated": len(keys) > most,
        "KeyCount": len(shown),
        "MaxKeys": most,
        "Name": bucket,
        "Prefix": prefix,
    }
    return answer | ({"NextContinuationToken": shown[-1]} if len(keys) > most else {})


BUCKET_ARN = "arn:aws:s3:::"
NOT_BUILT = ("Delimiter", "PartNumber", "VersionId")
CONDITIONS = ("If", "CopySourceIf")
"""The beginnings of the names of conditional parameters: IfMatch, CopySourceIfModifiedSince."""
_BYTES = re.compile(r"bytes=(\d*)-(\d*)")
OPERATIONS = {
    "copyObject": copy_object,
    "deleteObject": delete_object,
    "deleteObjects": delete_objects,
    "getObject": get_object,
    "getObjectAttributes": get_object_attributes,
    "headObject": head_object,
    "listObjectsV2": list_objects,
    "putObject": put_object,
}
"""The operations, by their names in a Resource."""


ACTIONS = {
    "deleteObject": "s3:DeleteObject",
    "deleteObjects": "s3:DeleteObject",
    "getObject": "s3:GetObject",
    "getObjectAttributes": "s3:GetObjectAttributes",
    "headObject": "s3:GetObject",
    "listObjectsV2": "s3:ListBucket",
}


def needs(operation: str, request: dict[str, Any]) -> list[tuple[str, str]]:
    """The rights that an operation needs: actions and resources."""
    action, bucket = ACTIONS.get(operation, "s3:PutObject"), request.get("Bucket", "")
    if operation == "listObjectsV2":
        return [(action, f"{BUCKET_ARN}{bucket}")]
    if operation == "deleteObjects":
        return [(action, f"{BUCKET_ARN}{bucket}/*")]
    rights = [(action, f"{BUCKET_ARN}{bucket}/{request.get('Key', '')}")]
    if operation == "copyObject":
        source = str(request.get("CopySource", "")).lstrip("/")
        rights.append(("s3:GetObject", f"{BUCKET_ARN}{source}"))
    return rights


def run(buckets: S3Buckets, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Run an operation of S3. Raises StateError when it fails."""
    for name in request:
        if name in NOT_BUILT or name.startswith(CONDITIONS):
            raise _refused("S3Exception", f"{name} is not supported here: leave it out.", 501)
    try:
        return OPERATIONS[operation](buckets, request)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _refused("S3Exception", f"The request is incomplete or wrong: {error}", 400) from None
    except OSError as error:
        raise _refused("S3Exception", f"{error.strerror}", 500) from None
    except PartitaError:
        # Only the operator may see the reason, which the server prints when it starts.
        raise _refused("S3Exception", "The encryption key cannot be read.", 500) from None
