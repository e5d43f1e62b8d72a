"""Group commit: steps of many executions share a transaction. While transactions are under way,
further steps gather for the next one.

Each commit is atomic and has conditions of its own. When one fails, the others are sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from partita.client import ClientError
from partita_services.background_tasks import BackgroundTasks
from partita_services.record_table import Action, RecordConflict, action_bytes
from partita_services.workflows.running.storage.workflow_table import TRANSACTION_BYTES_MAX

logger = logging.getLogger(__name__)

ACTIONS_MAX = 100
UNDER_WAY_MAX = 4
REST_SECONDS = 0.5
CONDITION_FAILED = "ConditionalCheckFailed"
PASSING = {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
"""Cancellation reasons after which a commit is tried again."""


@dataclass(slots=True, eq=False)
class PendingCommit:
    actions: list[Action]
    size: int
    done: asyncio.Future[None]


class GroupCommits:
    """`transact` executes the actions of one transaction."""

    def __init__(self, transact: Callable[[list[Action]], Awaitable[None]]) -> None:
        self._transact = transact
        self._waiting: deque[PendingCommit] = deque()
        self._senders = BackgroundTasks()

    async def commit(self, actions: list[Action]) -> None:
        """Returns when the actions are durable. Raises RecordConflict when one of their conditions
        fails."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingCommit(actions, sum(map(action_bytes, actions)), done))
        if len(self._senders) < UNDER_WAY_MAX:
            self._senders.start(self._send_waiting())
        await done

    async def _send_waiting(self) -> None:
        # Wait for one turn of the event loop, whose commits share the transaction.
        await asyncio.sleep(0)
        while self._waiting:
            await self._send(self._gathered())

    def _gathered(self) -> list[PendingCommit]:
        gathered: list[PendingCommit] = []
        actions = size = 0
        while self._waiting:
            commit = self._waiting[0]
            actions, size = actions + len(commit.actions), size + commit.size
            if gathered and (actions > ACTIONS_MAX or size > TRANSACTION_BYTES_MAX):
                break
            gathered.append(self._waiting.popleft())
        return gathered

    async def _send(self, gathered: list[PendingCommit]) -> None:
        actions = [action for commit in gathered for action in commit.actions]
        try:
            await self._transact(actions)
        except ClientError as error:
            await self._sort_out(gathered, error)
        except BaseException as error:
            _settle(gathered, error)
            raise
        else:
            _settle(gathered)

    async def _sort_out(self, gathered: list[PendingCommit], error: ClientError) -> None:
        reasons = [reason["Code"] for reason in error.body.get("CancellationReasons", ())]
        refused = _refused(gathered, reasons)
        if refused:
            for commit, code in refused.items():
                _settle([commit], RecordConflict() if code == CONDITION_FAILED else error)
            again = [commit for commit in gathered if commit not in refused]
            # At the front and in their order: the others must not overtake commits that were made
            # earlier.
            self._waiting.extendleft(reversed(again))
        elif reasons or error.is_passing:
            logger.warning("Executions wait until the database accepts their steps: %s", error)
            self._waiting.extendleft(reversed(gathered))
            await asyncio.sleep(REST_SECONDS)
        elif len(gathered) > 1:
            for commit in gathered:
                await self._send([commit])
        else:
            _settle(gathered, error)


def _refused(gathered: list[PendingCommit], reasons: list[str]) -> dict[PendingCommit, str]:
    """The commits that must not be tried again, each with the reason."""
    refused, start = {}, 0
    for commit in gathered:
        end = start + len(commit.actions)
        for code in reasons[start:end]:
            if code not in PASSING:
                refused[commit] = code
        start = end
    return refused


def _settle(commits: list[PendingCommit], error: BaseException | None = None) -> None:
    for commit in commits:
        if commit.done.done():
            continue
        if error is None:
            commit.done.set_result(None)
        else:
            commit.done.set_exception(error)
