"""Detects older copies of the users file or the audit log in a data folder.

The database notes which users file was accepted last and how long the audit log was. Restoring the
whole folder restores these notes too, so that is not detected.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.operation_context import OWN_REQUEST, Request, WriteContext
from partita.database.storage.sealing.keyring import AcceptedUsersFile
from partita.database.tables.table_layout import ACCESS_KEY, AUDIT_KEY
from partita.errors import DynamoDBError
from partita.server.security.audit.audit_head import AuditPosition
from partita.server.security.audit.audit_log import AuditLog

logger = logging.getLogger(__name__)

NOTE_SECONDS: Final = 5.0


class RollbackNotes:
    """The notes in the database, read at the start and written as the files change."""

    def __init__(self, database: EmbeddedDatabase) -> None:
        self._database = database

    def accepted(self) -> AcceptedUsersFile | None:
        note = self._database.latest.get(ACCESS_KEY)
        return None if note is None else msgspec.msgpack.decode(note, type=AcceptedUsersFile)

    def note_accepted(self, accepted: AcceptedUsersFile) -> None:
        self._put(ACCESS_KEY, msgspec.msgpack.encode(accepted))

    def audited(self, name: str) -> AuditPosition | None:
        """Returns the end of the audit log that was noted last, or None for another log."""
        note = self._database.latest.get(AUDIT_KEY)
        if note is None:
            return None
        noted_name, position = msgspec.msgpack.decode(note, type=tuple[str, AuditPosition])
        return position if noted_name == name else None

    def note_audited(self, name: str, position: AuditPosition) -> None:
        self._put(AUDIT_KEY, msgspec.msgpack.encode((name, position)))

    def _put(self, key: bytes, value: bytes) -> None:
        self._database.write(partial(_put, key, value), OWN_REQUEST, _log_failure)


def _put(key: bytes, value: bytes, context: WriteContext, request: Request) -> bytes:
    context.write_batch.put(key, value)
    return b""


def _log_failure(result: bytes | DynamoDBError) -> None:
    if isinstance(result, DynamoDBError):
        logger.error("The database could not note users or the audit log: %s", result)


class AuditRollbackNotes:
    """Notes the end of the audit log every few seconds, and when the server stops."""

    def __init__(self, log: AuditLog, notes: RollbackNotes, name: str) -> None:
        self._log = log
        self._notes = notes
        self._name = name
        self._noted: AuditPosition | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_soon(self._look)

    def _look(self) -> None:
        is_idle = self._task is None or self._task.done()
        if is_idle and self._log.position != self._noted:
            self._task = asyncio.create_task(self._note())
        self._timer = self._loop.call_later(NOTE_SECONDS, self._look)

    async def _note(self) -> None:
        """Note the synced end: after a power failure, a note must not be ahead of its log."""
        try:
            position = await asyncio.to_thread(self._log.synced)
        except OSError as error:
            logger.error("The audit log cannot be synced: %s.", error.strerror)
            return
        self._put(position)

    def _put(self, position: AuditPosition) -> None:
        self._noted = position
        self._notes.note_audited(self._name, position)

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        with suppress(OSError):
            self._put(self._log.synced())
