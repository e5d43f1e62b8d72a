"""Large requests of a database that several servers share: what is read takes a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from partita.database.changes import layout as change_layout
from partita.database.operations.charged_once import ChargedOnce
from partita.database.operations.context import OWN_REQUEST, ReadContext, Request
from partita.database.operations.drafts import Overtaken, ValueDraft
from partita.server.admission import Admission
from partita.server.large_requests.messages import Get, IsHeld, Outcome
from partita.server.large_requests.process import (
    Answers,
    Done,
    LargeRequests,
    answer_in,
    decided,
)

if TYPE_CHECKING:
    from partita.database.database import Database
    from partita.database.shared.database import SharedDatabase


class SharedLargeRequests(LargeRequests):
    def __init__(self, database: SharedDatabase) -> None:
        super().__init__(cast("Database", database))
        self._shared = database

    def forward(
        self,
        operation: str,
        body: bytes,
        admission: Admission,
        decide_here: Callable[[], None],
        done: Done,
    ) -> None:
        if self._shared.fence is not None:
            # It is known of a request only while it is taken.
            decide_here()
        else:
            super().forward(operation, body, admission, decide_here, self._shared.noted(done))

    def answers(self, draft: ValueDraft, charged: ChargedOnce, admission: Admission) -> Answers:
        return _SharedAnswers(self._shared, draft, charged, admission)

    async def count(self, outcome: Outcome, draft: ValueDraft, done: Done) -> None:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        keys = draft.checks.keys() | draft.figures.keys()
        if outcome.holds is None:

            def read(context: ReadContext, _: Request) -> bytes:
                draft.check(context.snapshot)
                return b""

            self._shared.submit_read(read, OWN_REQUEST, answered.set_result, keys=keys)
        else:
            decide = decided(outcome, draft)
            self._shared.submit_write(decide, OWN_REQUEST, answered.set_result, keys=keys)
        answer = await answered
        if isinstance(answer, Overtaken):
            raise answer
        done(answer_in(outcome) if answer == b"" else answer)


class _SharedAnswers(Answers):
    def __init__(
        self,
        database: SharedDatabase,
        draft: ValueDraft,
        charged: ChargedOnce,
        admission: Admission,
    ) -> None:
        super().__init__(cast("Database", database), draft, charged, admission)
        self._shared = database

    def _get(self, question: Get) -> Any:
        return self._fetched(question.key)

    async def _fetched(self, key: bytes) -> bytes | None:
        if key.startswith(change_layout.SEQUENCES):
            # A commit numbers what it appends; until then it is counted from nothing.
            self._draft.note(key, None)
            return None
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        kept: list[bytes | None] = []

        def read(context: ReadContext, _: Request) -> bytes:
            kept.append(context.snapshot.get(key))
            return b""

        self._shared.submit_read(read, OWN_REQUEST, found.set_result, keys={key})
        answer = await found
        if isinstance(answer, BaseException):
            raise answer
        self._draft.note(key, kept[-1])
        return kept[-1]

    def _is_held(self, question: IsHeld) -> bool:
        return False
