"""The queue of large requests, which would keep all others waiting if the server decided them.

They are decided one at a time by another process (`large_request_worker.py`). That may take
seconds; during that time the server answers other requests, and the questions of the process. The
result is a draft: it is committed if what it read is unchanged, and otherwise decided again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from partita.database.execution.database_interface import DatabaseInterface
from partita.database.execution.optimistic.charged_once import ChargedOnce
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.storage.engine import ConflictDetected
from partita.errors import InternalServerError, ThrottlingException
from partita.foundation.service_limits import MB
from partita.server.admission import Admission
from partita.server.large_requests.deciding_process import (
    DecidingProcess,
    WorkerAnswers,
    outcome_answer,
)
from partita.server.large_requests.decision_messages import DecisionJob, JobDeclined

logger = logging.getLogger(__name__)

Done = Callable[[bytes | BaseException], None]

WAITING_BYTES_MAX = 256 * MB
"""With more bytes of waiting bodies, a request is throttled."""
WAITING_BYTES_PER_CALLER_MAX = 64 * MB
"""The same for one caller, in servers that authenticate their callers."""
ATTEMPTS_MAX = 4
"""How often a draft may conflict. Then the server decides the request itself, while others wait:
nothing can change in between."""
IDLE_SECONDS_MAX = 20.0
"""The process is ended when it has been idle for so long, to free its memory."""
FAILED = "The process that decides large requests has failed."
BUSY = "Too many large requests at once: try again in a moment."


class LargeRequest(NamedTuple):
    operation: str
    body: bytes
    admission: Admission
    decide_here: Callable[[], None]
    done: Done


class CallerTurns:
    """Waiting requests, taken from each caller in turn, so that no caller holds up the others."""

    def __init__(self) -> None:
        self._by_caller: dict[str, deque[LargeRequest]] = {}
        self._count = asyncio.Semaphore(0)

    @property
    def is_empty(self) -> bool:
        return not self._by_caller

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
            # A dict keeps its order: this caller is last now.
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
        """Queue a request, and call `done` with its answer or its error.

        `decide_here` is called instead if the process cannot decide the request.
        """
        if (deferred := self._database.deferred(done)) is None:
            decide_here()
            return
        whose = admission.whose
        own_bytes = self._waiting.bytes_of(whose) if whose else 0
        if (
            self._waiting_bytes + len(body) > WAITING_BYTES_MAX
            or own_bytes + len(body) > WAITING_BYTES_PER_CALLER_MAX
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
        """Decide requests one after the other, until there have been none for a while."""
        process: DecidingProcess | None = None
        try:
            while (request := await self._next()) is not None:
                try:
                    if process is not None and process.has_ended:
                        # It was killed while it was idle, which must not cost a request.
                        await process.end()
                        process = None
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
        while True:
            try:
                async with asyncio.timeout(IDLE_SECONDS_MAX):
                    return await self._waiting.get()
            except TimeoutError:
                # A request that comes as the time runs out found this task running.
                if self._waiting.is_empty:
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
            # It is cancelled when the server stops; the client is answered all the same.
            if not is_committed.done():
                is_committed.set_result(not has_conflict)

        self._database.commit_draft(draft, finish)
        return await is_committed
