"""Taking a copy of a running server, into a place that may have earlier ones.

What an earlier copy has is not written again. A copy that was interrupted is not there; what it
has written is used by the next.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from partita.client import Client, ClientError
from partita.database.copies.copies import FILES, Copy, put_copy
from partita.database.recovery import stages
from partita.database.recovery.manifests import CHUNKS, Chunk, Manifest, chunk_name
from partita.database.recovery.stages import Stage
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import LOGS
from partita.errors import PartitaError

TRIES: Final = 3
GONE: Final = "ResourceNotFoundException"
UNKNOWN: Final = "UnknownOperationException"

Progress = Callable[[int], None]

_decode = msgspec.msgpack.Decoder(tuple[Chunk, bytes, bytes]).decode


class Taken(NamedTuple):
    name: str
    keys: int
    bytes_written: int


class _FileIsGone(Exception):
    """The server has removed a file since it was listed: it was of a backup that is deleted."""


async def take(client: Client, target: Archive, progress: Progress) -> Taken:
    for _ in range(TRIES):
        try:
            return await _Taking(client, target, progress).take()
        except _FileIsGone:
            continue
    raise PartitaError("Backups are being deleted while the database is copied; try again.")


class _Taking:
    def __init__(self, client: Client, target: Archive, progress: Progress) -> None:
        self._client = client
        self._target = target
        self._progress = progress
        self._copy_id = ""
        self._written = 0

    async def take(self) -> Taken:
        try:
            self._copy_id = orjson.loads(await self._ask("Begin"))["CopyId"]
        except ClientError as error:
            if error.code != UNKNOWN:
                raise
            raise PartitaError(
                "This server cannot be copied: it is not a Partita, or keeps its data in "
                "PostgreSQL; then give --storage postgresql://user@host/db."
            ) from None
        stages.reached(Stage.WHOLE_BACKUP_BEGUN)
        try:
            chunks = await self._chunks("ReadKeys")
            stages.reached(Stage.WHOLE_BACKUP_KEYS_WRITTEN)
            patches = await self._chunks("ReadCommits")
            stages.reached(Stage.WHOLE_BACKUP_COMMITS_WRITTEN)
            listed = orjson.loads(await self._ask("ListFiles"))
            for name in listed["Files"]:
                await self._file(name)
            stages.reached(Stage.WHOLE_BACKUP_FILES_WRITTEN)
        finally:
            await self._ask("End")
        keyring = listed.get("Keyring")
        copy = Copy(
            created_at=listed["CreatedAt"],
            manifest=Manifest(stamp=listed["Stamp"], chunks=chunks, patches=patches),
            files=listed["Files"],
            keyring=None if keyring is None else b64decode(keyring),
        )
        name = put_copy(self._target, copy)
        stages.reached(Stage.WHOLE_BACKUP_NAMED)
        return Taken(name, copy.keys, self._written)

    async def _chunks(self, operation: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        last = b""
        while answer := await self._ask(operation, After=b64encode(last).decode()):
            chunk, last, content = _decode(answer)
            chunks.append(chunk)
            self._put(chunk_name(chunk.digest), content)
            stages.reached(Stage.WHOLE_BACKUP_CHUNK_WRITTEN)
            self._progress(chunk.items)
        return chunks

    async def _file(self, name: str) -> None:
        """Of chunks and manifests the name is enough; logs grow."""
        if not name.startswith(LOGS) and self._target.has(FILES + name):
            return
        try:
            content = await self._ask("ReadFile", Name=name)
        except ClientError as error:
            if error.code != GONE:
                raise
            raise _FileIsGone from None
        if name.startswith(LOGS) and self._target.size(FILES + name) == len(content):
            return
        self._put(FILES + name, content)
        stages.reached(Stage.WHOLE_BACKUP_FILE_WRITTEN)

    def _put(self, name: str, content: bytes) -> None:
        if name.startswith(CHUNKS) and self._target.has(name):
            return
        self._target.put(name, content)
        self._written += len(content)

    async def _ask(self, operation: str, **asked: Any) -> bytes:
        body = orjson.dumps({"CopyId": self._copy_id, **asked})
        return await self._client.send("backup", operation, body)
