"""The process that decides large requests, one at a time; it never writes anything.

`python -m partita.server.large_requests.large_request_worker PID` is started by the server, with a
socket as its standard input, and ends when that does.
"""

from __future__ import annotations

import gc
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from partita.database.logs.event_log.event_streams import EventStreams
from partita.database.logs.event_log.shard_throughput import ShardThroughput
from partita.database.operations.operation_context import (
    DatabaseService,
    PermittedRequest,
    ReadContext,
    WriteContext,
)
from partita.database.operations.operation_registry import ONLY_READS, READS, WRITES
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_catalog import TableCatalog
from partita.errors import AccessDeniedException, DynamoDBError
from partita.foundation import child_process
from partita.foundation.clock import system_stopwatch
from partita.server.large_requests.decision_messages import (
    AuthorizeParts,
    DecisionJob,
    DecisionOutcome,
    DraftChange,
    JobDeclined,
    Message,
    Question,
    RemoteError,
    RequiredRight,
    decode_job,
    encode,
)
from partita.server.large_requests.remote_state import RangeNeeded, RemoteLedger, RemoteState
from partita.server.protocol import json_codec
from partita.server.protocol.request_validation import Validator, compile_validators


class LargeRequestWorker:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._messages = connection.makefile("rb")
        self._validators: dict[str, Validator] = {}
        self._catalog = TableCatalog(CatalogRows([]))
        self._now = 0.0

    def run(self) -> None:
        while (content := self._read()) is not None:
            self._send(self._decide(decode_job(content)))
            # Automatic collection is off: it would only slow down a large request.
            gc.collect()

    def _decide(self, job: DecisionJob) -> Message:
        if job.tables is not None:
            self._catalog = TableCatalog(CatalogRows(job.tables))
        self._now = job.now
        try:
            request = json_codec.decode_large(job.body)
            self._validator(job.operation)(request)
            permitted = self._permitted(job, request)
            only_reads = ONLY_READS.get(job.operation)
            if job.operation not in WRITES or (only_reads and only_reads(request)):
                return DecisionOutcome(self._read_items(job, permitted), None)
            return self._draft(job, permitted)
        except DynamoDBError as error:
            return DecisionOutcome(_refused(error), None)
        except RangeNeeded:
            return JobDeclined()

    def _permitted(self, job: DecisionJob, request: dict[str, Any]) -> PermittedRequest:
        """The server knows the caller and is asked which rights it has."""
        if not job.is_guarded:
            return PermittedRequest(request)
        # Most servers ask nobody for rights.
        from partita.server.security.rights import item_rights, partiql_rights, requested_rights

        rights = {**item_rights.RIGHTS, **partiql_rights.RIGHTS}[job.operation]
        parts = [
            [
                RequiredRight(need.action, need.resource, _listed(need.keys()), need.policy)
                for need in part
            ]
            for part in requested_rights.parts_of(
                job.operation, rights, self._service(job), request
            )
        ]
        denials = self._ask(AuthorizeParts(parts))
        return requested_rights.permitted(
            request, [None if text is None else AccessDeniedException(text) for text in denials]
        )

    def _read_items(self, job: DecisionJob, permitted: PermittedRequest) -> bytes:
        state = RemoteState(self._ask, self._clock, is_latest=False)
        context = ReadContext(self._service(job), state, state.is_held, permitted.refusals)
        return READS[job.operation](context, permitted.request)

    def _draft(self, job: DecisionJob, permitted: PermittedRequest) -> DecisionOutcome:
        write_batch = WriteBatch(RemoteState(self._ask, self._clock, is_latest=True))
        context = WriteContext(self._service(job), write_batch, permitted.refusals)
        try:
            answer: bytes | RemoteError = WRITES[job.operation](context, permitted.request)
        except DynamoDBError as error:
            # The refusal depends on what was read, so the read set is checked as for a draft.
            return DecisionOutcome(_refused(error), [])
        for key, value in write_batch.changes.items():
            self._send(DraftChange(key, value))
        return DecisionOutcome(answer, write_batch.holds)

    def _service(self, job: DecisionJob) -> DatabaseService:
        ledger = RemoteLedger(self._ask, self._clock, job.capacity)
        ledger.is_on = job.is_charged
        return DatabaseService(
            self._catalog,
            self._clock,
            system_stopwatch,
            job.region,
            job.account_id,
            0.0,
            ledger,
            EventStreams(CatalogRows([])),
            ShardThroughput(self._clock),
            is_lenient=job.is_lenient,
        )

    def _validator(self, operation: str) -> Validator:
        if operation not in self._validators:
            self._validators |= compile_validators((operation,))
        return self._validators[operation]

    def _clock(self) -> float:
        return self._now

    def _ask(self, question: Question) -> Any:
        self._send(question)
        content = self._read()
        if content is None:
            raise SystemExit
        return msgspec.msgpack.decode(content)

    def _send(self, message: Message) -> None:
        self._connection.sendall(child_process.framed(encode(message)))

    def _read(self) -> bytes | None:
        """The next message, or None when the server has ended."""
        return child_process.receive_frame(self._messages)


class CatalogRows:
    """The rows of a catalog, in the form of a snapshot."""

    def __init__(self, tables: list[bytes]) -> None:
        self._tables = tables

    def get(self, key: bytes) -> bytes | None:
        return None

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return ((start, table) for table in self._tables)


def _listed(keys: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(values) for name, values in keys.items()}


def _refused(error: DynamoDBError) -> RemoteError:
    kind = type(error)
    return RemoteError(kind.__module__, kind.__name__, error.message, error.members)


def main(server_pid: str) -> None:
    child_process.begin(int(server_pid))
    # Ctrl+C reaches both processes; the server decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    with socket.socket(fileno=0) as connection:
        LargeRequestWorker(connection).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
