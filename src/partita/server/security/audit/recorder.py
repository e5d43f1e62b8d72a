"""Which requests are written down, and when: with their answers, before these are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from partita.clock import Stopwatch, system_stopwatch
from partita.errors import DynamoDBError, InternalServerError
from partita.server.http.messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol.envelope import error_body
from partita.server.responses import JSON_1_0
from partita.server.rest import Asked
from partita.server.security.audit.budget import MINUTE, Dropped, StrangersBudget
from partita.server.security.audit.events import (
    NAMELESS,
    Sampled,
    changes_something,
    event,
    is_asked_for,
    is_data,
    named_in,
    names_of,
)
from partita.server.security.audit.log import AuditLog
from partita.server.security.audit.subjects import Subjects, json_body
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.directory import ACCOUNT_ID
from partita.server.security.limits import Window
from partita.server.security.policies.decision import Policies, Principal

SOURCES: Final = {
    b"DynamoDB_20120810": "dynamodb",
    b"DynamoDBStreams_20120810": "dynamodb",
    b"Kinesis_20131202": "kinesis",
    b"AWSStepFunctions": "states",
    b"PartitaAccess": "iam",
    b"PartitaBackup": "partita",
}
POLLED_SECONDS: Final = 3600.0
"""What one caller polls from one address has one line in that time."""
SUBJECT_CHARS_MAX: Final = 512
DROP_EVENTS: Final = "DropEvents"
NOT_WRITABLE: Final = (
    "The audit log cannot be written, so nothing may be changed: there must be space on its disk."
)
CallLater = Callable[[float, Callable[[], None]], object]

_SERVER: Final = Caller(
    Principal(f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/partita", ACCOUNT_ID),
    "AWSService",
    "partita",
    "",
    Policies(identity=()),
)
"""This server itself, which noticed something."""


class Recorder:
    """Whoever is refused without being known shares a budget; all others have every line."""

    def __init__(
        self,
        log: AuditLog,
        sampled: Sequence[Sampled] = (),
        stopwatch: Stopwatch = system_stopwatch,
        call_later: CallLater | None = None,
    ) -> None:
        """Without `call_later`, dropped lines are told of when the log is closed."""
        self._log = log
        self._sampled = sampled
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._unrecorded: set[bytes] = set()
        """Targets of requests for data, when none are asked for."""
        self._polled = Window(POLLED_SECONDS)
        self._budget = StrangersBudget()
        self._dropped = Dropped()

    def recorded(
        self,
        request: HttpRequest,
        caller: Caller | None,
        reply: Reply,
        rest: tuple[str, Asked | None] | None,
        subjects: Subjects,
    ) -> Reply | None:
        """What to reply with; None when the request has been refused already. `rest` is what is
        asked of a service whose protocol is REST."""
        target = request.headers.get(b"x-amz-target", b"")
        if rest is None and target in self._unrecorded:
            return reply
        asked: tuple[str, Asked] | None = None
        if rest is not None:
            source, found = rest
            if found is None:
                return reply
            asked = source, found
            operation = found.name
        else:
            service, _, name = target.partition(b".")
            if service not in SOURCES or request.method != b"POST":
                return reply
            source, operation = SOURCES[service], name.decode("latin-1")
        if caller is not None and caller.kind == "AWSService":
            # A part of this server, for somebody whose request is written down.
            return reply
        if is_data(operation) and not self._sampled:
            if rest is None:
                self._unrecorded.add(target)
            return reply
        if caller is None:
            # Nothing of a stranger's body is decoded, not even to see which table it is for.
            named = names_of(asked[1].members) if asked else {}
            return self.replying(source, operation, None, request, named, (), reply)
        names = names_of(asked[1].members) if asked else named_in(source, json_body(request))
        named = names or {}
        if is_data(operation) and operation not in NAMELESS:
            # One that cannot be read may be about any table.
            if names is not None and not is_asked_for(self._sampled, named):
                return reply
        arns = subjects.find(request, asked)
        if operation in NAMELESS:
            if arns and not is_asked_for(self._sampled, named, arns):
                return reply
        elif not is_data(operation) and changes_something(operation) and not self._log.is_writable:
            error: DynamoDBError = InternalServerError(NOT_WRITABLE)
            reply(HttpResponse(error.status, error_body(error), JSON_1_0))
            return None
        return self.replying(source, operation, caller, request, named, arns, reply)

    def replying(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        arns: Sequence[str],
        reply: Reply,
        *,
        is_polled: bool = False,
    ) -> Reply:
        """Replies when the line is written. What is polled has no line of its own unless it is the
        caller's first of its kind from that address in a while."""
        if is_polled and caller is not None:
            address = request.peer.address if request.peer else ""
            subject = " ".join((caller.access_key_id, address, operation, *named.values()))
            if self._polled.add(subject[:SUBJECT_CHARS_MAX], self._stopwatch()) > 1:
                return reply
        # Without the body, which may be large.
        kept = HttpRequest(request.method, request.target, request.headers)
        kept.peer = request.peer

        def write_down(response: HttpResponse) -> None:
            self.record(source, operation, caller, kept, named, response, arns)
            reply(response)

        return write_down

    def record(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        response: HttpResponse,
        arns: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """The one way into the log: here strangers have their budget, and fields their maxima."""
        now, address = self._stopwatch(), request.peer.address if request.peer else ""
        if caller is None and self._budget.is_used_up(address, now):
            if self._dropped.add(address) and self._call_later is not None:
                self._call_later(MINUTE, self._tell_of_dropped)
            return
        line = event(source, operation, caller, request, named, response, arns)
        if details is not None:
            line |= {"eventType": "AwsServiceEvent", "serviceEventDetails": details}
        if caller is None:
            self._budget.take(address, now, len(json.dumps(line)))
        self._log.append(line)

    def record_change_of_users(self) -> None:
        """Users and policies were changed by somebody who can write to the data folder."""
        self._record_own("iam", "UpdateUsers")

    def _tell_of_dropped(self) -> None:
        details = self._dropped.take()
        if details is not None:
            self._record_own("partita", DROP_EVENTS, details)

    def _record_own(
        self, source: str, operation: str, details: Mapping[str, Any] | None = None
    ) -> None:
        self.record(source, operation, _SERVER, HttpRequest(), {}, HttpResponse(200), (), details)

    def close(self) -> None:
        self._tell_of_dropped()
        self._log.close()
