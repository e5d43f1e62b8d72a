"""`partita backup` of a running server: asks it for keys, commits and files over HTTP.

`server/backup_service.py` answers. An interrupted backup does not exist; the next one uses the
files that it has written.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson

from partita.client import Client, ClientError
from partita.copies.backups.backup_format import BackupSummary, BackupWriter, DatabaseBackup
from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import Chunk, ChunkManifest, chunk_name
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.storage.archive import Archive
from partita.database.storage.recovery_log import LOGS
from partita.errors import PartitaError

TRIES: Final = 3
GONE: Final = "ResourceNotFoundException"
UNKNOWN: Final = "UnknownOperationException"

Progress = Callable[[int], None]
"""Called with the number of keys that were copied since the last call."""

_decode = msgspec.msgpack.Decoder(tuple[Chunk, bytes, bytes]).decode


class _FileIsGone(Exception):
    """Raised when a listed file was removed meanwhile, because its table backup was deleted."""


async def back_up_server(client: Client, location: Archive, progress: Progress) -> BackupSummary:
    """Takes a backup of a server."""
    for _ in range(TRIES):
        try:
            return await _ServerBackup(client, location, progress).take()
        except _FileIsGone:
            continue
    raise PartitaError(
        "The database cannot be backed up while its table backups are being deleted; try again."
    )


class _ServerBackup:
    def __init__(self, client: Client, location: Archive, progress: Progress) -> None:
        self._client = client
        self._writer = BackupWriter(location)
        self._progress = progress
        self._copy_id = ""

    async def take(self) -> BackupSummary:
        try:
            self._copy_id = orjson.loads(await self._call("Begin"))["CopyId"]
        except ClientError as error:
            if error.code != UNKNOWN:
                raise
            raise PartitaError(
                "This server cannot be backed up: it is not Partita, or keeps its data in "
                "PostgreSQL; then give --storage postgresql://user@host/db."
            ) from None
        recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_BEGUN)
        try:
            chunks = await self._chunks("ReadKeys")
            recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_KEYS_WRITTEN)
            patches = await self._chunks("ReadCommits")
            recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_COMMITS_WRITTEN)
            listed = orjson.loads(await self._call("ListFiles"))
            for name in listed["Files"]:
                await self._file(name)
            recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_FILES_WRITTEN)
        finally:
            # Until then the server keeps the changes of all commits.
            await self._call("End")
        keyring = listed.get("Keyring")
        backup = DatabaseBackup(
            created_at=listed["CreatedAt"],
            manifest=ChunkManifest(stamp=listed["Stamp"], chunks=chunks, patches=patches),
            files=listed["Files"],
            keyring=None if keyring is None else b64decode(keyring),
        )
        summary = self._writer.finish(backup)
        recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_NAMED)
        return summary

    async def _chunks(self, operation: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        last = b""
        while answer := await self._call(operation, After=b64encode(last).decode()):
            chunk, last, content = _decode(answer)
            chunks.append(chunk)
            name = chunk_name(chunk.digest)
            if not self._writer.has(name):
                self._writer.put(name, content)
            recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_CHUNK_WRITTEN)
            self._progress(chunk.items)
        return chunks

    async def _file(self, name: str) -> None:
        # Chunks and manifests never change, so only logs have to be read again.
        if not name.startswith(LOGS) and self._writer.has_file(name):
            return
        try:
            content = await self._call("ReadFile", Name=name)
        except ClientError as error:
            if error.code != GONE:
                raise
            raise _FileIsGone from None
        self._writer.put_file(name, content)
        recovery_stages.reach_stage(RecoveryStage.DATABASE_BACKUP_FILE_WRITTEN)

    async def _call(self, operation: str, **members: Any) -> bytes:
        body = orjson.dumps({"CopyId": self._copy_id, **members})
        return await self._client.send("backup", operation, body)
