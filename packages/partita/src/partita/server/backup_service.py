"""The server's side of `partita backup`: answers requests for keys, commits and files.

Their targets begin with PartitaBackup. A client begins a backup, reads the keys run by run, then
the commits made meanwhile, then the files of the archive, and ends it. A backup whose client sends
no request for a while is abandoned, since commits are kept as long as it lasts.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import msgspec
import orjson

from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.execution.online_backup import OnlineBackup, PackedChunk, begin_online_backup
from partita.database.operations.operation_context import OWN_REQUEST
from partita.database.storage.archive import Archive
from partita.database.storage.data_folder.keyring_access import Seal
from partita.errors import (
    PartitaError,
    ResourceNotFoundException,
    UnknownOperationException,
    ValidationException,
)
from partita.server.admission import Forwarded
from partita.server.dispatch import error_response
from partita.server.http.http_messages import HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0

TARGET: Final = b"PartitaBackup"
BYTES: Final = b"application/octet-stream"
ABANDONED_SECONDS: Final = 300.0
LOAD_SECONDS: Final = 0.005
UNKNOWN: Final = (
    "This backup is unknown: the server was restarted, or got no request for it for too long. "
    "Begin again."
)

_encode = msgspec.msgpack.encode


class BackupCall(msgspec.Struct, frozen=True):
    """The members of requests; each operation uses some of them."""

    CopyId: str = ""
    After: str = ""
    """The last key that was read, in base64."""
    Name: str = ""
    """The name of a file."""


class BackupService:
    """Answers the requests that the dispatcher has authorized and forwarded."""

    def __init__(
        self, database: EmbeddedDatabase, files: Archive, seal: Seal, keyring: Path | None = None
    ) -> None:
        self._database = database
        self._files = files
        self._seal = seal
        self._keyring = keyring
        self._backups: dict[str, OnlineBackup] = {}
        self._timeouts: dict[str, asyncio.TimerHandle] = {}
        self._answering: set[asyncio.Task[None]] = set()

    def forward(self, forwarded: Forwarded, reply: Reply) -> None:
        task = asyncio.ensure_future(self._answer(forwarded, reply))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, forwarded: Forwarded, reply: Reply) -> None:
        try:
            operation = _OPERATIONS.get(forwarded.operation.decode("latin-1"))
            if operation is None:
                raise UnknownOperationException
            call = msgspec.json.decode(forwarded.body or b"{}", type=BackupCall)
            response = await operation(self, call)
        except (PartitaError, msgspec.MsgspecError, ValueError) as error:
            answer = error if hasattr(error, "status") else ValidationException(str(error))
            response = error_response(answer, JSON_1_0)
        except Exception as error:
            response = error_response(error, JSON_1_0)
        reply(response)

    async def begin(self, call: BackupCall) -> HttpResponse:
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[Any] = loop.create_future()
        recovery = self._database.service.recovery
        assert recovery is not None
        self._database.follow_everything(True)
        while recovery.loads is not None and recovery.loads.is_loading:
            # The pairs of a bulk load are in no log. From its next commit on they will be, because
            # everything is followed now.
            await asyncio.sleep(LOAD_SECONDS)
        self._database.write(begin_online_backup, OWN_REQUEST, committed.set_result)
        result = await committed
        if isinstance(result, BaseException):
            self._stop_following_if_unused()
            raise result
        copy_id = token_hex(16)
        self._backups[copy_id] = OnlineBackup(recovery, self._files, self._seal)
        self._extend_timeout(copy_id, loop)
        return _json({"CopyId": copy_id})

    async def read_keys(self, call: BackupCall) -> HttpResponse:
        backup = self._backup(call)
        run = backup.run_after(b64decode(call.After, validate=True))
        if not run:
            return HttpResponse(200, b"", BYTES)
        return _packed(await asyncio.to_thread(backup.pack, run), run[-1][0])

    async def read_commits(self, call: BackupCall) -> HttpResponse:
        backup = self._backup(call)
        if backup.end is None:
            raise ValidationException("ReadCommits comes after ReadKeys has returned all keys.")
        patch = await asyncio.to_thread(backup.next_patch)
        return HttpResponse(200, b"", BYTES) if patch is None else _packed(patch, b"")

    async def list_files(self, call: BackupCall) -> HttpResponse:
        backup = self._backup(call)
        names = await asyncio.to_thread(backup.list_files)
        answer: dict[str, Any] = {
            "Stamp": backup.end,
            "Files": names,
            "CreatedAt": self._database.service.clock(),
        }
        if self._keyring is not None:
            # Read after all keys, so that it has the secrets of tables that were just created.
            content = await asyncio.to_thread(self._keyring.read_bytes)
            answer["Keyring"] = b64encode(content).decode()
        return _json(answer)

    async def read_file(self, call: BackupCall) -> HttpResponse:
        content = await asyncio.to_thread(self._backup(call).read_file, call.Name)
        if content is None:
            raise ResourceNotFoundException(f"The file {call.Name} does not exist.")
        return HttpResponse(200, content, BYTES)

    async def end(self, call: BackupCall) -> HttpResponse:
        self._end(call.CopyId)
        return _json({})

    def _backup(self, call: BackupCall) -> OnlineBackup:
        backup = self._backups.get(call.CopyId)
        if backup is None:
            raise ResourceNotFoundException(UNKNOWN)
        self._extend_timeout(call.CopyId, asyncio.get_running_loop())
        return backup

    def _extend_timeout(self, copy_id: str, loop: AbstractEventLoop) -> None:
        """Ends a backup unless there is another request for it in time."""
        if timeout := self._timeouts.pop(copy_id, None):
            timeout.cancel()
        self._timeouts[copy_id] = loop.call_later(ABANDONED_SECONDS, partial(self._end, copy_id))

    def _end(self, copy_id: str) -> None:
        self._backups.pop(copy_id, None)
        if timeout := self._timeouts.pop(copy_id, None):
            timeout.cancel()
        self._stop_following_if_unused()

    def _stop_following_if_unused(self) -> None:
        if not self._backups:
            self._database.follow_everything(False)


_OPERATIONS: Final[dict[str, Callable[[BackupService, BackupCall], Awaitable[HttpResponse]]]] = {
    "Begin": BackupService.begin,
    "ReadKeys": BackupService.read_keys,
    "ReadCommits": BackupService.read_commits,
    "ListFiles": BackupService.list_files,
    "ReadFile": BackupService.read_file,
    "End": BackupService.end,
}


def _json(answer: dict[str, Any]) -> HttpResponse:
    return HttpResponse(200, orjson.dumps(answer), JSON_1_0)


def _packed(packed: PackedChunk, last: bytes) -> HttpResponse:
    return HttpResponse(200, _encode((packed.chunk, last, packed.content)), BYTES)
