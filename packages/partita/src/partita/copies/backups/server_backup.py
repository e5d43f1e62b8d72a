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
from partita.copies.backups.backup_format import FILES, DatabaseBackup, put_backup
from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import CHUNKS, Chunk, ChunkManifest, chunk_name
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import LOGS
from partita.errors import PartitaError

TRIES: Final = 3
GONE: Final = "ResourceNotFoundException"
UNKNOWN: Final = "UnknownOperationException"

Progress = Callable[[int], None]

_decode = msgspec.msgpack.Decoder(tuple[Chunk, bytes, bytes]).decode


class BackupSummary(NamedTuple):
    name: str
    keys: int
    bytes_written: int


class _FileIsGone(Exception):
    """The server has removed a file since it was listed: it was of a backup that is deleted."""


async def take(client: Client, target: Archive, progress: Progress) -> BackupSummary:
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

    async def take(self) -> BackupSummary:
        try:
            self._copy_id = orjson.loads(await self._ask("Begin"))["CopyId"]
        except ClientError as error:
            if error.code != UNKNOWN:
                raise
            raise PartitaError(
                "This server cannot be copied: it is not a Partita, or keeps its data in "
                "PostgreSQL; then give --storage postgresql://user@host/db."
            ) from None
        recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_BEGUN)
        try:
            chunks = await self._chunks("ReadKeys")
            recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_KEYS_WRITTEN)
            patches = await self._chunks("ReadCommits")
            recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_COMMITS_WRITTEN)
            listed = orjson.loads(await self._ask("ListFiles"))
            for name in listed["Files"]:
                await self._file(name)
            recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_FILES_WRITTEN)
        finally:
            await self._ask("End")
        keyring = listed.get("Keyring")
        copy = DatabaseBackup(
            created_at=listed["CreatedAt"],
            manifest=ChunkManifest(stamp=listed["Stamp"], chunks=chunks, patches=patches),
            files=listed["Files"],
            keyring=None if keyring is None else b64decode(keyring),
        )
        name = put_backup(self._target, copy)
        recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_NAMED)
        return BackupSummary(name, copy.keys, self._written)

    async def _chunks(self, operation: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        last = b""
        while answer := await self._ask(operation, After=b64encode(last).decode()):
            chunk, last, content = _decode(answer)
            chunks.append(chunk)
            self._put(chunk_name(chunk.digest), content)
            recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_CHUNK_WRITTEN)
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
        recovery_stages.reach_stage(RecoveryStage.WHOLE_BACKUP_FILE_WRITTEN)

    def _put(self, name: str, content: bytes) -> None:
        if name.startswith(CHUNKS) and self._target.has(name):
            return
        self._target.put(name, content)
        self._written += len(content)

    async def _ask(self, operation: str, **asked: Any) -> bytes:
        body = orjson.dumps({"CopyId": self._copy_id, **asked})
        return await self._client.send("backup", operation, body)
