"""The objects of the bucket: files in a folder, in the layout that Amazon Data Firehose writes.

    visits/2020/05/06/11/pagehits-delivery-1-2020-05-06-11-05-12-<random>.gz

The prefix is followed by year, month, day and hour in UTC; the time is that of the oldest record. A
file has the records of the stream, one per line, compressed with gzip. (Firehose guide, "Configure
Amazon S3 object name format")
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from partita.errors import PartitaError

VERSION = 1
SUFFIX = ".gz"
HOUR = "%Y/%m/%d/%H/"


class UnreadableFile(PartitaError):
    pass


def object_key(prefix: str, name: str, oldest: float) -> str:
    moment = datetime.fromtimestamp(oldest, UTC)
    return f"{prefix}{moment:{HOUR}}{name}-{VERSION}-{moment:%Y-%m-%d-%H-%M-%S}-{uuid4()}{SUFFIX}"


def write(folder: Path, key: str, records: Iterable[bytes]) -> int:
    """Writes a file whole or not at all, syncs it to disk, and returns its size."""
    content = gzip.compress(b"".join(record + b"\n" for record in records), mtime=0)
    path = folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    return len(content)


def read(folder: Path, key: str) -> list[bytes]:
    """Returns the records of a file. The key comes from an event, so it must not lead out of the
    folder."""
    path = (folder / key).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableFile(f"{key!r} is not an object of the bucket in {folder}.")
    try:
        return gzip.decompress(path.read_bytes()).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(f"The object {key} in {folder} cannot be read: {error}.") from error


def hours(first: float, last: float) -> Iterator[str]:
    """Yields the folders of all hours from one time to another."""
    moment = datetime.fromtimestamp(first, UTC).replace(minute=0, second=0, microsecond=0)
    while moment.timestamp() <= last:
        yield f"{moment:{HOUR}}"
        moment += timedelta(hours=1)


def keys(folder: Path, prefix: str) -> list[str]:
    """Returns the keys of the objects under a prefix that ends with a slash."""
    paths = sorted((folder / prefix).glob(f"*{SUFFIX}"))
    # A name that begins with a dot is a file that is being written.
    return [path.relative_to(folder).as_posix() for path in paths if path.name[0] != "."]
