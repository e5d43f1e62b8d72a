"""A server is copied while it serves: what `partita backup` asks for.

Its targets begin with PartitaBackup. A copy is begun, its keys are read run by run, then the
commits that came meanwhile, then the files of the archive. A copy whose client asks for nothing
more for a while is given up; its commits are no longer kept then.
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
from partita.database.execution.online_backup import (
    OnlineBackup,
    PackedChunk,
    Seal,
    begin_online_backup,
)
from partita.database.operations.operation_context import OWN_REQUEST
from partita.database.storage.archive import Archive
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
GIVEN_UP_SECONDS: Final = 300.0
LOAD_SECONDS: Final = 0.005
UNKNOWN: Final = "There is no such copy: the server was started anew, or waited for too long."

_encode = msgspec.msgpack.encode


class BackupCall(msgspec.Struct, frozen=True):
    """What requests have; each operation needs some of it."""

    CopyId: str = ""
    After: str = ""
    """The last key that was read, in base64."""
    Name: str = ""
    """Of a file."""


class BackupService:
    """As a companion, it answers requests that were let through."""

    def __init__(
        self, database: EmbeddedDatabase, files: Archive, seal: Seal, keyring: Path | None = None
    ) -> None:
        self._database = database
        self._files = files
        self._seal = seal
        self._keyring = keyring
        self._sources: dict[str, OnlineBackup] = {}
        self._endings: dict[str, asyncio.TimerHandle] = {}
        self._answering: set[asyncio.Task[None]] = set()

    def forward(self, forwarded: Forwarded, reply: Reply) -> None:
        task = asyncio.ensure_future(self._answer(forwarded, reply))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, forwarded: Forwarded, reply: Reply) -> None:
        try:
            answering = _OPERATIONS.get(forwarded.operation.decode("latin-1"))
            if answering is None:
                raise UnknownOperationException
            asked = msgspec.json.decode(forwarded.body or b"{}", type=BackupCall)
            response = await answering(self, asked)
        except (PartitaError, msgspec.MsgspecError, ValueError) as error:
            told = error if hasattr(error, "status") else ValidationException(str(error))
            response = error_response(told, JSON_1_0)
        except Exception as error:
            response = error_response(error, JSON_1_0)
        reply(response)

    async def begin(self, asked: BackupCall) -> HttpResponse:
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[Any] = loop.create_future()
        recovery = self._database.service.recovery
        assert recovery is not None
        self._database.follow_everything(True)
        while recovery.loads is not None and recovery.loads.is_loading:
            # What it loads is in no log: the next pairs will be.
            await asyncio.sleep(LOAD_SECONDS)
        self._database.write(begin_online_backup, OWN_REQUEST, committed.set_result)
        result = await committed
        if isinstance(result, BaseException):
            self._follow_if_needed()
            raise result
        copy_id = token_hex(16)
        self._sources[copy_id] = OnlineBackup(recovery, self._files, self._seal)
        self._wait_for(copy_id, loop)
        return _json({"CopyId": copy_id})

    async def read_keys(self, asked: BackupCall) -> HttpResponse:
        source = self._source(asked)
        run = source.run_after(b64decode(asked.After, validate=True))
        if not run:
            return HttpResponse(200, b"", BYTES)
        return _packed(await asyncio.to_thread(source.pack, run), run[-1][0])

    async def read_commits(self, asked: BackupCall) -> HttpResponse:
        source = self._source(asked)
        if source.end is None:
            raise ValidationException("The keys have not been read to their end yet.")
        patch = await asyncio.to_thread(source.next_patch)
        return HttpResponse(200, b"", BYTES) if patch is None else _packed(patch, b"")

    async def list_files(self, asked: BackupCall) -> HttpResponse:
        source = self._source(asked)
        names = await asyncio.to_thread(source.list_files)
        answer: dict[str, Any] = {
            "Stamp": source.end,
            "Files": names,
            "CreatedAt": self._database.service.clock(),
        }
        if self._keyring is not None:
            # After all keys were read: those of a table that is new are in it.
            content = await asyncio.to_thread(self._keyring.read_bytes)
            answer["Keyring"] = b64encode(content).decode()
        return _json(answer)

    async def read_file(self, asked: BackupCall) -> HttpResponse:
        content = await asyncio.to_thread(self._source(asked).read_file, asked.Name)
        if content is None:
            raise ResourceNotFoundException(f"There is no file {asked.Name}")
        return HttpResponse(200, content, BYTES)

    async def end(self, asked: BackupCall) -> HttpResponse:
        self._end(asked.CopyId)
        return _json({})

    def _source(self, asked: BackupCall) -> OnlineBackup:
        source = self._sources.get(asked.CopyId)
        if source is None:
            raise ResourceNotFoundException(UNKNOWN)
        self._wait_for(asked.CopyId, asyncio.get_running_loop())
        return source

    def _wait_for(self, copy_id: str, loop: AbstractEventLoop) -> None:
        """The next request; and give the copy up if there is none."""
        if ending := self._endings.pop(copy_id, None):
            ending.cancel()
        self._endings[copy_id] = loop.call_later(GIVEN_UP_SECONDS, partial(self._end, copy_id))

    def _end(self, copy_id: str) -> None:
        self._sources.pop(copy_id, None)
        if ending := self._endings.pop(copy_id, None):
            ending.cancel()
        self._follow_if_needed()

    def _follow_if_needed(self) -> None:
        if not self._sources:
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
