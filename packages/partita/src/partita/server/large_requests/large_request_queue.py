"""The server's side of large requests: forwards them one at a time to the process that decides.

While that process (`worker.py`) decides, which may take seconds, the server continues with other
requests and only answers the process's questions. The result is a draft: it is applied if what it
read is still the same, and otherwise decided again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from partita.database.capacity.ledger import Charge
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.execution.database_interface import DatabaseInterface
from partita.database.execution.optimistic.charged_once import ChargedOnce
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.operations import charges
from partita.database.storage.engine import ConflictDetected
from partita.errors import DynamoDBError, InternalServerError, ThrottlingException
from partita.foundation.service_limits import MB
from partita.server.admission import Admission
from partita.server.large_requests.decision_messages import (
    LENGTH,
    AdmitCharges,
    AuthorizeParts,
    DecisionJob,
    DecisionOutcome,
    DraftChange,
    GetIsHeld,
    GetValue,
    JobDeclined,
    Question,
    RemoteCharge,
    RemoteError,
    decode_message,
    encode,
    framed,
)

logger = logging.getLogger(__name__)

Done = Callable[[bytes | BaseException], None]

MODULE = "partita.server.large_requests.large_request_worker"
WAITING_BYTES_MAX = 256 * MB
"""Of the bodies that wait for the process; with more, a request is throttled."""
WAITING_BYTES_OF_ONE_MAX = 64 * MB
"""The same of one caller, where callers are known."""
ATTEMPTS_MAX = 4
"""How often a draft may be overtaken before the server stops everything else for it."""
IDLE_SECONDS_MAX = 20.0
"""After the last large request the process ends, and the memory that it took is free again."""
FAILED = "The process that decides large requests has failed."
BUSY = "Too many large requests at once: try again in a moment."


class LargeRequest(NamedTuple):
    operation: str
    body: bytes
    admission: Admission
    decide_here: Callable[[], None]
    done: Done


class CallerTurns:
    """Requests that wait, one of each caller in turn: nobody waits for all that another sends."""

    def __init__(self) -> None:
        self._by_caller: dict[str, deque[LargeRequest]] = {}
        self._count = asyncio.Semaphore(0)

    def bytes_of(self, whose: str) -> int:
        return sum(len(request.body) for request in self._by_caller.get(whose, ()))

    def put(self, request: LargeRequest) -> None:
        self._by_caller.setdefault(request.admission.whose, deque()).append(request)
        self._count.release()

    async def get(self) -> LargeRequest:
        await self._count.acquire()
        whose = next(iter(self._by_caller))
        waiting = self._by_caller.pop(whose)
        request = waiting.popleft()
        if waiting:
            # Behind all others.
            self._by_caller[whose] = waiting
        return request


class LargeRequestQueue:
    def __init__(self, database: DatabaseInterface) -> None:
        self._database = database
        self._waiting = CallerTurns()
        self._waiting_bytes = 0
        self._running: asyncio.Task[None] | None = None

    def forward(
        self,
        operation: str,
        body: bytes,
        admission: Admission,
        decide_here: Callable[[], None],
        done: Done,
    ) -> None:
        """Decide a request when its turn comes, under its admission; `decide_here` is called where
        that is impossible, `done` with the answer or the error."""
        if (deferred := self._database.deferred(done)) is None:
            decide_here()
            return
        whose = admission.whose
        own_bytes = self._waiting.bytes_of(whose) if whose else 0
        if (
            self._waiting_bytes + len(body) > WAITING_BYTES_MAX
            or own_bytes + len(body) > WAITING_BYTES_OF_ONE_MAX
        ):
            done(ThrottlingException(BUSY))
            return
        self._waiting_bytes += len(body)
        self._waiting.put(LargeRequest(operation, body, admission, decide_here, deferred))
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        """From the first request until there have been none for a while."""
        process: DecidingProcess | None = None
        try:
            while (request := await self._next()) is not None:
                try:
                    process = process or await DecidingProcess.start()
                    await self._decide(process, request)
                except Exception as error:
                    logger.error("A large request could not be decided.", exc_info=error)
                    if process is not None:
                        await process.end()
                    process = None
                    request.done(InternalServerError(FAILED))
                self._waiting_bytes -= len(request.body)
        finally:
            self._running = None
            if process is not None:
                await process.end()

    async def _next(self) -> LargeRequest | None:
        try:
            async with asyncio.timeout(IDLE_SECONDS_MAX):
                return await self._waiting.get()
        except TimeoutError:
            return None

    async def _decide(self, process: DecidingProcess, request: LargeRequest) -> None:
        service = self._database.service
        now, charged = service.clock(), ChargedOnce()
        for _ in range(ATTEMPTS_MAX):
            draft, version = ValueDraft(), service.catalog.version
            job = DecisionJob(
                request.operation,
                request.body,
                now,
                service.ledger.mode,
                service.ledger.is_on,
                service.region,
                service.account_id,
                service.is_lenient,
                not request.admission.is_open,
                None if process.catalog_version == version else service.catalog.encoded(),
            )
            process.catalog_version = version
            charged.begin_run()
            answers = WorkerAnswers(self._database, draft, charged, request.admission)
            outcome = await process.decide(job, answers, draft)
            if isinstance(outcome, JobDeclined):
                request.decide_here()
                return
            if service.catalog.version != version:
                continue
            draft.answer, draft.is_read_only = outcome_answer(outcome), outcome.holds is None
            draft.holds = outcome.holds or []
            if await self._commit(draft, request.done):
                return
        request.decide_here()

    async def _commit(self, draft: ValueDraft, done: Done) -> bool:
        """Commit a draft, and answer the request; returns False if the draft conflicts."""
        is_committed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def finish(result: bytes | BaseException) -> None:
            has_conflict = isinstance(result, ConflictDetected)
            if not has_conflict:
                done(result)
            # When the server stops, nobody waits any more.
            if not is_committed.done():
                is_committed.set_result(not has_conflict)

        self._database.commit_draft(draft, finish)
        return await is_committed


def outcome_answer(outcome: DecisionOutcome) -> bytes | DynamoDBError:
    answer = outcome.answer
    if isinstance(answer, RemoteError):
        kind: type[DynamoDBError] = getattr(import_module(answer.module), answer.name)
        return kind(answer.message, **answer.members)
    return answer


class WorkerAnswers:
    """The answers to the process's questions in one run; values are noted in the draft."""

    def __init__(
        self,
        database: DatabaseInterface,
        draft: ValueDraft,
        charged: ChargedOnce,
        admission: Admission,
    ) -> None:
        self._database = database
        self._draft = draft
        self._charged = charged
        self._admission = admission

    async def answer(self, question: Question) -> Any:
        if isinstance(question, GetValue):
            return await self._get(question)
        if isinstance(question, GetIsHeld):
            return self._is_held(question)
        if isinstance(question, AuthorizeParts):
            return self._denials(question)
        return self._charged.once(lambda: self._admit(question))

    def _denials(self, question: AuthorizeParts) -> list[str | None]:
        # Servers that ask nobody for rights do not load them.
        from partita.server.security.rights.requested_rights import RequestedRight

        parts = [
            [
                RequestedRight(one.action, one.resource, partial(_same, one.keys), one.policy)
                for one in part
            ]
            for part in question.parts
        ]
        denials = self._admission.denials(parts)
        return [None if denial is None else denial.message for denial in denials]

    async def _get(self, question: GetValue) -> bytes | None:
        fetched: asyncio.Future[bytes | BaseException | None]
        fetched = asyncio.get_running_loop().create_future()
        self._database.get(question.key, fetched.set_result, is_latest=question.is_latest)
        value = await fetched
        if isinstance(value, BaseException):
            raise value
        self._draft.note(question.key, value)
        return value

    def _is_held(self, question: GetIsHeld) -> bool:
        is_held = self._database.is_held(question.key)
        if question.is_latest and not is_held:
            self._draft.free.add(question.key)
        return is_held

    def _admit(self, question: AdmitCharges) -> list[ThrottlingReason | None]:
        groups = [[self._charge(charged) for charged in group] for group in question.groups]
        ledger = self._database.service.ledger
        if question.is_transaction:
            return ledger.admit_all(groups)
        return [ledger.admit(group) for group in groups]

    def _charge(self, charged: RemoteCharge) -> Charge:
        service = self._database.service
        tables = {table.number: table for table in service.catalog}
        accounts = charges.accounts_of(service, tables[charged.table])
        account = accounts.find(charged.index)
        assert account is not None
        return Charge(account, charged.is_write, charged.units, charged.place, charged.key)


