"""Which requests are written down, and when: with their answers, before these are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from partita.errors import DynamoDBError, InternalServerError
from partita.foundation.clock import Stopwatch, system_stopwatch
from partita.server.http.http_messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0
from partita.server.protocol.error_body import error_body
from partita.server.protocol.rest import RestCall
from partita.server.security.abuse_limits import RateWindow
from partita.server.security.audit.audit_budget import MINUTE, DroppedEvents, UnauthenticatedBudget
from partita.server.security.audit.audit_events import (
    SampledTable,
    changes_something,
    event,
    is_data,
    is_sampled,
    is_success,
    named_in,
    names_of,
    tables_in,
    tables_of,
)
from partita.server.security.audit.audit_log import AuditLog
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.user_directory import ACCOUNT_ID
from partita.server.security.policies.policy_decision import CallerPolicies, Principal

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
    CallerPolicies(identity=()),
)
"""This server itself, which noticed something."""


class AuditRecorder:
    """Whoever is refused without being known shares a budget; all others have every line."""

    def __init__(
        self,
        log: AuditLog,
        sampled: Sequence[SampledTable] = (),
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
        self._polled = RateWindow(POLLED_SECONDS)
        self._budget = UnauthenticatedBudget()
        self._dropped = DroppedEvents()

    def recorded(
        self,
        request: HttpRequest,
        caller: Caller | None,
        reply: Reply,
        rest: tuple[str, RestCall | None] | None,
        resources: Sequence[str],
    ) -> Reply | None:
        """What to reply with; None when the request has been refused already. `rest` is what is
        asked of a service whose protocol is REST. `resources` are known when there is a reply."""
        target = request.headers.get(b"x-amz-target", b"")
        if rest is None and target in self._unrecorded:
            return reply
        source, operation, members = _asked(request, target, rest)
        if is_data(operation) and not self._sampled:
            if rest is None:
                self._unrecorded.add(target)
            return reply
        if caller is None:
            # Nothing of a stranger's body is decoded, not even to see which table it is for.
            named = names_of(members or {})
            return self.replying(source, operation, None, request, named, (), reply)
        if not operation or caller.kind == "AWSService":
            # That is a part of this server, for somebody whose request is written down.
            return reply
        if is_data(operation):
            return self._sampling(source, operation, caller, request, members, resources, reply)
        if changes_something(operation) and not self._log.is_writable:
            error: DynamoDBError = InternalServerError(NOT_WRITABLE)
            reply(HttpResponse(error.status, error_body(error), JSON_1_0))
            return None
        found = named_in(source, request.body) if members is None else names_of(members)
        return self.replying(source, operation, caller, request, found or {}, resources, reply)

    def _sampling(
        self,
        source: str,
        operation: str,
        caller: Caller,
        request: HttpRequest,
        members: Mapping[str, Any] | None,
        resources: Sequence[str],
        reply: Reply,
    ) -> Reply:
        """Writes a request for data down if it is for a table whose requests are asked for."""

        def named() -> dict[str, Any] | None:
            return named_in(source, request.body) if members is None else names_of(members)

        def is_asked_for() -> bool:
            if resources:
                return is_sampled(self._sampled, tables_of(resources))
            # It was refused before anybody knew what it is about: one that cannot even be read is
            # written down.
            found = named()
            return found is None or is_sampled(self._sampled, tables_in(found))

        def write_down(response: HttpResponse) -> None:
            if is_asked_for():
                self.record(source, operation, caller, request, named() or {}, response, resources)
            reply(response)

        return write_down

    def replying(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        resources: Sequence[str],
        reply: Reply,
        *,
        is_polled: bool = False,
    ) -> Reply:
        """Replies when the line is written. What is polled has no line of its own unless it is
        refused, or the caller's first of its kind from that address in a while."""
        # Without the body, which may be large.
        kept = HttpRequest(request.method, request.target, request.headers)
        kept.peer = request.peer

        def write_down(response: HttpResponse) -> None:
            is_usual = is_polled and is_success(response)
            if not is_usual or self._is_first(caller, kept, operation, named):
                self.record(source, operation, caller, kept, named, response, resources)
            reply(response)

        return write_down

    def _is_first(
        self, caller: Caller | None, request: HttpRequest, operation: str, named: Mapping[str, str]
    ) -> bool:
        address = request.peer.address if request.peer else ""
        key = caller.access_key_id if caller is not None else ""
        subject = " ".join((key, address, operation, *named.values()))
        return self._polled.add(subject[:SUBJECT_CHARS_MAX], self._stopwatch()) == 1

    def record(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        response: HttpResponse,
        resources: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """The one way into the log: here strangers have their budget, and fields their maxima."""
        now, address = self._stopwatch(), request.peer.address if request.peer else ""
        if caller is None and self._budget.is_used_up(address, now):
            if self._dropped.add(address) and self._call_later is not None:
                self._call_later(MINUTE, self.tell_of_dropped)
            return
        line = event(source, operation, caller, request, named, response, resources)
        if details is not None:
            line |= {"eventType": "AwsServiceEvent", "serviceEventDetails": details}
        if caller is None:
            self._budget.take(address, now, len(json.dumps(line)))
        self._log.append(line)

    def record_change_of_users(self) -> None:
        """Users and policies were changed by somebody who can write to the data folder."""
        self.record_own("iam", "UpdateUsers")

    def tell_of_dropped(self) -> None:
        """Say in one line how many were dropped since the last such line, if any were."""
        details = self._dropped.take()
        if details is not None:
            self.record_own("partita", DROP_EVENTS, details)

    def record_own(
        self, source: str, operation: str, details: Mapping[str, Any] | None = None
    ) -> None:
        """Something that the server itself has noticed."""
        self.record(source, operation, _SERVER, HttpRequest(), {}, HttpResponse(200), (), details)

    def close(self) -> None:
        self.tell_of_dropped()
        self._log.close()


def _asked(
    request: HttpRequest, target: bytes, rest: tuple[str, RestCall | None] | None
) -> tuple[str, str, Mapping[str, Any] | None]:
    """The service, the operation and the members that are known already; without an operation if
    there is no such service or path."""
    if rest is not None:
        source, asked = rest
        return (source, "", {}) if asked is None else (source, asked.name, asked.members)
    service, _, name = target.partition(b".")
    if service not in SOURCES or request.method != b"POST":
        return "partita", "", {}
    return SOURCES[service], name.decode("latin-1"), None
