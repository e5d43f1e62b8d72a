"""Starts the process that decides large requests, and answers its questions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

from partita.database.capacity.ledger import Charge
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.execution.database_interface import DatabaseInterface
from partita.database.execution.optimistic.charged_once import ChargedOnce
from partita.database.execution.optimistic.drafts import ValueDraft
from partita.database.operations import charges
from partita.errors import DynamoDBError
from partita.foundation import child_process
from partita.server.admission import Admission
from partita.server.large_requests.decision_messages import (
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
)

MODULE: Final = "partita.server.large_requests.large_request_worker"


class DecidingProcess:
    """A running process that decides large requests, and the socket to it."""

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
        """The version of the catalog that it was sent last."""

    @staticmethod
    async def start() -> DecidingProcess:
        process, connection = await child_process.start(MODULE)
        reader, writer = await asyncio.open_connection(sock=connection)
        return DecidingProcess(process, reader, writer)

    @property
    def has_ended(self) -> bool:
        return self._reader.at_eof() or self._process.returncode is not None

    async def decide(
        self, job: DecisionJob, answers: WorkerAnswers, draft: ValueDraft
    ) -> DecisionOutcome | JobDeclined:
        """Send a job, and answer questions until its outcome comes. Changes go into the draft."""
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
        self._writer.write(child_process.framed(content))
        await self._writer.drain()

    async def _read(self) -> bytes:
        content = await child_process.read_frame(self._reader)
        if content is None:
            raise ConnectionError("The process that decides large requests has ended.")
        return content

    async def end(self) -> None:
        self._writer.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class WorkerAnswers:
    """Answers the questions of the process in one run, and notes the values in the draft."""

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
        # Imported here: servers without `--auth` do not need it.
        from partita.server.security.rights.requested_rights import RequestedRight

        parts = [
            [
                RequestedRight(
                    right.action, right.resource, partial(_same, right.keys), right.policy
                )
                for right in part
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


def outcome_answer(outcome: DecisionOutcome) -> bytes | DynamoDBError:
    answer = outcome.answer
    if isinstance(answer, RemoteError):
        kind: type[DynamoDBError] = getattr(import_module(answer.module), answer.name)
        return kind(answer.message, **answer.members)
    return answer