def _same(keys: dict[str, list[str]]) -> dict[str, list[str]]:
    return keys


class DecidingProcess:
    """A running process, and the stream to it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.catalog_version: int | None = None
        """Of the catalog that it has."""

    @staticmethod
    async def start() -> DecidingProcess:
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", MODULE, str(os.getpid())),
                stdin=theirs.fileno(),
                env=dict(os.environ),
            )
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        return DecidingProcess(process, reader, writer)

    async def decide(
        self, job: DecisionJob, answers: WorkerAnswers, draft: ValueDraft
    ) -> DecisionOutcome | JobDeclined:
        """Answer questions until there is an outcome; the changes go into the draft."""
        await self._send(encode(job))
        while True:
            message = decode_message(await self._read())
            if isinstance(message, DraftChange):
                draft.changes[message.key] = message.value
            elif isinstance(message, DecisionOutcome | JobDeclined):
                return message
            else:
                await self._send(encode(await answers.answer(message)))

    async def _send(self, content: bytes) -> None:
        self._writer.write(framed(content))
        await self._writer.drain()

    async def _read(self) -> bytes:
        head = await self._reader.readexactly(LENGTH.size)
        return await self._reader.readexactly(LENGTH.unpack(head)[0])

    async def end(self) -> None:
        self._writer.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
